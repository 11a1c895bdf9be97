"""The count store: for each view and token a count per class, with the totals of each view and class.

Two rules hold. Scoring never changes a store. A token whose counts are all zero has left the vocabulary.

Counts are float64. The engine uses weights that are multiples of 1/256, so every sum below 2^45 is exact and
does not depend on the order in which messages were learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from streamnb.base import Digest, Section, Sections, section, statement
from streamnb.naive_bayes.statistics.budget import cells_for, charge
from streamnb.naive_bayes.statistics.count_arrays import arrays_of, checked, located, rows_of, twice
from streamnb.naive_bayes.statistics.decay import fade_rows
from streamnb.naive_bayes.statistics.token_trust import TRUST_SECTION, add_trust, checked_trust
from streamnb.naive_bayes.statistics.view_counts import ViewCounts, counts_in, is_exact, sum_of


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
    trusts : bool
        Whether a calibrated head learns how far to trust each token.

    Attributes
    ----------
    evicted_tokens : int
        Number of tokens evicted so far.
    evicted_mass : float
        Sum of the counts that were evicted with them.
    worths : dict of str to float
        By how much the counts of a view are multiplied for `evict`; 1 if it is not named.
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
        self,
        views: Sequence[str],
        max_tokens: int | None = None,
        bytes_max: int | None = None,
        *,
        trusts: bool = False,
    ) -> None:
        self.views = {view: ViewCounts() for view in views}
        self.trusts = trusts
        self.max_tokens = max_tokens
        self.bytes_max = bytes_max
        self.evicted_tokens = 0
        self.evicted_mass = 0.0
        self.worths: dict[str, float] = {}
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
        return charge(tokens, text_bytes, cells, n_classes, trusts=self.trusts)

    def check_index(self) -> None:
        """Do nothing: a dict needs no check. The compiled store looks up every token in its hash table."""

    def evict(self, n: int) -> None:
        """Evict the `n` tokens with the smallest counts, times their view's worth, and correct the totals.

        Of equal counts the oldest go first: a token's age is the share of its view's tokens that are older. A
        hash would let a sender choose words that stay.
        """
        ranked = sorted(
            (sum_of(row) * self.worths.get(name, 1.0), (position << 32) // len(counts.rows), i, token)
            for i, (name, counts) in enumerate(self.views.items())
            for position, (token, row) in enumerate(counts.rows.items())
        )
        names = list(self.views)
        each = ((view, c, n) for view in self for c, n in enumerate(self[view].totals))
        rounded = {(view, c) for view, c, total in each if not is_exact(total)}
        for _, _, i, token in ranked[:n]:
            view = names[i]
            counts = self.views[view]
            row = counts.rows.pop(token)
            counts.trust.drop(token)
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
            counts.trust.fade(factor)
            counts.measure()

    def merge(self, other: CountStore, classes: Sequence[int]) -> None:
        """Add the counts of another store with the same views; see `ViewCounts.merge`."""
        for view, counts in self.views.items():
            counts.merge(other[view], classes)

    def merge_trust(self, other: CountStore, start: float = 0.0) -> None:
        """Add the trust that another store has learned, after its counts were merged; see `add_trust`."""
        if self.trusts:
            for view, counts in self.views.items():
                add_trust(counts.trust, other[view].trust, start)

    def trust_digest(self, sections: Sections | None = None) -> Digest:
        """Return the digest of the trust of all tokens: it depends on the order of messages.

        Parameters
        ----------
        sections : mapping of str to ndarray, optional
            As for `digest`.
        """
        digest, views = Digest(), list(self.views)
        if not self.trusts:
            return digest
        if sections is None:
            held = ((i, *each) for i, view in enumerate(views) for each in self[view].trust.items())
        else:
            rows, trusts = rows_of(located(sections)), sections[TRUST_SECTION].tolist()
            held = ((view, token, *trust) for (view, token, _), trust in zip(rows, trusts, strict=True))
        for i, token, trust, squares in held:
            if trust or squares:
                digest.add(statement("trust", views[i], token), trust, squares)
        return digest

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
        views, tails = list(self.views), [statement(name) for name in classes]
        heads = [statement("count", view) for view in views]
        for view, token, row in self._rows() if sections is None else rows_of(located(sections)):
            head = heads[view] + statement(token)
            for tail, n in zip(tails, row, strict=True):
                if n:
                    digest.add(head + tail, n)
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
            ``token_trust`` float32 (T, 2), if the head learns trust.

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
            **({TRUST_SECTION: self._trust_array()} if self.trusts else {}),
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
        trusts = checked_trust(sections, len(frozen.ends)) if self.trusts else None
        restored = [ViewCounts(n_classes) for _ in self.views]
        for i, (view, token, row) in enumerate(rows_of(frozen)):
            if token in restored[view].rows:
                raise twice()
            restored[view].rows[token] = row
            if trusts is not None and trusts[i].any():
                restored[view].trust.set(token, *trusts[i].tolist())
        for view_counts, totals in zip(restored, frozen.totals.tolist(), strict=True):
            view_counts.totals = totals
            view_counts.measure()
        self.views = dict(zip(self.views, restored, strict=True))

    def _trust_array(self) -> NDArray[np.float32]:
        trusts = [counts.trust.get(token) for counts in self.views.values() for token in counts.rows]
        return np.array(trusts, np.float32).reshape(len(trusts), 2)

    def _rows(self) -> Iterator[tuple[int, str, list[float]]]:
        for view, counts in enumerate(self.views.values()):
            for token, row in counts.rows.items():
                yield view, token, row
