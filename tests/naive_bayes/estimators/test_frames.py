"""Batches: pandas, polars, pyarrow and plain sequences give what one message after another gives."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamnb.naive_bayes.estimators import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    Estimator,
    GaussianDiscriminant,
    GaussianNB,
    MultinomialNB,
    NaiveBayes,
)

ROWS: list[dict[str, int]] = [{"a": i % 3, "b": (i * i) % 4, "c": i % 2} for i in range(40)]
LABELS = ["ham" if (i % 3) + (i % 2) else "spam" for i in range(40)]
COLUMNS = {name: [row[name] for row in ROWS] for name in "abc"}
KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "pandas": (pd.DataFrame, pd.Series),
    "pandas, sparse": (lambda columns: pd.DataFrame(columns).astype(pd.SparseDtype(int, 0)), pd.Series),
    "polars": (pl.DataFrame, pl.Series),
    "pyarrow": (pa.table, lambda labels: pa.chunked_array([labels])),
    "sequences": (
        lambda columns: [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        list,
    ),
}
MODELS = [
    MultinomialNB(),
    ComplementNB(),
    BernoulliNB(),
    CategoricalNB(),
    GaussianNB(),
    GaussianDiscriminant(),
    NaiveBayes(),
]
EACH_KIND = pytest.mark.parametrize("kind", KINDS)
EACH_MODEL = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def _values(answer: Any) -> list[list[float]]:  # noqa: ANN401
    if isinstance(answer, list):
        return [[row[label] for label in sorted(row)] for row in answer]
    if isinstance(answer, pa.Table):
        return [list(row.values()) for row in answer.to_pylist()]
    return [list(row) for row in (answer.to_numpy() if isinstance(answer, pd.DataFrame) else answer.rows())]


@EACH_KIND
@EACH_MODEL
def test_T24_many_is_one_to_the_bit(model: Estimator, kind: str) -> None:
    """Learned in two batches, scored in one, in a frame of any kind."""
    frame, series = KINDS[kind]
    one, many = model.clone(), model.clone()
    for row, label in zip(ROWS, LABELS, strict=True):
        one.learn_one(row, label)
    for part in (slice(0, 13), slice(13, 40)):
        many.learn_many(frame({name: column[part] for name, column in COLUMNS.items()}), series(LABELS[part]))
    assert one.digest() == many.digest()
    queries = frame(COLUMNS)
    expected = [[one.predict_proba_one(row)[label] for label in ("ham", "spam")] for row in ROWS]
    assert _values(many.predict_proba_many(queries)) == expected
    predictions = many.predict_many(queries)
    labels = predictions.to_pylist() if kind == "pyarrow" else list(predictions)
    assert labels == [one.predict_one(row) for row in ROWS]
    joints = [[one.joint_log_likelihood(row)[label] for label in ("ham", "spam")] for row in ROWS]
    assert _values(many.joint_log_likelihood_many(queries)) == joints
    odds = [[one.log_odds_one(row)[label] for label in ("ham", "spam")] for row in ROWS]
    assert _values(many.log_odds_many(queries)) == odds
    logs = [[one.predict_log_proba_one(row)[label] for label in ("ham", "spam")] for row in ROWS]
    assert _values(many.predict_log_proba_many(queries)) == logs


@EACH_MODEL
def test_T27_frames_are_not_changed_and_keep_their_index(model: Estimator) -> None:
    """Neither by learning nor by scoring."""
    frame = pd.DataFrame(COLUMNS, index=range(100, 140))
    before = frame.copy()
    model = model.clone()
    model.learn_many(frame, pd.Series(LABELS, index=frame.index))
    for answer in (model.predict_proba_many(frame), model.predict_many(frame)):
        assert list(answer.index) == list(frame.index)
    assert frame.equals(before)


@EACH_KIND
def test_T4_before_anything_was_learned_there_are_no_columns(kind: str) -> None:
    """As many rows as a frame can have without a column, or a message each."""
    frame, _ = KINDS[kind]
    model = GaussianNB()
    answer = model.predict_proba_many(frame(COLUMNS))
    if kind == "sequences":
        assert answer == [{}] * 40
        assert model.predict_many(frame(COLUMNS)) == [None] * 40
        assert model.log_odds_many(frame(COLUMNS)) == model.predict_log_proba_many(frame(COLUMNS)) == answer
    else:
        assert answer.shape[1] == model.predict_many(frame(COLUMNS)).shape[1] == 0


def test_T23_numbers_for_labels_stay_numbers() -> None:
    """Learned one by one or in a batch, they are one class, of Python's own type."""
    model = MultinomialNB()
    model.learn_one({"a": 1}, 1)
    model.learn_many(pd.DataFrame({"a": [1, 0]}), pd.Series([1, 0]))
    assert model.class_counts_ == {1: 2.0, 0: 1.0}
    assert [type(label) for label in model.classes_] == [int, int]
    assert list(model.predict_proba_many(pd.DataFrame({"a": [1]})).columns) == [0, 1]


