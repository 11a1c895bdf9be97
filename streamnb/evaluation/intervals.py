"""Statistical significance: bootstrap intervals, McNemar's test and the paired difference of two models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamnb.base import Floats
from streamnb.evaluation.outcomes import Outcomes
from streamnb.evaluation.ranking import lam_pct

Rows = NDArray[np.int64] | slice

RESAMPLES = 1_000
DRAWN_MAX = 20_000
"""Largest resample; for a longer stream, the resamples' interval is narrowed to match its length."""


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


class Difference(NamedTuple):
    """The difference of two models on the same messages.

    Parameters
    ----------
    log_loss : float
        The first model's mean log loss minus the second's, in nats; below 0 the first is better.
    interval : Interval
        95 % interval of `log_loss`, by paired bootstrap.
    mcnemar_p : float
        p-value of McNemar's exact test, whose null hypothesis is that both are right equally often.
    """

    log_loss: float
    interval: Interval
    mcnemar_p: float

    @property
    def within_noise(self) -> bool:
        """Whether the difference of the log losses is not significant: the interval contains 0."""
        return self.interval.low <= 0.0 <= self.interval.high


def bootstrap(outcomes: Outcomes, *, two_classes: bool, seed: int = 0) -> dict[str, Interval]:
    """Return 95 % percentile intervals of log loss, accuracy and, with two classes, 1-ROCA % and lam %.

    Messages are drawn with replacement as if they were independent. The messages of a stream are correlated,
    so the true intervals are somewhat wider.

    Parameters
    ----------
    outcomes : Outcomes
    two_classes : bool
        Whether there are two classes, so that `outcomes.margin` ranks the messages.
    seed : int
        Random seed: the same seed gives the same intervals.

    Returns
    -------
    dict of str to Interval
        Empty if there are no outcomes.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> from streamnb.base.batch import Batch
    >>> from streamnb.evaluation.outcomes import outcomes_of
    >>> batch = Batch({"text": ["win", "lunch", "win", "lunch"] * 9}, ["spam", "ham", "spam", "spam"] * 9)
    >>> outcomes = outcomes_of(NaiveBayes().step(batch), batch.labels)
    >>> low, high = bootstrap(outcomes, two_classes=True)["accuracy"]
    >>> bool(low < outcomes.correct.mean() < high)
    True
    """
    n = len(outcomes)
    if not n:
        return {}
    loss, correct, drawn = outcomes.loss, outcomes.correct.astype(np.float64), min(n, DRAWN_MAX)
    figures: dict[str, Callable[[Rows], float]] = {
        "log_loss": lambda rows: float(loss[rows].mean()),
        "accuracy": lambda rows: float(correct[rows].mean()),
    }
    if two_classes:
        truth, (levels, ranks) = outcomes.truth == 1, _ranks(outcomes.margin)
        kinds = 2 * truth + outcomes.correct
        figures["roca_loss_pct"] = lambda rows: _area_above(ranks[rows], truth[rows], levels)
        figures["lam_pct"] = lambda rows: _lam(np.bincount(kinds[rows], minlength=4).tolist())
    found: dict[str, list[float]] = {name: [] for name in figures}
    draw = np.random.default_rng(seed)
    for _ in range(RESAMPLES):
        rows = draw.integers(n, size=drawn)
        for name, figure in figures.items():
            found[name].append(figure(rows))
    whole = {name: figure(slice(None)) for name, figure in figures.items()}
    return {
        name: _percentiles(found[name], value, drawn / n)
        for name, value in whole.items()
        if not math.isnan(value)
    }


