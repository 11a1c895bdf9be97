"""Forgetting by half-life: what a message weighs by its time, and that decayed sums keep the properties of
sums.
"""

from __future__ import annotations

import copy
import math
import os
import random
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamnb.base.batch import Batch, Label
from streamnb.config import build_model, check_lines, decode_settings
from streamnb.config.engines import assemble
from streamnb.engine.dead_letters import DeadLetterLimits, DeadLetters
from streamnb.engine.engine import Engine
from streamnb.engine.metrics import Metrics
from streamnb.engine.model import Model
from streamnb.engine.settings import EngineSettings, SnapshotSettings
from streamnb.errors import SettingsError, SnapshotError
from streamnb.evaluation import LiveEvaluation
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import (
    Bernoulli,
    Binned,
    Categorical,
    Gaussian,
    Multinomial,
    Multivariate,
)
from streamnb.naive_bayes.event_models.priors import FixedPrior, LearnedPrior, UniformPrior
from streamnb.naive_bayes.event_models.smoothing import Beta, Dirichlet, Laplace
from streamnb.naive_bayes.features.readers import (
    Categories,
    Category,
    CharacterGrams,
    Ends,
    Flags,
    Number,
    Numbers,
    WordPairs,
    Words,
)
from streamnb.naive_bayes.model.scoring import evidence_of, read_now
from streamnb.naive_bayes.model.state import HeadKind
from streamnb.naive_bayes.model.view import EVERY_FIELD, TEXT_ONLY, View
from streamnb.naive_bayes.statistics import batch_decay, forgetting
from streamnb.naive_bayes.statistics.batch_decay import Plan
from streamnb.naive_bayes.statistics.decay import FORGOTTEN
from streamnb.naive_bayes.statistics.forgetting import Decay, Forgetting
from streamnb.transports.memory import MemoryClock, MemoryLog, MemorySink, MemorySource
from streamnb.wire.message import Decoder, MessageFields
from streamnb.wire.score import Output
from tests.engine.test_engine import MemoryStore
from tests.support.twins import held as _held
from tests.support.twins import said as _said

DAY = 86400.0
NOON_2026 = 1_767_268_800.0

Row = tuple[dict[str, object], str, float, float]
"""Fields, label, weight, and a time in half-lives past the first."""

VIEWS: dict[str, list[View]] = {
    "words": [View("w", Words(), Multinomial(Laplace(1.0), "counts", "smooth"))],
    "background": [View("w", Words(), Multinomial(Dirichlet(10.0), "log"))],
    "complement": [View("w", Words(), Multinomial(Laplace(1.0), complement=True))],
    "coins": [View("w", Words(), Bernoulli(Beta(0.5, 2.0)))],
    "categories": [View("c", Categories(fields=("kind",)), Categorical(Laplace(0.5)))],
    "a category": [View("c", Category("kind"))],
    "flags": [View("f", Flags(fields=("sold",)))],
    "numbers": [View("n", Numbers(fields=("size", "age")), Gaussian(2.0))],
    "numbers, shared": [View("n", Numbers(fields=("size",)), Gaussian(variance="shared"))],
    "a number": [View("n", Number("size"))],
    "a covariance": [View("n", Numbers(fields=("size", "age")), Multivariate(messages_per_coordinate=2.0))],
    "a covariance a class": [View("n", Numbers(fields=("size", "age")), Multivariate("class"))],
    "ranges": [View("n", Numbers(fields=("size",)), Binned((0.0, 1.0)))],
}
EACH = pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS)
PURE = os.environ.get("STREAMNB_PURE", "") not in {"", "0"}
TWINS = pytest.mark.parametrize("compiled", [False] if PURE else [False, True])

MESSAGE = st.fixed_dictionaries(
    {
        "text": st.lists(st.sampled_from("abcdefgh"), max_size=5).map(" ".join),
        "kind": st.sampled_from([None, "red", "blue"]),
        "sold": st.sampled_from([None, True, False]),
        "size": st.sampled_from([None, -3.0, 0.0, 1.5, 7.25]),
        "age": st.sampled_from([None, 1.0, 2.0, 40.0]),
    }
)
ROWS: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(
        MESSAGE,
        st.sampled_from(["ham", "spam", "work"]),
        st.sampled_from([1.0, 0.5, 3.0]),
        st.floats(0.0, 12.0, allow_nan=False).map(lambda x: round(x, 3)),
    ),
    min_size=1,
    max_size=12,
)
FIELDS = ("text", "kind", "sold", "size", "age")


def _at(halves: float) -> float:
    return NOON_2026 + halves * DAY


def _makes(views: Sequence[View], **how: object) -> NaiveBayes:
    return NaiveBayes(views, head="product", **how)  # type: ignore[arg-type]


def _forgets(views: Sequence[View] = TEXT_ONLY, **how: object) -> NaiveBayes:
    return NaiveBayes(views, half_life_s=DAY, time_skew_max_s=1e9, **how)  # type: ignore[arg-type]


def _learn(model: NaiveBayes, rows: Sequence[Row]) -> None:
    for x, y, weight, halves in rows:
        model.learn_one(x, y, weight, at=_at(halves))


def _batch(rows: Sequence[Row], labels: Sequence[Label | None] | None = None) -> Batch:
    return Batch(
        {field: [x.get(field) for x, _, _, _ in rows] for field in FIELDS},
        [y for _, y, _, _ in rows] if labels is None else labels,
        [weight for _, _, weight, _ in rows],
        [_at(halves) for _, _, _, halves in rows],
    )


