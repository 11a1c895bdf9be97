"""A normal distribution per class for the two views of the calibrated head: message length and unknown share.

Each class is steadied by pseudo-messages of the pooled distribution, so that a class with few messages
decides little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streamnb.base import Digest, Floats, Sections, check_magnitude, check_weights, counted, statement
from streamnb.naive_bayes.statistics.decay import fade_classes

META_CLIP = 2.0  # the evidence of one such view stays within -2 and 2


META_PSEUDO_MESSAGES = 20.0  # with the floor v0, messages that are all equally long decide nothing


SUMS_MAX = 1e70  # far above the squared length of the longest text times any weight; its square is finite


class SteadyNormal:
    """A normal distribution of one number per class, steadied by 20 pseudo-messages of all classes together.

    The number is rounded to 1/1024, so that its sums are exact and do not depend on the order of messages.

    Parameters
    ----------
    variance_min : float
        v0: the prior variance, and the lower bound of every variance.
    """

    __slots__ = ("n", "s", "ss", "variance_min")

    def __init__(self, variance_min: float) -> None:
        self.variance_min = variance_min
        self.n: list[float] = []
        self.s: list[float] = []
        self.ss: list[float] = []

    def add_class(self) -> None:
        """Append a class without messages."""
        for column in (self.n, self.s, self.ss):
            column.append(0.0)

    def fade(self, factor: float) -> None:
        """Multiply all sums; see `fade_classes`."""
        fade_classes((self.n, self.s, self.ss), factor)

    def add(self, x: float, class_index: int, weight: float) -> None:
        """Learn a number."""
        x = quantised(x)
        self.n[class_index] += weight
        self.s[class_index] += weight * x
        self.ss[class_index] += weight * x * x

    def remove(self, x: float, class_index: int, weight: float, left: float) -> None:
        """Unlearn a number; `left` is the weight of the numbers that the class then has."""
        x = quantised(x)
        self.take(class_index, weight * x, weight * x * x, left)

    def take(self, c: int, s: float, ss: float, left: float) -> None:
        """Subtract sums of numbers that are not negative; `left` is the weight of the other numbers."""
        self.n[c] = left
        self.s[c] = max(0.0, self.s[c] - s) if self.n[c] else 0.0
        self.ss[c] = max(0.0, self.ss[c] - ss) if self.n[c] else 0.0

    def merge(self, other: SteadyNormal, classes: Sequence[int]) -> None:
        """Add the sums of another; ``classes[j]`` is the index here of its class j."""
        for j, c in enumerate(classes):
            self.n[c] += other.n[j]
            self.s[c] += other.s[j]
            self.ss[c] += other.ss[j]

    def evidence(self, x: float, active: Sequence[int], scale: float = 1.0) -> list[float]:
        """Return the centred log density per active class, clipped to [-2, 2]."""
        x = quantised(x)
        n0, v0 = META_PSEUDO_MESSAGES * scale, self.variance_min
        m, s, ss = 0.0, 0.0, 0.0
        for c in active:
            m += self.n[c]
            s += self.s[c]
            ss += self.ss[c]
        m0 = s / m if m else 0.0
        pooled = max((ss - m * m0 * m0 + n0 * v0) / (m + n0), v0) if m else v0
        g = []
        for c in active:
            n = self.n[c]
            mu = (self.s[c] + n0 * m0) / (n + n0)
            spread = self.ss[c] - 2.0 * mu * self.s[c] + n * mu * mu
            variance = max((spread + n0 * (pooled + (m0 - mu) * (m0 - mu))) / (n + n0), v0)
            g.append(-0.5 * math.log(variance) - (x - mu) * (x - mu) / (2.0 * variance))
        return centred_and_clipped(g)

    def digest(self, title: str, classes: Sequence[str]) -> Digest:
        """Return the digest of all classes' sums."""
        digest = Digest()
        for c, class_name in enumerate(classes):
            if self.n[c]:
                digest.add(statement(title, class_name), self.n[c], self.s[c], self.ss[c])
        return digest

    def freeze(self) -> Floats:
        """Return the sums as an array of shape (3, C): n, s, ss."""
        return np.array([self.n, self.s, self.ss], np.float64).reshape(3, len(self.n))

    def restore(self, array: Floats) -> None:
        """Restore the sums from the array of `freeze`."""
        self.n, self.s, self.ss = array.tolist()


def checked_sums(sections: Sections, name: str, n_classes: int) -> Floats:
    """Return a section that `SteadyNormal.freeze` made, after checking it.

    Raises
    ------
    SnapshotError
        It does not hold the sums of that many classes.
    """
    sums = counted(sections, name, (3, n_classes))
    check_weights(name, sums[0])
    check_magnitude(name, sums, SUMS_MAX)
    return sums


def quantised(x: float) -> float:
    """Return `x` rounded to 1/1024."""
    return round(x * 1024.0) / 1024.0


def centred_and_clipped(g: Sequence[float]) -> list[float]:
    """Return `g` minus its mean, clipped to [-2, 2], so that one feature cannot decide alone.

    If maximum likelihood gives a class minus infinity, that class gets the lower bound. If it does so for
    every class, all values are 0.
    """
    top = max(g)
    if top == -math.inf:
        return [0.0] * len(g)
    g = [max(value, top - 1e6) for value in g]
    mean = 0.0
    for value in g:
        mean += value
    mean /= len(g)
    return [min(max(value - mean, -META_CLIP), META_CLIP) for value in g]