@EACH_MODEL
def test_columns_may_be_named_by_numbers(model: Estimator) -> None:
    """As pandas names them where nobody did; they are river's own names of an array's columns."""
    frame = pd.DataFrame([[row[name] for name in "abc"] for row in ROWS])
    one, many = model.clone(), model.clone()
    for row, label in zip(frame.to_dict("records"), LABELS, strict=True):
        one.learn_one(row, label)
    many.learn_many(frame, pd.Series(LABELS))
    assert one.digest() == many.digest()
    assert list(many.predict_many(frame)) == [one.predict_one(row) for row in frame.to_dict("records")]


@EACH_MODEL
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_weights_may_be_numpys_and_are_kept_as_pythons(model: Estimator, kind: Any) -> None:  # noqa: ANN401
    """An array or a series whose index begins elsewhere: the state holds Python's own numbers."""
    weights: Any = [1.0, 2.0, 0.5, 3.0] * 10
    ours, array, series = model.clone(), model.clone(), model.clone()
    ours.learn_many(ROWS, LABELS, weights)
    array.learn_many(ROWS, LABELS, np.array(weights, kind))
    series.learn_many(ROWS, LABELS, pd.Series(weights, index=range(7, 47), dtype=kind))
    assert ours.digest() == array.digest() == series.digest()
    assert {type(n) for n in array.class_counts_.values()} == {float}


def test_T25_a_class_of_empty_messages_in_a_batch() -> None:
    """It is scored in a batch as it is alone."""
    for model in (MultinomialNB(), ComplementNB(), BernoulliNB()):
        model.learn_many(pd.DataFrame({"a": [1, 0]}), pd.Series(["spam", "ham"]))
        alone = model.predict_proba_one({"a": 1})
        many = model.predict_proba_many(pd.DataFrame({"a": [1]}))
        assert [many["ham"][0], many["spam"][0]] == [alone["ham"], alone["spam"]]
        assert all(map(math.isfinite, alone.values()))


def test_T26_a_dense_frame_and_any_iterable_are_learned() -> None:
    """Frames need not be sparse, and a generator is a batch."""
    model, other = ComplementNB(), ComplementNB()
    model.learn_many(pd.DataFrame(COLUMNS), pd.Series(LABELS))
    other.learn_many((row for row in ROWS), iter(LABELS))
    assert model.digest() == other.digest()


@EACH_MODEL
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_T33_a_null_is_a_name_the_row_lacks(model: Estimator, kind: str) -> None:
    """In a frame nothing else can say so."""
    frame, series = KINDS[kind]
    one, many = model.clone(), model.clone()
    one.learn_one({"a": 1}, "ham")
    one.learn_one({"a": 2, "b": 1}, "spam")
    many.learn_many(frame({"a": [1, 2], "b": [None, 1]}), series(["ham", "spam"]))
    assert one.predict_proba_one({"a": 1, "b": 1}) == many.predict_proba_one({"a": 1, "b": 1})


