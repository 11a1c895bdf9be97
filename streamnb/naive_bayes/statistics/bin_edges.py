"""Edges of bins: they turn a number into one of a few ranges, which a categorical event model counts.

Edges never move after something was counted. If they did, the counts of one range would be read as counts of
another. Fixed edges come from the settings. Learned edges settle once, on the quantiles of the first numbers.
Until then those numbers wait together with their classes, and all are counted when the edges settle. So every
label is learned exactly once, and the whole stream is counted under the same edges. The wait is short and
bounded, so the quantiles can be computed exactly from the numbers themselves. (river estimates quantiles by
the P^2 algorithm of Jain and Chlamtac 1985, whose five markers never stop moving.)
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from streamnb.base import COUNTED_MAX, HINT, Digest, Section, Sections, floats, statement
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.statistics.decay import FORGOTTEN

BINS_MAX = 1000
WARM_UP_MAX = 100_000


class FixedEdges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Edges that are given. A bin contains its lower edge but not its upper one.

    Parameters
    ----------
    edges : tuple of float
        At least one finite number, in increasing order.

    Raises
    ------
    ValueError
        `edges` is empty, not finite or not in increasing order.

    Examples
    --------
    The lectures' living areas, in square feet: a house of 890 has the value 3.

    >>> area = FixedEdges((400.0, 800.0, 1200.0, 1600.0))
    >>> area.labels()
    ['<400', '400-800', '800-1200', '1200-1600', '>1600']
    >>> area.value(890.0), area.label(890.0)
    (3, '800-1200')
    """

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check `edges`."""
        if not self.edges or not all(map(math.isfinite, self.edges)):
            raise ValueError("`edges` must be at least one finite number")
        if any(a >= b for a, b in pairwise(self.edges)):
            raise ValueError(f"`edges` must grow from one to the next, not {list(self.edges)}")

    def value(self, x: float | None) -> int | None:
        """Return the bin's number, 1 for the lowest; ``None`` for a missing number (``None``, NaN)."""
        return None if x is None or math.isnan(x) else bisect_right(self.edges, x) + 1

    def label(self, x: float | None) -> str | None:
        """Return the bin's label; ``None`` for a missing number."""
        value = self.value(x)
        return None if value is None else self._label(value)

    def labels(self) -> list[str]:
        """Return the labels of all bins, from the lowest to the highest."""
        return [self._label(value) for value in range(1, len(self.edges) + 2)]

    def _label(self, value: int) -> str:
        if value == 1:
            return f"<{_plain(self.edges[0])}"
        if value > len(self.edges):
            return f">{_plain(self.edges[-1])}"
        return f"{_plain(self.edges[value - 2])}-{_plain(self.edges[value - 1])}"


class BinnedNumber(NamedTuple):
    """One number to add to the counts, or to subtract: its bin's label, its class and its weight."""

    label: str
    class_index: int
    weight: float


