"""Scatter: per class, the sums of a block of numbers that a multivariate normal needs.

What a missing coordinate means when it is learned: every sum belongs to a pair of coordinates and runs over
the messages that hold both. A message with a gap teaches all that it has and nothing that it has not, sums
of parts merge and subtract as sums do, and a name met late begins at 0 like any other. With no gaps the
sums are the lectures' mean and scatter matrix. Complete cases alone would forget all that came before a new
name; filling gaps by a guess would make a message's weight depend on what came before it.

Updated by the weighted recurrence of Welford (1962) and West (1979), merged as Chan, Golub and LeVeque
(1979) do, both pair by pair: exact to rounding at any offset.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamnb.base import NUMBER_MAX, Floats, Section, Sections
from streamnb.naive_bayes.statistics import scatter_arrays
from streamnb.naive_bayes.statistics.decay import FORGOTTEN
from streamnb.naive_bayes.statistics.digest import Digest, name
from streamnb.naive_bayes.statistics.inverse_scatter import InverseScatter, Inverted

SCATTER_ROUNDING = 1e-12  # what is left of a weight when as much was taken back, in another order


Place = tuple[int | NDArray[np.intp], ...]
"""Where the pairs of some coordinates of one class stand: an index of `n`, `mean` and `squares`."""


class Sums(NamedTuple):
    """What one class, or all of them about their own means, have summed.

    Parameters
    ----------
    n : ndarray of float64, shape (d, d)
        Summed weight of the messages that hold both coordinates.
    free : ndarray of float64, shape (d, d)
        `n`, less the means that were estimated beyond the first: one for each further class.
    cross : ndarray of float64, shape (d, d)
        ``sum (x_i - mean_i)(x_j - mean_j)`` over them, each about the mean of all its own numbers.
    """

    n: Floats
    free: Floats
    cross: Floats


class Scatter:
    """Sums of a block of numbers, per class; its dimension d grows as names are met.

    Parameters
    ----------
    n_classes : int
    shared : bool
        Which inverse is kept up to date beside the sums: that of all classes' scatter together, or one a
        class. The sums are the same.

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
        Of the summed squares: one, or one a class; see `shared`.
    derived : dict
        What event models have worked out from the sums, which holds until they change.

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
        """All but what was only worked out from the sums."""
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
        """Learn a message's numbers; ``None`` and NaN are missing.

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
        """Take a message's numbers back; a name that nothing is left of goes.

        Raises
        ------
        ValueError
            Less than that was learned; nothing was changed.
        """
        values = present(x)
        if not values:
            return
        if not all(name in self.index for name in values):
            raise ValueError("those numbers were not learned that often; nothing was unlearned")
        where, v, _ = self._place(values, class_index)
        before = self.n[where].copy()
        n = before - weight
        n[np.abs(n) <= SCATTER_ROUNDING * before] = 0.0
        if bool((n < 0).any()):
            raise ValueError("those numbers were not learned that often; nothing was unlearned")
        some = n > 0
        step = np.where(some, v[:, None] - self.mean[where], 0.0)
        per_n = np.divide(weight, n, out=np.zeros_like(n), where=some)
        squares = self.squares[where] - step * step.T * (per_n * before)
        np.fill_diagonal(squares, np.maximum(squares.diagonal(), 0.0))
        self.squares[where] = np.where(some, squares, 0.0)
        self.mean[where] = np.where(some, self.mean[where] - step * per_n, 0.0)
        self.n[where] = n
        self._keep([i for i in range(len(self.names)) if self.n[:, i, i].any()])
        self._changed()

    def merge(self, other: Scatter, classes: Sequence[int]) -> None:
        """Add another's numbers; ``classes[j]`` is this one's index of the other's class j."""
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
        """Raise ``ValueError`` if those numbers were not learned that often, together."""
        values = present(features)
        known = all(key in self.index for key in values)
        if known and values:
            where, _, _ = self._place(values, class_index)
            known = bool((self.n[where] >= weight * (1 - SCATTER_ROUNDING)).all())
        if not known:
            raise ValueError("those numbers were not learned that often; nothing was unlearned")

    def fade(self, factor: float) -> None:
        """Multiply all weights; pairs, and names, of which too little is left go."""
        left = (self.n * factor >= FORGOTTEN / 2) | (factor >= 1.0)
        self.n, self.squares = (np.where(left, sums * factor, 0.0) for sums in (self.n, self.squares))
        self.mean = np.where(left, self.mean, 0.0)
        self._keep([i for i in range(len(self.names)) if self.n[:, i, i].any()])
        self._changed()

    def check_mergeable(self, other: Scatter) -> None:
        """Any two add up."""

    def check_subtractable(self, other: Scatter, classes: Sequence[int]) -> None:
        """Raise ``ValueError`` if another has more numbers than there are."""
        held = [other.names[i] for i in range(len(other.names)) if other.n[:, i, i].any()]
        known = all(key in self.index for key in held)
        if known and held:
            at = [self.index[key] for key in held]
            theirs = [other.index[key] for key in held]
            for j, c in enumerate(classes):
                mine = self.n[(c, *np.ix_(at, at))]
                known &= bool((mine >= other.n[(j, *np.ix_(theirs, theirs))] * (1 - SCATTER_ROUNDING)).all())
        if not known:
            raise ValueError("more numbers were to be taken away than were learned; nothing was")

    def subtract(self, other: Scatter, classes: Sequence[int]) -> None:
        """Take another's numbers away; `check_subtractable` let them pass."""
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
            step = (self.mean[where] - other.mean[there]) * grown  # from the other's mean to what is left
            share = np.divide(n * taken, before, out=np.zeros_like(n), where=some)
            squares = self.squares[where] - other.squares[there] - step * step.T * share
            np.fill_diagonal(squares, np.maximum(squares.diagonal(), 0.0))
            self.squares[where] = np.where(some, squares, 0.0)
            self.mean[where] = np.where(some, other.mean[there] + step, 0.0)
            self.n[where] = n
        self._keep([i for i in range(len(self.names)) if self.n[:, i, i].any()])
        self._changed()

    def means(self) -> tuple[Floats, Floats]:
        """Summed weights and mean of each coordinate, each of shape (C, d)."""
        return np.diagonal(self.n, axis1=1, axis2=2), np.diagonal(self.mean, axis1=1, axis2=2)

    def pooled(self) -> tuple[Floats, Floats, Floats]:
        """Summed weights, mean and variance of all classes' numbers about it, each of shape (d,)."""
        n, mean = self.means()
        total = n.sum(axis=0)
        if not len(n):
            return total, total, total
        per_n = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        most = mean[n.argmax(axis=0), np.arange(len(total))]  # counted from there, equal means stay equal
        common = most + (n * (mean - most)).sum(axis=0) * per_n
        squares = np.diagonal(self.squares, axis1=1, axis2=2) + n * (mean - common) ** 2
        return total, common, squares.sum(axis=0) * per_n

    def sums(self, class_index: int | None = None, scale: float = 1.0) -> Sums:
        """The sums of one class, or (``None``) those of all classes, each about its own means.

        `scale` is what one message weighs: so much is taken off for each mean.
        """
        c = slice(None) if class_index is None else slice(class_index, class_index + 1)
        n, mean = self.n[c], self.mean[c]
        off = np.where(n > 0, mean - np.diagonal(mean, axis1=1, axis2=2)[:, :, None], 0.0)
        cross = self.squares[c] + n * off * off.transpose(0, 2, 1)
        total = n.sum(axis=0)
        return Sums(total, total - ((n > 0).sum(axis=0) - 1.0) * scale, cross.sum(axis=0))

    def inverse_of(self, class_index: int | None, scale: float = 1.0) -> Inverted | None:
        """The inverse that is kept of one class's summed squares or (``None``) of all classes', if it is."""
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
        """The digest of all classes' sums, by the names of classes and coordinates; blind to their order."""
        digest = Digest()
        ordered = sorted(self.names)
        for c, class_name in enumerate(classes):
            for k, a in enumerate(ordered):
                i = self.index[a]
                for b in ordered[k:]:
                    j = self.index[b]
                    if self.n[c, i, j]:
                        means = self.mean[c, i, j], self.mean[c, j, i]
                        statement = name("scatter", view, class_name, a, b)
                        digest.add(statement, self.n[c, i, j], *means, self.squares[c, i, j])
        return digest

    def freeze(self, prefix: str) -> dict[str, Section]:
        """The sums as arrays that no later learning changes; see `scatter_arrays.freeze`."""
        return scatter_arrays.freeze(self, prefix)

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:
        """Take the place of what `freeze` gave, checked.

        Raises
        ------
        SnapshotError
            The arrays are not the sums of that many classes; nothing was changed.
        """
        kept = scatter_arrays.checked(sections, n_classes, prefix, shared=self.shared)
        self._rename(kept.names)
        self.n, self.mean, self.squares, self.inverses = kept.n, kept.mean, kept.squares, kept.inverses
        self.derived.clear()

    def _place(self, values: Mapping[str, float], c: int) -> tuple[Place, Floats, bool]:
        """Where a message's pairs stand, its numbers in that order, and whether none is missing."""
        at = np.array([self.index[name] for name in values])
        v = np.fromiter(values.values(), np.float64, len(values))
        if len(at) < len(self.names):
            return (c, *np.ix_(at, at)), v, False
        full = np.empty(len(at))
        full[at] = v
        return (c,), full, True

    def _follow(self, c: int, step: Floats | None, factor: float) -> None:
        """Keep the inverse of the class's sums up to date; a gap (``None``) ends it."""
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
        """The summed squares, where there are no gaps and more messages than coordinates and means."""
        mine = self.n if group is None else self.n[group : group + 1]
        if bool((mine != mine[:, :1, :1]).any()):
            return None
        sums = self.sums(group)
        return sums.cross if sums.free[0, 0] > len(self.names) else None

    def _grow(self, new: Sequence[str]) -> None:
        if not new:
            return
        for one in new:
            one.encode()  # what UTF-8 cannot hold no snapshot can: refused before anything changes
        more = ((0, 0), (0, len(new)), (0, len(new)))
        self.n, self.mean, self.squares = (np.pad(a, more) for a in (self.n, self.mean, self.squares))
        self._rename([*self.names, *new])
        self._changed()

    def _keep(self, at: Sequence[int]) -> None:
        if len(at) < len(self.names):
            here = np.ix_(range(len(self.n)), at, at)
            self.n, self.mean, self.squares = self.n[here], self.mean[here], self.squares[here]
            self._rename([self.names[i] for i in at])

    def _rename(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.index = {one: i for i, one in enumerate(self.names)}

    def _changed(self) -> None:
        for inverse in self.inverses:
            inverse.reset()
        self.derived.clear()


def present(x: Mapping[str, float | None]) -> dict[str, float]:
    """The numbers that are there: neither ``None`` nor NaN.

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
            raise ValueError(f"{one!r} must be a number within 1e100, not {value!r}")
    return values
