"""River's own estimator checks, unmodified, of every estimator; those of batches need pandas to appear."""

import pickle
from typing import Any

import pytest
from river import base, checks, compose, ensemble, evaluate, feature_extraction, metrics, utils

import streamnb
from streamnb.cli.demo.mailbox import mailbox
from streamnb.naive_bayes.estimators import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianDiscriminant,
    GaussianNB,
    MultinomialNB,
    NaiveBayes,
)

Metrics: Any = metrics
ESTIMATORS: list[NaiveBayes] = [
    BernoulliNB(),
    MultinomialNB(),
    MultinomialNB(weight="boolean", unknown="skip"),
    ComplementNB(),
    CategoricalNB(),
    GaussianNB(),
    GaussianNB(variance="shared", robust=0.001),
    GaussianDiscriminant(),
    GaussianDiscriminant(covariance="class"),
    NaiveBayes(),
    NaiveBayes(head="calibrated"),
]
CHECKS = [
    pytest.param(model, check, id=f"{type(model).__name__}-{m}-{i}-{getattr(check, '__name__', 'check')}")
    for m, model in enumerate(ESTIMATORS)
    for i, check in enumerate(checks.yield_checks(model))
]


@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_rivers_estimator_checks_pass(model: NaiveBayes, check: Any) -> None:  # noqa: ANN401
    """As `river.checks.check_estimator` runs them."""
    check(model.clone())


def test_every_public_estimator_is_checked() -> None:
    """A new one must be added to the list."""
    public = [getattr(streamnb, name) for name in streamnb.__all__]
    found = {part for part in public if isinstance(part, type) and issubclass(part, base.Classifier)}
    assert found == {type(model) for model in ESTIMATORS}


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_nothing_is_skipped(model: NaiveBayes) -> None:
    """No list of exceptions, and the checks of batches are there."""
    names = [getattr(check, "__name__", "") for check in checks.yield_checks(model)]
    assert model._unit_test_skips() == set()
    assert utils.pandas.PANDAS_INSTALLED
    assert "check_learn_many_matches_learn_one" in names


WORDS = [MultinomialNB(), ComplementNB(), BernoulliNB()]


@pytest.mark.parametrize("model", WORDS, ids=lambda model: type(model).__name__)
def test_a_pipeline_learns_mail(model: NaiveBayes) -> None:
    """Behind BagOfWords, under `progressive_val_score`."""
    stream: Any = [(m["text"], m["label"] == "spam") for m in mailbox(0, 300) if m["label"] and m["text"]]
    pipeline: Any = compose.Pipeline(
        ("bag", feature_extraction.BagOfWords(lowercase=True)), ("nb", model.clone())
    )
    metric = evaluate.progressive_val_score(stream, pipeline, Metrics.Accuracy())
    assert metric.get() > 0.85


def test_pairs_of_words_are_names_too() -> None:
    """River's names of word pairs are tuples; they are known by their text."""
    bag: Any = feature_extraction.BagOfWords(ngram_range=(1, 2))
    model: Any = compose.Pipeline(("bag", bag), ("nb", MultinomialNB()))
    model.learn_one("win money", "spam")
    model.learn_one("lunch money", "ham")
    assert model.predict_one("win money") == "spam"
    assert model["nb"].feature_counts["win", "money"] == {"spam": 1.0}


def test_an_ensemble_of_them_votes() -> None:
    """Bagging clones its base."""
    model: Any = ensemble.BaggingClassifier(GaussianNB(), n_models=3, seed=1)
    for i in range(60):
        model.learn_one({"a": float(i % 2) * 4 + i % 5 * 0.1}, i % 2 == 1)
    assert model.predict_one({"a": 4.0}) is True
    assert model.predict_one({"a": 0.0}) is False


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_a_pickled_estimator_goes_on(model: NaiveBayes) -> None:
    """What it learned, and what it learns next, is the same."""
    first = model.clone()
    for i in range(20):
        first.learn_one({"a": i % 3, "b": i % 2}, i % 2 == 1)
    second = pickle.loads(pickle.dumps(first))
    for one in (first, second):
        one.learn_one({"a": 2, "c": 1}, True)
    assert first.predict_proba_one({"a": 1, "b": 1}) == second.predict_proba_one({"a": 1, "b": 1})
    assert first.digest() == second.digest()
