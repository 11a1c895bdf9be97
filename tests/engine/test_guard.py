"""The guard's quota per source and limit of certainty, which decide the same after a crash."""

from __future__ import annotations

import hashlib
import math
import random
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb.base.batch import Batch, Flag
from streamnb.base.record import Partition
from streamnb.base.snapshot import Snapshot
from streamnb.config import Settings, build_guard
from streamnb.engine.guard import Guard, GuardSettings
from streamnb.engine.model import Model
from streamnb.engine.settings import Pace
from streamnb.errors import SettingsError, SnapshotError
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models.priors import UniformPrior
from streamnb.naive_bayes.model.view import TEXT_ONLY
from streamnb.storage import snapshot_file
from streamnb.transports.memory import CRASH, Mark
from streamnb.wire.message import Decoder, MessageFields
from tests.engine.test_engine import ONE_BY_ONE, Rig, rig

P0 = Partition("mail", 0)
FIELDS = MessageFields(category=("from",))


def mail(n: int, seed: int = 0) -> list[bytes | Mark | None]:
    """Return a stream from few senders; some messages are labelled."""
    draw = random.Random(seed)
    return [
        orjson.dumps(
            {
                "id": i,
                "from": draw.choice(["ann", "bob", "mallory", "mallory", None]),
                "text": " ".join(draw.choices(["win", "money", "lunch", "noon"], k=3)),
                "label": draw.choice(["spam", "ham", None]),
            }
        )
        for i in range(n)
    ]


def batch(senders: list[str | None], labels: list[str | None], text: str = "win") -> Batch:
    """Return messages with the same text."""
    return Batch({"text": [text] * len(senders), "from": senders}, labels)


def test_F3_a_source_teaches_its_quota_and_no_more() -> None:
    """Other sources are not affected; messages without a source share one quota; each score has a flag."""
    guard, model = Guard(GuardSettings(source="from", quota=2)), NaiveBayes(TEXT_ONLY)
    senders = ["mallory"] * 4 + ["ann", None, None, None]
    scores = guard.step(model, P0, range(8), batch(senders, ["spam"] * 8))

    assert scores.flags.tolist() == [0, 0, 8, 8, 0, 0, 0, 8]
    assert model.learned_ == 5


def test_a_window_is_a_fixed_number_of_offsets_of_a_partition() -> None:
    """Each partition has its own windows, and unlabelled messages do not count."""
    guard, model = Guard(GuardSettings(source="from", quota=1), window_records=10), NaiveBayes(TEXT_ONLY)
    first = guard.step(model, P0, [7, 8, 9, 10, 11], batch(["m"] * 5, [None, "a", "a", "a", "a"]))
    other = guard.step(model, Partition("mail", 1), [9], batch(["m"], ["a"]))

    assert first.flags.tolist() == [0, 0, 8, 0, 8]
    assert other.flags.tolist() == [0]


def test_F3_what_the_model_is_certain_of_is_not_learned() -> None:
    """Repeated messages are not learned once the model is certain; a contradicting label is."""
    guard, model = Guard(GuardSettings(learn_below=0.95)), NaiveBayes(TEXT_ONLY, head="product")
    guard.step(model, P0, [0, 1], Batch({"text": ["win money prize", "lunch at noon"]}, ["spam", "ham"]))
    scores = guard.step(model, P0, range(50), Batch({"text": ["win money prize"] * 50}, ["spam"] * 50))
    certain = scores.flags == Flag.CERTAIN
    assert certain[-1]
    assert model.learned_ == 2 + np.count_nonzero(~certain)
    assert (scores.posterior[certain, 0] >= 0.95).all()
    assert (scores.posterior[~certain, 0] < 0.95).all()

    before = model.learned_
    wrong = guard.step(model, P0, [50], Batch({"text": ["win money prize"]}, ["ham"]))

    assert wrong.flags.tolist() == [0]
    assert model.learned_ == before + 1


