"""Moments of named numbers: the statistic of a view that reads any number of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import orjson

from streamnb.base import HINT, Digest, Section, Sections, floats, section, statement
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.statistics.decay import WEIGHT_ROUNDING
from streamnb.naive_bayes.statistics.moments import Moments, check_moments


class NumberBlock:
    """Moments of any number of named numbers; a new name may appear at any time.

    Parameters
    ----------
    n_classes : int
    kind : type of Moments
        The plain class or its compiled twin.

    Attributes
    ----------
    numbers : dict of str to Moments
        The moments of each name; only names with a learned number.

    Examples
    --------
    >>> flowers = NumberBlock(n_classes=1)
    >>> flowers.add({"length": 5.0, "width": 3.0}, class_index=0)
    >>> flowers.add({"length": 7.0}, class_index=0)
    >>> {name: (m.n, m.mean) for name, m in flowers.numbers.items()}
    {'length': ([2.0], [6.0]), 'width': ([1.0], [3.0])}
    """

    __slots__ = ("_kind", "_n_classes", "numbers")

    def __init__(self, n_classes: int = 0, kind: type[Moments] = Moments) -> None:
        self._n_classes = n_classes
        self._kind = kind
        self.numbers: dict[str, Moments] = {}

    def add_class(self) -> None:
        """Append a class without numbers."""
        self._n_classes += 1
        for moments in self.numbers.values():
            moments.add_class()

    def add(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Learn named numbers, which must be finite."""
        for key, x in features.items():
            moments = self.numbers.get(key)
            if moments is None:
                moments = self.numbers[key] = self._kind(self._n_classes)
            moments.add(x, class_index, weight)

    def check_removable(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Raise ``ValueError`` if fewer of these numbers were learned than `remove` would take."""
        for key in features:
            moments = self.numbers.get(key)
            if moments is None or moments.n[class_index] < weight * (1 - WEIGHT_ROUNDING):
                raise ValueError(
                    f"cannot unlearn {key!r}: its learned weight is smaller than the weight to remove; "
                    "nothing was changed"
                )

    def remove(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Unlearn named numbers. Call `check_removable` first."""
        for key, x in features.items():
            self.numbers[key].remove(x, class_index, weight)
            self._forget(key)

    def fade(self, factor: float) -> None:
        """Multiply all weights, and drop the names whose weight becomes negligible."""
        for key in list(self.numbers):
            self.numbers[key].fade(factor)
            self._forget(key)

    def check_mergeable(self, other: NumberBlock) -> None:
        """Do nothing: the moments of any two blocks can be merged."""

    def merge(self, other: NumberBlock, classes: Sequence[int]) -> None:
        """Add the numbers of another block; ``classes[j]`` is the index here of its class j."""
        for key, moments in other.numbers.items():
            self.numbers.setdefault(key, self._kind(self._n_classes)).merge(moments, classes)

    def check_subtractable(self, other: NumberBlock, classes: Sequence[int]) -> None:
        """Raise ``ValueError`` if the other block has more weight of a number than this one."""
        for key, moments in other.numbers.items():
            self.numbers.get(key, self._kind(self._n_classes)).check_subtractable(moments, classes)

    def subtract(self, other: NumberBlock, classes: Sequence[int]) -> None:
        """Subtract the numbers of another block. Call `check_subtractable` first."""
        for key, moments in other.numbers.items():
            self.numbers[key].subtract(moments, classes)
            self._forget(key)

    def _forget(self, key: str) -> None:
        if not any(self.numbers[key].n):
            del self.numbers[key]

    def digest(self, view: str, classes: Sequence[str]) -> Digest:
        """Return the digest of all numbers' moments."""
        digest = Digest()
        for key, moments in self.numbers.items():
            digest.add_digest(moments.digest(statement(view, key).hex(), classes))
        return digest

    def freeze(self, prefix: str) -> dict[str, Section]:
        """Return the moments as arrays, which later learning does not change.

        Returns
        -------
        dict of str to ndarray
            Each key begins with `prefix`. ``_names`` uint8 (B,), a JSON list; ``_moments`` float64 (3 K, C):
            n, mean and squares of each of the K names.
        """
        names = sorted(self.numbers)  # a name that fades and comes back has another place in each twin
        arrays = [self.numbers[key].freeze() for key in names]
        return {
            f"{prefix}_names": np.frombuffer(orjson.dumps(names), np.uint8),
            f"{prefix}_moments": np.concatenate(arrays) if arrays else np.empty((0, self._n_classes)),
        }

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:
        """Restore the moments from the arrays of `freeze`, after checking them.

        Raises
        ------
        SnapshotError
            The arrays do not hold named moments of that many classes; nothing was changed.
        """
        try:
            names = orjson.loads(section(sections, f"{prefix}_names", np.uint8).tobytes())
        except orjson.JSONDecodeError as error:
            raise SnapshotError("The names of a block of numbers are not JSON.", HINT) from error
        if not isinstance(names, list) or len({key for key in names if isinstance(key, str)}) != len(names):
            raise SnapshotError("The names of a block of numbers are not a list of different strings.", HINT)
        array = floats(sections, f"{prefix}_moments", (3 * len(names), n_classes))
        if bool((array[0::3] < 0).any()) or bool((array[2::3] < 0).any()):
            raise SnapshotError("The moments hold a weight or a sum of squares below 0.", HINT)
        check_moments(f"{prefix}_moments", array[0::3], array[1::3], array[2::3])
        self._n_classes = n_classes
        self.numbers = {key: self._kind(n_classes) for key in names}
        for i, moments in enumerate(self.numbers.values()):
            moments.restore(array[3 * i : 3 * i + 3])
