"""With many classes the kernel keeps logarithms of sums per class; whatever changes a sum, both twins agree.

The plain twin keeps none, so equal bits show that no logarithm is used after its sum has changed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import numpy as np
import pytest

from streamnb import Laplace, Multinomial, NaiveBayes, View, Words
from streamnb.base import Batch, Scores
from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.posterior.odds import log_odds, log_odds_of, odds_of_many, softmax

pytestmark = pytest.mark.skipif(os.environ.get("STREAMNB_PURE", "") not in {"", "0"}, reason=_kernel.reason)

N_CLASSES = 12  # more than `DENSE_CLASSES`


def model(*, compiled: bool, half_life_messages: float | None = None) -> NaiveBayes:
    """Return a product head that smooths unknown words, after three messages of each class."""
    views = [View("words", Words(), Multinomial(Laplace(1.0), weight="counts", unknown="smooth"))]
    made = NaiveBayes(
        views,
        head="product",
        max_tokens=60,
        classes_max=2 * N_CLASSES,
        half_life_messages=half_life_messages,
        compiled=compiled,
    )
    made.step(messages(range(3 * N_CLASSES)), score=False)
    return made


def messages(numbers: range) -> Batch:
    """Return messages with a word of their class, one of all classes, and a new one."""
    texts = [f"own{i % N_CLASSES} all new{i}" for i in numbers]
    return Batch({"text": texts}, [f"class {i % N_CLASSES}" for i in numbers])


def unlearn(made: NaiveBayes) -> None:
    """Take a message back."""
    made.unlearn_one({"text": "own0 all new0"}, "class 0")


def merge(made: NaiveBayes) -> None:
    """Add a model of the same messages."""
    made.merge(model(compiled=made.state.driver is not None))


def weigh(made: NaiveBayes) -> None:
    """Learn weights whose sum depends on their order."""
    made.step(Batch({"text": ["own1 own1"] * 3}, ["class 1"] * 3, [0.3, 0.1, 0.7]), score=False)


def add_a_class(made: NaiveBayes) -> None:
    """Learn a class more."""
    made.learn_one({"text": "own1 first"}, "one more")


def evict(made: NaiveBayes) -> None:
    """Learn so many words that others are let go."""
    made.step(messages(range(1000, 1080)), score=False)
    assert made.state.counts.evicted_tokens


CHANGES: list[Callable[[NaiveBayes], None]] = [unlearn, merge, weigh, add_a_class, evict]


@pytest.mark.parametrize("change", CHANGES)
def test_scores_after_a_change_of_the_sums_are_those_of_the_plain_twin(
    change: Callable[[NaiveBayes], None],
) -> None:
    """Test each change between two batches, the second of which also learns."""
    scores = []
    for compiled in (True, False):
        made = model(compiled=compiled)
        made.step(messages(range(N_CLASSES)), learn=False)  # the logarithms are kept from here on
        change(made)
        scores.append(made.step(messages(range(2 * N_CLASSES))))
    assert_equal(*scores)


def test_scores_of_a_model_that_forgets_are_those_of_the_plain_twin() -> None:
    """Test a half-life so short that the landmark moves within the batch."""
    assert_equal(
        *(
            model(compiled=compiled, half_life_messages=2.0).step(messages(range(400)))
            for compiled in (True, False)
        )
    )


def assert_equal(one: Scores, other: Scores) -> None:
    """Compare the tables of two scores bit by bit."""
    for table in ("posterior", "log_odds", "u", "learned_by_class"):
        np.testing.assert_array_equal(getattr(one, table), getattr(other, table), err_msg=table)


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 900.0])
def test_log_odds_of_many_classes_are_those_of_the_exact_formula(spread: float) -> None:
    """Test posteriors from uniform ones to ones that round to 0 and 1."""
    random = np.random.default_rng(3)
    u = (random.random(50) * spread).tolist()
    exact = []
    for c, value in enumerate(u):
        rest = [other for i, other in enumerate(u) if i != c]
        top = max(rest)
        exact.append(value - top - math.log(math.fsum(math.exp(other - top) for other in rest)))
    assert log_odds(u) == pytest.approx(exact, rel=1e-12, abs=1e-13)
    assert odds_of_many(u, softmax(u)) == log_odds(u)
    if spread < 100:  # else posteriors are rounded to 0 or 1
        assert log_odds_of(softmax(u)) == pytest.approx(exact, rel=1e-9, abs=1e-13)
