"""Copies as river makes them, and batches: each goes on as the original does, to the bit."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamnb.naive_bayes.estimators import NaiveBayes
from tests.support.ecosystem import MODELS, PARTS, Pairs, river, stream

Copy = Callable[[Any], Any]
COPIES: dict[str, Copy] = {
    "clone with what was learned": lambda model: model.clone(include_attributes=True),
    "copy.deepcopy": copy.deepcopy,
    "pickle, protocol 2": lambda model: pickle.loads(pickle.dumps(model, 2)),
    "pickle, protocol 5": lambda model: pickle.loads(pickle.dumps(model, 5)),
}
AROUND = ["StandardScaler", "BagOfWords", "Bagging", "OneVsRest", "DriftRetraining", "HardSampling", "Voting"]
EACH_MODEL = pytest.mark.parametrize("model", MODELS)
EACH_COPY = pytest.mark.parametrize("how", COPIES)


def _learn(model: Any, pairs: Pairs) -> None:  # noqa: ANN401
    for x, y in pairs:
        model.learn_one(x, y)


def _posteriors(model: Any, pairs: Pairs) -> list[Any]:  # noqa: ANN401
    return [model.predict_proba_one(x) for x, _ in pairs]


@EACH_COPY
@EACH_MODEL
def test_a_copy_goes_on_as_the_original_and_apart_from_it(model: str, how: str) -> None:
    """The same posteriors now and after more was learned; what only one learns the other never knows."""
    pairs = stream("numbers")
    first = MODELS[model][0]()
    _learn(first, pairs[:15])
    second = COPIES[how](first)
    assert type(second) is type(first)
    assert repr(second) == repr(first)
    assert second.digest() == first.digest()
    assert _posteriors(second, pairs) == _posteriors(first, pairs)
    before = _posteriors(first, pairs)
    _learn(second, pairs[15:])
    assert _posteriors(first, pairs) == before
    _learn(first, pairs[15:])
    assert second.digest() == first.digest()
    assert _posteriors(second, pairs) == _posteriors(first, pairs)


@EACH_MODEL
def test_a_plain_clone_has_the_parameters_and_has_learned_nothing(model: str) -> None:
    """It learns the stream as the original did; new parameters are taken."""
    pairs = stream("numbers")
    first = MODELS[model][0]()
    _learn(first, pairs)
    second = first.clone()
    assert second.digest() == MODELS[model][0]().digest()
    _learn(second, pairs)
    assert second.digest() == first.digest()
    assert first.clone({"classes_max": 7}).classes_max == 7
    assert first.classes_max is None


@pytest.mark.parametrize("part", AROUND)
@EACH_COPY
def test_a_copy_of_what_holds_a_model_goes_on_too(part: str, how: str) -> None:
    """Pipelines and meta models; a third of the estimators in each, where the peer goes on too."""
    pairs = stream("texts" if part == "BagOfWords" else "numbers")
    for make, peer in list(MODELS.values())[AROUND.index(part) % 3 :: 3]:
        answers: list[object] = []
        for one in (make, peer):
            first = PARTS[part].wrap(one())
            try:
                _learn(first, pairs[:10])
                second = COPIES[how](first)
                same = _posteriors(second, pairs[:10]) == _posteriors(first, pairs[:10])
                for holder in (first, second):
                    _learn(holder, pairs[10:20])
                answers.append(same and _posteriors(second, pairs[:10]) == _posteriors(first, pairs[:10]))
            except Exception as error:  # noqa: BLE001 - compared with the peer's
                answers.append(type(error))
        assert answers[0] is True or answers[0] == answers[1]


@EACH_MODEL
def test_mutate_refuses_what_rivers_own_refuse(model: str) -> None:
    """River's naive Bayes names no attribute that may change; a parameter is set by its name instead."""
    ours, theirs = (make() for make in MODELS[model])
    _learn(ours, stream("numbers"))
    before = ours.digest()
    for one in (ours, theirs):
        one.mutate({})
        with pytest.raises(ValueError, match="is not a mutable attribute"):
            one.mutate({next(iter(one._get_params()), "_multiclass"): 2})
        with pytest.raises(ValueError, match="is not an attribute"):
            one.mutate({"nothing": 2})
    assert ours.digest() == before
    pipeline = river.preprocessing.StandardScaler() | ours
    with pytest.raises(ValueError, match="is not a mutable attribute"):
        pipeline.mutate({type(ours).__name__: {"classes_max": 2}})
    ours.classes_max = 300
    assert ours.digest() == before


# ---- batches of NaiveBayes itself

FRAMES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "pandas": (pd.DataFrame, pd.Series),
    "polars": (pl.DataFrame, pl.Series),
    "pyarrow": (pa.table, pa.array),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("head", [None, "calibrated"])
def test_naive_bayes_learns_frames_of_texts_numbers_categories_and_flags(kind: str, head: Any) -> None:  # noqa: ANN401
    """In two batches, with gaps and weights: as one message after another, to the bit."""
    frame, series = FRAMES[kind]
    pairs = [
        ({**x, "amount": None if i % 4 == 0 else x["amount"]}, y) for i, (x, y) in enumerate(stream("mixed"))
    ]
    weights = [0.5 + i % 3 for i in range(len(pairs))]
    many, one = NaiveBayes(head=head), NaiveBayes(head=head)
    for part in (slice(0, 12), slice(12, None)):
        columns = {name: [x[name] for x, _ in pairs[part]] for name in pairs[0][0]}
        many.learn_many(frame(columns), series([y for _, y in pairs[part]]), w=series(weights[part]))
    for (x, y), weight in zip(pairs, weights, strict=True):
        one.learn_one(x, y, w=weight)
    assert many.digest() == one.digest()
    whole = frame({name: [x[name] for x, _ in pairs] for name in pairs[0][0]})
    labels, posteriors = many.predict_many(whole), many.predict_proba_many(whole)
    assert isinstance(posteriors, type(whole))
    assert pa.array(labels).to_pylist() == [one.predict_one(x) for x, _ in pairs]
    for label in one.classes_:
        column = (
            [float(p) for p in pa.array(posteriors[label]).to_pylist()]
            if kind != "pyarrow"
            else (posteriors[label].to_pylist())
        )
        assert column == [one.predict_proba_one(x)[label] for x, _ in pairs]
        assert all(map(math.isfinite, column))


@pytest.mark.parametrize("kind", FRAMES)
def test_a_column_of_a_type_that_cannot_be_read_is_refused_whole(kind: str) -> None:
    """Lists and structs are no features; nothing of the batch is learned."""
    frame, series = FRAMES[kind]
    model = NaiveBayes()
    with pytest.raises(ValueError, match="only numbers, truth values and text can be read"):
        model.learn_many(frame({"a": [1.0, 2.0], "b": [[1], [2]]}), series(["x", "y"]))
    assert model.learned_ == 0
