"""Bins: a number as one of a few ranges, which a categorical event model then counts.

What the count of a bin means when its edges move: nothing, since what was counted under one range would be
read under another. So edges never move once something was counted. Fixed edges are given; learned ones
settle once, on the quantiles of the first numbers, which wait until then with their classes and are counted
together when the edges are there: every label is learned exactly once, and the whole stream is counted under
the same edges. The wait is short and bounded, so the quantiles are exact: no sketch has to stand in for the
numbers. (P^2, of Jain and Chlamtac 1985, is how river does it; its five markers move for ever.)
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from streamnb.base import COUNTED_MAX, HINT, Section, Sections, floats
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.statistics.decay import FORGOTTEN
from streamnb.naive_bayes.statistics.digest import Digest, name

BINS_MAX = 1000
WARM_UP_MAX = 100_000


class FixedEdges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Edges that are given; a bin holds its lower edge and not its upper one.

    Parameters
    ----------
    edges : tuple of float
        At least one, finite, each above the one before.

    Raises
    ------
    ValueError
        They are not.

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
        """Validate `edges`."""
        if not self.edges or not all(map(math.isfinite, self.edges)):
            raise ValueError("`edges` must be at least one finite number")
        if any(a >= b for a, b in pairwise(self.edges)):
            raise ValueError(f"`edges` must grow from one to the next, not {list(self.edges)}")

    def value(self, x: float | None) -> int | None:
        """The number of the bin, the lowest being 1; ``None`` for a missing number (``None`` or NaN)."""
        return None if x is None or math.isnan(x) else bisect_right(self.edges, x) + 1

    def label(self, x: float | None) -> str | None:
        """The bin's label; ``None`` for a missing number."""
        value = self.value(x)
        return None if value is None else self._label(value)

    def labels(self) -> list[str]:
        """The labels of all bins, from the lowest to the highest."""
        return [self._label(value) for value in range(1, len(self.edges) + 2)]

    def _label(self, value: int) -> str:
        if value == 1:
            return f"<{_plain(self.edges[0])}"
        if value > len(self.edges):
            return f">{_plain(self.edges[-1])}"
        return f"{_plain(self.edges[value - 2])}-{_plain(self.edges[value - 1])}"


class BinnedNumber(NamedTuple):
    """What is to be counted, or taken back: one number's bin, its class and its weight."""

    label: str
    class_index: int
    weight: float