def _close(a: dict[Label, float], b: dict[Label, float], tolerance: float = 1e-9) -> bool:
    return a.keys() == b.keys() and all(math.isclose(a[c], b[c], rel_tol=0, abs_tol=tolerance) for c in a)


# ---- what it means


@EACH
@given(ROWS, MESSAGE, st.floats(0.0, 13.0))
@settings(max_examples=12)
def test_forgetting_is_weighing_every_message_anew(
    views: list[View], rows: list[Row], x: dict[str, object], now: float
) -> None:
    """The oracle keeps the whole stream and recomputes each message's weight, halved every half-life, at each
    score.
    """
    model, oracle = _makes(views, half_life_s=DAY, time_skew_max_s=1e9), _makes(views)
    _learn(model, rows)
    for fields, y, weight, halves in rows:
        oracle.learn_one(fields, y, weight * 2.0 ** (halves - now))

    found, expected = (m.predict_proba_one(x, at=_at(now)) for m in (model, oracle))

    assert _close(found, expected)


@EACH
@given(ROWS, MESSAGE)
@settings(max_examples=8)
def test_a_half_life_in_messages_counts_messages_learned(
    views: list[View], rows: list[Row], x: dict[str, object]
) -> None:
    """It is the same oracle, with the number of messages since as the time."""
    model, oracle = _makes(views, half_life_messages=2.0), _makes(views)
    for i, (fields, y, weight, _) in enumerate(rows):
        model.learn_one(fields, y, weight)
        oracle.learn_one(fields, y, weight * 2.0 ** ((i - len(rows)) / 2.0))

    assert _close(model.predict_proba_one(x), oracle.predict_proba_one(x))


@pytest.mark.parametrize("prior", [LearnedPrior(2.0), UniformPrior(), FixedPrior({"ham": 0.9})])
@given(ROWS)
@settings(max_examples=10)
def test_priors_and_declared_classes_fade_with_the_rest(
    prior: LearnedPrior | UniformPrior | FixedPrior, rows: list[Row]
) -> None:
    """Their pseudo-messages weigh as much as a message of now."""
    how = {"prior": prior, "classes": ("never",)}
    model = _makes(VIEWS["words"], half_life_s=DAY, time_skew_max_s=1e9, **how)
    oracle = _makes(VIEWS["words"], **how)
    _learn(model, rows)
    for fields, y, weight, halves in rows:
        oracle.learn_one(fields, y, weight * 2.0 ** (halves - 5.0))

    found, expected = (m.predict_proba_one({"text": "a b"}, at=_at(5.0)) for m in (model, oracle))

    assert _close(found, expected)


@given(ROWS)
@settings(max_examples=12)
def test_the_calibrated_heads_features_are_those_of_faded_counts(rows: list[Row]) -> None:
    """Odds, rare tokens' shrinkage, length and unknown share use decayed counts; the head's weights do not
    decay.
    """
    model, oracle = _forgets(), NaiveBayes(TEXT_ONLY)
    assert model.state.head is not None
    assert oracle.state.head is not None
    now = max(halves for _, _, _, halves in rows)
    _learn(model, rows)
    for fields, y, weight, halves in rows:
        oracle.learn_one(fields, y, weight * 2.0 ** (halves - now))
    oracle.state.head.unknown_share.n = list(oracle.state.class_counts)
    reading = read_now(model.state, {"text": "a b zz"})
    active = model.state.active()

    found = evidence_of(model.state, reading, active).phi
    expected = evidence_of(oracle.state, reading._replace(scale=1.0), active).phi

    assert np.allclose(found[:5], expected[:5], rtol=0, atol=1e-9)


def test_the_heads_accumulators_fade_and_never_fall_below_their_start() -> None:
    """On an endless stream the learning steps do not shrink to nothing."""
    model = NaiveBayes(TEXT_ONLY, half_life_messages=50)
    steady = NaiveBayes(TEXT_ONLY)
    draw = random.Random(3)
    for _ in range(2000):
        text, label = " ".join(draw.choices("abcdef", k=4)), draw.choice(["ham", "spam"])
        model.learn_one({"text": text}, label)
        steady.learn_one({"text": text}, label)
    assert model.state.head is not None
    assert steady.state.head is not None
    assert min(*model.state.head.weight_squares, *model.state.head.offset_squares) >= 1.0
    assert model.state.head.eta_squares >= 0.1
    assert max(model.state.head.offset_squares) < max(steady.state.head.offset_squares) / 5
    restored = NaiveBayes(TEXT_ONLY, half_life_messages=50)
    frozen = model.freeze()
    restored.restore(frozen.values, frozen.sections)


# ---- landmarks


@TWINS
@EACH
@given(rows=ROWS, x=MESSAGE)
@settings(max_examples=8)
def test_moving_the_landmark_changes_no_posterior(
    views: list[View], compiled: bool, rows: list[Row], x: dict[str, object]
) -> None:
    """It multiplies by powers of two, so moving at every half-life gives the same posterior."""
    rows = sorted(rows, key=lambda row: row[3])
    still, moves = (_makes(views, half_life_s=DAY, time_skew_max_s=1e9) for _ in "ab")
    if compiled and not still.state.compiled:
        return
    _learn(still, rows)
    with pytest.MonkeyPatch.context() as patch:
        for module in (forgetting, batch_decay):
            patch.setattr(module, "SHIFT_AFTER", 1)
        moves = _makes(views, half_life_s=DAY, time_skew_max_s=1e9, compiled=compiled)
        _learn(moves, rows)

    assert moves.state.decay is not None
    assert moves.state.decay.landmark == math.floor(_at(rows[-1][3]) / DAY)
    found, expected = (m.predict_proba_one(x, at=_at(12.0)) for m in (moves, still))
    assert _close(found, expected, 1e-12)