def test_F3_a_probability_of_exactly_the_limit_is_certain() -> None:
    """The limit is where learning ends, not the last probability that is learned."""
    for limit, flag in ((0.5, Flag.CERTAIN), (math.nextafter(0.5, 1.0), 0)):
        guard = Guard(GuardSettings(learn_below=limit))
        model = NaiveBayes(TEXT_ONLY, head="product", prior=UniformPrior())
        model.learn_one({"text": "win"}, "a")
        model.learn_one({"text": "win"}, "b")
        scores = guard.step(model, P0, [2], Batch({"text": ["win"]}, ["a"]))

        assert scores.posterior.tolist() == [[0.5, 0.5]]
        assert scores.flags.tolist() == [flag]
        assert model.learned_ == (2 if flag else 3)


def test_an_only_class_is_learned_however_certain() -> None:
    """Otherwise the classes' shares would depend on which came first."""
    guard, model = Guard(GuardSettings(learn_below=0.5)), NaiveBayes(TEXT_ONLY)
    guard.step(model, P0, range(5), Batch({"text": ["win"] * 5}, ["spam"] * 5))

    assert model.learned_ == 5


@settings(deadline=None, max_examples=20)
@given(
    cuts=st.lists(st.integers(1, 79), max_size=4, unique=True),
    seed=st.integers(0, 5),
    half_life_s=st.sampled_from([None, 50.0]),
)
def test_a_stream_in_pieces_is_decided_like_the_whole(
    cuts: list[int], seed: int, half_life_s: float | None
) -> None:
    """Scores, flags and state do not depend on where polls end; each message keeps its own time."""
    chosen = GuardSettings(source="from", quota=3, learn_below=0.7)
    draw = random.Random(seed)
    whole = Batch(
        {
            "text": [" ".join(draw.choices(["win", "money", "lunch", "noon"], k=3)) for _ in range(80)],
            "from": [draw.choice(["ann", "bob"]) for _ in range(80)],
        },
        [draw.choice(["spam", "ham", None]) for _ in range(80)],
        times=[float(draw.randrange(i, i + 20)) for i in range(80)],
    )
    assert whole.times is not None
    guard, model = Guard(chosen, window_records=30), NaiveBayes(TEXT_ONLY, half_life_s=half_life_s)
    expected = guard.step(model, P0, range(80), whole)
    again, other, got = Guard(chosen, window_records=30), NaiveBayes(TEXT_ONLY, half_life_s=half_life_s), []
    ends = [*sorted(cuts), 80]
    for begin, end in zip([0, *ends], ends, strict=False):
        fields = {name: of[begin:end] for name, of in whole.fields.items()}
        part = Batch(fields, whole.labels[begin:end], times=whole.times[begin:end])
        scores = again.step(other, P0, range(begin, end), part)
        got += [
            (p.tolist()[:n], f)
            for p, n, f in zip(scores.posterior, scores.n_classes, scores.flags, strict=True)
        ]

    assert other.digest() == model.digest()
    assert again.freeze()[0] == guard.freeze()[0]
    assert np.array_equal(again.freeze()[1]["guard_sources"], guard.freeze()[1]["guard_sources"])
    assert got == [
        (p.tolist()[:n], f)
        for p, n, f in zip(expected.posterior, expected.n_classes, expected.flags, strict=True)
    ]


@pytest.mark.parametrize(
    "chosen",
    [
        {"source": "from", "quota": 2},
        {"learn_below": 0.6},
        {"source": "from", "quota": 3, "learn_below": 0.8},
    ],
)
def test_a_crash_does_not_change_what_is_decided(chosen: dict[str, object]) -> None:
    """A snapshot holds the open windows; all else follows from the records."""
    guard = GuardSettings(**chosen)  # type: ignore[arg-type]
    parts: dict[str, Any] = {
        "decoder": Decoder(FIELDS),
        "settings": ONE_BY_ONE,
        "pace": Pace(snapshot_interval_records=8),
    }
    plain = rig(mail(120))
    expected = plain.run(**parts, guard=Guard(guard, window_records=50))
    values = mail(120)
    for at in (100, 61, 60, 23):
        values.insert(at, CRASH)
    it = rig(values)
    summary = _through(it, parts, guard)

    assert summary == expected.digest
    assert {score["id"]: score.get("flags") for score in it.published()} == {
        score["id"]: score.get("flags") for score in plain.published()
    }
    assert any(score.get("flags") for score in plain.published())


