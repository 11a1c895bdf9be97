"""How well u ranks two classes: ROC curve, the area above it, and lam, as in the TREC spam track."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamnb.base import Floats

Flags = NDArray[np.bool_]

POINTS_MAX = 2_000  # of a curve that is looked at


def roca_loss_pct(margins: Floats, is_second: Flags) -> float | None:
    """1-ROCA %: of 100 pairs, one of each class, how many are ranked the wrong way; equals count half.

    Parameters
    ----------
    margins : ndarray of float64
        How far the second class is ranked ahead of the first.
    is_second : ndarray of bool
        Which messages are of the second class.

    Returns
    -------
    float or None
        ``None`` where one of the classes has no message.

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
    """Lam %: the two classes' shares of errors, averaged as log odds (Cormack and Lynam, TREC 2005).

    It does not depend on the threshold as the accuracy does: what one class gains the other loses.

    Parameters
    ----------
    errors : (float, float)
        The share of each class that was taken for the other.

    Returns
    -------
    float or None
        0 where one class was never taken for the other; ``None`` where the other then always was, or where
        a share is not known.

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
    """The ROC curve: at every threshold, the share of the first class and of the second ranked above it.

    Parameters
    ----------
    margins, is_second
        As for `roca_loss_pct`; both classes have messages.

    Returns
    -------
    (ndarray, ndarray)
        False and true positive rates from 0 to 1, at most 2,000 thresholds, evenly spread by rank.

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