@TWINS
def test_what_is_long_past_leaves_the_vocabulary(compiled: bool) -> None:
    """When the landmark moves, tokens with less than 2^-32 of a message are dropped; classes stay."""
    model = _forgets(compiled=compiled)
    for i in range(200):
        model.learn_one({"text": f"word{i} always"}, "old" if i < 3 else "new", at=_at(float(i)))

    rows = model.state.counts["words"].rows
    assert "always" in rows
    assert "word199" in rows
    assert 32 <= len(rows) <= 64 + 32 + 2
    assert "word2" not in rows
    assert model.classes_ == ["old", "new"]
    assert [0 < n < FORGOTTEN for n in model.state.class_counts] == [True, False]
    assert min(count for row in rows.values() for count in row if count) >= FORGOTTEN
    assert model.predict_proba_one({"text": "always"})["old"] < 0.5


@pytest.mark.parametrize("head", ["product", "calibrated"])
@pytest.mark.parametrize("half_life", [1.0, 10.0])
@TWINS
def test_F12_a_faded_class_never_gets_the_share_of_a_newcomer(
    compiled: bool, half_life: float, head: HeadKind
) -> None:
    """Its share falls with every message of another class, also where the landmark moves and tokens leave."""
    model = NaiveBayes(TEXT_ONLY, half_life_messages=half_life, head=head, compiled=compiled)
    model.learn_one({"text": "old words"}, "old")
    shares = []
    for _ in range(1000):
        model.learn_one({"text": "things"}, "new")
        shares.append(model.predict_proba_one({"text": "things"})["old"])
    assert all(later <= max(before * (1 + 1e-9), 1e-12) for before, later in pairwise(shares))
    assert shares[-1] < 0.01
    restored = NaiveBayes(TEXT_ONLY, half_life_messages=half_life, head=head, compiled=compiled)
    frozen = model.freeze()
    restored.restore(frozen.values, frozen.sections)
    assert restored.predict_proba_one({"text": "things"})["old"] == shares[-1]
    model.learn_many([{"text": "things"}] * 20_000, ["new"] * 20_000)  # below the smallest weight
    assert 0 < model.state.class_counts[0] < 1e-50
    assert 0 <= model.predict_proba_one({"text": "things"})["old"] < 0.01


@pytest.mark.parametrize("head", ["product", "calibrated"])
@TWINS
def test_F12_topics_that_come_and_go_leave_the_posterior_to_the_present_one(
    compiled: bool, head: HeadKind
) -> None:
    """Sixty topics one after another; also of a message without any known word."""
    model = NaiveBayes(TEXT_ONLY, half_life_messages=10.0, head=head, compiled=compiled)
    for topic in range(60):
        for i in range(100):
            model.learn_one({"text": f"topic{topic} word{i % 5}"}, f"t{topic}")
    for text in ("topic59 word3", "nothing known"):
        assert model.predict_proba_one({"text": text})["t59"] > 0.95


@pytest.mark.parametrize("half_life_s", [0.001, 1.0, DAY, 1e12])
@TWINS
def test_no_clock_makes_a_number_that_is_none(compiled: bool, half_life_s: float) -> None:
    """With times of 1970, 3000, before 1970, back and forth, numbers stay finite and the snapshot loads."""
    model = NaiveBayes(TEXT_ONLY, half_life_s=half_life_s, compiled=compiled)
    times = [NOON_2026, 0.0, -1.0, 3.25e10, NOON_2026, NOON_2026 + 1, 1e12, -1e12, NOON_2026 + 2]
    for i, at in enumerate(times * 3):
        model.learn_one({"text": f"win money {i % 4}"}, "ab"[i % 2], at=at)
        for when in (None, *times):
            posterior = model.predict_proba_one({"text": "win 3"}, at=when)
            assert math.isclose(math.fsum(posterior.values()), 1.0, abs_tol=1e-12)
    frozen = model.freeze()
    assert all(bool(np.isfinite(array).all()) for array in frozen.sections.values())
    restored = NaiveBayes(TEXT_ONLY, half_life_s=half_life_s, compiled=compiled)
    restored.restore(frozen.values, frozen.sections)
    assert restored.digest() == model.digest()


def _steps(model: NaiveBayes, text: str, label: str | None, times: Sequence[float], where: str = "") -> None:
    model.step(Batch({"text": [text] * len(times)}, [label] * len(times), times=times, partition=where))