def paired_difference(first: Outcomes, second: Outcomes, seed: int = 0) -> Difference:
    """Compare two models on the same messages: the first's log loss minus the second's, and McNemar's test.

    Parameters
    ----------
    first, second : Outcomes
        Row i is the same message in both.
    seed : int
        Random seed of the bootstrap.

    Examples
    --------
    >>> from streamnb import NaiveBayes, TEXT_ONLY
    >>> from streamnb.base.batch import Batch
    >>> from streamnb.evaluation.outcomes import outcomes_of
    >>> batch = Batch({"text": ["win", "lunch"] * 40}, ["spam", "ham"] * 40)
    >>> first, second = (NaiveBayes(TEXT_ONLY, head=head) for head in ("calibrated", "product"))
    >>> of_both = [outcomes_of(model.step(batch), batch.labels) for model in (first, second)]
    >>> found = paired_difference(*of_both)
    >>> found.mcnemar_p, found.within_noise
    (1.0, False)
    """
    assert len(first) == len(second), "the two models scored different messages"
    n = len(first)
    if not n:
        return Difference(math.nan, Interval(math.nan, math.nan), 1.0)
    less = first.loss - second.loss
    drawn, draw = min(n, DRAWN_MAX), np.random.default_rng(seed)
    means = [float(less[draw.integers(n, size=drawn)].mean()) for _ in range(RESAMPLES)]
    mean = float(less.mean())
    p = mcnemar(
        int((first.correct & ~second.correct).sum()),
        int((~first.correct & second.correct).sum()),
    )
    return Difference(mean, _percentiles(means, mean, drawn / n), p)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p-value of McNemar's exact test.

    It is the probability of a split at least as uneven as this one if both models are right equally often.

    Parameters
    ----------
    only_first, only_second : int
        Messages that only the first model got right, and that only the second got right.

    Examples
    --------
    >>> mcnemar(0, 5), mcnemar(3, 3), mcnemar(0, 0)
    (0.0625, 1.0, 1.0)
    """
    n, fewer = only_first + only_second, min(only_first, only_second)
    if 2 * fewer >= n:
        return 1.0
    # The lower tail of the binomial, summed from its largest term down. The term of k - 1 is k / (n - k + 1)
    # times the term of k.
    log_largest = math.lgamma(n + 1) - math.lgamma(fewer + 1) - math.lgamma(n - fewer + 1) - n * math.log(2.0)
    term, total = 1.0, 1.0
    for k in range(fewer, 0, -1):
        term *= k / (n - k + 1)
        total += term
        if term < 1e-17 * total:
            break
    return min(1.0, 2.0 * math.exp(log_largest) * total)


def _ranks(margins: Floats) -> tuple[int, NDArray[np.int64]]:
    """Return the number of ranks and each margin's rank.

    Equal margins share a rank. With more than `DRAWN_MAX` distinct margins, neighbours share a rank too.
    """
    distinct, ranks = np.unique(margins, return_inverse=True)
    if len(distinct) <= DRAWN_MAX:
        return len(distinct), ranks
    return DRAWN_MAX, ranks * DRAWN_MAX // len(distinct)


def _area_above(ranks: NDArray[np.int64], is_second: NDArray[np.bool_], levels: int) -> float:
    """Return the 1-ROCA % of ranked messages; NaN if one of the classes has no message."""
    second = np.bincount(ranks[is_second], minlength=levels)
    first = np.bincount(ranks[~is_second], minlength=levels)
    pairs = float(first.sum()) * float(second.sum())
    if not pairs:
        return math.nan
    below = np.cumsum(first) - first / 2.0
    return 100.0 * (1.0 - float(below @ second) / pairs)


def _lam(counts: Sequence[int]) -> float:
    """Return lam % from ``[wrong, right, wrong, right]``, class by class; NaN if it is undefined."""
    shares = [counts[i] / n if (n := counts[i] + counts[i + 1]) else math.nan for i in (0, 2)]
    lam = lam_pct((shares[0], shares[1]))
    return math.nan if lam is None else lam


def _percentiles(found: list[float], whole: float, share: float) -> Interval:
    """Return the middle 95 % of the resampled values, as an interval for all messages.

    The resamples hold only `share` of the messages. The spread of a mean falls with the square root of the
    number of messages, so the interval is narrowed by ``sqrt(share)`` around the value of all messages.
    """
    values = [value for value in found if not math.isnan(value)]
    low, high = np.percentile(values, [2.5, 97.5]).tolist() if values else (whole, whole)
    narrower = math.sqrt(share)
    return Interval(whole + narrower * (low - whole), whole + narrower * (high - whole))
