"""From joint log likelihoods to the posterior and its odds.

A class that was declared but never labelled has no evidence. It gets the share ``1 / (D + C)`` of the
posterior, with D the weight of the messages learned and C the number of classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from streamnb.naive_bayes.statistics.budget import DENSE_CLASSES

SERIES_MAX = 2.0**-10  # up to here, five terms of the series of log(1 - p) have all the digits that count
OTHERS_MIN = 1e-290  # a smaller sum of powers has lost digits, or is 0
NEAR_SECOND = -50.0  # a power of a smaller difference does not change a sum in which one is 1


def softmax(u: Sequence[float]) -> list[float]:
    """Return probabilities proportional to ``exp(u)``; uniform ones if every u is minus infinity.

    Examples
    --------
    >>> softmax([0.0, 0.0])
    [0.5, 0.5]
    """
    top = max(u, default=-math.inf)
    if top == -math.inf:
        return [1.0 / len(u) for _ in u]
    powers = [math.exp(value - top) for value in u]
    total = 0.0
    for power in powers:
        total += power
    return [power / total for power in powers]


def log_sigmoid(odds: float) -> float:
    """Return ``log p`` given ``log p - log(1 - p)``."""
    if odds == -math.inf:
        return -math.inf
    return -math.log1p(math.exp(-odds)) if odds > 0 else odds - math.log1p(math.exp(odds))


def log_odds(u: Sequence[float]) -> list[float]:
    """Return ``log p - log(1 - p)`` of ``softmax(u)``, by log-sum-exp over the other classes.

    Examples
    --------
    >>> log_odds([1000.0, 0.0])
    [1000.0, -1000.0]
    """
    if not u:
        return []
    if len(u) > DENSE_CLASSES:
        return odds_of_many(u, softmax(u))
    t = max(range(len(u)), key=u.__getitem__)
    top = u[t]
    if top == -math.inf:
        return list(u)
    powers = [math.exp(value - top) for value in u]
    odds = [
        value - top - math.log(others) if c != t else 0.0
        for c, (value, others) in enumerate(zip(u, sums_of_others(powers), strict=True))
    ]
    second = max((value for c, value in enumerate(u) if c != t), default=-math.inf)
    if second == -math.inf:
        odds[t] = math.inf
        return odds
    total = 0.0  # summed relative to the second: beside the likeliest they may underflow
    for c, value in enumerate(u):
        if c != t:
            total += math.exp(value - second)
    odds[t] = top - second - math.log(total)
    return odds


def odds_of_many(u: Sequence[float], p: Sequence[float]) -> list[float]:
    """Return `log_odds` of many classes with few logarithms and exponentials; `p` is ``softmax(u)``.

    Only the likeliest class can have more than half of the posterior, so for all others ``log(1 - p)`` loses
    no digits. Most of them have so little that a series gives it.
    """
    top = max(u)
    if top == -math.inf:
        return list(u)
    t = u.index(top)
    log_top = math.log(p[t])
    odds = [
        ((value - top) + log_top) + _minus_log_rest(x)
        if x <= SERIES_MAX
        else ((value - top) + log_top) - math.log1p(-x)
        if c != t
        else 0.0
        for c, (value, x) in enumerate(zip(u, p, strict=True))
    ]
    others = sum_in_lanes([x if c != t else 0.0 for c, x in enumerate(p)])
    if others > OTHERS_MIN:
        odds[t] = log_top - math.log(others)
        return odds
    rest = [value if c != t else -math.inf for c, value in enumerate(u)]
    second = max(rest)
    if second == -math.inf:
        odds[t] = math.inf
        return odds
    total = 0.0
    for value in rest:
        if value - second >= NEAR_SECOND:
            total += math.exp(value - second)
    odds[t] = top - second - math.log(total)
    return odds


def _minus_log_rest(x: float) -> float:
    """Return ``-log(1 - x)`` of a small x."""
    return x * (1.0 + x * (1.0 / 2.0 + x * (1.0 / 3.0 + x * (1.0 / 4.0 + x * (1.0 / 5.0)))))


def sum_in_lanes(values: Sequence[float]) -> float:
    """Return the sum of every fourth value from each of the first four on: additions that need not wait."""
    lanes = [0.0] * 4
    for i, value in enumerate(values):
        lanes[i % 4] += value
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])


def log_odds_of(posterior: Sequence[float]) -> list[float]:
    """Return ``log p - log(1 - p)`` of probabilities.

    ``1 - p`` is computed as the sum of the others; with many classes only where p is above one half.
    """
    if len(posterior) > DENSE_CLASSES:
        return [_odds_among_many(posterior, c, p) for c, p in enumerate(posterior)]
    return [
        math.inf if others == 0.0 else math.log(p) - math.log(others) if p > 0 else -math.inf
        for p, others in zip(posterior, sums_of_others(posterior), strict=True)
    ]


def _odds_among_many(posterior: Sequence[float], c: int, p: float) -> float:
    if p <= 0.5:
        return math.log(p / (1.0 - p)) if p > 0 else -math.inf
    others = sum_in_lanes([x if i != c else 0.0 for i, x in enumerate(posterior)])
    return math.log(p) - math.log(others) if others > 0 else math.inf


def sums_of_others(values: Sequence[float]) -> list[float]:
    """Return, for each value, the sum of all others, without a subtraction that would cancel digits.

    Examples
    --------
    >>> sums_of_others([1.0, 2.0, 4.0])
    [6.0, 5.0, 3.0]
    """
    sums = [0.0] * len(values)
    after = 0.0
    for c in range(len(values) - 1, -1, -1):
        sums[c] = after
        after += values[c]
    before = 0.0
    for c, value in enumerate(values):
        sums[c] = before + sums[c]
        before += value
    return sums


def never_labelled(
    posterior: Sequence[float], active: Sequence[int], declared: Sequence[int], n_classes: int, d: float
) -> list[float]:
    """Return the posterior over all classes; each that was declared and never learned has ``1 / (d + C)``.

    Parameters
    ----------
    posterior : sequence of float
        Over the active classes, summing to 1; empty when none is.
    active : sequence of int
        Classes with a weight.
    declared : sequence of int
        Declared classes without a weight. C counts them and the active ones.
    n_classes : int
        How many classes there are. One that is neither active nor declared was unlearned, and gets 0.
    d : float
        Weight of the messages learned.
    """
    if len(active) == n_classes:
        return list(posterior)
    share = 1.0 / (d + len(active) + len(declared)) if active or declared else 0.0
    spread = [0.0] * n_classes
    for index in declared:
        spread[index] = share
    labelled = 1.0 - len(declared) * share
    for i, index in enumerate(active):
        spread[index] = labelled * posterior[i]
    return spread
