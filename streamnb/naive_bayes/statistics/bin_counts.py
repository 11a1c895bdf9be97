"""Counts of binned numbers, by name, range and class: the statistic of the event model `Binned`.

A range is a bin: the numbers between two edges, or beyond the first or last one. Edges are either given by
the settings or learned for each name from its first numbers, which wait until the edges settle. `bin_edges`
explains why edges never move after something was counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import orjson

from streamnb.base import HINT, Digest, Floats, Section, Sections, counted, section, statement
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.statistics.bin_edges import BinnedNumber, FixedEdges, LearnedEdges
from streamnb.naive_bayes.statistics.decay import FORGOTTEN, WEIGHT_ROUNDING


class Ranges(NamedTuple):
    """The ranges of one name: their edges, and how often a number of each class fell into each.

    Parameters
    ----------
    edges : FixedEdges
    counts : ndarray of float64, shape (ranges, C)
    """

    edges: FixedEdges
    counts: Floats


class BinCounts:
    """Counts of any number of named numbers by range; a new name may appear at any time.

    Parameters
    ----------
    edges : FixedEdges or None
        The edges of every name; ``None`` if each name learns its own.
    bins, warm_up : int
        Settings of learned edges, see `LearnedEdges`.
    n_classes : int

    Examples
    --------
    >>> areas = BinCounts(FixedEdges((400.0, 800.0, 1200.0, 1600.0)), n_classes=1)
    >>> areas.add({"area": 890.0}, class_index=0)
    >>> areas.ranges("area").counts[:, 0].tolist()
    [0.0, 0.0, 1.0, 0.0, 0.0]
    """

    __slots__ = ("_bins", "_edges", "_n_classes", "_warm_up", "counts", "learned")

    def __init__(
        self, edges: FixedEdges | None = None, bins: int = 10, warm_up: int = 200, n_classes: int = 0
    ) -> None:
        self._edges = edges
        self._bins, self._warm_up = bins, warm_up
        self._n_classes = n_classes
        self.learned: dict[str, LearnedEdges] = {}
        self.counts: dict[str, Floats] = {}

    def ranges(self, key: str) -> Ranges | None:
        """Return the ranges of a name; ``None`` before its edges have settled or anything was counted."""
        edges = self._edges
        if edges is None:
            edges = self.learned[key].fixed if key in self.learned else None
        counts = self.counts.get(key)
        return None if edges is None or counts is None else Ranges(edges, counts)

    def add_class(self) -> None:
        """Append a class without counts."""
        self._n_classes += 1
        for key, counts in self.counts.items():
            self.counts[key] = np.pad(counts, ((0, 0), (0, 1)))

    def add(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Count named numbers; if that settles a name's edges, also count its numbers that were waiting."""
        for key, x in features.items():
            if self._edges is not None:
                self._count(key, self._edges, self._edges.value(x), class_index, weight)
                continue
            learned = self.learned.setdefault(key, LearnedEdges(self._bins, self._warm_up))
            self._count_all(key, learned.learn(x, class_index, weight))

    def check_removable(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Raise ``ValueError`` if fewer of these numbers were learned than `remove` would take."""
        for key, x in features.items():
            ranges = self.ranges(key)
            if ranges is not None:
                value = ranges.edges.value(x)
                held = 0.0 if value is None else float(ranges.counts[value - 1, class_index])
                known = held >= weight * (1 - WEIGHT_ROUNDING)
            else:
                known = key in self.learned and (x, class_index, weight) in self.learned[key].waiting
            if not known:
                raise ValueError(
                    f"cannot unlearn {key!r}: it was not learned with such a number and weight; "
                    "nothing was changed"
                )

    def remove(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Subtract named numbers from the counts; the edges stay. Call `check_removable` first."""
        for key, x in features.items():
            ranges = self.ranges(key)
            if ranges is None:
                self.learned[key].unlearn(x, class_index, weight)
                if not self.learned[key].waiting:
                    del self.learned[key]
                continue
            value = ranges.edges.value(x)
            assert value is not None
            held = float(ranges.counts[value - 1, class_index])
            ranges.counts[value - 1, class_index] = max(0.0, held - weight)
            self._forget(key)

    def fade(self, factor: float) -> None:
        """Multiply all counts and the weights of waiting numbers, and drop those that become negligible."""
        for key, learned in list(self.learned.items()):
            learned.fade(factor)
            if learned.fixed is None and not learned.waiting:
                del self.learned[key]
        for key in list(self.counts):
            counts = self.counts[key] * factor
            self.counts[key] = np.where((counts >= FORGOTTEN) | (factor >= 1.0), counts, 0.0)
            self._forget(key)

    def merge(self, other: BinCounts, classes: Sequence[int]) -> None:
        """Add the counts of another statistic; ``classes[j]`` is the index here of its class j."""
        for key, theirs in other.learned.items():
            learned = self.learned.setdefault(key, LearnedEdges(self._bins, self._warm_up))
            self._count_all(key, learned.merge(theirs, classes))
        for key, counts in other.counts.items():
            mine = self.counts.setdefault(key, np.zeros((len(counts), self._n_classes)))
            for j, c in enumerate(classes):
                mine[:, c] += counts[:, j]

    def check_mergeable(self, other: BinCounts) -> None:
        """Raise ``ValueError`` if a name has settled on different edges in the two statistics."""
        for key, theirs in other.learned.items():
            mine = self.learned.get(key)
            if mine is not None and theirs.fixed and mine.fixed and mine.fixed != theirs.fixed:
                raise ValueError(
                    f"the two models learned different bin edges for {key!r}; nothing was merged"
                )

    def check_subtractable(self, other: BinCounts, classes: Sequence[int]) -> None:
        """Raise ``ValueError`` if the other statistic has learned more than this one, or has other edges."""
        self._to_take(other, classes)

    def subtract(self, other: BinCounts, classes: Sequence[int]) -> None:
        """Subtract the numbers of another statistic. Call `check_subtractable` first."""
        amounts, waiting = self._to_take(other, classes)
        for key, numbers in waiting.items():
            for number in numbers:
                self.learned[key].unlearn(*number)
            if not self.learned[key].waiting:
                del self.learned[key]
        for key, counts in amounts.items():
            self.counts[key] = np.maximum(0.0, self.counts[key] - counts)
            self._forget(key)

    def _to_take(
        self, other: BinCounts, classes: Sequence[int]
    ) -> tuple[dict[str, Floats], dict[str, list[tuple[float, int, float]]]]:
        """Return the amounts to subtract from the counts, and the waiting numbers to remove, by name."""
        amounts: dict[str, Floats] = {}
        waiting: dict[str, list[tuple[float, int, float]]] = {}
        for key in dict.fromkeys([*other.learned, *other.counts]):
            mine, theirs = self.learned.get(key), other.learned.get(key)
            numbers = [(x, classes[c], weight) for x, c, weight in theirs.waiting] if theirs else []
            known = theirs is None or (mine is not None and theirs.fixed in {None, mine.fixed})
            ranges = self.ranges(key)
            if known and ranges is not None:
                taken = amounts[key] = np.zeros_like(ranges.counts)
                if key in other.counts:
                    taken[:, list(classes)] = other.counts[key]
                for x, c, weight in numbers:
                    taken[(ranges.edges.value(x) or 1) - 1, c] += weight
                known = bool((ranges.counts >= taken * (1 - WEIGHT_ROUNDING)).all())
            elif known:
                waiting[key] = numbers
                known = (
                    key not in other.counts
                    and mine is not None
                    and not Counter(numbers) - Counter(mine.waiting)
                )
            if not known:
                raise ValueError(
                    f"{key!r} was learned less often here than in the model to subtract, or with different "
                    "bin edges; nothing was subtracted"
                )
        return amounts, waiting

    def digest(self, view: str, classes: Sequence[str]) -> Digest:
        """Return the digest of counts, edges and waiting numbers."""
        digest = Digest()
        for key, learned in self.learned.items():
            digest.add_digest(learned.digest(view, key, classes))
        for key, counts in self.counts.items():
            for value, row in enumerate(counts.tolist()):
                for class_name, n in zip(classes, row, strict=True):
                    if n:
                        digest.add(statement("bin", view, key, str(value), class_name), n)
        return digest

    def freeze(self, prefix: str) -> dict[str, Section]:
        """Return the statistic as arrays, which later learning does not change.

        Returns
        -------
        dict of str to ndarray
            Each key begins with `prefix`. ``_names`` uint8 (B,), a JSON list of the names with the number of
            their ranges (0 before their edges settle); ``_counts`` float64 (all ranges, C); for the i-th name
            with learned edges ``_i_edges`` and ``_i_waiting``, described at `LearnedEdges.freeze`.
        """
        names = list(dict.fromkeys([*self.learned, *self.counts]))
        sizes = [[key, len(self.counts.get(key, ()))] for key in names]
        arrays = [self.counts[key] for key in names if key in self.counts]
        sections: dict[str, Section] = {
            f"{prefix}_names": np.frombuffer(orjson.dumps(sizes), np.uint8),
            f"{prefix}_counts": np.concatenate(arrays) if arrays else np.empty((0, self._n_classes)),
        }
        for i, key in enumerate(names):
            if key in self.learned:
                sections |= self.learned[key].freeze(f"{prefix}_{i}")
        return sections

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:
        """Restore the statistic from the arrays of `freeze`, after checking them.

        Raises
        ------
        SnapshotError
            The arrays do not hold counts of these ranges and that many classes; nothing was changed.
        """
        counts = counted(sections, f"{prefix}_counts", (None, n_classes))
        learned: dict[str, LearnedEdges] = {}
        found: dict[str, Floats] = {}
        start = 0
        for i, (key, size) in enumerate(_names(sections, prefix)):
            edges = self._edges
            if edges is None:
                learned[key] = LearnedEdges(self._bins, self._warm_up)
                learned[key].restore(sections, n_classes, f"{prefix}_{i}")
                edges = learned[key].fixed
            wanted = 0 if edges is None else len(edges.edges) + 1
            if size not in {0, wanted} or key in found or start + size > len(counts):
                raise SnapshotError(f"Section `{prefix}_counts` does not hold the ranges of {key!r}.", HINT)
            if size:
                found[key] = counts[start : start + size].copy()
            start += size
        if start != len(counts):
            raise SnapshotError(f"Section `{prefix}_counts` holds ranges that belong to no name.", HINT)
        self._n_classes, self.learned, self.counts = n_classes, learned, found

    def _count(self, key: str, edges: FixedEdges, value: int | None, c: int, weight: float) -> None:
        assert value is not None
        if key not in self.counts:
            self.counts[key] = np.zeros((len(edges.edges) + 1, self._n_classes))
        self.counts[key][value - 1, c] += weight

    def _count_all(self, key: str, counted: Sequence[BinnedNumber]) -> None:
        edges = self.learned[key].fixed
        for label, c, weight in counted:
            assert edges is not None
            self._count(key, edges, edges.labels().index(label) + 1, c, weight)

    def _forget(self, key: str) -> None:
        if not self.counts[key].any():
            del self.counts[key]


def _names(sections: Sections, prefix: str) -> list[tuple[str, int]]:
    try:
        names = orjson.loads(section(sections, f"{prefix}_names", np.uint8).tobytes())
        pairs = [(key, size) for key, size in names if isinstance(key, str) and isinstance(size, int)]
    except (orjson.JSONDecodeError, TypeError, ValueError) as error:
        raise SnapshotError(f"Section `{prefix}_names` is not a list of names and sizes.", HINT) from error
    if len(pairs) != len(names) or any(size < 0 for _, size in pairs):
        raise SnapshotError(f"Section `{prefix}_names` is not a list of names and sizes.", HINT)
    return pairs
