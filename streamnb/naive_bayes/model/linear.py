"""The linear form of a model, where it has one, and the number of its parameters."""

from __future__ import annotations

from streamnb.base import Label
from streamnb.naive_bayes.event_models.priors import FallbackPrior
from streamnb.naive_bayes.model.scoring import Scorer
from streamnb.naive_bayes.model.view import named

Weights = dict[tuple[str, str], float]
"""(view, feature) to weight."""


def linear_weights(model: Scorer, classes: tuple[Label, Label] | None) -> tuple[float, Weights]:
    """Return the linear boundary between two classes; see `NaiveBayes.linear_weights`."""
    active = model.active()
    labels = [model.classes[c] for c in active]
    if classes is None and len(labels) == 2:
        classes = (min(labels), max(labels))
    if classes is None or not all(label in labels for label in classes):
        raise ValueError(f"name two labelled classes; labelled so far: {labels!r}")
    if model.head is not None:
        raise ValueError('the calibrated head has no linear boundary; use head="product"')
    a, b = (labels.index(label) for label in classes)
    prior = model.log_prior(active, silent=not isinstance(model.prior, FallbackPrior))
    intercept, weights = prior[a] - prior[b], Weights()
    for view in model.views:
        with named(view):
            line = view.formulas.linear(model.statistics[view.name], active, a, b)
        intercept += line.intercept
        weights |= {(view.name, feature): weight for feature, weight in line.weights.items()}
    return intercept, weights


def n_parameters(model: Scorer, *, naive: bool) -> int:
    """Return how many numbers a model estimates; see `NaiveBayes.n_parameters`."""
    n_classes = len(model.active())
    total = max(0, n_classes - 1)
    for view in model.views:
        with named(view):
            total += view.formulas.n_parameters(model.statistics[view.name], n_classes, naive=naive)
    return total