@TWINS
@pytest.mark.parametrize("n", [1, 64, 1023])
@pytest.mark.parametrize("label", ["ham", None])
@pytest.mark.parametrize("where", ["mail-0", "mail-1"])
def test_F5_one_wrong_clock_does_not_age_everything(
    compiled: bool, n: int, label: str | None, where: str
) -> None:
    """Records ten years ahead count as one hour ahead, however many, labelled or not, in any partition."""
    wrong, right = (NaiveBayes(TEXT_ONLY, half_life_s=3600.0, compiled=compiled) for _ in "ab")
    for model, late in ((wrong, NOON_2026 + 3650 * DAY), (right, NOON_2026 + 3600.0)):
        _steps(model, "win money", "spam", [NOON_2026 - 1.0, NOON_2026], "mail-0")
        _steps(model, "lunch", label, [late] * n, where)
    assert wrong.state.class_counts == right.state.class_counts
    assert wrong.state.decay is not None
    assert wrong.state.decay.newest_s == {"mail-0": NOON_2026}

    for i in range(10):
        _steps(wrong, "later", "ham", [NOON_2026 + i], "mail-0")
        _steps(wrong, "later", "ham", [NOON_2026 + i], where)
        _steps(wrong, "lunch", label, [NOON_2026 + 3650 * DAY] * 500, where)
    assert wrong.state.decay.newest_s == dict.fromkeys(["mail-0", where], NOON_2026 + 9)
    assert wrong.state.decay.landmark == right.state.decay.landmark  # type: ignore[union-attr]


def test_each_partition_has_its_own_newest_time() -> None:
    """A partition whose clock is ahead or behind does not move the others."""
    model = NaiveBayes(TEXT_ONLY, half_life_s=DAY, time_skew_max_s=60.0)
    _steps(model, "a", "x", [NOON_2026], "mail-0")
    _steps(model, "a", "x", [NOON_2026 + DAY] * 2, "mail-1")
    _steps(model, "a", "x", [NOON_2026 + DAY], "mail-0")

    assert model.state.decay is not None
    assert model.state.decay.newest_s == {"mail-0": NOON_2026, "mail-1": NOON_2026 + DAY}
    assert model.state.decay.ahead == {"mail-0": (1, NOON_2026 + DAY)}


@given(
    pause=st.one_of(st.floats(0.0, 20.0), st.sampled_from([1.0, 9.99, 10.0, 1e3, 1e6])),
    late=st.lists(st.booleans(), max_size=6),
)
def test_F5_a_stream_goes_on_after_any_pause(pause: float, late: list[bool]) -> None:
    """Two records confirm a pause of a half-life, 1,024 any; stragglers and a wrong record change nothing."""
    decay = Decay(Forgetting(half_life_s=DAY))
    decay.saw(NOON_2026)
    again = NOON_2026 + 3600.0 + pause * DAY
    needed = math.ceil(max(2.0, 2.0 ** min((again - NOON_2026) / DAY, 10.0)))
    decay.saw(again + 3650 * DAY)  # counts as one of the run
    for i, is_late in enumerate(late):
        decay.saw(NOON_2026 - 2 * 3600.0 if is_late else again + i)
    seen = 1 + late.count(False)
    for i in range(max(0, needed - seen - 1)):
        decay.saw(again + i)
        assert decay.newest_s[""] == NOON_2026
    for i in range(2):
        decay.saw(again + i)

    assert decay.newest_s[""] >= again
    assert decay.newest_s[""] < again + 2 * 3600.0


@given(
    data=st.data(),
    half_life_s=st.sampled_from([60.0, 3600.0, DAY]),
    ahead=st.floats(2.0, 1e5),
)
@settings(max_examples=50)
def test_F5_a_wrong_clock_among_right_ones_moves_nothing(
    data: st.DataObject, half_life_s: float, ahead: float
) -> None:
    """Whatever the share of wrong records: a run that right ones interrupt confirms nothing."""
    right, both = (Decay(Forgetting(half_life_s=half_life_s)) for _ in "ab")
    now, offset = NOON_2026, 2 * 3600.0 + ahead * half_life_s
    longest = math.ceil(2.0 ** min((offset - 3600.0) / half_life_s, 10.0)) - 1
    for step_s in data.draw(st.lists(st.floats(0.0, 600.0), min_size=1, max_size=12)):
        now += step_s
        for decay in (right, both):
            decay.saw(now)
        for _ in range(data.draw(st.integers(0, longest))):
            assert both.instant(now + offset) == (now + 3600.0) / half_life_s
            both.saw(now + offset)

    assert both.newest_s == right.newest_s


@given(st.lists(st.tuples(st.floats(0.0, 1e6), st.sampled_from(["a", "b"])), max_size=40), st.integers(0, 40))
def test_F5_a_run_is_in_the_snapshot(stream: list[tuple[float, str]], cut: int) -> None:
    """A decay that is restored at any point continues as the one that went on."""
    decay, other = (Decay(Forgetting(half_life_s=3600.0)) for _ in "ab")
    for i, (at, where) in enumerate(stream):
        if i == cut:
            other = Decay(Forgetting(half_life_s=3600.0))
            other.restore(orjson.loads(orjson.dumps(decay.freeze())))
        for each in (decay, other) if i >= cut else (decay,):
            each.saw(at, where)
    if len(stream) > cut:
        assert other.freeze() == decay.freeze()


def test_scoring_does_not_move_the_clock() -> None:
    """A step that learns does move it, even for a record without a label."""
    model = _forgets()
    model.learn_one({"text": "a"}, "x", at=_at(0.0))
    before = model.digest()
    model.predict_one({"text": "a"}, at=_at(9.0))
    model.step(Batch({"text": ["a"]}, [None], times=[_at(9.0)]), learn=False)
    assert model.digest() == before
    model.step(Batch({"text": ["a"]}, [None], times=[_at(9.0)]))
    assert model.state.decay is not None
    assert model.state.decay.newest_s == {"": _at(9.0)}


