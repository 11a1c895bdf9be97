"""Columns of unequal length are refused before any driver reads them."""

from __future__ import annotations

from typing import Any

import pytest

from streamnb import EVERY_FIELD, TEXT_ONLY, BernoulliNB, GaussianNB, MultinomialNB, NaiveBayes
from streamnb.base.batch import Batch

WORDS = {"text": ["a b", "c d"]}
UNEQUAL: dict[str, Batch] = {
    "a longer text": Batch({"text": ["a", "b", "c"]}, ["x", "y"]),
    "a shorter text": Batch({"text": ["a"]}, ["x", "y"]),
    "a shorter number": Batch(WORDS | {"n": [1.0]}, ["x", "y"]),
    "a shorter category": Batch(WORDS | {"kind": ["red"]}, ["x", "y"]),
    "a field that no view reads": Batch(WORDS | {"more": [["odd"]]}, ["x", "y"]),
    "an empty field": Batch({"text": []}, ["x"]),
    "more weights": Batch(WORDS, ["x", "y"], [1.0, 1.0, 1.0]),
    "fewer times": Batch(WORDS, ["x", "y"], None, [1.0]),
}


@pytest.mark.parametrize("batch", UNEQUAL.values(), ids=UNEQUAL)
@pytest.mark.parametrize("views", [TEXT_ONLY, EVERY_FIELD], ids=["text", "every field"])
@pytest.mark.parametrize("compiled", [None, False], ids=["compiled", "plain"])
def test_F1_columns_of_unequal_length_are_refused(batch: Batch, views: Any, compiled: bool | None) -> None:  # noqa: ANN401
    """By both drivers, whether they score or learn; the error names the column, and nothing is learned."""
    model = NaiveBayes(views, compiled=compiled)
    before = model.digest()
    for score, learn in ((True, True), (True, False), (False, True)):
        with pytest.raises(ValueError, match=r"were given for \d messages"):
            model.step(batch, score=score, learn=learn)
    assert model.digest() == before


@pytest.mark.parametrize("make", [GaussianNB, MultinomialNB, BernoulliNB, NaiveBayes])
def test_F1_labels_and_rows_of_unequal_number_are_refused(make: Any) -> None:  # noqa: ANN401
    """Whatever the rows hold, also nothing; no row is dropped."""
    model = make()
    rows = [{"a": 1}, {"a": 2}]
    for x, y in ((rows, ["x", "y", "x"]), (rows, ["x"]), ([{}], ["x", "y"]), ([], ["x"]), ([{}, {}], [])):
        with pytest.raises(ValueError, match=r"\d messages were given with \d labels"):
            model.learn_many(x, y)
    assert model.learned_ == 0
    with pytest.raises(ValueError, match="1 weights were given for 2 messages"):
        model.learn_many(rows, ["x", "y"], [1.0])


def test_rows_without_any_field_are_learned() -> None:
    """Their classes are counted."""
    model = NaiveBayes()
    model.learn_many([{}, {}], ["x", "y"])
    assert model.class_counts_ == {"x": 1.0, "y": 1.0}
