"""River's transformers and meta models around every estimator, with river's own naive Bayes beside it.

A sample of all combinations is tried here; ``python -m tests.support.ecosystem`` tries all. What fails with
river's own estimator too is no failure of ours.
"""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from streamnb.naive_bayes.estimators import (
    BernoulliNB,
    ComplementNB,
    GaussianDiscriminant,
    GaussianNB,
    MultinomialNB,
    NaiveBayes,
)
from tests.support import ecosystem
from tests.support.ecosystem import (
    MODELS,
    PARTS,
    STRIDE,
    WRAPPERS,
    Combination,
    both,
    kind,
    river,
    stream,
    trial,
)

NEGATIVE = "must be a number from 0 to 1e9, not -"
ONLY_OURS = {
    # MinMaxScaler makes a value below the smallest one so far negative; river computes with it
    **{
        Combination("MinMaxScaler", numbers, model): NEGATIVE
        for numbers in ("numbers", "segments")
        for model in ("MultinomialNB", "ComplementNB")
    },
    # a negative count is refused; river takes the logarithm of the sums, which happen to be positive here
    Combination("Normalizer", "segments", "MultinomialNB"): NEGATIVE,
    Combination("ThresholdFilter", "segments", "ComplementNB"): NEGATIVE,
}
"""Combinations that work with river's own estimator only, and the error of ours."""

