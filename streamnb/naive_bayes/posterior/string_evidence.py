"""The evidence the calibrated head takes from a view of strings: each byte's log likelihood by class.

A byte that one class expects and another does not is evidence, but its neighbours say much the same, so the
sum is divided by a power of the text's length, as for words. One byte may be very unlikely in a class that
has hardly learned; the third feature limits what it adds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from streamnb.naive_bayes.event_models.markov import predictions
from streamnb.naive_bayes.statistics.view_counts import Counted

STRING_FEATURES = 3
"""The number of features per class that a view of strings has in the calibrated head."""

LENGTH_EXPONENT = 0.7
LENGTH_PAD = 8.0  # bytes added to the length, so that very short texts are not overrated
SQUARE_LAW_SCALE = 0.25
CLIP = 1.0


class ByteOdds(NamedTuple):
    """The evidence of the last byte of a string.

    Parameters
    ----------
    string : str
    f : float
        How often the string occurs in the message.
    d : list of float
        Per class, the log probability of the byte, minus its mean over the classes.
    """

    string: str
    f: float
    d: list[float]


def byte_odds(
    features: Mapping[str, float], counts: Counted, active: Sequence[int], scale: float = 1.0
) -> list[ByteOdds]:
    """Return the evidence of each of the longest strings of a message."""
    odds = []
    for string, f, log_p in predictions(features, counts, active, scale):
        mean = 0.0
        for value in log_p:
            mean += value
        mean /= len(active)
        odds.append(ByteOdds(string, f, [value - mean for value in log_p]))
    return odds


def string_features(odds: Sequence[ByteOdds], n_classes: int) -> list[list[float]]:
    """Return three features per class, which sum up the evidence of a text's bytes.

    With L bytes and ``z = (L + 8)^-.7`` they are ``z sum d``, ``z/4 sum d|d|``, in which strong evidence
    weighs more, and ``z sum clip(d, -1, 1)``.
    """
    x, q, clipped = ([0.0] * n_classes for _ in range(STRING_FEATURES))
    for _, f, d in odds:
        for c, d_c in enumerate(d):
            x[c] += f * d_c
            q[c] += f * (d_c * abs(d_c))
            clipped[c] += f * clip(d_c)
    z = length_factor(odds)
    return [
        [z * value for value in x],
        [SQUARE_LAW_SCALE * z * value for value in q],
        [z * value for value in clipped],
    ]


def contributions(
    odds: Sequence[ByteOdds], weights: Sequence[float], a: int, b: int
) -> list[tuple[str, float]]:
    """Return what each string adds to ``u_a - u_b``, given the weights of the view's three features."""
    w_x, w_q, w_clipped = weights
    z = length_factor(odds)
    found = []
    for string, f, d in odds:
        square = d[a] * abs(d[a]) - d[b] * abs(d[b])
        of_all = w_x * (d[a] - d[b]) + w_q * SQUARE_LAW_SCALE * square + w_clipped * (clip(d[a]) - clip(d[b]))
        found.append((string, z * f * of_all))
    return found


def length_factor(odds: Sequence[ByteOdds]) -> float:
    """Return z, by which all sums over the bytes of a text are multiplied."""
    length = 0.0
    for _, f, _ in odds:
        length += f
    return math.pow(length + LENGTH_PAD, -LENGTH_EXPONENT)


def clip(d: float) -> float:
    """Return a byte's evidence, at most `CLIP` in either direction."""
    return min(max(d, -CLIP), CLIP)
