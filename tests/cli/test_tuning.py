"""Tuning: candidates are compared on the first part of a stream, and the best is checked on the rest."""

from __future__ import annotations

import tomllib
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.batch import Batch, Label
from streamnb.cli.tuning import Candidate, Tuned, candidates, toml, tune
from streamnb.config import Settings, build_model, load_settings
from streamnb.errors import DataError, SettingsError
from streamnb.evaluation import Evaluation, Prequential, evaluate
from tests.cli.test_cli import SPAM, streamnb
from tests.support.streams import lines_of

TEXTBOOK = Path(__file__).parents[2] / "configs" / "textbook.toml"


def mails(n: int) -> tuple[list[str], list[Label | None]]:
    """Return texts and labels of the mailbox's first `n` labelled messages."""
    found = [mail for line in lines_of("mailbox")[: 2 * n] if (mail := orjson.loads(line))["label"]][:n]
    return [mail["text"] for mail in found], [mail["label"] for mail in found]


def batches(texts: list[str], labels: list[Label | None], size: int) -> list[Batch]:
    """Return the messages in batches of `size`."""
    return [Batch({"text": texts[i : i + size]}, labels[i : i + size]) for i in range(0, len(texts), size)]


def tuned(grid: list[Candidate], n: int, n_first: int, size: int = 70) -> Tuned:
    """Return the result of tuning `textbook.toml` on the mailbox."""
    *_, found = tune(TEXTBOOK, (), grid, batches(*mails(n), size), n_first)
    assert found is not None
    return found


def alone(change: str, n: int, n_first: int) -> tuple[Evaluation, Evaluation]:
    """Evaluate one candidate alone: return its figures on the first part and on the rest."""
    model = build_model(load_settings(TEXTBOOK, [change] if change else []))
    texts, labels = mails(n)
    figures = []
    for part in (slice(n_first), slice(n_first, None)):
        judgement = Prequential(warm_up=0)
        for _ in evaluate(model, batches(texts[part], labels[part], 1000), judgement=judgement):
            pass
        figures.append(judgement.figures(model.classes_))
    return figures[0], figures[1]


@pytest.mark.parametrize("size", [1, 70, 1000])
def test_every_candidate_is_judged_as_if_it_were_alone(size: int) -> None:
    """Batches of any size give the same figures; on the rest, the model has learned the first part."""
    grid = candidates(Settings(), ["tokens.token_length_min=1,3", "tokens.token_length_max=4,64"])
    assert len(grid) == 4
    found = tuned(grid[1:3], 300, 140, size)
    changes = ["", *(one.changes for one in grid[1:3])]
    for (_, figures), change in zip(found.first, changes, strict=True):
        model = build_model(load_settings(TEXTBOOK, list(change)))
        judgement = Prequential(warm_up=0)
        texts, labels = mails(300)
        for _ in evaluate(model, batches(texts[:140], labels[:140], 1000), judgement=judgement):
            pass
        assert figures.log_loss == pytest.approx(judgement.figures(model.classes_).log_loss, rel=1e-12)
    assert found.given.log_loss == pytest.approx(alone("", 300, 140)[1].log_loss, rel=1e-12)
    assert found.given.n == 160


def test_the_best_of_the_first_part_is_reported_on_the_rest() -> None:
    """Its difference from the given settings is reported; it keeps what it learned on the first part."""
    wild = Candidate("wild", ("tokens.token_length_max=1",))
    better = Candidate("calm", ('model.head="calibrated"',))
    found = tuned([wild, better], 600, 300)
    assert found.best is better
    assert found.rest.log_loss == pytest.approx(alone(better.changes[0], 600, 300)[1].log_loss, rel=1e-12)
    assert found.apart is not None
    assert found.apart.log_loss == pytest.approx(found.rest.log_loss - found.given.log_loss)


def test_the_given_settings_win_a_tie() -> None:
    """There is then no difference to report."""
    found = tuned([Candidate("same", ("tokens.token_length_min=1",))], 200, 100)
    assert found.best.changes == ()
    assert found.apart is None
    assert found.rest is found.given


