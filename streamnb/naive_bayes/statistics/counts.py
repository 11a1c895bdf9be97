"""The count store: for each view and token a count per class, with the totals of each view and class.

Two rules hold. Scoring never changes a store. A token whose counts are all zero has left the vocabulary.

Counts are float64. The engine uses weights that are multiples of 1/256, so every sum below 2^45 is exact and
does not depend on the order in which messages were learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from streamnb.base import Digest, Section, Sections, section, statement
from streamnb.naive_bayes.statistics.budget import DENSE_CLASSES, cells_for, charge, room_of
from streamnb.naive_bayes.statistics.count_arrays import arrays_of, checked, located, rows_of, twice
from streamnb.naive_bayes.statistics.decay import fade_rows


class Counted(Protocol):
    """The counts of one view, as the event models read them from the plain or the compiled store."""

    @property
    def rows(self) -> Mapping[str, Sequence[float]]:
        """Return the mapping of each token to its counts per class."""

    @property
    def totals(self) -> Sequence[float]:
        """Return the sum of all counts per class."""


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
    text_bytes, cells : int
        What `streamnb.naive_bayes.statistics.budget.charge` is told.

    Examples
    --------
    >>> counts = ViewCounts(n_classes=2)
    >>> counts.add({"free": 2.0, "hi": 1.0}, class_index=1)
    >>> counts.rows["free"], counts.totals, len(counts.rows)
    ([0.0, 2.0], [0.0, 3.0], 2)
    """

    __slots__ = ("cells", "rows", "text_bytes", "totals")

    def __init__(self, n_classes: int = 0) -> None:
        self.rows: dict[str, list[float]] = {}
        self.totals = [0.0] * n_classes
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
                raise ValueError(f"less of {token!r} was learned than would be removed; nothing was changed")
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


