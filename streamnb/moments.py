"""Moments: per class, how many numbers, their mean and their centred sum of squares.

Updated by West's weighted form of Welford's recurrence (Welford 1962; West 1979), merged by Chan, Golub and
LeVeque (1979): exact to rounding at any offset, where a sum of squares loses everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamnb.columns import Floats
from streamnb.digest import Digest, name


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
        self.n[class_index] = n
        self.mean[class_index] += step * weight / n
        # Rounding may carry the mean past x by its last bit: a sum of squares never falls for that.
        self.squares[class_index] += max(0.0, weight * step * (x - self.mean[class_index]))

    def remove(self, x: float, class_index: int, weight: float = 1.0) -> None:
        """Take a number back.

        Raises
        ------
        ValueError
            Less than that was learned; nothing was changed.
        """
        n = self.n[class_index] - weight
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
