"""Maximum likelihood: probabilities of 0 give infinities, 0/0 gives no evidence, and nothing gives NaN."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import pytest

from streamnb import (
    Bernoulli,
    BernoulliNB,
    Beta,
    Categorical,
    CategoricalNB,
    Categories,
    ComplementNB,
    FixedPrior,
    Flags,
    GaussianDiscriminant,
    GaussianNB,
    MultinomialNB,
    NaiveBayes,
    NoSmoothing,
    UniformPrior,
    View,
    Words,
)

MIXED = [
    View("words", Words(), Bernoulli(Beta(0, 0))),
    View("kinds", Categories(), Categorical(NoSmoothing())),
    View("flags", Flags(), Bernoulli(Beta(0, 0))),
]
MODELS: dict[str, Callable[..., Any]] = {
    "multinomial": partial(MultinomialNB, 0),
    "multinomial, skipping": partial(MultinomialNB, 0, unknown="skip"),
    "complement": partial(ComplementNB, 0),
    "bernoulli": partial(BernoulliNB, 0),
    "bernoulli, smoothing": partial(BernoulliNB, 0, unknown="smooth"),
    "categorical": partial(CategoricalNB, 0),
    "gaussian": partial(GaussianNB, pseudo_observations=0),
    "gaussian, shared": partial(GaussianNB, "shared", pseudo_observations=0),
    "discriminant": GaussianDiscriminant,
    "discriminant, a covariance per class": partial(GaussianDiscriminant, "class"),
    "mixed": partial(NaiveBayes, MIXED, head="product"),
}
PRIORS = [None, UniformPrior(), FixedPrior({"a": 0, "b": 1}), FixedPrior({"z": 1})]


def _message(random: Random, name: str) -> dict[str, Any]:
    if name == "mixed":
        words = " ".join(random.choice("uvw") for _ in range(random.randint(0, 2)))
        return {"text": words, "kind": random.choice("xyz"), "flag": random.choice([True, False, None])}
    return {key: random.choice([0, 1, 2]) for key in random.sample("uvwx", random.randint(0, 4))}


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(_numbers, value.values()))
    elif isinstance(value, list | tuple):
        yield from itertools.chain.from_iterable(map(_numbers, value))


def _answers(model: Any, x: dict[str, Any]) -> Iterator[object]:  # noqa: ANN401
    yield model.predict_proba_one(x)
    yield model.predict_log_proba_one(x)
    yield model.log_odds_one(x)
    yield model.joint_log_likelihood(x)
    for pair in itertools.permutations(model.classes_, 2):
        why = model.explain_one(x, pair)
        yield [why.total, why.top(1).total, why.to_dict()]
        try:
            yield model.linear_weights(pair)
        except ValueError as error:
            assert "curved" in str(error)  # noqa: PT017 - the only error that there may be
    yield [x for x, _ in model.sample(3)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("prior", PRIORS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_no_answer_is_nan(name: str, prior: Any) -> None:  # noqa: ANN401
    """Six classes of a few small messages: probabilities of 0 and 1 are everywhere."""
    random = Random(7)
    for _ in range(12):
        model = MODELS[name](prior=prior)
        for _ in range(random.randint(1, 6)):
            model.learn_one(_message(random, name), random.choice("abc"))
        for answer in _answers(model, _message(random, name)):
            assert not any(map(math.isnan, _numbers(answer)))


def test_an_explanation_of_0_by_0_is_the_prior() -> None:
    """As the posterior is: "win" is impossible as ham, "lunch" as spam."""
    model = MultinomialNB(0)
    for text, label in [("win money", "spam"), ("lunch noon", "ham"), ("win", "spam")]:
        model.learn_one(text, label)
    x = "win lunch money"
    why = model.explain_one(x)
    assert why is not None
    assert why.total == pytest.approx(math.log(2))
    assert [part.value for part in why.tokens] == [0.0] * 3
    assert model.predict_proba_one(x) == pytest.approx({"spam": 2 / 3, "ham": 1 / 3})
    assert model.explain_one("win").total == math.inf  # type: ignore[union-attr]


def test_the_plane_at_maximum_likelihood() -> None:
    """The lectures' ``w = log odds of theta_1 - log odds of theta_0``; a certain word is infinite."""
    model = BernoulliNB(0)
    for words, label in [("a b", "1"), ("a", "1"), ("a b", "1"), ("a b c", "0"), ("b", "0")]:
        model.learn_one(dict.fromkeys(words.split(), 1), label)
    intercept, weights = model.linear_weights(("1", "0"))
    assert weights["b"] == -math.inf  # every message of class 0 has it
    assert weights["a"] == math.inf  # every message of class 1 has it
    assert weights["c"] == -math.inf  # none of class 1 has it
    assert intercept == pytest.approx(math.log(3 / 2))  # without a not 1, without b not 0: 0/0, so the prior
    model.learn_one({"a": 1}, "0")
    model.learn_one({"b": 1, "c": 1}, "1")
    intercept, weights = model.linear_weights(("1", "0"))
    theta = {"1": {"a": 3 / 4, "b": 3 / 4, "c": 1 / 4}, "0": {"a": 2 / 3, "b": 2 / 3, "c": 1 / 3}}
    odds = {c: {word: math.log(p / (1 - p)) for word, p in each.items()} for c, each in theta.items()}
    assert weights == pytest.approx({word: odds["1"][word] - odds["0"][word] for word in "abc"})
    absent = [sum(math.log(1 - p) for p in theta[c].values()) for c in ("1", "0")]
    assert intercept == pytest.approx(absent[0] - absent[1] + math.log(4 / 3))


def test_a_complement_draws_the_words_of_its_classes() -> None:
    """Complements are a rule of scoring; the messages of a class have its own words."""
    model = ComplementNB(0)
    for text, label in [("win win money", "spam"), ("lunch noon", "ham")] * 5:
        model.learn_one(text, label)
    for x, drawn in model.sample(50):
        assert set(x) <= ({"win", "money"} if drawn == "spam" else {"lunch", "noon"})