class CountStore:
    """The counts of all views that count tokens.

    Parameters
    ----------
    views : sequence of str
        The names of the views.
    max_tokens : int, optional
        The largest number of tokens in all views together; see `make_room`.
    bytes_max : int, optional
        The most memory that the counts may be charged for, in bytes; see `make_room`.

    Attributes
    ----------
    evicted_tokens : int
        Number of tokens evicted so far.
    evicted_mass : float
        Sum of the counts that were evicted with them.
    fell_short : int
        Tokens whose count was smaller than the amount to unlearn, because eviction had removed part of it.

    Examples
    --------
    >>> store = CountStore(["words"])
    >>> store.add_class()
    >>> store["words"].add({"free": 1.0}, class_index=0)
    >>> store["words"].rows
    {'free': [1.0]}
    """

    def __init__(
        self, views: Sequence[str], max_tokens: int | None = None, bytes_max: int | None = None
    ) -> None:
        self.views = {view: ViewCounts() for view in views}
        self.max_tokens = max_tokens
        self.bytes_max = bytes_max
        self.evicted_tokens = 0
        self.evicted_mass = 0.0
        self.fell_short = 0

    def __getitem__(self, view: str) -> ViewCounts:
        return self.views[view]

    def __iter__(self) -> Iterator[str]:
        return iter(self.views)

    def __len__(self) -> int:
        return sum(len(counts.rows) for counts in self.views.values())

    def make_room(self, features: Mapping[str, Mapping[str, float]]) -> None:
        """Evict rare tokens until the new tokens of a message fit under `max_tokens` and `bytes_max`.

        One sweep evicts a sixteenth of the tokens, so that sweeps are rare. The order of eviction is a
        function of the counts and of the order in which tokens came, so the same stream always leaves the
        same vocabulary. A message that does not fit into an empty store is learned all the same.

        Parameters
        ----------
        features : mapping of str to mapping
            The message's weighted tokens of each view.
        """
        while n := self.surplus(features):
            self.evict(n)

    def surplus(self, features: Mapping[str, Mapping[str, float]]) -> int:
        """Return how many tokens to evict before a message with these features is learned."""
        if self.max_tokens is None and self.bytes_max is None:
            return 0
        new = [t for view, tokens in features.items() for t in tokens if t not in self[view].rows]
        n, held = 0, len(self)
        if self.max_tokens is not None and held + len(new) > self.max_tokens:
            n = max(self.max_tokens // 16, held + len(new) - self.max_tokens)
        if self.bytes_max is not None:
            rows = [self[view].rows.get(t) for view, tokens in features.items() for t in tokens]
            cells = sum(cells_for(counts_in(row) if row is not None else 0) for row in rows)
            if self.charge(len(new), sum(len(token.encode()) for token in new), cells) > self.bytes_max:
                n = max(n, held // 16, 1)
        return min(n, held)

    def charge(self, tokens: int = 0, text_bytes: int = 0, cells: int = 0) -> int:
        """Return the bytes charged to the budget, with as many more tokens, bytes of text and cells."""
        for view in self.views.values():
            tokens += len(view.rows)
            text_bytes += view.text_bytes
            cells += view.cells
        n_classes = max((len(view.totals) for view in self.views.values()), default=0)
        return charge(tokens, text_bytes, cells, n_classes)

    def check_index(self) -> None:
        """Do nothing: a dict needs no check. The compiled store looks up every token in its hash table."""

    def evict(self, n: int) -> None:
        """Evict the `n` tokens with the smallest counts, and correct the totals.

        Of equal counts the oldest go first: a token's age is the share of its view's tokens that are older. A
        hash would let a sender choose words that stay.
        """
        ranked = sorted(
            (sum_of(row), (position << 32) // len(counts.rows), i, token)
            for i, counts in enumerate(self.views.values())
            for position, (token, row) in enumerate(counts.rows.items())
        )
        names = list(self.views)
        each = ((view, c, n) for view in self for c, n in enumerate(self[view].totals))
        rounded = {(view, c) for view, c, total in each if not is_exact(total)}
        for _, _, i, token in ranked[:n]:
            view = names[i]
            counts = self.views[view]
            row = counts.rows.pop(token)
            for c, count in enumerate(row):
                counts.totals[c] = max(0.0, counts.totals[c] - count)
                if not is_exact(count):
                    rounded.add((view, c))
            self.evicted_mass += sum_of(row)
        for view, c in rounded:  # subtracting would leave the rounding error of a heavy weight in the total
            self[view].totals[c] = sum_of([row[c] for row in self[view].rows.values()])
        for counts in self.views.values():
            counts.measure()
        self.evicted_tokens += n

    def add_class(self) -> None:
        """Append a class to every view."""
        for counts in self.views.values():
            counts.add_class()

    def fade(self, factor: float) -> None:
        """Multiply all counts, and drop the tokens whose counts become negligible."""
        for counts in self.views.values():
            fade_rows(counts.rows, counts.totals, factor)
            counts.measure()

    def merge(self, other: CountStore, classes: Sequence[int]) -> None:
        """Add the counts of another store with the same views; see `ViewCounts.merge`."""
        for view, counts in self.views.items():
            counts.merge(other[view], classes)

    def digest(self, classes: Sequence[str], sections: Sections | None = None) -> Digest:
        """Return the digest of all rows and totals.

        Parameters
        ----------
        classes : sequence of str
            The names of the classes, in order.
        sections : mapping of str to ndarray, optional
            Arrays of `freeze`. If given, their digest is returned, not that of the current counts. Nothing
            that learning changes is read then, so another thread may call this during learning.
        """
        digest = Digest()
        views = list(self.views)
        for view, token, row in self._rows() if sections is None else rows_of(located(sections)):
            for class_name, n in zip(classes, row, strict=True):
                if n:
                    digest.add(statement("count", views[view], token, class_name), n)
        if sections is None:
            totals = [counts.totals for counts in self.views.values()]
        else:
            totals = section(sections, "totals", np.float64).tolist()
        for view_name, view_totals in zip(views, totals, strict=True):
            for class_name, n in zip(classes, view_totals, strict=True):
                if n:
                    digest.add(statement("total", view_name, class_name), n)
        return digest

    def freeze(self) -> dict[str, Section]:
        """Return the store as arrays, which later learning does not change; rows in order of view and age.

        Returns
        -------
        dict of str to ndarray
            ``token_bytes`` uint8 (B,), the UTF-8 of all tokens end to end; ``token_bounds`` uint64 (T + 1,),
            0 and then for each token 256 times its end in ``token_bytes`` plus the number of its view;
            ``totals`` float64 (views, C). With up to 8 classes, ``counts`` float64 (T, C). With more, only
            the counts above 0: ``cell_bounds`` uint32 (T + 1,), 0 and then for each token where its cells
            end; ``cell_classes`` uint32 (cells,), rising within a token; ``cell_counts`` float64 (cells,).

        Notes
        -----
        The compiled twin adds its hash table, so that it need not be rebuilt; this store ignores it:
        ``index`` uint32 (slots,); ``index_before`` uint32 (slots,), only while a table grows; and
        ``index_state`` uint64 (4,): version of the hash, seed, rows moved, rows moving.
        """
        n_classes = len(next(iter(self.views.values())).totals) if self.views else 0
        tokens = [token.encode() for counts in self.views.values() for token in counts.rows]
        rows = [row for counts in self.views.values() for row in counts.rows.values()]
        bounds = np.zeros(len(tokens) + 1, np.uint64)
        np.cumsum(np.fromiter(map(len, tokens), np.uint64, len(tokens)), out=bounds[1:])
        bounds *= np.uint64(256)
        views = [len(counts.rows) for counts in self.views.values()]
        bounds[1:] += np.repeat(np.arange(len(views), dtype=np.uint64), views)
        totals = [counts.totals for counts in self.views.values()]
        return {
            "token_bytes": np.frombuffer(b"".join(tokens), np.uint8),
            "token_bounds": bounds,
            **arrays_of(rows, n_classes),
            "totals": np.array(totals, np.float64).reshape(len(self.views), n_classes),
        }

    def restore(self, sections: Sections, n_classes: int) -> None:
        """Restore the store from the arrays of `freeze`, checked: shapes, bounds, order, signs and sums.

        Raises
        ------
        SnapshotError
            The arrays do not hold a count store of these views and that many classes; nothing was changed.
        """
        n_classes = n_classes if self.views else 0  # `freeze` writes 0 classes if there are no views
        frozen = checked(sections, len(self.views), n_classes)
        restored = [ViewCounts(n_classes) for _ in self.views]
        for view, token, row in rows_of(frozen):
            if token in restored[view].rows:
                raise twice()
            restored[view].rows[token] = row
        for view_counts, totals in zip(restored, frozen.totals.tolist(), strict=True):
            view_counts.totals = totals
            view_counts.measure()
        self.views = dict(zip(self.views, restored, strict=True))

    def _rows(self) -> Iterator[tuple[int, str, list[float]]]:
        for view, counts in enumerate(self.views.values()):
            for token, row in counts.rows.items():
                yield view, token, row


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
