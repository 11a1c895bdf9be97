"""The inverse of a scatter matrix, updated message by message.

A message adds one outer product to the scatter matrix, so its inverse can be updated in O(d^2) (Sherman and
Morrison 1950), while computing it from the matrix costs O(d^3). Every d messages it is computed from the
matrix nevertheless: that is O(d^2) per message too, and keeps rounding errors from accumulating.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamnb.base import Floats

# A standard deviation below 1e-100 is rounding error; the bound keeps sums and inverses far from overflow.
VARIANCE_MIN = 1e-200
# Variance inflation factor above which fewer than six digits of the inverse would be right.
INFLATION_MAX = 1e10
# An update that multiplies the determinant by more than this loses four digits: compute the inverse again.
GROWTH_MAX = 1e4


class Inverted(NamedTuple):
    """The inverse of a scatter matrix of messages without missing coordinates.

    Parameters
    ----------
    matrix : ndarray of float64, shape (d, d)
        The inverse.
    log_det : float
        Log determinant of the scatter matrix.
    n : float
        Summed weight of the messages.
    free : float
        `n` minus the number of classes beyond the first: each class estimates a mean of its own.
    diagonal : ndarray of float64, shape (d,)
        Diagonal of the scatter matrix.
    """

    matrix: Floats
    log_det: float
    n: float
    free: float
    diagonal: Floats


def inverted(matrix: Floats) -> tuple[Floats, float] | None:
    """Return the inverse and the log determinant of a positive definite matrix.

    The matrix is first scaled to a diagonal of ones, so the units of the numbers do not matter.

    Parameters
    ----------
    matrix : ndarray of float64, shape (d, d)
        Symmetric, d at least 1.

    Returns
    -------
    (ndarray of float64, shape (d, d), float) or None
        ``None`` if the matrix is not positive definite, or nearly singular: some coordinate is a linear
        function of the others up to 1e-10 of its variance (a variance inflation factor above 1e10).

    Examples
    --------
    >>> inverted(np.array([[4.0, 0.0], [0.0, 9.0]]))[0].diagonal().round(3).tolist()
    [0.25, 0.111]
    >>> inverted(np.array([[1.0, 2.0], [2.0, 4.0]]))
    """
    diagonal = matrix.diagonal()
    if not bool((diagonal >= VARIANCE_MIN).all()):
        return None
    spread = np.sqrt(diagonal)
    units = np.outer(spread, spread)
    try:
        factor = np.linalg.cholesky(matrix / units)
    except np.linalg.LinAlgError:
        return None
    half = np.linalg.inv(factor)
    inverse = half.T @ half
    if not float(inverse.diagonal().max()) <= INFLATION_MAX:
        return None
    log_det = 2.0 * float(np.log(spread).sum() + np.log(factor.diagonal()).sum())
    return inverse / units, log_det


class InverseScatter:
    """The inverse of a growing scatter matrix, as long as there is a reliable one.

    Attributes
    ----------
    matrix : ndarray of float64, shape (d, d), or None
        The inverse; ``None`` if there is no reliable one.
    log_det : float
        Log determinant of the scatter matrix, not of the inverse.
    age : int
        Messages since the inverse was last computed from the scatter matrix, or that was tried.

    Examples
    --------
    >>> kept = InverseScatter()
    >>> kept.renew(np.eye(2))
    >>> kept.add(np.array([1.0, 0.0]), weight=3.0)
    >>> kept.matrix.round(9).tolist(), round(math.exp(kept.log_det), 9)
    ([[0.25, 0.0], [0.0, 1.0]], 4.0)
    """

    __slots__ = ("age", "log_det", "matrix")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Discard the inverse, because the scatter matrix has changed by more than one outer product."""
        self.matrix: Floats | None = None
        self.log_det = 0.0
        self.age = 0

    def renew(self, sums: Floats | None) -> None:
        """Compute the inverse from the scatter matrix; none if that is ``None`` or nearly singular."""
        self.reset()
        found = None if sums is None else inverted(sums)
        if found is not None:
            self.matrix, self.log_det = found

    def add(self, step: Floats, weight: float) -> None:
        """Update the inverse after ``weight * step step^T`` was added to the scatter matrix."""
        if self.matrix is None:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            column = self.matrix @ step
            growth = 1.0 + weight * float(step @ column)
        if not growth <= GROWTH_MAX:
            self.matrix = None
            return
        column *= math.sqrt(weight / growth)
        self.matrix -= np.outer(column, column)
        self.log_det += math.log(growth)

    def check(self, diagonal: Floats) -> None:
        """Discard the inverse if the scatter matrix, with this diagonal, has become nearly singular."""
        if self.matrix is not None and not float((self.matrix.diagonal() * diagonal).max()) <= INFLATION_MAX:
            self.matrix = None