# ---- one, many, snapshots, sums


@TWINS
@given(rows=ROWS)
@settings(max_examples=25)
def test_many_is_one_to_the_bit(compiled: bool, rows: list[Row]) -> None:
    """Among the cases are batches within which the landmark moves."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (forgetting, batch_decay):
            patch.setattr(module, "SHIFT_AFTER", 2)
        one, many = _forgets(compiled=compiled), _forgets(compiled=compiled)
        scores = many.step(_batch(rows))
        for i, (x, y, weight, halves) in enumerate(rows):
            expected = one.predict_proba_one(x, at=_at(halves))
            assert scores.posterior[i, : scores.n_classes[i]].tolist() == [*expected.values()]
            one.learn_one(x, y, weight, at=_at(halves))
    assert one.digest() == many.digest()


@EACH
@given(ROWS, ROWS, st.booleans())
@settings(max_examples=8)
def test_a_restored_model_goes_on_to_the_bit(
    views: list[View], rows: list[Row], after: list[Row], by_time: bool
) -> None:
    """Landmark, newest times and position are in the snapshot."""
    how = {"half_life_s": DAY} if by_time else {"half_life_messages": 3.0}
    model, other = _makes(views, **how), _makes(views, **how)
    model.step(_batch(rows))
    frozen = model.freeze()
    values = orjson.loads(orjson.dumps(frozen.values))
    other.restore(values, frozen.sections)
    for each in (model, other):
        each.step(_batch(after))

    assert other.digest() == model.digest()


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"landmark": 0.5, "newest_s": {}, "position": 0, "head_at": None},
        {"landmark": 0, "newest_s": {}, "position": -1, "head_at": None},
        {"landmark": 0, "newest_s": {"": 1e300}, "position": 0, "head_at": None},
        {"landmark": 10**30, "newest_s": {}, "position": 0, "head_at": None},
        {"landmark": 0, "newest_s": {}, "position": 0, "head_at": "soon"},
        {"landmark": 0, "newest_s": {}, "position": 0, "head_at": None, "ahead": {"": [2, 1e300]}},
        {"landmark": 0, "newest_s": {}, "position": 0, "head_at": None, "ahead": {"": [-1, 0.0]}},
    ],
)
def test_a_place_in_time_that_cannot_be_is_refused(value: object) -> None:
    """A forged snapshot is refused when it is loaded, not at some later message."""
    model = _forgets()
    model.learn_one({"text": "a"}, "x", at=_at(0.0))
    frozen = model.freeze()
    with pytest.raises(SnapshotError):
        _forgets().restore(frozen.values | {"forgetting": value}, frozen.sections)


@EACH
@given(ROWS, MESSAGE, st.integers(0, 2**12 - 1))
@settings(max_examples=8)
def test_parts_of_a_stream_add_up_by_time(
    views: list[View], rows: list[Row], x: dict[str, object], which: int
) -> None:
    """However the stream is split, landmarks differ by whole half-lives, so bringing parts together rounds
    nothing.
    """
    whole, a, b = (_makes(views, half_life_s=DAY, time_skew_max_s=1e9) for _ in range(3))
    _learn(whole, rows)
    _learn(a, [row for i, row in enumerate(rows) if which >> i & 1])
    _learn(b, [row for i, row in enumerate(rows) if not which >> i & 1])
    before = b.digest()
    a.merge(b)

    assert b.digest() == before
    found, expected = (m.predict_proba_one(x, at=_at(12.0)) for m in (a, whole))
    assert _close(found, expected, 1e-9 if "covariance" in str(views) else 1e-12)


def test_by_position_a_part_is_taken_as_of_its_own_end() -> None:
    """Merging two models that learned the same equals learning each message with twice its weight."""
    a, b, twice = (_makes(VIEWS["words"], half_life_messages=4.0) for _ in range(3))
    for i in range(10):
        x, y = {"text": f"w{i % 3} w{i % 4}"}, "xy"[i % 2]
        a.learn_one(x, y)
        b.learn_one(x, y)
        twice.learn_one(x, y, 2.0)
    b.learn_one({"text": "w0"}, "x")
    b.unlearn_one({"text": "w0"}, "x", at=10)
    a.merge(b)

    assert a.state.class_counts[0] < twice.state.class_counts[0]
    with pytest.raises(ValueError, match="settings that their counts depend on"):
        a.merge(_makes(VIEWS["words"], half_life_messages=5.0))
    with pytest.raises(ValueError, match="settings that their counts depend on"):
        a.merge(_makes(VIEWS["words"]))


@pytest.mark.parametrize("name", [name for name in VIEWS if "covariance" not in name])
@given(rows=ROWS, order=st.randoms())
@settings(max_examples=8)
def test_what_was_learned_can_be_unlearned(name: str, rows: list[Row], order: random.Random) -> None:
    """The order does not matter; a rounding error of a decayed sum is removed with it."""
    model = _makes(VIEWS[name], half_life_s=DAY, time_skew_max_s=1e9)
    _learn(model, rows)
    back = list(rows)
    order.shuffle(back)
    for x, y, weight, halves in back:
        model.unlearn_one(x, y, weight, at=_at(halves))

    assert model.learned_ == 0
    assert max(model.state.class_counts) == 0
    assert sum(len(model.state.counts[view].rows) for view in model.state.counts) == 0
    assert model.predict_proba_one(rows[0][0]) == {}
    with pytest.raises(ValueError, match="the learned weight of"):
        model.unlearn_one(*rows[0][:3], at=_at(rows[0][3]))


@pytest.mark.parametrize("how", [{"half_life_messages": 2.0}, {"half_life_s": DAY}])
def test_the_newest_is_unlearned_where_no_time_is_said(how: dict[str, float]) -> None:
    """It is unlearned at the weight it was learned with; older messages keep theirs."""
    model = _makes(VIEWS["words"], **how)
    _learn(model, [({"text": "a b"}, "x", 1.0, 0.0), ({"text": "b"}, "y", 2.0, 3.0)])
    classes, tokens = (
        [*model.state.class_counts],
        {token: [*row] for token, row in model.state.counts["w"].rows.items()},
    )
    _learn(model, [({"text": "b c"}, "y", 1.0, 5.0)])
    model.unlearn_one({"text": "b c"}, "y")

    assert model.state.class_counts == pytest.approx(classes, rel=1e-12)
    assert set(model.state.counts["w"].rows) == set(tokens)
    for token, row in tokens.items():
        assert model.state.counts["w"].rows[token] == pytest.approx(row, rel=1e-12)


def test_what_is_subtracted_was_learned() -> None:
    """A part with another landmark can be subtracted again."""
    whole, part, rest = _forgets(head="product"), _forgets(head="product"), _forgets(head="product")
    draw = random.Random(5)
    for i in range(120):
        x, y, at = {"text": " ".join(draw.choices("abcd", k=3))}, draw.choice(["x", "y"]), _at(i / 10)
        whole.learn_one(x, y, at=at)
        (part if i >= 60 else rest).learn_one(x, y, at=at)
    whole.subtract(part)

    found, expected = (m.predict_proba_one({"text": "a b"}, at=_at(12.0)) for m in (whole, rest))
    assert _close(found, expected)


def test_the_story_and_the_boundary_are_told_as_of_now() -> None:
    """`sample` and `linear_weights` use sums in units of a message of now, and change nothing."""
    model, oracle = (_makes(VIEWS["words"], **how) for how in ({"half_life_messages": 5.0}, {}))
    for i in range(20):
        x, y = {"text": f"w{i % 3} w{i % 4}"}, "xy"[i % 2]
        model.learn_one(x, y)
        oracle.learn_one(x, y, 2.0 ** ((i - 20) / 5.0))
    before = model.digest()

    (a, found), (b, expected) = model.linear_weights(), oracle.linear_weights()

    assert math.isclose(a, b, abs_tol=1e-9)
    assert all(math.isclose(found[key], expected[key], abs_tol=1e-9) for key in expected)
    assert len(list(model.sample(5))) == 5
    assert model.digest() == before


def test_an_explanation_adds_up_at_its_time() -> None:
    """Its parts are computed at the newest time."""
    model = _forgets()
    for i in range(30):
        model.learn_one({"text": f"w{i % 3} w{i % 4}"}, "xy"[i % 2], at=_at(i / 3))
    explanation = model.explain_one({"text": "w0 w1 w2"})
    scores = model.score_one({"text": "w0 w1 w2"})

    assert explanation is not None
    u = dict(zip(scores.classes, scores.u[0].tolist(), strict=True))
    a, b = explanation.classes
    assert math.isclose(explanation.total, u[a] - u[b], abs_tol=1e-9)


# ---- what is refused


def test_a_model_by_time_does_not_learn_without_one() -> None:
    """A message without a time is refused, because any weight would be a guess."""
    model = _forgets()
    before = model.digest()
    with pytest.raises(ValueError, match="`at`"):
        model.learn_one({"text": "a"}, "x")
    with pytest.raises(ValueError, match="2 times were given for 1"):
        model.step(Batch({"text": ["a"]}, ["x"], times=[0.0, 1.0]))
    for at in (math.nan, math.inf, 1e13, True, "noon"):
        with pytest.raises(ValueError, match="seconds since 1970"):
            model.learn_one({"text": "a"}, "x", at=at)  # type: ignore[arg-type]
    assert model.digest() == before
    model.step(Batch({"text": ["a", "b"]}, ["x", "y"], times=[NOON_2026, None]))
    assert model.state.class_counts[0] == model.state.class_counts[1]


@pytest.mark.parametrize(
    "how",
    [
        {"half_life_s": 1.0, "half_life_messages": 1.0},
        {"half_life_s": 0.0},
        {"half_life_s": math.nan},
        {"half_life_messages": 0.5},
        {"half_life_s": 1.0, "time_skew_max_s": -1.0},
    ],
)
def test_a_half_life_that_cannot_be_is_refused(how: dict[str, float]) -> None:
    """The error names the setting."""
    with pytest.raises(ValueError, match=r"half.life|time_skew"):
        Forgetting(**how)


def test_lines_have_no_times() -> None:
    """A model with a half-life in seconds is refused for a file of lines, before the file is read."""
    tables = {"forgetting": {"half_life_s": 60.0}}
    with pytest.raises(SettingsError, match="half_life_s"):
        check_lines(decode_settings(tables, "here"))
    built = build_model(decode_settings({"forgetting": {"half_life_messages": 60.0}}, "here"))
    assert built.state_settings()["forgetting"] == {
        "half_life_s": None,
        "half_life_messages": 60.0,
        "time_skew_max_s": 3600.0,
    }
    assert "forgetting" not in NaiveBayes(TEXT_ONLY).state_settings()


# ---- the trap


def _swapped(n: int, at: int) -> list[tuple[str, str]]:
    """Return messages in which two words swap their classes at one point; a third class is not affected."""
    draw = random.Random(7)
    rows = []
    for i in range(n):
        label = draw.choices(["ham", "spam", "work"], [45, 45, 10])[0]
        said = {"ham": "lunch", "spam": "money"}
        if i >= at:
            said = {"ham": "money", "spam": "lunch"}
        rows.append((said.get(label, "report quarterly"), label))
    return rows


def _windowed(model: NaiveBayes, rows: Sequence[tuple[str, str]], window: int = 100) -> list[float]:
    """Return the accuracy in windows of messages, each message scored before it is learned."""
    hits = []
    for text, label in rows:
        hits.append(model.predict_one({"text": text}) == label)
        model.learn_one({"text": text}, label)
    return [sum(hits[i : i + window]) / window for i in range(0, len(hits), window)]


@pytest.mark.parametrize("head", ["product", "calibrated"])
def test_T45_after_an_abrupt_swap_it_is_back_within_two_half_lives(head: str) -> None:
    """Words that did not change keep their counts to the bit. Without a half-life the model stays wrong to
    the end.
    """
    rows, half_life = _swapped(5000, 2500), 500
    views = VIEWS["words"] if head == "product" else list(TEXT_ONLY)
    model = NaiveBayes(views, head=head, half_life_messages=half_life)  # type: ignore[arg-type]
    never = NaiveBayes(VIEWS["words"], head="product")
    found, without = _windowed(model, rows), _windowed(never, rows)

    lowest = min(found[25 + 2 * half_life // 100 :])
    print(f"T45, {head}: {lowest} after two half-lives of {half_life}; without, {without[25:]}")
    assert min(found[5:25]) > 0.9
    assert lowest > 0.9
    assert max(without[26:45]) < 0.3  # the third class alone
    view = views[0].name
    mass = half_life / math.log(2) * model.predict_proba_one({"text": "report"})["work"]
    assert mass > 0.9 * half_life / math.log(2)
    assert model.state.decay is not None
    now = model.state.decay.scale(model.state.decay.now())
    still = model.state.counts[view].rows["report"][model.classes_.index("work")] / now
    unit = 1.0 if head == "product" else 177 / 256
    assert 0.8 < still / (0.1 * half_life / math.log(2) * unit) < 1.2
    calm = NaiveBayes(views, head=head, half_life_messages=half_life)  # type: ignore[arg-type]
    _learn(calm, [({"text": text}, label, 1.0, 0.0) for text, label in _swapped(5000, 5000)])
    assert model.state.class_counts == calm.state.class_counts
    for word in ("report", "quarterly"):
        assert [*model.state.counts[view].rows[word]] == [*calm.state.counts[view].rows[word]]


# ---- the engine


def _engine(log: MemoryLog, store: MemoryStore, sink: MemorySink, model: NaiveBayes) -> Engine:
    clock = MemoryClock()
    return assemble(
        model=Model("m", model, Decoder(MessageFields(), timed=True)),
        source=MemorySource(log),
        sink=sink,
        dead_letters=DeadLetters(MemorySink(MemoryLog()), clock, DeadLetterLimits()),
        store=store,
        settings=EngineSettings(start="earliest", batch_records_max=7),
        snapshots=SnapshotSettings(),
        output=Output(),
        clock=clock,
        metrics=Metrics(),
        evaluation=LiveEvaluation(),
        until_end=True,
    )


def test_the_engine_forgets_by_the_records_timestamps() -> None:
    """It publishes the library's scores, and after a stop half-way it continues to the bit."""
    draw = random.Random(11)
    values, times, labels, texts = [], [], [], []
    for i in range(60):
        text, label = " ".join(draw.choices("abcde", k=3)), draw.choice(["x", "y", None])
        values.append(orjson.dumps({"text": text, "label": label}))
        times.append(NOON_2026 + 3600.0 * i if i % 9 else None)
        labels.append(label)
        texts.append(text)
    library = NaiveBayes(TEXT_ONLY, half_life_s=DAY)
    expected = library.step(Batch({"text": texts}, labels, times=times, partition="memory-0"))
    digests = []
    for cuts in ([60], [25, 60]):
        log, store, out = MemoryLog(), MemoryStore(), MemoryLog()
        last = 0
        for cut in cuts:
            for value, at in zip(values[last:cut], times[last:cut], strict=True):
                log.append(value, timestamp_ms=-1 if at is None else int(at * 1000))
            last = cut
            digests.append(
                _engine(log, store, MemorySink(out), NaiveBayes(TEXT_ONLY, half_life_s=DAY)).run().digest
            )
        said = [orjson.loads(record.value or b"{}") for record in out.records(0)]
        for i, score in enumerate(said):
            row = expected.posterior[i, : expected.n_classes[i]].tolist()
            assert list(score["posterior"].values()) == row
    assert digests[0] == digests[-1] == library.digest()


