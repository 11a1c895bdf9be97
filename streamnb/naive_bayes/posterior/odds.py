"""From joint log likelihoods to the posterior and its odds.

A class that was declared but never labelled has no evidence. It gets the share ``1 / (D + C)`` of the
posterior, with D the weight of the messages learned and C the number of classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


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


def log_odds_of(posterior: Sequence[float]) -> list[float]:
    """Return ``log p - log(1 - p)`` of probabilities; ``1 - p`` is computed as the sum of the others."""
    return [
        math.inf if others == 0.0 else math.log(p) - math.log(others) if p > 0 else -math.inf
        for p, others in zip(posterior, sums_of_others(posterior), strict=True)
    ]


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
