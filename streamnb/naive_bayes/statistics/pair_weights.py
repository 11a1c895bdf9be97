"""The weights of pairs of coordinates in a scatter: a number weighs at least as much as each of its pairs.

A message that holds both coordinates of a pair holds each of them. A snapshot whose weights say otherwise is
refused, so unlearning and subtracting must leave no such weights, whatever they are given to take.
"""

from __future__ import annotations

import numpy as np

from streamnb.base import Floats
from streamnb.naive_bayes.statistics.decay import WEIGHT_ROUNDING

SCATTER_ROUNDING = 1e-12  # relative rounding error of a weight that was added and removed in another order
NOT_LEARNED = (
    "cannot unlearn these numbers: the learned weight of messages with just these is smaller than the weight "
    "to remove; nothing was changed"
)


def covers(n: Floats, taken: Floats) -> bool:
    """Return whether `taken` can be subtracted: no weight falls below 0, no number's below its pairs'.

    Parameters
    ----------
    n, taken : ndarray of float64, shape (d, d)
        Per pair of coordinates, the weight of the messages that hold both.

    Examples
    --------
    >>> n = np.ones((2, 2))  # of one message with both numbers
    >>> covers(n, n), covers(n, np.array([[1.0, 0.0], [0.0, 0.0]]))
    (True, False)
    """
    left = n - taken
    own = left.diagonal() + WEIGHT_ROUNDING * n.diagonal()
    return bool((n >= taken * (1 - SCATTER_ROUNDING)).all() and (left <= own[:, None]).all())


def settle(n: Floats, mean: Floats) -> None:
    """Raise the weight of each number to that of its heaviest pair: subtracting may round it below that.

    Parameters
    ----------
    n, mean : ndarray of float64, shape (d, d)
        Weights and means of one class's pairs, changed in place.
    """
    for i in np.flatnonzero(n.diagonal() < n.max(axis=1, initial=0.0)):
        j = int(n[i].argmax())
        if n[i, i] == 0.0:  # all that is left of the number is in that pair
            mean[i, i] = mean[i, j]
        n[i, i] = n[i, j]
