"""A missing value is left out by every estimator, whatever type says so, and a decimal is a number."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from streamnb.naive_bayes.estimators import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianDiscriminant,
    GaussianNB,
    MultinomialNB,
    NaiveBayes,
)

MISSING = [None, math.nan, np.float32("nan"), Decimal("NaN"), Decimal("sNaN"), pd.NA, pd.NaT]
EVERY: list[Callable[[], Any]] = [
    MultinomialNB,
    ComplementNB,
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    GaussianDiscriminant,
    NaiveBayes,
]


def _learned(make: Callable[[], Any], *third: dict[str, object]) -> Any:  # noqa: ANN401
    model = make()
    for x, label in [({"a": 2.0, "b": 1}, "x"), ({"a": 1.0, "b": 0}, "y"), *((each, "x") for each in third)]:
        model.learn_one(x, label)
    return model


@pytest.mark.parametrize("missing", MISSING, ids=repr)
@pytest.mark.parametrize("make", EVERY)
def test_a_missing_value_is_an_absent_name(make: Callable[[], Any], missing: object) -> None:
    """Learned, scored, unlearned, alone and in a batch."""
    model, without = _learned(make, {"a": missing, "b": 1}), _learned(make, {"b": 1})
    assert model.digest() == without.digest()
    assert model.predict_proba_one({"a": missing, "b": 1}) == without.predict_proba_one({"b": 1})
    many = _learned(make)
    many.learn_many([{"a": missing, "b": 1}], ["x"])
    assert many.digest() == without.digest()
    many.unlearn_one({"a": missing, "b": 1}, "x")
    assert many.digest()["order_free"] == _learned(make).digest()["order_free"]


@pytest.mark.parametrize("make", EVERY)
def test_a_decimal_is_the_number_that_it_writes(make: Callable[[], Any]) -> None:
    """As the float of it."""
    assert _learned(make, {"a": Decimal("1.5")}).digest() == _learned(make, {"a": 1.5}).digest()
    assert _learned(make, {"a": Decimal("2.0")}).digest() == _learned(make, {"a": 2}).digest()


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_a_missing_text_is_an_empty_one(missing: object) -> None:
    """As in a column of pandas, whose gaps are NaN."""
    model, without = NaiveBayes(), NaiveBayes()
    for each, gap in ((model, missing), (without, "")):
        each.learn_many([{"text": "win money"}, {"text": gap}], ["spam", "ham"])
    assert model.digest() == without.digest()
