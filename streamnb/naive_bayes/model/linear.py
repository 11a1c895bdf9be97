"""The linear form of a model, where it has one, and the number of its parameters."""

from __future__ import annotations

import math

from streamnb.base import Label
from streamnb.naive_bayes.event_models.base import difference
from streamnb.naive_bayes.event_models.priors import FallbackPrior
from streamnb.naive_bayes.model.scoring import log_prior
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.model.view import named

Weights = dict[tuple[str, str], float]
"""(view, feature) to weight."""


def linear_weights(state: State, classes: tuple[Label, Label] | None) -> tuple[float, Weights]:
    """Return the linear boundary between two classes; see `NaiveBayes.linear_weights`."""
    active = state.active()
    labels = [state.classes[c] for c in active]
    if classes is None and len(labels) == 2:
        classes = (min(labels), max(labels))
    if classes is None or not all(label in labels for label in classes):
        raise ValueError(f"`classes` must name two of the classes learned so far, {labels!r}")
    if state.head is not None:
        raise ValueError('the calibrated head has no linear boundary; use head="product"')
    a, b = (labels.index(label) for label in classes)
    prior = log_prior(state, active, silent=not isinstance(state.prior, FallbackPrior))
    intercept, weights = difference(prior[a], prior[b]), Weights()
    for view in state.views:
        with named(view):
            line = view.formulas.linear(state.statistics[view.name], active, a, b)
        intercept += line.intercept
        weights |= {(view.name, feature): weight for feature, weight in line.weights.items()}
    return 0.0 if math.isnan(intercept) else intercept, weights


def n_parameters(state: State, *, naive: bool) -> int:
    """Return how many numbers a model estimates; see `NaiveBayes.n_parameters`."""
    n_classes = len(state.active())
    total = max(0, n_classes - 1)
    for view in state.views:
        with named(view):
            total += view.formulas.n_parameters(state.statistics[view.name], n_classes, naive=naive)
    return total
