"""Scatter: per class, the sums over a block of numbers that a multivariate normal needs.

Messages may lack coordinates. Therefore every sum belongs to a pair of coordinates and runs over the messages
that hold both: a message with a gap adds to the pairs it has, sums of parts merge and subtract, and a name
that appears late begins at 0. Without gaps the sums are the usual mean and scatter matrix. Using complete
messages only would discard everything before a new name appeared; filling gaps with a guess would make a
message's effect depend on earlier ones.

Each pair is updated by the weighted recurrence of Welford (1962) and West (1979) and merged as in Chan, Golub
and LeVeque (1979): exact to rounding at any offset of the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamnb.base import NUMBER_MAX, Digest, Floats, Section, Sections, statement
from streamnb.naive_bayes.statistics import scatter_arrays
from streamnb.naive_bayes.statistics.decay import FORGOTTEN
from streamnb.naive_bayes.statistics.inverse_scatter import InverseScatter, Inverted
from streamnb.naive_bayes.statistics.moments import within
from streamnb.naive_bayes.statistics.pair_weights import NOT_LEARNED, SCATTER_ROUNDING, covers, settle

Place = tuple[int | NDArray[np.intp], ...]
"""The index into `n`, `mean` and `squares` of all pairs of some coordinates, for one class."""


class Sums(NamedTuple):
    """Sums of one class, or of all classes with each class about its own means.

    Parameters
    ----------
    n : ndarray of float64, shape (d, d)
        Summed weight of the messages that hold both coordinates.
    free : ndarray of float64, shape (d, d)
        `n` minus the number of classes beyond the first: each class estimates a mean of its own.
    cross : ndarray of float64, shape (d, d)
        ``sum (x_i - mean_i)(x_j - mean_j)`` over these messages; a mean is of all numbers of its coordinate.
    """

    n: Floats
    free: Floats
    cross: Floats


class Scatter:
    """The sums of a block of numbers, per class. Its dimension d grows when a new name appears.

    Parameters
    ----------
    n_classes : int
    shared : bool
        Whether one inverse is kept beside the sums, of all classes' scatter together, or one per class. The
        sums are the same in both cases.

    Attributes
    ----------
    names : list of str
        The d coordinates, in order of appearance.
    n : ndarray of float64, shape (C, d, d)
        Per class and pair of coordinates, the summed weight of the messages that hold both.
    mean : ndarray of float64, shape (C, d, d)
        ``mean[c, i, j]``: the mean of coordinate i over those messages.
    squares : ndarray of float64, shape (C, d, d)
        ``sum (x_i - mean[c, i, j]) (x_j - mean[c, j, i])`` over them.
    inverses : list of InverseScatter
        The inverses of the summed squares: one, or one per class; see `shared`.
    derived : dict
        A cache for event models: values computed from the sums. It is cleared when the sums change.

    Examples
    --------
    >>> petals = Scatter(n_classes=1)
    >>> petals.add({"length": 1.4, "width": 0.2}, class_index=0)
    >>> petals.add({"length": 1.6, "width": 0.4}, class_index=0)
    >>> petals.add({"length": 3.0, "width": None}, class_index=0)
    >>> petals.n[0].tolist(), petals.squares[0].round(6).tolist()
    ([[3.0, 2.0], [2.0, 2.0]], [[1.52, 0.02], [0.02, 0.02]])
    >>> petals, some = Scatter(n_classes=1), Scatter(n_classes=1)
    >>> petals.add({"length": 1.0, "width": 2.0}, class_index=0)
    >>> for block in (petals, some):
    ...     block.add({"length": 4.0, "width": 3.0}, class_index=0)
    >>> petals.subtract(some, [0])
    >>> petals.means()[1].tolist()
    [[1.0, 2.0]]
    """

    __slots__ = ("derived", "index", "inverses", "mean", "n", "names", "shared", "squares")

    def __init__(self, n_classes: int = 0, *, shared: bool = True) -> None:
        self.shared = shared
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.n, self.mean, self.squares = (np.zeros((n_classes, 0, 0)) for _ in range(3))
        self.inverses = [InverseScatter() for _ in range(1 if shared else n_classes)]
        self.derived: dict[object, object] = {}

    def __getstate__(self) -> dict[str, object]:
        """Return everything except the cache."""
        return {slot: getattr(self, slot) for slot in Scatter.__slots__ if slot != "derived"}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for slot, value in state.items():
            setattr(self, slot, value)
        self.derived = {}

    def add_class(self) -> None:
        """Append a class without numbers."""
        empty = np.zeros((1, *self.n.shape[1:]))
        self.n, self.mean, self.squares = (
            np.concatenate([sums, empty]) for sums in (self.n, self.mean, self.squares)
        )
        if not self.shared:
            self.inverses.append(InverseScatter())
        self.derived.clear()

    def add(self, x: Mapping[str, float | None], class_index: int, weight: float = 1.0) -> None:
        """Add a message's numbers; ``None`` and NaN are missing.

        Raises
        ------
        ValueError
            A number is infinite or beyond 1e100; nothing was changed.
        """
        values = present(x)
        if not values:
            return
        self._grow([name for name in values if name not in self.index])
        where, v, whole = self._place(values, class_index)
        n, mean = self.n[where], self.mean[where]
        after = n + weight
        step = v[:, None] - mean
        share = weight * n / after
        diagonal_step, factor = step.diagonal().copy(), float(share[0, 0])
        self.squares[where] += step * step.T * share
        self.mean[where] = mean + step * (weight / after)
        self.n[where] = after
        self.derived.clear()
        self._follow(class_index, diagonal_step if whole else None, factor)

    def remove(self, x: Mapping[str, float | None], class_index: int, weight: float = 1.0) -> None:
        """Subtract a message's numbers; a name without weight is dropped.

        Raises
        ------
        ValueError
            Less than `weight` was learned of a pair of these numbers; nothing was changed.
        """
        values = present(x)
        if not values:
            return
        if not all(name in self.index for name in values):
            raise ValueError(NOT_LEARNED)
        where, v, _ = self._place(values, class_index)
        before = self.n[where].copy()
        n = before - weight
        n[np.abs(n) <= SCATTER_ROUNDING * before] = 0.0
        if bool((n < 0).any()):
            raise ValueError(NOT_LEARNED)
        some = n > 0
        step = np.where(some, v[:, None] - self.mean[where], 0.0)
        per_n = np.divide(weight, n, out=np.zeros_like(n), where=some)
        squares = self.squares[where] - step * step.T * (per_n * before)
        np.fill_diagonal(squares, np.maximum(squares.diagonal(), 0.0))
        self.squares[where] = np.where(some, squares, 0.0)
        self.mean[where] = np.where(some, within(self.mean[where] - step * per_n), 0.0)
        self.n[where] = n
        settle(self.n[class_index], self.mean[class_index])
        self._drop_forgotten()

    def merge(self, other: Scatter, classes: Sequence[int]) -> None:
        """Add the numbers of another scatter; ``classes[j]`` is the index here of its class j."""
        self._grow([name for name in other.names if name not in self.index])
        at = [self.index[name] for name in other.names]
        for j, c in enumerate(classes):
            where: Place = (c, *np.ix_(at, at))
            n, theirs = self.n[where], other.n[j]
            together = n + theirs
            step = other.mean[j] - self.mean[where]
            share = np.divide(theirs, together, out=np.zeros_like(n), where=together > 0)
            self.squares[where] += other.squares[j] + step * step.T * (n * share)
            self.mean[where] += step * share
            self.n[where] = together
        self._changed()

    def check_removable(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Raise ``ValueError`` if less of these numbers was learned, or one always came with another."""
        values = present(features)
        known = all(key in self.index for key in values)
        if known and values:
            where, _, _ = self._place(values, class_index)
            taken = np.zeros_like(self.n[class_index])
            taken[where[1:]] = weight
            known = covers(self.n[class_index], taken)
        if not known:
            raise ValueError(NOT_LEARNED)

    def fade(self, factor: float) -> None:
        """Multiply all weights, and drop the pairs and names whose weight becomes negligible."""
        left = (self.n * factor >= FORGOTTEN / 2) | (factor >= 1.0)
        self.n, self.squares = (np.where(left, sums * factor, 0.0) for sums in (self.n, self.squares))
        self.mean = np.where(left, self.mean, 0.0)
        self._drop_forgotten()

    def check_mergeable(self, other: Scatter) -> None:
        """Do nothing: any two scatters can be merged."""

    def check_subtractable(self, other: Scatter, classes: Sequence[int]) -> None:
        """Raise ``ValueError`` if the other scatter has more weight of some pair than this one."""
        held = [other.names[i] for i in range(len(other.names)) if other.n[:, i, i].any()]
        known = all(key in self.index for key in held)
        if known and held:
            at, theirs = ([block.index[key] for key in held] for block in (self, other))
            for j, c in enumerate(classes):
                taken = np.zeros_like(self.n[c])
                taken[np.ix_(at, at)] = other.n[j][np.ix_(theirs, theirs)]
                known &= covers(self.n[c], taken)
        if not known:
            raise ValueError("more numbers would be subtracted than were learned; nothing was subtracted")

    def subtract(self, other: Scatter, classes: Sequence[int]) -> None:
        """Subtract the numbers of another scatter. Call `check_subtractable` first."""
        held = [key for i, key in enumerate(other.names) if other.n[:, i, i].any()]
        at, theirs = [self.index[key] for key in held], [other.index[key] for key in held]
        for j, c in enumerate(classes):
            where: Place = (c, *np.ix_(at, at))
            there: Place = (j, *np.ix_(theirs, theirs))
            before, taken = self.n[where], other.n[there]
            n = before - taken
            n[np.abs(n) <= SCATTER_ROUNDING * before] = 0.0
            some = n > 0
            grown = np.divide(before, n, out=np.zeros_like(n), where=some)
            step = (self.mean[where] - other.mean[there]) * grown  # remaining mean minus the other's mean
            share = np.divide(n * taken, before, out=np.zeros_like(n), where=some)
            squares = self.squares[where] - other.squares[there] - step * step.T * share
            np.fill_diagonal(squares, np.maximum(squares.diagonal(), 0.0))
            self.squares[where] = np.where(some, squares, 0.0)
            self.mean[where] = np.where(some, within(other.mean[there] + step), 0.0)
            self.n[where] = n
            settle(self.n[c], self.mean[c])
        self._drop_forgotten()

    def means(self) -> tuple[Floats, Floats]:
        """Return the summed weight and the mean of each coordinate, both of shape (C, d)."""
        return np.diagonal(self.n, axis1=1, axis2=2), np.diagonal(self.mean, axis1=1, axis2=2)

    def pooled(self) -> tuple[Floats, Floats, Floats]:
        """Return weight, common mean and variance about it of all classes' numbers, each of shape (d,)."""
        n, mean = self.means()
        total = n.sum(axis=0)
        if not len(n):
            return total, total, total
        per_n = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        heaviest = mean[n.argmax(axis=0), np.arange(len(total))]  # as the origin it keeps equal means equal
        common = heaviest + (n * (mean - heaviest)).sum(axis=0) * per_n
        squares = np.diagonal(self.squares, axis1=1, axis2=2) + n * (mean - common) ** 2
        return total, common, squares.sum(axis=0) * per_n

    def sums(self, class_index: int | None = None, scale: float = 1.0) -> Sums:
        """Return the sums of one class, or (``None``) of all classes, each about its own means.

        `scale` is the current weight of one message, which `Sums.free` loses for each further class.
        """
        c = slice(None) if class_index is None else slice(class_index, class_index + 1)
        n, mean = self.n[c], self.mean[c]
        off = np.where(n > 0, mean - np.diagonal(mean, axis1=1, axis2=2)[:, :, None], 0.0)
        cross = self.squares[c] + n * off * off.transpose(0, 2, 1)
        total = n.sum(axis=0)
        return Sums(total, total - ((n > 0).sum(axis=0) - 1.0) * scale, cross.sum(axis=0))

    def inverse_of(self, class_index: int | None, scale: float = 1.0) -> Inverted | None:
        """Return the inverse kept for one class or (``None``) for all classes; ``None`` if there is none."""
        if self.shared != (class_index is None):
            return None
        inverse = self.inverses[class_index or 0]
        if inverse.matrix is None:
            return None
        c = slice(None) if class_index is None else slice(class_index, class_index + 1)
        n = self.n[c, 0, 0]
        free = float(n.sum() - (np.count_nonzero(n) - 1) * scale)
        diagonal = np.diagonal(self.squares[c], axis1=1, axis2=2).sum(axis=0)
        return Inverted(inverse.matrix, inverse.log_det, float(n.sum()), free, diagonal)

    def digest(self, view: str, classes: Sequence[str]) -> Digest:
        """Return the digest of all sums; the order of classes and coordinates does not matter."""
        digest = Digest()
        ordered = sorted(self.names)
        for c, class_name in enumerate(classes):
            for k, a in enumerate(ordered):
                i = self.index[a]
                for b in ordered[k:]:
                    j = self.index[b]
                    if self.n[c, i, j]:
                        means = self.mean[c, i, j], self.mean[c, j, i]
                        said = statement("scatter", view, class_name, a, b)
                        digest.add(said, self.n[c, i, j], *means, self.squares[c, i, j])
        return digest

    def freeze(self, prefix: str) -> dict[str, Section]:
        """Return the sums as arrays, which later learning does not change; see `scatter_arrays.freeze`."""
        sums = scatter_arrays.ScatterArrays(self.names, self.n, self.mean, self.squares, self.inverses)
        return scatter_arrays.freeze(sums, prefix)

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:
        """Restore the sums from the arrays of `freeze`, after checking them.

        Raises
        ------
        SnapshotError
            The arrays do not hold the sums of that many classes; nothing was changed.
        """
        kept = scatter_arrays.checked(sections, n_classes, prefix, shared=self.shared)
        self._rename(kept.names)
        self.n, self.mean, self.squares, self.inverses = kept.n, kept.mean, kept.squares, kept.inverses
        self.derived.clear()

    def _place(self, values: Mapping[str, float], c: int) -> tuple[Place, Floats, bool]:
        """Return the index of a message's pairs, its numbers in that order, and whether none is missing."""
        at = np.array([self.index[name] for name in values])
        v = np.fromiter(values.values(), np.float64, len(values))
        if len(at) < len(self.names):
            return (c, *np.ix_(at, at)), v, False
        full = np.empty(len(at))
        full[at] = v
        return (c,), full, True

    def _follow(self, c: int, step: Floats | None, factor: float) -> None:
        """Update the inverse after a message was added to class c; after a gap (``None``) there is none."""
        group = None if self.shared else c
        inverse = self.inverses[group or 0]
        if step is None:
            inverse.matrix = None
        else:
            inverse.add(step, factor)
            mine = self.squares if self.shared else self.squares[c : c + 1]
            inverse.check(np.diagonal(mine, axis1=1, axis2=2).sum(axis=0))
        inverse.age += 1
        if inverse.age >= len(self.names):
            inverse.renew(self._complete(group))

    def _complete(self, group: int | None) -> Floats | None:
        """Return the summed squares if no coordinate is missing and messages suffice; else ``None``."""
        mine = self.n if group is None else self.n[group : group + 1]
        if bool((mine != mine[:, :1, :1]).any()):
            return None
        sums = self.sums(group)
        return sums.cross if sums.free[0, 0] > len(self.names) else None

    def _grow(self, new: Sequence[str]) -> None:
        if not new:
            return
        for one in new:
            one.encode()  # raises, before anything changes, if no snapshot could hold the name
        more = ((0, 0), (0, len(new)), (0, len(new)))
        self.n, self.mean, self.squares = (np.pad(a, more) for a in (self.n, self.mean, self.squares))
        self._rename([*self.names, *new])
        self._changed()

    def _drop_forgotten(self) -> None:
        at = [i for i in range(len(self.names)) if self.n[:, i, i].any()]
        if len(at) < len(self.names):
            here = np.ix_(range(len(self.n)), at, at)
            self.n, self.mean, self.squares = self.n[here], self.mean[here], self.squares[here]
            self._rename([self.names[i] for i in at])
        self._changed()

    def _rename(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.index = {one: i for i, one in enumerate(self.names)}

    def _changed(self) -> None:
        for inverse in self.inverses:
            inverse.reset()
        self.derived.clear()


def present(x: Mapping[str, float | None]) -> dict[str, float]:
    """Return the numbers that are not missing, that is neither ``None`` nor NaN.

    Raises
    ------
    ValueError
        A number is infinite or beyond 1e100.

    Examples
    --------
    >>> present({"length": 1.4, "width": None})
    {'length': 1.4}
    """
    values = {name: float(v) for name, v in x.items() if v is not None and not math.isnan(v)}
    for one, value in values.items():
        if not abs(value) <= NUMBER_MAX:
            raise ValueError(f"{one!r} must be a number from -1e100 to 1e100, not {value!r}")
    return values