class LearnedEdges:
    """Edges at the quantiles of the first numbers, and those numbers until the edges settle.

    The edges settle when `warm_up` numbers have been learned. The edge for a share q is the smallest number
    with at least q of the weight below it, so a value that is very frequent gets a bin of its own. If all
    numbers are equal, that number is the only edge. Before the edges settle, a number has no bin and adds no
    evidence.

    The edges depend on which numbers came first, so this statistic is order-kept. Unlearning reduces the
    counts but never changes the edges.

    Parameters
    ----------
    bins : int
        Largest number of bins, from 2 to 1,000. There are fewer if numbers repeat.
    warm_up : int
        How many numbers to collect before the edges settle, from 1 to 100,000.

    Attributes
    ----------
    fixed : FixedEdges or None
        The edges; ``None`` before they settle.
    waiting : list of (float, int, float)
        The numbers not counted yet, in increasing order, each with its class index and weight.

    Raises
    ------
    ValueError
        `bins` or `warm_up` is out of its range.

    Examples
    --------
    >>> ages = LearnedEdges(bins=2, warm_up=4)
    >>> [ages.learn(age, class_index=0) for age in (18.0, 70.0, 30.0)], ages.label(30.0)
    ([[], [], []], None)
    >>> [counted.label for counted in ages.learn(41.0, class_index=1)]
    ['<41', '<41', '>41', '>41']
    >>> ages.learn(19.0, class_index=1)
    [BinnedNumber(label='<41', class_index=1, weight=1.0)]
    """

    __slots__ = ("bins", "fixed", "waiting", "warm_up")

    def __init__(self, bins: int = 10, warm_up: int = 200) -> None:
        if not 2 <= bins <= BINS_MAX:
            raise ValueError(f"`bins` must be from 2 to {BINS_MAX}, not {bins}")
        if not 1 <= warm_up <= WARM_UP_MAX:
            raise ValueError(f"`warm_up` must be from 1 to {WARM_UP_MAX}, not {warm_up}")
        self.bins = bins
        self.warm_up = warm_up
        self.fixed: FixedEdges | None = None
        self.waiting: list[tuple[float, int, float]] = []

    def label(self, x: float | None) -> str | None:
        """Return the bin's label; ``None`` for a missing number, and before the edges settle."""
        return self.fixed.label(x) if self.fixed is not None else None

    def learn(self, x: float | None, class_index: int, weight: float = 1.0) -> list[BinnedNumber]:
        """Learn a number, and return the numbers that the caller must now add to its counts.

        With settled edges that is this number. While numbers wait it is none; when this number settles the
        edges, it is all that waited, in increasing order. A missing number is ignored.

        Raises
        ------
        ValueError
            The number is infinite; nothing was changed.
        """
        if x is None or math.isnan(x):
            return []
        if math.isinf(x):
            raise ValueError(f"a number must be finite, not {x!r}")
        if self.fixed is not None:
            return self._binned([(x, class_index, weight)])
        insort(self.waiting, (x + 0.0, class_index, weight))  # + 0.0 turns -0.0 into 0.0: they are one number
        return self._settled()

    def unlearn(self, x: float | None, class_index: int, weight: float = 1.0) -> list[BinnedNumber]:
        """Unlearn a number, and return the numbers that the caller must now subtract from its counts.

        With settled edges that is this number; otherwise it was waiting, and nothing is subtracted.

        Raises
        ------
        ValueError
            The edges have not settled and the number is not waiting; nothing was changed.
        """
        if x is None or math.isnan(x):
            return []
        if self.fixed is not None:
            return self._binned([(x, class_index, weight)])
        if (x, class_index, weight) not in self.waiting:
            raise ValueError(
                f"cannot unlearn {x!r}: it was not learned with this weight; nothing was changed"
            )
        self.waiting.remove((x, class_index, weight))
        return []

    def fade(self, factor: float) -> None:
        """Multiply the weights of waiting numbers, and drop those that become negligible."""
        faded = [(x, c, weight * factor) for x, c, weight in self.waiting]
        self.waiting = [number for number in faded if number[2] >= FORGOTTEN or factor >= 1.0]

    def merge(self, other: LearnedEdges, classes: Sequence[int]) -> list[BinnedNumber]:
        """Add the numbers of another statistic, and return those that the caller must now count.

        If only one side has settled edges, the result has them, and all waiting numbers are counted.

        Parameters
        ----------
        other : LearnedEdges
        classes : sequence of int
            ``classes[j]`` is the index here of the other's class j.

        Raises
        ------
        ValueError
            Both have settled on different edges, or their settings differ; nothing was changed.
        """
        if (self.bins, self.warm_up) != (other.bins, other.warm_up):
            theirs, ours = (f"{e.bins} bins after {e.warm_up} numbers" for e in (other, self))
            raise ValueError(f"cannot merge: different bins, {theirs} and {ours}")
        if self.fixed is not None and other.fixed is not None and self.fixed != other.fixed:
            raise ValueError("counts under different bin edges cannot be merged; nothing was merged")
        self.fixed = self.fixed or other.fixed
        for x, c, weight in other.waiting:
            insort(self.waiting, (x, classes[c], weight))
        return self._settled()

    def digest(self, view: str, field: str, classes: Sequence[str]) -> Digest:
        """Return the digest of the edges and of the numbers waiting for them."""
        digest = Digest()
        if self.fixed is not None:
            digest.add(statement("edges", view, field), *self.fixed.edges)
        for x, c, weight in self.waiting:
            digest.add(statement("waiting", view, field, classes[c]), x, weight)
        return digest

    def freeze(self, prefix: str) -> dict[str, Section]:
        """Return the state as arrays, which later learning does not change.

        Returns
        -------
        dict of str to ndarray
            Each key begins with `prefix`. ``_edges`` float64 (k, 1), with k = 0 before the edges settle;
            ``_waiting`` float64 (n, 3): number, class index, weight.
        """
        edges = self.fixed.edges if self.fixed is not None else ()
        return {
            f"{prefix}_edges": np.array(edges, np.float64).reshape(len(edges), 1),
            f"{prefix}_waiting": np.array(self.waiting, np.float64).reshape(len(self.waiting), 3),
        }

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:
        """Restore the state from the arrays of `freeze`, after checking them.

        Raises
        ------
        SnapshotError
            The arrays do not hold edges, or numbers of that many classes; nothing was changed.
        """
        edges = floats(sections, f"{prefix}_edges", (None, 1))[:, 0].tolist()
        rows = floats(sections, f"{prefix}_waiting", (None, 3)).tolist()
        waiting = [(x, int(c), weight) for x, c, weight in rows]
        if len(edges) >= self.bins or any(a >= b for a, b in pairwise(edges)):
            raise SnapshotError(f"Section `{prefix}_edges` does not hold {self.bins} bins.", HINT)
        known = all(c == int(c) and 0 <= c < n_classes and 0 < weight <= COUNTED_MAX for _, c, weight in rows)
        if not known or waiting != sorted(waiting) or len(waiting) >= (1 if edges else self.warm_up):
            raise SnapshotError(
                f"Section `{prefix}_waiting` does not hold valid numbers that wait for bin edges.", HINT
            )
        self.fixed = FixedEdges(tuple(edges)) if edges else None
        self.waiting = waiting

    def _settled(self) -> list[BinnedNumber]:
        """Settle the edges if enough numbers wait; once they are settled, return the numbers that waited."""
        if self.fixed is None and len(self.waiting) >= self.warm_up:
            self.fixed = FixedEdges(_quantiles([(x, weight) for x, _, weight in self.waiting], self.bins))
        if self.fixed is None:
            return []
        counted, self.waiting = self._binned(self.waiting), []
        return counted

    def _binned(self, numbers: Sequence[tuple[float, int, float]]) -> list[BinnedNumber]:
        assert self.fixed is not None
        return [BinnedNumber(self.fixed.label(x) or "", c, weight) for x, c, weight in numbers]


def _quantiles(numbers: Sequence[tuple[float, float]], bins: int) -> tuple[float, ...]:
    """Return the edges of at most `bins` bins, from numbers in increasing order with their weights."""
    total = math.fsum(weight for _, weight in numbers)
    edges: list[float] = []
    below, k = 0.0, 1
    for i, (x, weight) in enumerate(numbers):
        first = i == 0 or x > numbers[i - 1][0]
        if first and k < bins and below * bins >= k * total:
            edges.append(x)
            while k < bins and below * bins >= k * total:
                k += 1
        below += weight
    return tuple(edges) or (numbers[0][0],)


def _plain(edge: float) -> str:
    """Return the shortest text for a number that no other number has; whole numbers have no point.

    Examples
    --------
    >>> _plain(400.0), _plain(0.1), _plain(1e-07)
    ('400', '0.1', '1e-07')
    """
    return repr(edge + 0.0).removesuffix(".0")  # + 0.0 turns -0.0 into 0.0
