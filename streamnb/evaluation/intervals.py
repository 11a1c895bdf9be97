"""What could be luck: bootstrap intervals, McNemar's test, and what two models' difference comes to."""

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
"""Messages of a resample: of a longer stream so many are drawn, and what they vary is scaled down."""


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


class Difference(NamedTuple):
    """One model's log loss less another's on the same messages.

    Parameters
    ----------
    log_loss : float
        The mean difference in nats; below 0 the first is better.
    interval : Interval
        By paired bootstrap.
    mcnemar_p : float
        Of McNemar's exact test: how likely so uneven a split is, were the two right equally often.
    """

    log_loss: float
    interval: Interval
    mcnemar_p: float

    @property
    def within_noise(self) -> bool:
        """Whether the log losses cannot be told apart: the interval holds 0."""
        return self.interval.low <= 0.0 <= self.interval.high


def bootstrap(outcomes: Outcomes, *, two_classes: bool, seed: int = 0) -> dict[str, Interval]:
    """95 % percentile intervals of log loss, accuracy and, with two classes, 1-ROCA % and lam %.

    Messages are drawn with replacement as if each stood for itself; a stream's messages lean on each other,
    so that the true interval is somewhat wider.

    Parameters
    ----------
    outcomes : Outcomes
    two_classes : bool
        Whether `margin` ranks them.
    seed : int
        The same seed, the same intervals.

    Returns
    -------
    dict of str to Interval
        Empty where there are no outcomes.

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
    """How a model compares with a second one that judged the same messages.

    Parameters
    ----------
    first, second : Outcomes
        Row i is the same message in both.
    seed : int

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
    assert len(first) == len(second), "the two judged other messages"
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
    """McNemar's exact test: the probability of a split at least so uneven, were both equally good.

    Parameters
    ----------
    only_first, only_second : int
        Messages that one of two models had right and the other wrong.

    Examples
    --------
    >>> mcnemar(0, 5), mcnemar(3, 3), mcnemar(0, 0)
    (0.0625, 1.0, 1.0)
    """
    n, fewer = only_first + only_second, min(only_first, only_second)
    if 2 * fewer >= n:
        return 1.0
    # The binomial's lower tail from its largest term down: each is k / (n - k + 1) times the one above it.
    log_largest = math.lgamma(n + 1) - math.lgamma(fewer + 1) - math.lgamma(n - fewer + 1) - n * math.log(2.0)
    term, total = 1.0, 1.0
    for k in range(fewer, 0, -1):
        term *= k / (n - k + 1)
        total += term
        if term < 1e-17 * total:
            break
    return min(1.0, 2.0 * math.exp(log_largest) * total)


def _ranks(margins: Floats) -> tuple[int, NDArray[np.int64]]:
    """Each margin's place among the distinct ones; of very many, neighbours share a place."""
    distinct, ranks = np.unique(margins, return_inverse=True)
    if len(distinct) <= DRAWN_MAX:
        return len(distinct), ranks
    return DRAWN_MAX, ranks * DRAWN_MAX // len(distinct)


def _area_above(ranks: NDArray[np.int64], is_second: NDArray[np.bool_], levels: int) -> float:
    """1-ROCA % of ranked messages; NaN where one of the classes has none."""
    second = np.bincount(ranks[is_second], minlength=levels)
    first = np.bincount(ranks[~is_second], minlength=levels)
    pairs = float(first.sum()) * float(second.sum())
    if not pairs:
        return math.nan
    below = np.cumsum(first) - first / 2.0
    return 100.0 * (1.0 - float(below @ second) / pairs)


def _lam(counts: Sequence[int]) -> float:
    """Lam % of how many of each class in turn were wrong and right; NaN where there is none."""
    shares = [counts[i] / n if (n := counts[i] + counts[i + 1]) else math.nan for i in (0, 2)]
    lam = lam_pct((shares[0], shares[1]))
    return math.nan if lam is None else lam


def _percentiles(found: list[float], whole: float, share: float) -> Interval:
    """The middle 95 %, drawn towards the figure of the whole as far as a larger sample would vary less."""
    values = [value for value in found if not math.isnan(value)]
    low, high = np.percentile(values, [2.5, 97.5]).tolist() if values else (whole, whole)
    narrower = math.sqrt(share)
    return Interval(whole + narrower * (low - whole), whole + narrower * (high - whole))