def test_a_first_part_that_is_the_whole_stream_is_refused() -> None:
    """No labelled message is left for the rest."""
    with pytest.raises(DataError, match="No labelled message is left"):
        tuned([], 50, 50)


def test_a_first_part_without_a_judged_message_is_refused() -> None:
    """Every message of the first part is the first of its class."""
    with pytest.raises(DataError, match="no labelled message has a class that was learned before it"):
        tuned([], 50, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('message.text=["subject"]', "differs from that of the configuration"),
        ('message.label_values={ham = "good"}', "differs from that of the configuration"),
        ("forgetting.half_life_s=60", "lines of a file have none"),
        ('views=[{name="a", reader={kind="category", field="a"}}]', "uses the field `a`"),
    ],
)
def test_a_candidate_that_needs_other_messages_is_refused(change: str, said: str) -> None:
    """The lines are decoded once, with the given settings."""
    with pytest.raises(SettingsError, match=said):
        tuned([Candidate(change, (change,))], 50, 25)


def test_the_default_grid_is_smoothing_views_and_half_lives_and_loads() -> None:
    """Each candidate is valid TOML and valid settings; views that do not read text are kept."""
    mixed = load_settings(
        Path(SPAM),
        ['views=[{name="w", reader={kind="words"}}, {name="c", reader={kind="category", field="c"}}]'],
    )
    for settings, views in ((load_settings(Path(SPAM)), 0), (mixed, 1)):
        grid = candidates(settings, ())
        *of_views, shorter, longer = grid
        assert len(of_views) == 16
        for one in of_views:
            (line,) = one.changes
            assert "views" in tomllib.loads(line)
            assert len(load_settings(Path(SPAM), [line]).views) == one.name.count("+") + 1 + views
        half_lives = [
            load_settings(Path(SPAM), one.changes).forgetting.half_life_messages for one in (shorter, longer)
        ]
        assert half_lives == [1000, 4000]
    timed = load_settings(Path(SPAM), ["forgetting.half_life_s=60"])
    assert len(candidates(timed, ())) == 16


def test_a_grid_of_another_form_is_refused() -> None:
    """The error quotes the line and the expected form, or the number of combinations."""
    with pytest.raises(SettingsError, match=r"--grid alpha: expected table\.key=value,value\."):
        candidates(Settings(), ["alpha"])
    with pytest.raises(SettingsError, match="The grid has 100 combinations, more than 64"):
        candidates(Settings(), [f"a={','.join(map(str, range(10)))}", f"b={','.join(map(str, range(10)))}"])


VALUES = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text("ab\"\\\n' é", max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_", min_size=1), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(VALUES)
def test_toml_writes_a_value_that_parses_to_the_same_value(value: object) -> None:
    """It is one line, so that it can be passed to --set."""
    line = f"value = {toml(value)}"
    assert "\n" not in line
    assert tomllib.loads(line)["value"] == value


def test_tune_prints_whether_the_difference_is_noise(tmp_path: Path) -> None:
    """The sentence agrees with the JSON object; standard input is refused."""
    path = tmp_path / "mail.jsonl"
    path.write_bytes(b"\n".join(lines_of("mailbox")[:400]))
    words = ("tune", str(path), "--config", str(TEXTBOOK), "--grid", 'model.head="calibrated","product"')
    told = streamnb(*words).stdout.decode()
    found = orjson.loads(streamnb(*words, "--json").stdout)
    assert "3 models at once" in told
    low, high = found["apart"]["interval"]
    assert ("within noise" in told) == found["apart"]["within_noise"] == (low <= 0 <= high)
    assert found["best"]["changes"] == ['model.head="calibrated"']
    piped = streamnb("tune", "-", "--config", SPAM, stdin=b"")
    assert piped.returncode == 2
    assert piped.stderr.count(b"\n") == 1