def test_F4_a_record_of_the_year_146_million_does_not_end_the_engine() -> None:
    """Its timestamp, 2^62 ms, made every start fail; now it is a dead letter and the stream goes on."""
    log, out = MemoryLog(), MemoryLog()
    for stamp in (int(NOON_2026 * 1000), 1 << 62, int(NOON_2026 * 1000) + 1):
        log.append(orjson.dumps({"text": "win", "label": "x"}), timestamp_ms=stamp)
    model = NaiveBayes(TEXT_ONLY, half_life_s=DAY)
    summary = _engine(log, MemoryStore(), MemorySink(out), model).run()

    assert (summary.records, summary.scored, summary.dead_letters) == (3, 2, 1)
    assert model.state.decay is not None
    assert model.state.decay.newest_s == {"memory-0": NOON_2026 + 0.001}


# ---- twin is twin

HOW = st.sampled_from(
    [
        {"half_life_s": DAY},
        {"half_life_s": DAY, "time_skew_max_s": 1e9},
        {"half_life_messages": 2.5},
        {"half_life_messages": 1.0, "max_tokens": 16},
    ]
)
COMPILED: dict[str, Callable[[], list[View]]] = {
    "text": lambda: [
        View("w", Words()),
        View("p", WordPairs()),
        View("c", CharacterGrams()),
        View("e", Ends()),
    ],
    "mixed": lambda: [View("who", Category("kind")), View("w", Words()), View("size", Number("size"))],
    "background": lambda: VIEWS["background"],
    "textbook": lambda: VIEWS["words"],
    "coins": lambda: [View("w", Words(), Bernoulli(Beta(0.5, 2.0))), View("p", Words(), Bernoulli())],
    "categories": lambda: VIEWS["categories"],
    "flags": lambda: VIEWS["flags"],
    "numbers": lambda: VIEWS["numbers"],
    "every field": lambda: list(EVERY_FIELD),
}