LEFT_OUT = {
    "preprocessing": {"PredClipper", "TargetMinMaxScaler", "TargetStandardScaler"},  # around regressors
    "ensemble": {"BaggingRegressor", "EWARegressor", "SRPRegressor"},
    "imblearn": {"ChebyshevOverSampler", "ChebyshevUnderSampler", "HardSamplingRegressor"},
    "multioutput": {"PerOutputRegressor", "RegressorChain"},
    "model_selection": {"BanditRegressor", "GreedyRegressor", "SuccessiveHalvingRegressor"},
    "compose": {"TargetTransformRegressor", "learn_during_predict", "pure_inference_mode"},
    "feature_extraction": set(),
    "feature_selection": set(),
    "multiclass": set(),
    "active": set(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("combination", ecosystem.combinations()[::STRIDE], ids=" - ".join)
def test_what_works_with_rivers_own_works_with_ours(combination: Combination) -> None:
    """Every message is scored and learned, and the scores are finite shares."""
    ours, theirs = both(combination)
    if combination not in ONLY_OURS:
        assert not ours.failure or theirs.failure


@pytest.mark.parametrize("combination", ONLY_OURS, ids=" - ".join)
def test_what_works_with_rivers_own_only_is_refused_for_the_reason_given(combination: Combination) -> None:
    """A row of the table goes when the combination begins to work."""
    ours, theirs = both(combination)
    assert kind(ours, theirs) == "fails with ours only"
    assert ONLY_OURS[combination] in ours.failure


@pytest.mark.parametrize("module", LEFT_OUT)
def test_no_part_of_river_is_forgotten(module: str) -> None:
    """A part that river adds must be tried, or named as one that takes no classifier."""
    source = Path(ecosystem.__file__).read_text(encoding="utf-8")
    names = {
        name for name in getattr(river, module).__all__ if name not in {"base", "ActiveLearningClassifier"}
    }
    assert {name for name in names if not re.search(rf"river\.{module}\.{name}\b", source)} == LEFT_OUT[
        module
    ]


@pytest.mark.parametrize("part", [part for part in WRAPPERS if "words" in WRAPPERS[part].streams])
def test_an_ensemble_of_ours_scores_words_as_one_of_rivers_own(part: str) -> None:
    """The two estimators that give river's numbers, each in every second one, up to rounding."""
    model = ("MultinomialNB", "ComplementNB")[list(WRAPPERS).index(part) % 2]
    ours, theirs = both(Combination(part, "words", model))
    assert ours.failure == theirs.failure
    for mine, its in zip(ours.scores, theirs.scores, strict=True):
        if isinstance(its, dict):
            assert mine == pytest.approx(its, abs=1e-9)
        elif isinstance(its, tuple):  # an active learner's
            assert mine == (pytest.approx(its[0], abs=1e-9), its[1])
        else:
            assert mine == its


# ---- weights


class _Weighing:
    """A model whose every message is learned with a weight."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        self.predict_one, self.predict_proba_one = model.predict_one, model.predict_proba_one
        self._learn_one = model.learn_one

    def learn_one(self, x: Any, y: Any) -> None:  # noqa: ANN401
        self._learn_one(x, y, w=2.0)


@pytest.mark.parametrize("part", [part for part in PARTS if "numbers" in PARTS[part].streams])
def test_a_weight_reaches_ours_as_it_reaches_a_peer_that_knows_weights(part: str) -> None:
    """River's naive Bayes knows none, so its logistic regression is the peer."""
    wrap, pairs = PARTS[part].wrap, stream("numbers")[:12]
    ours = trial(lambda m: _Weighing(wrap(m)), GaussianNB, pairs)
    theirs = trial(lambda m: _Weighing(wrap(m)), river.linear_model.LogisticRegression, pairs)
    assert not ours.failure or theirs.failure


@pytest.mark.parametrize(
    ("wrap", "inner"),
    [
        (ecosystem.before(river.preprocessing.StandardScaler()), lambda m: [m["GaussianNB"]]),
        (WRAPPERS["Bagging"].wrap, list),
        (WRAPPERS["LeveragingBagging, bag"].wrap, list),
        (WRAPPERS["RandomOverSampler"].wrap, lambda m: [m.classifier]),
        (WRAPPERS["RandomUnderSampler"].wrap, lambda m: [m.classifier]),
        (WRAPPERS["OneVsRest"].wrap, lambda m: m.classifiers.values()),
    ],
)
def test_a_weight_of_two_counts_twice_in_every_inner_model(wrap: Any, inner: Any) -> None:  # noqa: ANN401
    """The same messages are drawn with and without weights."""
    once, twice = wrap(GaussianNB()), wrap(GaussianNB())
    for x, y in stream("numbers")[:12]:
        once.learn_one(x, y)
        twice.learn_one(x, y, w=2.0)
    counts = [model.class_counts for model in inner(once)]
    assert any(counts)
    assert [model.class_counts for model in inner(twice)] == [
        {label: 2 * n for label, n in count.items()} for count in counts
    ]


# ---- batches, and scikit-learn's API


@pytest.mark.parametrize("make", [GaussianNB, GaussianDiscriminant, NaiveBayes, BernoulliNB])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_pipeline_learns_frames_with_weights(make: Any, frame: Any) -> None:  # noqa: ANN401
    """Behind a scaler: as learning the scaled rows one by one."""
    pairs = stream("numbers")
    rows, labels, weights = [x for x, _ in pairs], [y for _, y in pairs], [1.0 + i % 3 for i in range(30)]
    scaler = river.preprocessing.StandardScaler()
    many, one = scaler.clone() | make(), make()
    many.learn_many(frame(rows), pd.Series(labels) if frame is pd.DataFrame else pl.Series(labels), w=weights)
    scaler.learn_many(frame(rows))
    scaled = scaler.transform_many(frame(rows))
    messages = scaled.to_dict("records") if frame is pd.DataFrame else scaled.to_dicts()
    for message, label, weight in zip(messages, labels, weights, strict=True):
        one.learn_one(message, label, w=weight)
    assert many[make.__name__].digest() == one.digest()
    assert list(many.predict_many(frame(rows))) == [one.predict_one(message) for message in messages]


@pytest.mark.parametrize("make", [MultinomialNB, ComplementNB, BernoulliNB, GaussianNB, NaiveBayes])
def test_bags_of_words_in_frames_are_learned(make: Any) -> None:  # noqa: ANN401
    """BagOfWords returns a sparse frame with whole words as columns."""
    texts, labels = zip(*stream("texts"), strict=True)
    model, one = (
        river.feature_extraction.BagOfWords() | make(),
        river.feature_extraction.BagOfWords() | make(),
    )
    model.learn_many(pd.Series(texts), pd.Series(labels))
    if make in {MultinomialNB, ComplementNB, BernoulliNB}:  # others read a 0 as a number
        for text, label in zip(texts, labels, strict=True):
            one.learn_one(text, label)
        assert model[make.__name__].digest() == one[make.__name__].digest()
    right = model.predict_many(pd.Series(texts)) == pd.Series(labels)
    assert right.mean() > 0.8


@pytest.mark.parametrize("make", [GaussianNB, GaussianDiscriminant, NaiveBayes])
def test_one_against_the_rest_learns_frames(make: Any) -> None:  # noqa: ANN401
    """Seven classes; the same labels as one after another."""
    pairs = stream("segments", 60)
    frame, labels = pd.DataFrame([x for x, _ in pairs]), pd.Series([y for _, y in pairs])
    many = river.multiclass.OneVsRestClassifier(make())
    many.learn_many(frame, labels)
    assert set(many.classifiers) == set(labels)
    assert (many.predict_many(frame) == labels).mean() > 0.6


@pytest.mark.parametrize("name", MODELS)
def test_under_scikit_learns_api_the_labels_are_the_same(name: str) -> None:
    """River's adapter learns batches of arrays."""
    make, _ = MODELS[name]
    pairs = stream("numbers")
    rows, labels = [list(x.values()) for x, _ in pairs], [y for _, y in pairs]
    adapted, one = river.compat.River2SKLClassifier(make()), make()
    adapted.fit(rows, labels)
    for row, label in zip(rows, labels, strict=True):
        one.learn_one(dict(enumerate(row)), int(label))
    assert [int(label) for label in adapted.predict(rows)] == [
        one.predict_one(dict(enumerate(row))) for row in rows
    ]
