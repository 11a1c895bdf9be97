"""What a model keeps beside its counts is what a restart computes from them, whatever was done before.

Coins, totals of fields and totals of classes are sums over the rows. A restart computes them again: a model
and its restored copy give the same posterior, to the bit, or the model has gone on with other sums.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import numpy as np
import pytest

from streamnb.base.batch import Batch
from streamnb.errors import SnapshotError
from streamnb.naive_bayes import BYTES_MIN
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Bernoulli, Categorical, Multinomial
from streamnb.naive_bayes.features.readers import Categories, Flags, Words
from streamnb.naive_bayes.model.merging import both
from streamnb.naive_bayes.model.view import View
from streamnb.naive_bayes.statistics.budget import charge

PURE = os.environ.get("STREAMNB_PURE", "") not in {"", "0"}
TWINS = pytest.mark.parametrize("compiled", [False] if PURE else [False, True], ids=lambda c: "compiled" * c)
VIEWS = [
    View("coins", Words(), Bernoulli()),
    View("words", Words(), Multinomial()),
    View("fields", Categories(fields=("from", "to")), Categorical()),
    View("flags", Flags(fields=("seen",)), Bernoulli()),
]


def made(*, compiled: bool, **settings: object) -> NaiveBayes:
    """Return a model with a view of each kind that keeps sums beside its rows."""
    return NaiveBayes(VIEWS, head="product", compiled=compiled, **settings)  # type: ignore[arg-type]


def mails(n: int, seed: int) -> Batch:
    """Return labelled messages; most of their words and senders come once."""
    draw = random.Random(seed)
    return Batch(
        {
            "text": [" ".join(f"w{int(draw.paretovariate(0.6))}" for _ in range(8)) for _ in range(n)],
            "from": [f"s{int(draw.paretovariate(0.6))}" for _ in range(n)],
            "to": [draw.choice(["me", "all", None]) for _ in range(n)],
            "seen": [draw.choice([True, False, None]) for _ in range(n)],
        },
        [draw.choice(["spam", "ham", "list"]) for _ in range(n)],
    )


def evicting(model: NaiveBayes) -> None:
    """Let it learn until most tokens were evicted."""
    model.step(mails(200, seed=1))
    assert model.state.counts.evicted_tokens > 100


def merging(model: NaiveBayes) -> None:
    """Let it take in another model, and evict what is then too much."""
    model.step(mails(10, seed=1))
    other = made(compiled=model.state.compiled)
    other.step(mails(60, seed=2))
    model.merge(other)
    assert model.state.counts.evicted_tokens > 0


def subtracting(model: NaiveBayes) -> None:
    """Let it unlearn a part of what it has learned, all of some fields."""
    first, second = mails(4, seed=1), mails(5, seed=2)
    other = made(compiled=model.state.compiled)
    for batch in (first, second):
        model.step(batch)
    other.step(second)
    model.subtract(other)


def unlearning(model: NaiveBayes) -> None:
    """Let it unlearn its messages one by one, but for the last two."""
    batch = mails(8, seed=3)
    model.step(batch)
    for i, label in enumerate(batch.labels[:6]):
        assert label is not None
        model.unlearn_one({name: column[i] for name, column in batch.fields.items()}, label)


def emptying(model: NaiveBayes) -> None:
    """Let it unlearn the only message that had a field."""
    model.learn_one({"text": "win"}, "spam")
    model.learn_one({"text": "lunch", "to": "me", "seen": True}, "ham")
    model.unlearn_one({"text": "lunch", "to": "me", "seen": True}, "ham")


@TWINS
@pytest.mark.parametrize("change", [evicting, merging, subtracting, unlearning, emptying])
def test_a_restored_model_has_the_sums_of_the_one_that_went_on(
    change: Callable[[NaiveBayes], None], compiled: bool
) -> None:
    """Posterior and log odds of many messages, and the sums in a snapshot."""
    model = made(compiled=compiled, max_tokens=64)
    change(model)
    frozen = model.freeze()
    restored = made(compiled=compiled, max_tokens=64)
    restored.restore(frozen.values, frozen.sections)
    asked = mails(40, seed=9)
    first, second = (one.step(asked, learn=False) for one in (model, restored))

    assert np.array_equal(first.posterior, second.posterior)
    assert np.array_equal(first.log_odds, second.log_odds, equal_nan=True)
    again = restored.freeze()
    for name in frozen.sections:
        if "index" not in name:
            assert np.array_equal(again.sections[name], frozen.sections[name]), name


@TWINS
def test_what_eviction_left_too_small_is_counted_once_for_each_token(compiled: bool) -> None:
    """By unlearning and by subtracting; a snapshot keeps the number."""
    settings = {"max_tokens": 16, "compiled": compiled}
    words = [View("words", Words(), Multinomial())]
    model, other = NaiveBayes(words, **settings), NaiveBayes(words, compiled=compiled)  # type: ignore[arg-type]
    model.learn_one({"text": "lost gone often"}, "a")
    other.learn_one({"text": "lost gone often"}, "a")
    for i in range(20):
        model.learn_one({"text": f"often x{i}"}, "a")
    left = set(model.state.counts["words"].rows)
    assert "often" in left
    assert not left & {"lost", "gone"}
    assert model.state.fell_short == 0

    model.unlearn_one({"text": "lost gone often"}, "a")
    assert model.state.fell_short == 2
    model.subtract(other)
    assert model.state.fell_short == 4

    frozen = model.freeze()
    restored = NaiveBayes(words, **settings)  # type: ignore[arg-type]
    restored.restore(frozen.values, frozen.sections)
    assert restored.state.fell_short == 4


@TWINS
@pytest.mark.parametrize("name", ["totals", "block2_totals"])
def test_sums_that_are_not_those_of_the_counts_are_refused(name: str, compiled: bool) -> None:
    """Of the classes and of the fields; a forged snapshot could hold any."""
    model = made(compiled=compiled)
    model.step(mails(20, seed=4))
    frozen = model.freeze()
    for factor in (1.001, 0.999, 2.0, 0.0):
        forged = dict(frozen.sections) | {name: np.asarray(frozen.sections[name], np.float64) * factor}
        with pytest.raises(SnapshotError):
            made(compiled=compiled).restore(frozen.values, forged)


@TWINS
@pytest.mark.parametrize("mass", [-0.5, float("inf"), "1"])
def test_an_evicted_mass_that_no_stream_has_is_refused(mass: object, compiled: bool) -> None:
    """So is a number of incompletely unlearned tokens below 0."""
    model = made(compiled=compiled, max_tokens=64)
    evicting(model)
    frozen = model.freeze()
    for values in ({"evicted_mass": mass}, {"fell_short": -1}):
        with pytest.raises(SnapshotError, match="not valid"):
            made(compiled=compiled).restore({**frozen.values, **values}, frozen.sections)


@TWINS
def test_the_counts_stay_within_their_bytes(compiled: bool) -> None:
    """Each twin evicts by its own sums of bytes, before each message."""
    words = [View("words", Words(), Multinomial())]
    model = NaiveBayes(words, bytes_max=BYTES_MIN, compiled=compiled)
    for i in range(24):
        model.learn_one({"text": " ".join(f"word{1000 * i + n}" for n in range(1000))}, "ab"[i % 2])
        assert model.state.counts.charge() <= BYTES_MIN
    assert model.state.counts.evicted_tokens > 5_000


@TWINS
def test_the_budget_is_charged_for_bytes_in_any_script(compiled: bool) -> None:
    """A character has one to four of them; what goes is no longer charged."""
    model = NaiveBayes([View("words", Words(), Multinomial())], compiled=compiled)
    model.learn_one({"text": "win grüße привет 你好 👍"}, "a")
    model.learn_one({"text": "привет again"}, "b")
    for text, label in (("привет again", "b"), ("win grüße привет 你好 👍", "a")):
        rows = model.state.counts["words"].rows
        size = sum(len(token.encode()) for token in rows)
        assert model.state.counts.charge() == charge(len(rows), size, 0, 2, trusts=True)
        model.unlearn_one({"text": text}, label)
    assert model.state.counts.charge() == charge(0, 0, 0, 2, trusts=True)


@TWINS
def test_a_total_is_summed_again_where_a_subtraction_would_round(compiled: bool) -> None:
    """Weights that are no multiples of 1/256 leave a rest in a total from which they are subtracted."""
    model = NaiveBayes([View("words", Words(), Multinomial())], compiled=compiled)
    for i in range(9):
        model.learn_one({"text": f"heavy{i} heavy"}, "a", 1e9 / 7)
        model.learn_one({"text": f"light{i} light"}, "a", 1e-3 / 3)
    for i in range(3):
        model.unlearn_one({"text": f"heavy{i} heavy"}, "a", 1e9 / 7)
        counts = model.state.counts["words"]
        total = 0.0
        for (count,) in counts.rows.values():
            total += count
        assert counts.totals[0] == total


@TWINS
def test_more_weight_than_was_learned_is_not_unlearned(compiled: bool) -> None:
    """Although the message has no word whose count would show it."""
    model = made(compiled=compiled)
    model.learn_one({"text": ""}, "spam", 2.0)
    before = model.digest()
    with pytest.raises(ValueError, match="is below this message's"):
        model.unlearn_one({"text": ""}, "spam", 2.5)
    assert model.digest() == before
    model.unlearn_one({"text": ""}, "spam", 2.0)
    assert model.class_counts_ == {"spam": 0.0}


def test_a_merge_makes_as_many_classes_as_there_may_be() -> None:
    """One more is refused, and nothing is merged."""
    model, third, fourth = (made(compiled=False, classes_max=3) for _ in range(3))
    for one, labels in ((model, "ab"), (third, "bc"), (fourth, "ad")):
        for label in labels:
            one.learn_one({"text": "win"}, label)
    model.merge(third)
    assert list(model.classes_) == ["a", "b", "c"]
    before = model.digest()
    with pytest.raises(ValueError, match="more than 3 classes"):
        model.merge(fourth)
    assert model.digest() == before


def test_two_models_are_locked_in_the_same_order_from_either_side() -> None:
    """Otherwise two threads that merge each into the other could wait for ever."""
    first, second = made(compiled=False).state, made(compiled=False).state
    taken: list[int] = []

    class Noting:
        def __init__(self, number: int) -> None:
            self.number = number

        def __enter__(self) -> None:
            taken.append(self.number)

        def __exit__(self, *_: object) -> None:
            pass

    first.lock, second.lock = Noting(1), Noting(2)  # type: ignore[assignment]
    for pair in ((first, second), (second, first)):
        with both(*pair):
            pass
    assert taken[:2] == taken[2:]


@TWINS
def test_a_state_whose_columns_are_those_of_other_classes_is_refused(compiled: bool) -> None:
    """A model with declared classes has them first; the same classes in another order are other columns."""
    model = made(compiled=compiled)
    for label in ("ham", "spam"):
        model.learn_one({"text": "win"}, label)
    frozen = model.freeze()
    made(compiled=compiled, classes=["ham", "spam"]).restore(frozen.values, frozen.sections)
    with pytest.raises(SnapshotError, match="do not begin with the declared"):
        made(compiled=compiled, classes=["spam", "ham"]).restore(frozen.values, frozen.sections)
