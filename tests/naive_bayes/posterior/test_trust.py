"""Trust: its feature, its steps, and what it does to a model. The figures are checked beside the head's."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.naive_bayes import NaiveBayes, View, WordPairs, Words
from streamnb.naive_bayes.model.view import TEXT_ONLY
from streamnb.naive_bayes.posterior.against_rest import TokenOdds
from streamnb.naive_bayes.posterior.trust import damping, gradient, stepped, teaches, trust_feature
from streamnb.naive_bayes.statistics.token_trust import SQUARES_MAX

VIEWS = (View("words", Words()), View("pairs", WordPairs()))
NUMBERS = st.floats(-1e6, 1e6)


def _message(random: Random) -> tuple[dict[str, str], str]:
    """Return a message in which "not" turns round what "good" says."""
    good, turned = random.random() < 0.5, random.random() < 0.5
    words = random.choices(["the", "a", "of", "and", "to", "in", "it"], k=4)
    words += ["good" if good else "bad", *["not"] * turned]
    random.shuffle(words)
    return {"text": " ".join(words)}, "up" if good != turned else "down"


def test_a_worked_example() -> None:
    """Two known tokens and an unknown one, computed by hand."""
    odds = [[TokenOdds("a", 1.0, 0.5, 0.25, [2.0, -2.0]), TokenOdds("b", 2.0, 1.0, -1.0, [-1.0, 1.0])]]
    damped = damping([{"a": 1.0, "b": 2.0, "never": 1.0}])

    assert damped == pytest.approx(6.0**-0.35)
    assert trust_feature(odds, damped, 2) == pytest.approx([damped * 1.25, -damped * 1.25])
    h = gradient(odds[0][0], damped, [0.5, -0.5])
    assert h == pytest.approx(damped * 0.5 * 2.0)
    trust, squares = stepped((0.25, 1.0), h, 1.0)
    assert squares == pytest.approx(1.0 + h * h)
    assert trust == pytest.approx(0.25 - 0.3 * h / math.sqrt(1.05 + h * h))


@given(st.floats(-1, 2), st.floats(0, 1e38), NUMBERS, st.sampled_from([1.0, 2.0**-64, 2.0**64, 2.0**128]))
def test_a_step_is_bounded(trust: float, squares: float, h: float, scale: float) -> None:
    """By the bounds of trust and by what a single float holds; it never goes up the gradient."""
    after, grown = stepped((trust, squares), h, scale)

    assert -1.0 <= after <= 2.0
    assert 0.0 <= grown <= SQUARES_MAX
    assert (after - trust) * h <= 0.0
    assert abs(after - trust) <= 0.3 * (1 + 1e-9) or h * h * scale > SQUARES_MAX


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=5), st.floats(1e-9, 1e9))
def test_a_weight_does_not_decide_what_is_unexpected(errors: list[float], weight: float) -> None:
    """A message of weight 1/256 teaches trust whenever a message of weight 1 would."""
    factor = min(weight, 1.0)
    total = sum(r * r for r in errors)
    if not math.isclose(total, 0.01, rel_tol=1e-9):
        assert teaches([factor * r for r in errors], weight) == (total >= 0.01)


def test_only_an_unexpected_message_teaches_trust() -> None:
    """One that was expected does not, nor one against all evidence, whose label is likely to be wrong."""
    model = NaiveBayes(TEXT_ONLY)
    for _ in range(200):
        model.learn_one({"text": "win cash now"}, "spam")
        model.learn_one({"text": "lunch at noon"}, "ham")
    learned = model.state.counts.trust_digest().hex()
    for label in "spam", "ham":
        model.learn_one({"text": "win cash now"}, label)
        assert model.state.counts.trust_digest().hex() == learned
    model.learn_one({"text": "win lunch"}, "ham")
    assert model.state.counts.trust_digest().hex() != learned


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("half_life", [None, 50.0])
def test_an_explanation_with_trust_adds_up(compiled: bool | None, half_life: float | None) -> None:
    """The trust of each token is in its part; the parts sum to the difference of the two classes' u."""
    random = Random(3)
    model = NaiveBayes(VIEWS, compiled=compiled, half_life_messages=half_life)
    for _ in range(300):
        model.learn_one(*_message(random))
    assert model.state.head is not None
    assert max(abs(v) for _, v, _ in model.state.counts["words"].trust.items()) > 0.1
    for _ in range(20):
        x, _ = _message(random)
        explanation = model.explain_one(x)
        assert explanation is not None
        eps = 1.0 / (1.0 + math.exp(-model.state.head.eta))
        p, (a, b) = model.predict_proba_one(x), explanation.classes
        odds = math.log((p[a] - eps / 2) / (p[b] - eps / 2))
        assert explanation.total == pytest.approx(odds, abs=1e-9)


def test_a_model_without_trust_holds_none() -> None:
    """No section, no weight, and other posteriors than with it."""
    random = Random(5)
    messages = [_message(random) for _ in range(300)]
    trusting, without = (NaiveBayes(TEXT_ONLY, trust=trust) for trust in (True, False))
    for x, y in messages:
        trusting.learn_one(x, y)
        without.learn_one(x, y)

    sections = trusting.freeze().sections.keys() - without.freeze().sections.keys()
    assert sections == {"token_trust", "head_trust"}
    assert trusting.digest()["order_free"] == without.digest()["order_free"]
    assert trusting.digest()["all"] != without.digest()["all"]
    x = {"text": "not good"}
    assert trusting.predict_proba_one(x) != without.predict_proba_one(x)


def test_models_with_and_without_trust_are_not_merged() -> None:
    """One head has a weight that the other lacks."""
    with_trust, without = NaiveBayes(TEXT_ONLY), NaiveBayes(TEXT_ONLY, trust=False)
    for model in with_trust, without:
        model.learn_one({"text": "hi"}, "ham")
    with pytest.raises(ValueError, match="trust: True here, False there"):
        with_trust.merge(without)


def test_unlearning_leaves_the_trust_of_tokens_that_stay() -> None:
    """Unlearning is exact for what is counted; what the head was taught step by step stays."""
    random = Random(7)
    model = NaiveBayes(VIEWS)
    messages = [_message(random) for _ in range(200)]
    for x, y in messages:
        model.learn_one(x, y)
    trusted = list(model.state.counts["words"].trust.items())
    for x, y in messages[:50]:
        model.unlearn_one(x, y)
    assert list(model.state.counts["words"].trust.items()) == trusted
    for x, y in messages[50:]:
        model.unlearn_one(x, y)
    assert model.digest()["order_free"] == NaiveBayes(VIEWS).digest()["order_free"]
    assert list(model.state.counts["words"].trust.items()) == []
