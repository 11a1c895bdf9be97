"""From joint log likelihoods to a posterior and its log odds. The order of a sum is part of its last bit.

Classes that were never labelled (declared ones) take no part; each is given ``1 / (D + C)``, what one
message would weigh.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def softmax(u: Sequence[float]) -> list[float]:
    """Probabilities proportional to ``exp(u)``; uniform where all are minus infinity, none of none.

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


def log_odds(u: Sequence[float]) -> list[float]:
    """``log p - log(1 - p)`` of ``softmax(u)``, by log-sum-exp over the other classes.

    Examples
    --------
    >>> log_odds([1000.0, 0.0])
    [1000.0, -1000.0]
    """
    first = max(range(len(u)), key=u.__getitem__, default=0)
    second = max((value for c, value in enumerate(u) if c != first), default=-math.inf)
    if second == -math.inf:  # nothing is against the first, or no class is possible
        return [math.inf if value > -math.inf else -math.inf for value in u]
    others = sums_of_others([math.exp(value - u[first]) for value in u])
    others[first] = 0.0
    for c, value in enumerate(u):
        others[first] += math.exp(value - second) if c != first else 0.0
    return [value - (u[first] if c != first else second) - math.log(others[c]) for c, value in enumerate(u)]


def log_odds_of(posterior: Sequence[float]) -> list[float]:
    """``log p - log(1 - p)`` of probabilities, ``1 - p`` as the sum of the others.

    Examples
    --------
    >>> log_odds_of([1.0, 0.0])
    [inf, -inf]
    """
    return [
        math.inf if others == 0 else math.log(p) - math.log(others) if p > 0 else -math.inf
        for p, others in zip(posterior, sums_of_others(posterior), strict=True)
    ]


def sums_of_others(values: Sequence[float]) -> list[float]:
    """For each value the sum of all others, without a subtraction: those before it plus those after it.

    Examples
    --------
    >>> sums_of_others([1.0, 2.0, 4.0])
    [6.0, 5.0, 3.0]
    """
    sums, after, before = [0.0] * len(values), 0.0, 0.0
    for c in reversed(range(len(values))):
        sums[c] = after
        after += values[c]
    for c, value in enumerate(values):
        sums[c] = before + sums[c]
        before += value
    return sums


def never_labelled(posterior: Sequence[float], active: Sequence[int], c: int, d: float) -> list[float]:
    """The posterior over all C classes: those never labelled get ``1 / (d + C)`` each.

    Parameters
    ----------
    posterior : sequence of float
        Over the active classes, summing to 1; empty when none is.
    active : sequence of int
    c : int
        How many classes are declared or labelled.
    d : float
        Weight of the messages learned.
    """
    if len(active) == c:
        return list(posterior)
    share = 1.0 / (d + c)
    spread = [share] * c
    labelled = 1.0 - (c - len(active)) * share
    for i, index in enumerate(active):
        spread[index] = labelled * posterior[i]
    return spread