class LearnedEdges:
    """Edges at the quantiles of the first numbers, and those numbers until then.

    They settle when `warm_up` numbers have been learned. An edge for the share q is the smallest number
    that at least q of the weight lies below, so that a value met very often has a bin of its own; of
    numbers all equal, that number is the only edge. Until then a number has no bin, and says nothing.

    Edges depend on which numbers came first: an order-kept statistic. They are not unlearned; the counts
    under them are.

    Parameters
    ----------
    bins : int
        How many at most, from 2 to 1,000; fewer where numbers repeat.
    warm_up : int
        How many numbers to wait for, from 1 to 100,000.

    Attributes
    ----------
    fixed : FixedEdges or None
        The edges, once they are settled.
    waiting : list of (float, int, float)
        Number, class index and weight of those not yet counted, in order.

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
        """The bin's label; ``None`` for a missing number, and while the edges are not settled."""
        return self.fixed.label(x) if self.fixed is not None else None

    def learn(self, x: float | None, class_index: int, weight: float = 1.0) -> list[BinnedNumber]:
        """Learn a number: what is now to be counted, in order.

        One bin; nothing for a missing number or one that waits; all that waited when the edges settle.

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
        insort(self.waiting, (x + 0.0, class_index, weight))  # + 0: there is one zero, whichever comes first
        return self._settled()

    def unlearn(self, x: float | None, class_index: int, weight: float = 1.0) -> list[BinnedNumber]:
        """Take a number back: what is now to be taken from the counts.

        Raises
        ------
        ValueError
            It is not among those that wait; nothing was changed.
        """
        if x is None or math.isnan(x):
            return []
        if self.fixed is not None:
            return self._binned([(x, class_index, weight)])
        if (x, class_index, weight) not in self.waiting:
            raise ValueError(f"{x!r} was not learned that often; nothing was unlearned")
        self.waiting.remove((x, class_index, weight))
        return []

    def fade(self, factor: float) -> None:
        """Multiply the weights of the numbers that wait; those of too little weight go."""
        faded_ones = [(x, c, weight * factor) for x, c, weight in self.waiting]
        self.waiting = [number for number in faded_ones if number[2] >= FORGOTTEN or factor >= 1.0]

    def merge(self, other: LearnedEdges, classes: Sequence[int]) -> list[BinnedNumber]:
        """Add another's numbers; ``classes[j]`` is this one's index of the other's class j.

        Settled edges are taken over; what waited on either side is then to be counted.

        Raises
        ------
        ValueError
            Both have settled, on other edges, or the settings differ; nothing was changed.
        """
        if (self.bins, self.warm_up) != (other.bins, other.warm_up):
            theirs, ours = (f"{e.bins} bins after {e.warm_up} numbers" for e in (other, self))
            raise ValueError(f"{theirs} do not merge with {ours}")
        if self.fixed is not None and other.fixed is not None and self.fixed != other.fixed:
            raise ValueError("counts of bins that settled on other edges do not merge")
        self.fixed = self.fixed or other.fixed
        for x, c, weight in other.waiting:
            insort(self.waiting, (x, classes[c], weight))
        return self._settled()

    def digest(self, view: str, field: str, classes: Sequence[str]) -> Digest:
        """The digest of the edges, or of what waits for them."""
        digest = Digest()
        if self.fixed is not None:
            digest.add(name("edges", view, field), *self.fixed.edges)
        for x, c, weight in self.waiting:
            digest.add(name("waiting", view, field, classes[c]), x, weight)
        return digest

    def freeze(self, prefix: str) -> dict[str, Section]:
        """The state as arrays that no later learning changes.

        Returns
        -------
        dict of str to ndarray
            Each name begins with `prefix`. ``_edges`` float64 (k, 1), of none while they are not settled;
            ``_waiting`` float64 (n, 3): number, class index, weight.
        """
        edges = self.fixed.edges if self.fixed is not None else ()
        return {
            f"{prefix}_edges": np.array(edges, np.float64).reshape(len(edges), 1),
            f"{prefix}_waiting": np.array(self.waiting, np.float64).reshape(len(self.waiting), 3),
        }

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:
        """Take the place of what `freeze` gave, checked.

        Raises
        ------
        SnapshotError
            The arrays are not edges, or not numbers of that many classes; nothing was changed.
        """
        edges = floats(sections, f"{prefix}_edges", (None, 1))[:, 0].tolist()
        rows = floats(sections, f"{prefix}_waiting", (None, 3)).tolist()
        waiting = [(x, int(c), weight) for x, c, weight in rows]
        if len(edges) >= self.bins or any(a >= b for a, b in pairwise(edges)):
            raise SnapshotError(f"Section `{prefix}_edges` does not hold {self.bins} bins.", HINT)
        known = all(c == int(c) and 0 <= c < n_classes and 0 < weight <= COUNTED_MAX for _, c, weight in rows)
        if not known or waiting != sorted(waiting) or len(waiting) >= (1 if edges else self.warm_up):
            raise SnapshotError(f"Section `{prefix}_waiting` holds what cannot be waiting.", HINT)
        self.fixed = FixedEdges(tuple(edges)) if edges else None
        self.waiting = waiting

    def _settled(self) -> list[BinnedNumber]:
        """What is to be counted now, where the edges are settled or can be."""
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
    """The edges of that many bins, from numbers in order and their weights."""
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
    """The shortest text that is this number and no other, whole numbers without a point.

    Examples
    --------
    >>> _plain(400.0), _plain(0.1), _plain(1e-07)
    ('400', '0.1', '1e-07')
    """
    return repr(edge + 0.0).removesuffix(".0")  # + 0: there is one zero
