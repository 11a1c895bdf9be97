"""The inverse of a matrix of summed squares, kept from message to message.

A message adds one outer product to the sums, so the inverse follows in O(d^2) (Sherman and Morrison 1950)
where a new one costs O(d^3). It is made anew every d messages: that is O(d^2) a message too, and rounding
does not add up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamnb.base import Floats

VARIANCE_MIN = 1e-200  # a spread below 1e-100 is rounding: numbers and their inverses stay far from overflow
INFLATION_MAX = 1e10  # past that less than six digits of the inverse would be right
GROWTH_MAX = 1e4  # a step that far out costs an update four digits: the inverse is made anew instead


class Inverted(NamedTuple):
    """The inverse of summed squares without gaps.

    Parameters
    ----------
    matrix : ndarray of float64, shape (d, d)
    log_det : float
        Of the sums.
    n : float
        Their summed weight.
    free : float
        `n`, less the means that were estimated beyond the first: one for each further class.
    diagonal : ndarray of float64, shape (d,)
        Of the sums.
    """

    matrix: Floats
    log_det: float
    n: float
    free: float
    diagonal: Floats


def inverted(matrix: Floats) -> tuple[Floats, float] | None:
    """InverseScatter and log determinant of a positive definite matrix.

    It is inverted in units of its own diagonal, so that the units of the numbers do not matter.

    Parameters
    ----------
    matrix : ndarray of float64, shape (d, d)
        Symmetric, d at least 1.

    Returns
    -------
    (ndarray of float64, shape (d, d), float) or None
        ``None`` where the matrix is not positive definite, or only just: where some coordinate follows from
        the others up to 1e-10 of its variance (a variance inflation factor above 1e10).

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
    """The inverse of a growing sum of outer products, or none yet.

    Attributes
    ----------
    matrix : ndarray of float64, shape (d, d), or None
    log_det : float
        Of the sum, not of its inverse.
    age : int
        Messages since it was last made anew, or since that was last tried.

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
        """Forget it: the sums have changed by more than one outer product."""
        self.matrix: Floats | None = None
        self.log_det = 0.0
        self.age = 0

    def renew(self, sums: Floats | None) -> None:
        """Make it anew from the sums; none where they are ``None`` or not safely positive definite."""
        self.reset()
        found = None if sums is None else inverted(sums)
        if found is not None:
            self.matrix, self.log_det = found

    def add(self, step: Floats, weight: float) -> None:
        """Follow the sums, which grew by ``weight * step step^T``."""
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
        """Let it go if the sums, whose diagonal this is, have become nearly singular."""
        if self.matrix is not None and not float((self.matrix.diagonal() * diagonal).max()) <= INFLATION_MAX:
            self.matrix = None