def test_texts_in_a_series_are_read() -> None:
    """As the estimators of words read a text alone."""
    model = MultinomialNB()
    model.learn_many(pd.Series(["win money", "lunch at noon"]), pd.Series(["spam", "ham"]))
    assert model.predict_many(pd.Series(["money", "noon"])).tolist() == ["spam", "ham"]


def test_a_bad_row_refuses_the_batch_whole() -> None:
    """Nothing of it is learned."""
    model = MultinomialNB()
    with pytest.raises(ValueError, match="count of 'a'"):
        model.learn_many(pd.DataFrame({"a": [1, -1]}), pd.Series(["ham", "spam"]))
    with pytest.raises(ValueError, match="a batch must be a frame"):
        model.learn_many({"a": 1}, ["ham"])
    assert model.class_counts_ == {}


def test_weights_of_a_batch_are_those_of_its_messages() -> None:
    """One for each row."""
    one, many = GaussianNB(), GaussianNB()
    for row, label, weight in zip(ROWS, LABELS, range(1, 41), strict=True):
        one.learn_one(row, label, weight)
    many.learn_many(pd.DataFrame(COLUMNS), pd.Series(LABELS), w=range(1, 41))
    assert one.digest() == many.digest()


def test_whatever_a_frame_has_for_a_null_is_missing() -> None:
    """Nullable integers, strings and truth values, categories, and labels: pandas' NA is no value."""
    frame = pd.DataFrame(
        {
            "a": pd.array([1, None, 3], dtype="Int64"),
            "s": pd.array(["x", None, "y"], dtype="string"),
            "c": pd.Categorical(["u", "v", None]),
            "b": pd.array([True, None, False], dtype="boolean"),
        }
    )
    model, one = NaiveBayes(), NaiveBayes()
    model.learn_many(frame, pd.Series(pd.array(["p", "q", None], dtype="string")))
    one.learn_one({"a": 1, "s": "x", "c": "u", "b": True}, "p")
    one.learn_one({"c": "v"}, "q")
    assert model.digest() == one.digest()
    assert model.predict_many(frame.iloc[:1]).tolist() == ["p"]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "sequences"])
def test_weights_may_be_of_the_frames_own_kind_or_one_number_for_all(kind: str) -> None:
    """A column of pyarrow holds scalars of its own; a single number is the weight of every row."""
    frame, series = KINDS[kind]
    models = [GaussianNB(), GaussianNB(), GaussianNB()]
    for row, label in zip(ROWS, LABELS, strict=True):
        models[0].learn_one(row, label, w=2.5)
    models[1].learn_many(frame(COLUMNS), series(LABELS), w=series([2.5] * 40))
    models[2].learn_many(frame(COLUMNS), series(LABELS), w=2.5)
    assert models[0].digest() == models[1].digest() == models[2].digest()


def test_a_null_or_text_as_weights_is_refused() -> None:
    """Nothing is learned."""
    model = GaussianNB()
    for weights in (None, "22", [1.0, None], pd.Series([1.0, math.nan])):
        with pytest.raises(ValueError, match="a message's weight must be from 1e-9 to 1e9"):
            model.learn_many([{"a": 1}, {"a": 2}], ["x", "y"], w=weights)  # type: ignore[arg-type]
    assert model.learned_ == 0


