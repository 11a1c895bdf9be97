"""The counts of one view: for each token a count per class, with the totals of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from streamnb.naive_bayes.statistics.budget import DENSE_CLASSES, room_of
from streamnb.naive_bayes.statistics.token_trust import HeldTrust, TokenTrust


class Counted(Protocol):
    """The counts of one view, as the event models read them from the plain or the compiled store."""

    @property
    def rows(self) -> Mapping[str, Sequence[float]]:
        """Return the mapping of each token to its counts per class."""

    @property
    def totals(self) -> Sequence[float]:
        """Return the sum of all counts per class."""

    @property
    def trust(self) -> HeldTrust:
        """Return how far the calibrated head trusts each token."""


class ViewCounts:
    """The counts of one view.

    Parameters
    ----------
    n_classes : int
        Every row has this many counts, in the order in which the classes first appeared.

    Attributes
    ----------
    rows : dict of str to list of float
        Counts per class of each token; at least one of them is above 0.
    totals : list of float
        Per class, the sum of its counts.
    trust : TokenTrust
    text_bytes, cells : int
        What `streamnb.naive_bayes.statistics.budget.charge` is told.

    Examples
    --------
    >>> counts = ViewCounts(n_classes=2)
    >>> counts.add({"free": 2.0, "hi": 1.0}, class_index=1)
    >>> counts.rows["free"], counts.totals, len(counts.rows)
    ([0.0, 2.0], [0.0, 3.0], 2)
    """

    __slots__ = ("cells", "rows", "text_bytes", "totals", "trust")

    def __init__(self, n_classes: int = 0) -> None:
        self.rows: dict[str, list[float]] = {}
        self.totals = [0.0] * n_classes
        self.trust = TokenTrust(self.rows)
        self.text_bytes = self.cells = 0

    def add_class(self) -> None:
        """Append a class without counts."""
        self.totals.append(0.0)
        for row in self.rows.values():
            row.append(0.0)
        if len(self.totals) == DENSE_CLASSES + 1:
            self.measure()

    def measure(self) -> None:
        """Count `text_bytes` and `cells` again, after the rows have changed as a whole."""
        self.text_bytes = sum(len(token.encode()) for token in self.rows)
        self.cells = sum(room_of(counts_in(row)) for row in self.rows.values())

    def add(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Add a message's features, all above 0 and multiplied by its weight, to the counts of one class."""
        rows = self.rows
        n_classes = len(self.totals)
        total = 0.0
        for token, f in features.items():
            n = f * weight
            row = rows.get(token)
            if row is None:
                if n == 0:  # the product underflowed, and a row needs a count above 0
                    continue
                rows[token] = row = [0.0] * n_classes
                self.text_bytes += len(token.encode())
            if n_classes > DENSE_CLASSES and n and row[class_index] == 0.0:
                held = counts_in(row)
                self.cells += room_of(held + 1) - room_of(held)
            row[class_index] += n
            total += n
        self.totals[class_index] += total

    def remove(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Subtract a message's features from the counts of one class.

        Raises
        ------
        ValueError
            A count would fall below 0; nothing was changed.
        """
        rows = self.rows
        for token, f in features.items():
            row = rows.get(token)
            if (row[class_index] if row is not None else 0.0) < f * weight:
                raise ValueError(
                    f"cannot unlearn {token!r}: its learned weight is smaller than the weight to remove; "
                    "nothing was changed"
                )
        total = 0.0
        for token, f in features.items():
            n = f * weight
            if n == 0:
                continue
            row = rows[token]
            before = counts_in(row)
            row[class_index] -= n
            self.cells += room_of(counts_in(row)) - room_of(before)
            total += n
            if not any(row):
                del rows[token]
                self.trust.drop(token)
                self.text_bytes -= len(token.encode())
        if can_subtract(self.totals[class_index], total):
            self.totals[class_index] -= total
        else:
            self.totals[class_index] = sum_of([row[class_index] for row in rows.values()])

    def merge(self, other: ViewCounts, classes: Sequence[int]) -> None:
        """Add the counts of another view; ``classes[j]`` is the index here of its class j."""
        n_classes = len(self.totals)
        for token, counts in other.rows.items():
            row = self.rows.get(token)
            if row is None:
                self.rows[token] = row = [0.0] * n_classes
            for j, n in enumerate(counts):
                row[classes[j]] += n
        for j, n in enumerate(other.totals):
            self.totals[classes[j]] += n
        self.measure()


def counts_in(row: Sequence[float]) -> int:
    """Return the number of counts above 0 in a row; not needed, and 0, with few classes."""
    return len(row) - row.count(0.0) if len(row) > DENSE_CLASSES else 0


def sum_of(row: Sequence[float]) -> float:
    """Return the sum of a row, added from the first class to the last: the order decides the last bit."""
    total = 0.0
    for count in row:
        total += count
    return total


def can_subtract(total: float, amount: float) -> bool:
    """Return whether a sum minus an amount is still the sum of what is left; if not, sum that again.

    Subtracting would leave the rounding error of a heavy weight in the sum. A sum of exact weights has none.
    Beside such a sum a tiny weight may have been lost, which matters once the sum is no longer large.
    """
    return is_exact(total) and is_exact(amount) and 2.0 * amount <= total


def is_exact(total: float) -> bool:
    """Return whether a sum is a multiple of 1/256 and small enough for float64 to be exact."""
    return total < 1 << 45 and (256.0 * total).is_integer()