def _through(it: Rig, parts: dict[str, Any], chosen: GuardSettings) -> dict[str, str]:
    from streamnb.transports.memory import Crash

    while True:
        try:
            return it.run(**parts, guard=Guard(chosen, window_records=50)).digest
        except Crash:
            continue


def test_what_was_not_learned_is_counted() -> None:
    """Withheld labels are counted by reason, and their messages are still scored."""
    it = rig(mail(60))
    summary = it.run(decoder=Decoder(FIELDS), guard=Guard(GuardSettings(source="from", quota=1)))
    guarded = it.metrics.registry.get_sample_value("streamnb_guarded_total", {"reason": "quota"})

    assert guarded
    assert summary.learned == it.model.learned_
    assert summary.scored == 60


def test_a_source_that_no_message_carries_is_refused() -> None:
    """A quota that never applies would only seem to protect."""
    with pytest.raises(SettingsError, match=r"which `message.category` does not list"):
        build_guard(Settings(guard=GuardSettings(source="from")))
    assert build_guard(Settings()) is None


@pytest.mark.parametrize(
    "bad",
    [
        {"quota": 0},
        {"learn_below": 0.0},
        {"learn_below": float("nan")},
    ],
)
def test_limits_out_of_range_are_refused(bad: dict[str, float]) -> None:
    """They are refused at the start, not at the first record."""
    with pytest.raises(ValueError, match="must be"):
        GuardSettings(**bad)  # type: ignore[arg-type]


def test_values_that_are_not_a_guards_are_refused() -> None:
    """A snapshot may come from anywhere, so its guard values are checked."""
    guard = Guard(GuardSettings())
    guard.restore(None, {})
    values: object
    pair = {"guard_sources": np.array([[7, 1]], np.uint64)}
    for values in ([], {"windows": 3}, {"windows": [["mail", 0, 1, {"ann": "many"}]]}):
        with pytest.raises(SnapshotError, match="The guard's counts"):
            guard.restore(values, {})
    for sections in (
        {},
        {"guard_sources": np.zeros((1, 2))},
        {"guard_sources": np.array([7, 1], np.uint64)},
        {"guard_sources": np.array([[7, 1], [8, 1]], np.uint64)},
        {"guard_sources": np.array([[7, 1], [7, 1]], np.uint64)},
    ):
        with pytest.raises(SnapshotError, match="guard"):
            guard.restore({"windows": [["mail", 0, 1, 1]]}, sections)
    with pytest.raises(SnapshotError, match="The guard's counts"):
        guard.restore({"windows": [["mail", 0, 1, -1]]}, pair)


def test_F3_open_windows_take_no_room_in_the_header_of_a_snapshot() -> None:
    """Windows of distinct sources in 80 partitions made a header of 17 MB; now their hashes are a section."""
    guard, model = Guard(GuardSettings(source="from")), NaiveBayes(TEXT_ONLY, head="product")
    whole, n = Model("test", model, Decoder(FIELDS), guard), 9_999
    for number in range(3):
        senders: list[str | None] = [f"{number} {i}" for i in range(n)]
        whole.step(Partition("mail", number), range(n), batch(senders, ["spam"] * n))
    frozen = whole.freeze()
    snapshot = Snapshot(frozen.values, frozen.sections, {}, {}, {}, {})
    back = snapshot_file.decode(b"".join(snapshot_file.encode(snapshot)))
    restored = Guard(GuardSettings(source="from", quota=1))
    restored.restore(back.values["guard"], back.sections)
    again = restored.step(model, Partition("mail", 2), [n], batch(["2 17"], ["spam"]))

    assert len(orjson.dumps(back.values["guard"])) < 3 * 100
    assert again.flags.tolist() == [Flag.QUOTA]


def test_F3_windows_of_an_earlier_snapshot_are_restored() -> None:
    """Until they became a section, the sources stood in the header by hexadecimal hash."""
    guard = Guard(GuardSettings(source="from", quota=1))
    source = hashlib.blake2b(b"str ann", digest_size=8).hexdigest()
    guard.restore({"windows": [["mail", 0, 0, {source: 1}]]}, {})
    scores = guard.step(NaiveBayes(TEXT_ONLY), P0, [4, 5], batch(["ann", "bob"], ["spam", "spam"]))

    assert scores.flags.tolist() == [Flag.QUOTA, 0]