@pytest.mark.parametrize("fill", [0, 1, 2.0, math.nan], ids=repr)
@EACH_MODEL
def test_a_sparse_frame_is_read_whatever_fills_it(model: Estimator, fill: float) -> None:
    """As its dense twin; to an estimator of words a 0 is an absent word, to the others a value."""
    columns = {"a": [fill, 1, 0, 2, fill], "b": [3.0, fill, fill, math.nan, 0.0]}
    sparse, dense = model.clone(), model.clone()
    dtype = pd.SparseDtype(float, fill)
    sparse.learn_many(pd.DataFrame(columns).astype(dtype), LABELS[:5])
    dense.learn_many(pd.DataFrame(columns), LABELS[:5])
    assert sparse.digest() == dense.digest()
    assert sparse.predict_many(pd.DataFrame(columns).astype(dtype)).tolist() == [
        dense.predict_one({name: values[i] for name, values in columns.items()}) for i in range(5)
    ]


@EACH_MODEL
def test_a_frame_without_columns_is_of_empty_messages(model: Estimator) -> None:
    """Its rows are counted for their classes; a frame without rows is an empty batch."""
    model = model.clone()
    model.learn_many(pd.DataFrame(), [])
    model.learn_many(pd.DataFrame(index=range(3)), ["ham", "spam", "ham"])
    assert model.class_counts_ == {"ham": 2.0, "spam": 1.0}
    assert model.predict_many(pd.DataFrame(index=range(2))).tolist() == ["ham", "ham"]


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 1]).astype(float),
        np.array([0, 1, 1], np.float32),
        pd.Series([0, 1, 1]).astype(float),
        pl.Series([0.0, 1.0, 1.0]),
        pa.array([0.0, 1.0, 1.0]),
        pa.array([0, 1, 1]),
        pa.chunked_array([[0], [1, 1]]),
        pd.array([0, 1, 1], "Int64"),
        [0.0, 1.0, 1.0],
    ],
    ids=lambda labels: f"{type(labels).__module__} {getattr(labels, 'dtype', '')}",
)
def test_labels_in_a_column_of_floats_are_the_integers(labels: object) -> None:
    """As ``y.astype(float)`` makes them, and arrays of pyarrow."""
    model = GaussianNB()
    model.learn_many([{"a": 1.0}, {"a": 2.0}, {"a": 5.0}], labels)
    assert [(label, type(label)) for label in model.classes_] == [(0, int), (1, int)]


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series([0, 1, None]),
        np.array([0, 1, math.nan]),
        pd.array([0, 1, None], "Int64"),
        pd.array([0, 1, None], "Int64").astype(object),
        pa.array([0, 1, None]),
        pd.Categorical([0, 1, None]),
    ],
    ids=lambda labels: f"{type(labels).__module__} {getattr(labels, 'dtype', '')}",
)
def test_a_missing_label_of_any_column_is_not_learned(labels: object) -> None:
    """0, 1 and a gap, which pandas keeps as floats."""
    model = GaussianNB()
    model.learn_many([{"a": 1.0}, {"a": 2.0}, {"a": 5.0}], labels)
    assert model.class_counts_ == {0: 1.0, 1: 1.0}


def test_a_label_with_a_fraction_is_refused() -> None:
    """It is no class, and the whole batch is left alone."""
    model = GaussianNB()
    for labels in ([1.0, 0.5], np.array([1.0, 0.5]), [1.0, math.inf]):
        with pytest.raises(ValueError, match="cannot be a label"):
            model.learn_many([{"a": 1.0}, {"a": 2.0}], labels)
    assert model.classes_ == []


@EACH_MODEL
def test_a_class_that_was_unlearned_is_in_no_answer(model: Estimator) -> None:
    """Neither of one message nor of a batch."""
    model = model.clone()
    for row, label in [({"a": 1, "b": 2}, "ham"), ({"a": 2, "b": 1}, "spam"), ({"a": 0, "b": 0}, "gone")]:
        model.learn_one(row, label)
    model.unlearn_one({"a": 0, "b": 0}, "gone")
    x = {"a": 1, "b": 1}
    for answer in (model.predict_proba_one(x), model.log_odds_one(x), model.predict_log_proba_one(x)):
        assert set(answer) == {"ham", "spam"}
    assert model.log_odds_many([x]) == [model.log_odds_one(x)]
