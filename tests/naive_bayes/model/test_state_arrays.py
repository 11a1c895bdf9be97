"""Restoring a state: sums of magnitudes that no stream gives are refused, before a formula overflows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamnb import (
    BernoulliNB,
    CategoricalNB,
    GaussianDiscriminant,
    GaussianNB,
    MultinomialNB,
    NaiveBayes,
)
from streamnb.errors import SnapshotError

ROW = {"text": "win lunch", "a": 1.0, "b": 2.0, "kind": "x", "flag": True}
NUMBERS = {"a": 1.0, "b": 2.0}
MODELS: dict[str, tuple[Callable[[], NaiveBayes], dict[str, Any]]] = {
    "every field": (lambda: NaiveBayes(head="calibrated"), ROW),
    "multinomial": (lambda: MultinomialNB(alpha=0), {"win": 1, "lunch": 2}),
    "bernoulli": (lambda: BernoulliNB(alpha=0), {"win": 1, "lunch": 1}),
    "categorical": (lambda: CategoricalNB(alpha=0), {"a": "x", "b": "y"}),
    "gaussian": (GaussianNB, NUMBERS),
    "gaussian, shared": (lambda: GaussianNB("shared"), NUMBERS),
    "discriminant": (GaussianDiscriminant, NUMBERS),
    "discriminant, by class": (lambda: GaussianDiscriminant("class"), NUMBERS),
}


def taught(make: Callable[[], NaiveBayes], row: dict[str, Any]) -> NaiveBayes:
    """Return a model of two classes that has learned variations of a message."""
    model = make()
    for i in range(30):
        x = {name: value + (i * i) % 5 if type(value) is float else value for name, value in row.items()}
        if i % 3 == 0 and len(row) > 2:  # without gaps a discriminant keeps an inverse
            x.pop(next(iter(x)))
        model.learn_one(x, "xy"[i % 2])
    return model


@pytest.mark.parametrize(("make", "row"), MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("value", [1e308, -1e308, 1e200, 1e160, 1e100, 1e-100, 5e-324, 0.0])
def test_what_is_restored_gives_posteriors(
    make: Callable[[], NaiveBayes], row: dict[str, Any], value: float
) -> None:
    """One number, a row or all of a section is changed: it is refused, or every posterior is a number."""
    whole = taught(make, row)
    frozen = whole.freeze()
    for name, section in frozen.sections.items():
        if section.dtype != np.float64:
            continue
        places = [np.s_[:], *np.ndindex(section.shape), *(np.s_[i, :] for i in range(len(section)))]
        for place in places:
            sections = {key: array.copy() for key, array in frozen.sections.items()}
            sections[name][place] = value
            model = make()
            try:
                model.restore(frozen.values, sections)
            except SnapshotError:
                continue
            posterior = model.predict_proba_one(row)
            if model.state.active():
                assert math.isclose(sum(posterior.values()), 1.0), (name, place)
            else:  # without any weight they are as if never learned
                assert posterior == {}, (name, place)


@pytest.mark.parametrize(("make", "row"), MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("values", [(0.0, 1e100), (-1e100, 1e100), (1e-160, 1e-100)])
def test_the_lightest_and_heaviest_messages_of_any_age_are_restored(
    make: Callable[[], NaiveBayes], row: dict[str, Any], values: tuple[float, float]
) -> None:
    """From 50 half-lives before the landmark to 63 past it no sum under- or overflows."""
    template = make()
    names = [name for name in ("alpha", "head", "variance", "covariance") if hasattr(template, name)]
    kept: dict[str, Any] = {name: getattr(template, name) for name in names}
    if type(template) is NaiveBayes:
        kept["time_skew_max_s"] = 1e9
    model, again = (type(template)(half_life_s=10.0, **kept) for _ in range(2))
    whens = [(1e9, 1.0), (1e9 - 500.0, 1e-9), (1e9 + 639.0, 1e9), (1e9 - 500.0, 1e-9), (1e9 + 639.0, 1e9)]
    for i, (at, weight) in enumerate(whens * 2):
        x = {name: values[i % 2] if type(value) is float else value for name, value in row.items()}
        model.learn_one(x, "xy"[i // 2 % 2], weight, at=at)
    frozen = model.freeze()
    again.restore(frozen.values, frozen.sections)
    for at in (1e9 - 500.0, 1e9 + 639.0):
        posterior = again.predict_proba_one(row, at=at)
        assert posterior == model.predict_proba_one(row, at=at)
        assert math.isclose(sum(posterior.values()), 1.0)
