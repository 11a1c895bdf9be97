"""The peers of a comparison: they give their own libraries' numbers and are judged on the same messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from river import compose, feature_extraction, naive_bayes

from streamnb.base.batch import Batch, Label
from streamnb.cli.peers import PEERS, peer
from streamnb.cli.peers.vowpal import our_tokens
from streamnb.config import Settings, build_model, load_settings
from streamnb.errors import DataError, SettingsError
from streamnb.evaluation import Contender, Prequential, beside_the_first, compare, evaluate
from streamnb.naive_bayes.features.readers import WordPairs, Words
from streamnb.naive_bayes.features.shapes import Shapes
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from tests.cli.test_cli import SPAM, streamnb
from tests.support.streams import lines_of

TEXTBOOK = Path(__file__).parents[2] / "configs" / "textbook.toml"


def messages(n: int) -> tuple[list[str], list[Label | None]]:
    """Return texts and labels of the mailbox's first `n` messages; some have no label."""
    mails = [orjson.loads(line) for line in lines_of("mailbox")[:n]]
    return [mail["text"] for mail in mails], [mail["label"] for mail in mails]


def in_batches(texts: Sequence[str], labels: Sequence[Label | None], size: int) -> list[Batch]:
    """Return the messages in batches of `size`."""
    return [Batch({"text": texts[i : i + size]}, labels[i : i + size]) for i in range(0, len(texts), size)]


def test_all_peers_are_judged_by_the_same_messages() -> None:
    """Every peer has the same n and the same new classes, even one that learns in batches, and all learn."""
    texts, labels = messages(800)
    contenders = [Contender(name, peer(name, Settings(), ["ham", "spam"]), Prequential()) for name in PEERS]
    for _ in compare(contenders, in_batches(texts, labels, 150)):
        pass
    found = [figures for figures, _ in beside_the_first(contenders)]
    assert len({(figures.n, figures.new_class, figures.window.n) for figures in found}) == 1
    assert found[0].new_class == 2
    for contender, figures in zip(contenders, found, strict=True):
        assert figures.accuracy > 0.85, contender.name
        assert figures.roca_loss_pct is not None, contender.name


def test_the_peer_river_gives_the_posterior_of_rivers_own_pipeline() -> None:
    """They are compared once both classes have been learned, since nothing is judged before that."""
    texts, labels = messages(300)
    theirs = compose.Pipeline(
        feature_extraction.BagOfWords(lowercase=True, strip_accents=False, tokenizer_pattern=r"\w\w+"),
        naive_bayes.MultinomialNB(alpha=1.0),  # type: ignore[no-untyped-call]
    )
    ours = peer("river", Settings(), ["spam", "ham"])
    seen: set[Label] = set()
    for text, label in zip(texts, labels, strict=True):
        scores = ours.step(Batch({"text": [text]}, [label]))
        expected = theirs.predict_proba_one(text)  # type: ignore[arg-type]
        if len(seen) == 2:
            found = dict(zip(scores.classes, scores.posterior[0].tolist(), strict=True))
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-300)
        if label is not None:
            theirs.learn_one(text, label)  # type: ignore[arg-type]
            seen.add(label)


def test_the_peer_mnb_equals_the_textbook_configuration() -> None:
    """Both use the configuration's tokens, Laplace 1 and the product head."""
    texts, labels = messages(300)
    settings = load_settings(TEXTBOOK)
    two = [
        Contender("textbook", build_model(settings), Prequential()),
        Contender("mnb", peer("mnb", settings, []), Prequential()),
    ]
    for _ in compare(two, in_batches(texts, labels, 77)):
        pass
    (first, _), (second, apart) = beside_the_first(two)
    assert second.log_loss == first.log_loss
    assert apart is not None
    assert (apart.log_loss, apart.mcnemar_p) == (0.0, 1.0)


@pytest.mark.parametrize("name", PEERS)
def test_the_batches_do_not_matter_to_a_peer_that_learns_one_by_one(name: str) -> None:
    """With three classes too; scikit-learn learns in batches and is the exception."""
    texts, labels = messages(120)
    three: list[Label | None] = ["list" if i % 7 == 0 and label else label for i, label in enumerate(labels)]
    found = []
    for size in (120, 31):
        judged = peer(name, Settings(), ["list", "ham", "spam"])
        (*_, (judgement, _)) = evaluate(judged, in_batches(texts, three, size))
        found.append(judgement.outcomes().loss.tolist())
    assert (found[0] == found[1]) == (name != "sklearn")


def test_tokens_stay_tokens_on_the_way_to_vowpalwabbit() -> None:
    """Bars, colons and spaces are escaped, and every view has its own namespace."""
    line = our_tokens([Words(), WordPairs()], Tokenizer())
    assert line("a:b | c").count("|") == 2
    assert line("win: now") == "|a win %3a now |b win%20%3a %3a%20now"
    assert our_tokens([Words(), Shapes()], Tokenizer())("WIN: 1000") == "|a win %3a 1000 |b XX+ %3a 99+"


def test_a_label_that_was_not_announced_is_refused() -> None:
    """Most peers must know all classes in advance."""
    with pytest.raises(DataError, match="'list' is not among the classes"):
        peer("vw", Settings(), ["ham", "spam"]).step(Batch({"text": ["a"]}, ["list"]))


def test_an_unknown_or_uninstalled_peer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error lists the peers, or names what to install."""
    with pytest.raises(
        SettingsError, match=r"`libbow` is not a model to compare with\. Name a \.toml file or one of"
    ):
        peer("libbow", Settings(), [])

    def missing(module: str) -> None:
        raise ImportError(module)

    monkeypatch.setattr("streamnb.cli.peers.base.import_module", missing)
    for name in ("river", "sklearn", "vw"):
        with pytest.raises(SettingsError, match=r"pip install 'streamnb\[compare\]'"):
            peer(name, Settings(), ["a", "b"])


def test_compare_prints_a_row_a_model(tmp_path: Path) -> None:
    """The first row has no difference; a configuration for other messages is refused."""
    path = tmp_path / "mail.jsonl"
    path.write_bytes(b"\n".join(lines_of("mailbox")[:300]))
    done = streamnb("evaluate", str(path), "--config", SPAM, "--compare", f"mnb,{TEXTBOOK},vw", "--json")
    rows = orjson.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert [row["model"] for row in rows] == ["spam.toml", "mnb", "textbook.toml", "vw"]
    assert [row["difference"] is None for row in rows] == [True, False, False, False]
    assert 0 <= rows[1]["difference"]["mcnemar_p"] <= 1
    table = streamnb("evaluate", str(path), "--config", SPAM, "--compare", "mnb").stdout.decode()
    assert "McNemar p" in table
    assert "against spam.toml" in table

    other = tmp_path / "other.toml"
    other.write_text('[message]\nlabel = "class"\n')
    refused = streamnb("evaluate", str(path), "--config", SPAM, "--compare", str(other))
    assert refused.returncode == 2
    assert b"differs from that of the configuration" in refused.stderr
    piped = streamnb("evaluate", "-", "--config", SPAM, "--compare", "vw", stdin=path.read_bytes())
    assert piped.returncode == 2
    assert b"standard input cannot be read twice" in piped.stderr
