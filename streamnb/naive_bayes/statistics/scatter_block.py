"""Scatter as a view's statistic: what was learned can be checked, and taken away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from streamnb.naive_bayes.statistics.decay import FORGOTTEN
from streamnb.naive_bayes.statistics.scatter import WEIGHT_ROUNDING, Place, Scatter, present


class ScatterBlock(Scatter):
    """`Scatter`, of which another's sums can be subtracted.

    Examples
    --------
    >>> petals, some = ScatterBlock(n_classes=1), ScatterBlock(n_classes=1)
    >>> petals.add({"length": 1.0, "width": 2.0}, class_index=0)
    >>> for block in (petals, some):
    ...     block.add({"length": 4.0, "width": 3.0}, class_index=0)
    >>> petals.subtract(some, [0])
    >>> petals.means()[1].tolist()
    [[1.0, 2.0]]
    """

    __slots__ = ()

    def __getstate__(self) -> dict[str, object]:
        """All but what was only worked out from the sums."""
        return {slot: getattr(self, slot) for slot in Scatter.__slots__ if slot != "derived"}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for slot, value in state.items():
            setattr(self, slot, value)
        self.derived = {}

    def check_removable(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Raise ``ValueError`` if those numbers were not learned that often, together."""
        values = present(features)
        known = all(key in self.index for key in values)
        if known and values:
            where, _, _ = self._place(values, class_index)
            known = bool((self.n[where] >= weight * (1 - WEIGHT_ROUNDING)).all())
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
                known &= bool((mine >= other.n[(j, *np.ix_(theirs, theirs))] * (1 - WEIGHT_ROUNDING)).all())
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
            n[np.abs(n) <= WEIGHT_ROUNDING * before] = 0.0
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