@pytest.mark.skipif(PURE, reason="STREAMNB_PURE is set")
@pytest.mark.parametrize("views", COMPILED.values(), ids=COMPILED)
@given(
    st.data(), st.lists(st.tuples(MESSAGE, st.sampled_from([None, "ham", "spam", "work"])), max_size=24), HOW
)
@settings(max_examples=25)
def test_twin_is_twin_to_the_bit(
    views: Callable[[], list[View]],
    data: st.DataObject,
    stream: list[tuple[dict[str, object], str | None]],
    how: dict[str, float],
) -> None:
    """Scores and state are equal, however the stream is cut and however often the landmark moves."""
    head = data.draw(st.sampled_from([None, "product"]))
    if views()[0].event_model == VIEWS["background"][0].event_model:
        head = "product"  # the calibrated head knows no background
    raw = data.draw(st.booleans())
    plain, twin = (
        NaiveBayes(views(), head=head, raw=raw, compiled=compiled, **how)  # type: ignore[arg-type]
        for compiled in (False, True)
    )
    times = data.draw(
        st.lists(
            st.one_of(st.none(), st.floats(0.0, 80.0).map(lambda x: _at(round(x, 2)))),
            min_size=len(stream),
            max_size=len(stream),
        )
    )
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=3).map(sorted))
    shift_after = data.draw(st.sampled_from([1, 3, 64]))
    with pytest.MonkeyPatch.context() as patch:
        for module in (forgetting, batch_decay):
            patch.setattr(module, "SHIFT_AFTER", shift_after)
        for a, b in pairwise([0, *cuts, len(stream)]):
            score, learn = data.draw(st.sampled_from([(True, True), (True, False), (False, True)]))
            batch = Batch(
                {field: [x.get(field) for x, _ in stream[a:b]] for field in FIELDS},
                [y for _, y in stream[a:b]],
                data.draw(st.lists(st.sampled_from([1.0, 0.3, 2.0]), min_size=b - a, max_size=b - a)),
                times[a:b],
                data.draw(st.sampled_from(["", "mail-0"])),
            )
            expected, found = (model.step(batch, score=score, learn=learn) for model in (plain, twin))
            assert _said(found) == _said(expected)
            assert _held(twin) == _held(plain)
        merged = [copy.deepcopy(model) for model in (plain, twin)]
        for model, other in zip(merged, (twin, plain), strict=True):
            model.merge(other)
        assert merged[0].digest() == merged[1].digest()


@given(st.lists(st.tuples(st.booleans(), st.one_of(st.none(), st.floats(-1e6, 1e6))), max_size=200), HOW)
@example([(i % 3 > 0, None) for i in range(60)], {"half_life_messages": 2.5})
@example([(True, None)] * 150, {"half_life_messages": 1.0})  # the landmark moves
@example([(False, None)] * 20, {"half_life_messages": 1.0})
@settings(max_examples=50)
def test_a_plan_is_what_one_after_another_gives(
    stream: list[tuple[bool, float | None]], how: dict[str, float]
) -> None:
    """The plan's columns are those of the messages taken one by one."""
    settings_of = Forgetting(**{key: value for key, value in how.items() if key != "max_tokens"})
    decay = Decay(settings_of)
    times = [at if decay.by_time else None for _, at in stream]
    plan = Plan(decay, [y for y, _ in stream], times, "p", learns=True)
    for i, ((is_learned, _), at) in enumerate(zip(stream, times, strict=True)):
        one = Plan(decay, [is_learned], [at], "p", learns=True)
        assert plan.ages[:, i].tolist() == one.ages[:, 0].tolist()
        decay = one.after
    assert decay.digest().hex() == plan.after.digest().hex()
