"""Moments: per class, how many numbers, their mean and their centred sum of squares.

Updated by West's weighted form of Welford's recurrence (Welford 1962; West 1979), merged by Chan, Golub and
LeVeque (1979): exact to rounding at any offset, where a sum of squares loses everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamnb.base import Floats
from streamnb.naive_bayes.statistics.decay import fade_sums
from streamnb.naive_bayes.statistics.digest import Digest, name

WEIGHT_ROUNDING = 1e-9  # of a weight, that sums may lack of it when as much is taken back in another order


class Moments:
    """Moments of one number, per class.

    Attributes
    ----------
    n, mean, squares : list of float
        Per class: summed weights, mean, ``sum (x - mean)^2``.

    Examples
    --------
    >>> heights = Moments(n_classes=1)
    >>> for x in (1e9, 1e9 + 2.0):
    ...     heights.add(x, class_index=0)
    >>> heights.mean, heights.squares
    ([1000000001.0], [2.0])
    """

    __slots__ = ("mean", "n", "squares")

    def __init__(self, n_classes: int = 0) -> None:
        self.n = [0.0] * n_classes
        self.mean = [0.0] * n_classes
        self.squares = [0.0] * n_classes

    def add_class(self) -> None:
        """Append a class without numbers."""
        for column in (self.n, self.mean, self.squares):
            column.append(0.0)

    def add(self, x: float, class_index: int, weight: float = 1.0) -> None:
        """Learn a finite number."""
        n = self.n[class_index] + weight
        step = x - self.mean[class_index]
        first = self.n[class_index] == 0
        self.n[class_index] = n
        # A first number is its own mean, to the bit: numbers that are all equal have no variance at all.
        self.mean[class_index] = x if first else self.mean[class_index] + step * weight / n
        # Rounding may carry the mean past x by its last bit: a sum of squares never falls for that.
        self.squares[class_index] += max(0.0, weight * step * (x - self.mean[class_index]))

    def fade(self, factor: float) -> None:
        """Multiply all weights; a class of which too little is left has no numbers, the others their mean."""
        fade_sums((self.n, self.squares), factor)
        self.mean = [m if n else 0.0 for n, m in zip(self.n, self.mean, strict=True)]

    def remove(self, x: float, class_index: int, weight: float = 1.0) -> None:
        """Take a number back.

        Raises
        ------
        ValueError
            Less than that was learned; nothing was changed.
        """
        n = self.n[class_index] - weight
        if abs(n) <= WEIGHT_ROUNDING * weight:
            n = 0.0
        if n < 0:
            raise ValueError("that number was not learned that often; nothing was unlearned")
        if n == 0:
            self.n[class_index] = self.mean[class_index] = self.squares[class_index] = 0.0
            return
        step = x - self.mean[class_index]
        self.mean[class_index] -= step * weight / n
        squares = self.squares[class_index] - weight * step * (x - self.mean[class_index])
        self.squares[class_index] = max(0.0, squares)
        self.n[class_index] = n

    def check_subtractable(self, other: Moments, classes: Sequence[int]) -> None:
        """Raise ``ValueError`` if another has more numbers than there are."""
        if any(self.n[c] < other.n[j] * (1 - WEIGHT_ROUNDING) for j, c in enumerate(classes)):
            raise ValueError("more numbers were to be taken away than were learned; nothing was")

    def subtract(self, other: Moments, classes: Sequence[int]) -> None:
        """Take another's numbers away: `merge`, backwards."""
        for j, c in enumerate(classes):
            n = self.n[c] - other.n[j]
            if n <= 0:
                self.n[c] = self.mean[c] = self.squares[c] = 0.0
                continue
            step = (self.mean[c] - other.mean[j]) * (self.n[c] / n)  # from the other's mean to what is left
            squares = self.squares[c] - other.squares[j] - step * step * (n * other.n[j] / self.n[c])
            self.squares[c] = max(0.0, squares)
            self.mean[c] = other.mean[j] + step
            self.n[c] = n

    def merge(self, other: Moments, classes: Sequence[int]) -> None:
        """Add another's numbers; ``classes[j]`` is this one's index of the other's class j."""
        for j, c in enumerate(classes):
            if other.n[j] == 0:
                continue
            n = self.n[c] + other.n[j]
            step = other.mean[j] - self.mean[c]
            self.squares[c] += other.squares[j] + step * step * (self.n[c] * other.n[j] / n)
            self.mean[c] += step * (other.n[j] / n)
            self.n[c] = n

    def pooled(self) -> tuple[float, float]:
        """Summed weights and variance of all classes' numbers about their common mean (0, 0 without any)."""
        n = 0.0
        mean = 0.0
        squares = 0.0
        for c, n_c in enumerate(self.n):
            if n_c == 0:
                continue
            step = self.mean[c] - mean
            together = n + n_c
            squares += self.squares[c] + step * step * (n * n_c / together)
            mean += step * (n_c / together)
            n = together
        return n, squares / n if n else 0.0

    def digest(self, view: str, classes: Sequence[str]) -> Digest:
        """The digest of all classes' moments."""
        digest = Digest()
        for c, class_name in enumerate(classes):
            if self.n[c]:
                statement = name("moments", view, class_name)
                digest.add(statement, self.n[c], self.mean[c], self.squares[c])
        return digest

    def freeze(self) -> Floats:
        """The moments as an array of shape (3, C): n, mean, squares."""
        return np.array([self.n, self.mean, self.squares], np.float64).reshape(3, len(self.n))

    def restore(self, array: Floats) -> None:
        """Take the place of what `freeze` gave."""
        self.n, self.mean, self.squares = array.tolist()
