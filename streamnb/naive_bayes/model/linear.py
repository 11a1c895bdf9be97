"""The linear form of a model, where it has one, and the number of its parameters."""

from __future__ import annotations

import math

from streamnb.base import Label
from streamnb.naive_bayes.event_models import Bernoulli, Binned, Multivariate
from streamnb.naive_bayes.event_models.priors import FallbackPrior
from streamnb.naive_bayes.features.readers import Flags
from streamnb.naive_bayes.model.scoring import Scorer
from streamnb.naive_bayes.model.view import View
from streamnb.naive_bayes.statistics.bin_counts import BinCounts
from streamnb.naive_bayes.statistics.field_totals import FieldTotals
from streamnb.naive_bayes.statistics.moments import Moments
from streamnb.naive_bayes.statistics.number_block import NumberBlock
from streamnb.naive_bayes.statistics.scatter import Scatter

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
        if view.keeps == "moments":
            block = {"": model.moments[view.name]}
        elif view.keeps == "block":
            statistic = model.blocks[view.name]
            if isinstance(view.event_model, Multivariate) and isinstance(statistic, Scatter):
                line = view.event_model.theta(statistic, active[a], active[b])
                intercept += line.intercept
                weights |= {(view.name, key): w for key, w in line.weights.items()}
                continue
            if view.is_own or not isinstance(statistic, NumberBlock):
                raise ValueError(f"view `{view.name}`: its event model has no linear boundary")
            block = statistic.numbers
        else:
            intercept += _of_counts(model, view, active, (a, b), weights)
            continue
        for key, moments in block.items():
            intercept += _of_numbers(view, key, moments, active, (a, b), weights)
    return intercept, weights


def _of_counts(
    model: Scorer, view: View, active: list[int], pair: tuple[int, int], weights: Weights
) -> float:
    """Add the weights of a view that counts to `weights`, and return its part of the intercept."""
    a, b = pair
    counts, tally = model.counts[view.name], model.tallies.get(view.name)
    constant = 0.0
    i = model.views.index(view)
    coins = None if tally is None or isinstance(tally, FieldTotals) else tally
    for token in counts.rows:
        for key, z in model.parts(i, {token: 1.0}, active):
            if key == token:
                weights[view.name, token] = z[a] - z[b]
        if coins is not None and isinstance(view.event_model, Bernoulli):
            row, pseudo = counts.rows[token], view.event_model.smoothing
            absent = [
                math.log((coins.messages[c] - row[c] + pseudo.b) / (coins.messages[c] + pseudo.a + pseudo.b))
                for c in (active[a], active[b])
            ]
            weights[view.name, token] -= absent[0] - absent[1]
            constant += absent[0] - absent[1]
    return constant


def _of_numbers(
    view: View, key: str, moments: Moments, active: list[int], pair: tuple[int, int], weights: Weights
) -> float:
    gaussian = view.gaussian
    if gaussian.variance == "class" or gaussian.robust:
        raise ValueError(f"view `{view.name}`: a variance per class, or `robust`, makes the boundary curved")
    a, b = pair
    z = [gaussian.log_density(x, moments, active) for x in (0.0, 1.0)]
    at_0, at_1 = (row[a] - row[b] for row in z)
    weights[view.name, key] = at_1 - at_0
    return at_0


def n_parameters(model: Scorer, *, naive: bool) -> int:
    """Return how many numbers a model estimates; see `NaiveBayes.n_parameters`."""
    n_classes = len(model.active())
    total = max(0, n_classes - 1)
    for view in model.views:
        if view.is_own:
            raise ValueError(f"view `{view.name}`: your own event model has no known number of parameters")
        if view.keeps == "counts":
            total += n_classes * _per_class(model, view, naive=naive)
            continue
        if isinstance(view.event_model, Multivariate):
            scatter = model.blocks[view.name]
            assert isinstance(scatter, Scatter)
            total += view.event_model.n_parameters(len(scatter.names), n_classes)
            continue
        if isinstance(view.event_model, Binned):
            ranges = model.blocks[view.name]
            assert isinstance(ranges, BinCounts)
            sizes = [len(counts) for counts in ranges.counts.values()]
            total += n_classes * (sum(k - 1 for k in sizes) if naive else math.prod(sizes) - 1)
            continue
        names = 1
        if view.keeps == "block":
            block = model.blocks[view.name]
            assert isinstance(block, NumberBlock)
            names = len(block.numbers)
        spreads = names if naive else names * (names + 1) // 2
        variances = {"class": n_classes * spreads, "shared": spreads}
        total += n_classes * names + variances.get(str(view.gaussian.variance), 0)
    return total


def _per_class(model: Scorer, view: View, *, naive: bool) -> int:
    tally, vocabulary = model.tallies.get(view.name), len(model.counts[view.name].rows)
    if isinstance(tally, FieldTotals):
        states = [2 if isinstance(view.reader, Flags) else field.states for field in tally.fields.values()]
        return sum(k - 1 for k in states) if naive else math.prod(states) - 1
    if tally is not None:
        return vocabulary if naive else 2**vocabulary - 1
    if not naive:
        raise ValueError(
            f"view `{view.name}`: messages have any length: without the naive assumption, no number is enough"
        )
    return max(0, vocabulary - 1)
