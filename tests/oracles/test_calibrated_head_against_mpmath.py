"""The calibrated head beside its specification in numbers of fifty digits: what its doubles lose."""

from __future__ import annotations

import math
from random import Random
from types import SimpleNamespace

import mpmath
import pytest

from streamnb.base import Batch
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.features.readers import Ends, WordPairs, Words
from streamnb.naive_bayes.model.view import View
from tests.naive_bayes.posterior import test_calibrated_head as specification
from tests.naive_bayes.posterior.test_calibrated_head import Message, Reference

VIEWS = {"words": Words(), "pairs": WordPairs(), "ends": Ends()}
DIGITS = 50


@pytest.fixture
def fifty_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the specification calculate with mpmath's numbers; also where one of them is a double."""
    precise = SimpleNamespace(log=mpmath.log, exp=mpmath.exp, sqrt=mpmath.sqrt)
    monkeypatch.setattr(specification, "math", precise)
    monkeypatch.setattr(mpmath.mp, "dps", DIGITS)


def stream(seed: int, weights: list[float]) -> list[tuple[Message, str, float]]:
    """Short and very long texts, one word repeated, nearly decided and contradicting labels."""
    random = Random(seed)
    found: list[tuple[Message, str, float]] = []
    for i in range(30):
        label = random.choice(["ham", "spam"] if i < 20 else ["ham", "spam", "work"])
        own = [f"{label}{random.randrange(20)}" for _ in range(random.choice([0, 1, 5, 60]))]
        shared = [f"word{random.randrange(60)}" for _ in range(random.choice([0, 3, 30]))]
        repeated = [label] * random.choice([0, 0, 200])
        if random.random() < 0.1:
            label = "ham"
        found.append(({"text": " ".join([*own, *shared, *repeated])}, label, random.choice(weights)))
    return found


@pytest.mark.usefixtures("fifty_digits")
@pytest.mark.parametrize("trust", [True, False])
@pytest.mark.parametrize(
    ("weights", "bound"),
    # A double has 16 digits: beside 1e9, a weight of 1e-9 keeps none of its own.
    [([1.0], 1e-14), ([1e-9, 1.0, 1e9], 1e-9)],
    ids=["one", "extreme"],
)
def test_posteriors_are_those_of_fifty_digits(weights: list[float], bound: float, trust: bool) -> None:
    """The worst error of a posterior and of its logarithm, over messages of every kind, and the noise."""
    model = NaiveBayes([View(name, reader) for name, reader in VIEWS.items()], trust=trust)
    reference = Reference(list(VIEWS), [], [], trust=trust)
    reference.eta = mpmath.log(mpmath.mpf(0.01) / mpmath.mpf(0.99))
    worst = worst_log = 0.0
    for message, label, weight in stream(1, weights):
        expected = reference.score(message)
        known = [str(name) for name in model.classes_]
        scores = model.step(Batch({"text": [message["text"]]}, [label], [weight]))
        for name, found in zip(known, scores.posterior[0].tolist(), strict=False):
            worst = max(worst, float(abs(expected[name] - found)))
            worst_log = max(worst_log, abs(math.log(found) - float(mpmath.log(expected[name]))))
        reference.learn(message, label, weight)
    assert model.state.head is not None
    assert worst < bound
    assert worst_log < 10 * bound
    assert model.state.head.eta == pytest.approx(float(reference.eta), rel=1e-9)
    assert any(v for v, _ in reference.v.values()) == trust
