"""Ranking quality with two classes: ROC curve, the area above it, and lam, as in the TREC spam track."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamnb.base import Floats

Flags = NDArray[np.bool_]

POINTS_MAX = 2_000  # of a plotted curve: more points would not be visible


def roca_loss_pct(margins: Floats, is_second: Flags) -> float | None:
    """Return 1-ROCA %, the area above the ROC curve in per cent.

    It is the share of pairs, with one message of each class, that are ranked in the wrong order; a pair of
    equal margins counts one half.

    Parameters
    ----------
    margins : ndarray of float64
        The second class's u minus the first's.
    is_second : ndarray of bool
        Which messages are of the second class.

    Returns
    -------
    float or None
        ``None`` if one of the classes has no message.

    Examples
    --------
    >>> roca_loss_pct(np.array([-2.0, 1.0, 0.5, 3.0]), np.array([False, False, True, True]))
    25.0
    """
    n_second = int(is_second.sum())
    n_first = len(is_second) - n_second
    if not n_first or not n_second:
        return None
    _, inverse, counts = np.unique(margins, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2.0
    above = float(ranks[inverse][is_second].sum()) - n_second * (n_second + 1) / 2.0
    return 100.0 * (1.0 - above / (n_first * n_second))


def lam_pct(errors: tuple[float, float]) -> float | None:
    """Return lam %, the average of the two classes' error rates on the log odds scale (TREC 2005).

    It depends less on the decision threshold than the accuracy does: moving the threshold lowers one class's
    error rate and raises the other's.

    Parameters
    ----------
    errors : (float, float)
        Each class's error rate: the share of its messages that were predicted as the other class.

    Returns
    -------
    float or None
        0 if one error rate is 0 and the other below 1. ``None`` if one is 0 and the other 1, or one is NaN.

    Examples
    --------
    >>> round(lam_pct((0.01, 0.09)), 4)
    3.0639
    """
    if any(math.isnan(error) for error in errors) or set(errors) == {0.0, 1.0}:
        return None
    if 1.0 in errors:
        return 100.0
    odds = math.sqrt(math.prod(error / (1.0 - error) for error in errors))
    return 100.0 * odds / (1.0 + odds)


def roc_curve(margins: Floats, is_second: Flags) -> tuple[Floats, Floats]:
    """Return the ROC curve: false and true positive rates at every threshold.

    Parameters
    ----------
    margins, is_second
        As for `roca_loss_pct`; both classes must have messages.

    Returns
    -------
    (ndarray, ndarray)
        The shares of the first and of the second class ranked above each threshold, from 0 to 1; at most
        2,000 thresholds, evenly spaced by rank.

    Examples
    --------
    >>> false, true = roc_curve(np.array([-2.0, 1.0, 0.5, 3.0]), np.array([False, False, True, True]))
    >>> false.tolist(), true.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    _, inverse = np.unique(-margins, return_inverse=True)
    second = np.bincount(inverse, weights=is_second)
    first = np.bincount(inverse, weights=~is_second)
    false = np.concatenate([[0.0], np.cumsum(first) / first.sum()])
    true = np.concatenate([[0.0], np.cumsum(second) / second.sum()])
    if len(false) > POINTS_MAX:
        shown = np.linspace(0, len(false) - 1, POINTS_MAX).astype(np.int64)
        return false[shown], true[shown]
    return false, true
