"""Moments of a number: per class its weight, its mean and its centred sum of squares.

They are updated by West's weighted form of Welford's recurrence (Welford 1962; West 1979) and merged as in
Chan, Golub and LeVeque (1979). These are exact to rounding at any offset of the numbers. A sum of x^2 would
lose every digit of the variance if the mean is large.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamnb.base import NUMBER_MAX, Digest, Floats, check_magnitude, check_weights, statement
from streamnb.naive_bayes.statistics.decay import WEIGHT_ROUNDING, fade_sums

MEAN_MAX = 2 * NUMBER_MAX  # of a snapshot's means, which may round past the largest number
SQUARES_MAX = 1e250  # far above the largest number's square times any weight


class Moments:
    """The moments of one number, per class.

    Attributes
    ----------
    n, mean, squares : list of float
        Per class the summed weights, the mean, and ``sum (x - mean)^2``.

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
        """Learn a number, which must be finite."""
        n = self.n[class_index] + weight
        step = x - self.mean[class_index]
        first = self.n[class_index] == 0
        self.n[class_index] = n
        # The first number becomes the mean without rounding, so numbers that are all equal have variance 0.
        self.mean[class_index] = x if first else self.mean[class_index] + step * weight / n
        # Rounding may move the mean past x by its last bit; the product is then below 0 and must not count.
        self.squares[class_index] += max(0.0, weight * step * (x - self.mean[class_index]))

    def fade(self, factor: float) -> None:
        """Multiply all weights; a class whose weight becomes negligible loses its numbers. Means do not
        change.
        """
        fade_sums((self.n, self.squares), factor)
        self.mean = [m if n else 0.0 for n, m in zip(self.n, self.mean, strict=True)]

    def remove(self, x: float, class_index: int, weight: float = 1.0) -> None:
        """Unlearn a number.

        Raises
        ------
        ValueError
            The class has learned less than `weight`; nothing was changed.
        """
        n = self.n[class_index] - weight
        if abs(n) <= WEIGHT_ROUNDING * weight:
            n = 0.0
        if n < 0:
            raise ValueError(
                f"cannot unlearn {x!r}: its class's learned weight is smaller than the weight to remove; "
                "nothing was changed"
            )
        if n == 0:
            self.n[class_index] = self.mean[class_index] = self.squares[class_index] = 0.0
            return
        step = x - self.mean[class_index]
        self.mean[class_index] = float(within(self.mean[class_index] - step * weight / n))
        squares = self.squares[class_index] - weight * step * (x - self.mean[class_index])
        self.squares[class_index] = max(0.0, squares)
        self.n[class_index] = n

    def check_subtractable(self, other: Moments, classes: Sequence[int]) -> None:
        """Raise ``ValueError`` if the other moments have more weight in a class than these."""
        if any(self.n[c] < other.n[j] * (1 - WEIGHT_ROUNDING) for j, c in enumerate(classes)):
            raise ValueError("more numbers would be subtracted than were learned; nothing was subtracted")

    def subtract(self, other: Moments, classes: Sequence[int]) -> None:
        """Subtract the numbers of other moments: the inverse of `merge`."""
        for j, c in enumerate(classes):
            n = self.n[c] - other.n[j]
            if n <= 0:
                self.n[c] = self.mean[c] = self.squares[c] = 0.0
                continue
            step = (self.mean[c] - other.mean[j]) * (self.n[c] / n)  # remaining mean minus the other's mean
            squares = self.squares[c] - other.squares[j] - step * step * (n * other.n[j] / self.n[c])
            self.squares[c] = max(0.0, squares)
            self.mean[c] = float(within(other.mean[j] + step))
            self.n[c] = n

    def merge(self, other: Moments, classes: Sequence[int]) -> None:
        """Add the numbers of other moments; ``classes[j]`` is the index here of their class j."""
        for j, c in enumerate(classes):
            if other.n[j] == 0:
                continue
            n = self.n[c] + other.n[j]
            step = other.mean[j] - self.mean[c]
            self.squares[c] += other.squares[j] + step * step * (self.n[c] * other.n[j] / n)
            self.mean[c] += step * (other.n[j] / n)
            self.n[c] = n

    def pooled(self) -> tuple[float, float]:
        """Return the summed weight and the variance of all classes' numbers about their common mean.

        Both are 0 if there are no numbers.
        """
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
        """Return the digest of all classes' moments."""
        digest = Digest()
        for c, class_name in enumerate(classes):
            if self.n[c]:
                said = statement("moments", view, class_name)
                digest.add(said, self.n[c], self.mean[c], self.squares[c])
        return digest

    def freeze(self) -> Floats:
        """Return the moments as an array of shape (3, C): n, mean, squares."""
        return np.array([self.n, self.mean, self.squares], np.float64).reshape(3, len(self.n))

    def restore(self, array: Floats) -> None:
        """Restore the moments from the array of `freeze`."""
        self.n, self.mean, self.squares = array.tolist()


def within(mean: Floats | float) -> Floats:
    """Return means within the largest number: where little weight is left, rounding may move one far."""
    return np.clip(mean, -NUMBER_MAX, NUMBER_MAX)


def check_moments(name: str, n: Floats, mean: Floats, squares: Floats) -> None:
    """Check that moments of the section `name` have the magnitudes that learning gives.

    Raises
    ------
    SnapshotError
        They have not.
    """
    check_weights(name, n)
    check_magnitude(name, mean, MEAN_MAX)
    check_magnitude(name, squares, SQUARES_MAX)
