"""`TokenCounts`: the statistic of a view that counts tokens in the store that all such views share.

The store holds the rows of all views, so that one limit of tokens, one eviction and one freeze serve them
all. What an event model needs beside the rows, such as the number of values of a field, is a tally. The tally
reads the old counts from the rows, so it always changes before they do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from streamnb.base import Digest, Section, Sections
from streamnb.naive_bayes.statistics.absent_words import AbsentWords
from streamnb.naive_bayes.statistics.counts import CountStore
from streamnb.naive_bayes.statistics.decay import FORGOTTEN, WEIGHT_ROUNDING, to_subtract
from streamnb.naive_bayes.statistics.field_totals import FieldTotal, FieldTotals
from streamnb.naive_bayes.statistics.moments import Moments
from streamnb.naive_bayes.statistics.view_counts import Counted

Rows = Mapping[str, Sequence[float]]


class Tally(Protocol):
    """Sums over the rows of one view; `AbsentWords` and `FieldTotals` are the two kinds."""

    def add_class(self) -> None:
        """Append a class without counts."""

    def add(self, rows: Rows, tokens: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Add a message. Call it before the rows change."""

    def check_removable(
        self, rows: Rows, amounts: Mapping[str, float], class_index: int, weight: float = 1.0
    ) -> None:
        """Raise ``ValueError`` if `remove` would leave sums that no messages have."""

    def remove(self, rows: Rows, amounts: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Undo `add`. Call it before the rows change."""

    def messages_of(self, class_index: int) -> float:
        """Return the weight of a class's messages, or 0 if the tally does not keep it."""

    def settle(self, class_index: int, messages: float) -> float:
        """Set the weight of a class's messages, and return it, raised to what the rows need."""

    def rebuild(self, rows: Rows, messages: Sequence[float]) -> None:
        """Compute the sums from the rows and the class counts."""

    def freeze(self, prefix: str) -> dict[str, Section]:
        """Return the sums that the rows do not determine to the last bit."""

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:
        """Restore the sums of `freeze` after `rebuild`, and check the sums against each other."""


class NoTally:
    """The tally of an event model that needs only rows and totals."""

    __slots__ = ()

    def add_class(self) -> None:
        """Do nothing."""

    def add(self, rows: Rows, tokens: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Do nothing."""

    def check_removable(
        self, rows: Rows, amounts: Mapping[str, float], class_index: int, weight: float = 1.0
    ) -> None:
        """Do nothing."""

    def remove(self, rows: Rows, amounts: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Do nothing."""

    def messages_of(self, class_index: int) -> float:  # noqa: ARG002 - it keeps none
        """Return 0."""
        return 0.0

    def settle(self, class_index: int, messages: float) -> float:  # noqa: ARG002 - it keeps none
        """Return the weight as it is."""
        return messages

    def rebuild(self, rows: Rows, messages: Sequence[float]) -> None:
        """Do nothing."""

    def freeze(self, prefix: str) -> dict[str, Section]:  # noqa: ARG002 - there is nothing to name
        """Return no sections."""
        return {}

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:
        """Do nothing."""


class Twins(NamedTuple):
    """The classes that statistics are made of: the plain ones or their compiled twins."""

    count_store: type[CountStore] = CountStore
    absent_words: type[AbsentWords] = AbsentWords
    field_total: type[FieldTotal] = FieldTotal
    moments: type[Moments] = Moments

    def field_totals(self) -> FieldTotals:
        """Return empty totals of fields."""
        return FieldTotals(kind=self.field_total)


PLAIN = Twins()


T = TypeVar("T", bound=Tally)


class TokenCounts(Generic[T]):
    """The counts of one view's tokens, with the tally of its event model.

    Parameters
    ----------
    tally : Tally
    store : CountStore, optional
        The store that counts the tokens; by default one of its own. The model adds classes to a shared store,
        lets it decay and evict, freezes and restores it.
    view : str
    n_classes : int
        Number of classes of a store of its own.
    rounded : bool
        Whether sums are rounded, because they decay.

    Examples
    --------
    >>> words = TokenCounts(NoTally(), n_classes=2)
    >>> words.add({"free": 2.0, "hi": 1.0}, class_index=1)
    >>> words.rows["free"], words.totals
    ([0.0, 2.0], [0.0, 3.0])
    """

    __slots__ = ("rounded", "store", "tally", "view")

    def __init__(
        self,
        tally: T,
        store: CountStore | None = None,
        view: str = "",
        *,
        n_classes: int = 0,
        rounded: bool = False,
    ) -> None:
        self.tally = tally
        self.store = CountStore([view]) if store is None else store
        self.view = view
        self.rounded = rounded
        for _ in range(n_classes):
            self.store.add_class()
            self.add_class()

    @property
    def rows(self) -> Rows:
        """The counts per class of each token."""
        return self.store[self.view].rows

    @property
    def totals(self) -> Sequence[float]:
        """The sum of all counts per class."""
        return self.store[self.view].totals

    def add_class(self) -> None:
        """Append a class to the tally; the store already has it."""
        self.tally.add_class()

    def add(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Count a message's tokens."""
        counts = self.store[self.view]
        self.tally.add(counts.rows, features, class_index, weight)
        counts.add(features, class_index, weight)

    def check_removable(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Raise ``ValueError`` if `remove` would subtract more than there is, unless tokens were evicted."""
        self._check({token: f * weight for token, f in features.items()}, class_index, weight)

    def remove(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Subtract a message's tokens. After an eviction a count may be too small: it stops at 0."""
        wanted = {token: f * weight for token, f in features.items()}
        amounts, short = self._amounts(wanted, class_index)
        self.tally.remove(self.rows, amounts, class_index, weight)
        self.store[self.view].remove(amounts, class_index)
        self.store.fell_short += short

    def check_mergeable(self, other: TokenCounts[T]) -> None:
        """Do nothing: any two counts can be merged."""

    def merge(self, other: TokenCounts[T], classes: Sequence[int]) -> None:
        """Add the counts of another view; the model rebuilds the tally afterwards."""
        self.store[self.view].merge(other.store[other.view], classes)

    def check_subtractable(self, other: TokenCounts[T], classes: Sequence[int]) -> None:
        """Raise ``ValueError`` if `subtract` would take more than there is, unless tokens were evicted."""
        for j, c in enumerate(classes):
            self._check(other.counts_of(j), c, other.tally.messages_of(j), short=other.store.evicted_tokens)

    def subtract(self, other: TokenCounts[T], classes: Sequence[int]) -> None:
        """Subtract the counts of another view; the model rebuilds the tally afterwards."""
        for j, c in enumerate(classes):
            amounts, short = self._amounts(other.counts_of(j), c)
            self.store[self.view].remove(amounts, c)
            self.store.fell_short += short

    def counts_of(self, class_index: int) -> dict[str, float]:
        """Return the tokens of one class with their counts."""
        return {token: row[class_index] for token, row in self.rows.items() if row[class_index]}

    def recount(self, class_counts: Sequence[float]) -> None:
        """Rebuild the tally from the rows, after the store has changed as a whole."""
        self.tally.rebuild(self.rows, class_counts)

    def fade(self, factor: float) -> None:
        """Do nothing: the store fades the counts of all views, and then the model rebuilds the tallies."""

    def digest(self, view: str, classes: Sequence[str]) -> Digest:  # noqa: ARG002 - the store has them
        """Return an empty digest: the digest of the store covers the counts of all views."""
        return Digest()

    def freeze(self, prefix: str) -> dict[str, Section]:
        """Return what the tally adds to the arrays of the store."""
        return self.tally.freeze(prefix)

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:
        """Restore the tally, after the store was restored and `recount` was called.

        Raises
        ------
        SnapshotError
            The sums cannot come from these counts.
        """
        self.tally.restore(sections, n_classes, prefix)

    def _check(self, wanted: Mapping[str, float], c: int, weight: float, *, short: int = 0) -> None:
        amounts, _ = self._amounts(wanted, c)
        if not (self.store.evicted_tokens or short):  # counts that lack nothing
            self.tally.check_removable(self.rows, amounts, c, weight)

    def _amounts(self, wanted: Mapping[str, float], c: int) -> tuple[dict[str, float], int]:
        """Return how much to subtract from each count, and how many tokens have less than was wanted."""
        counts: Counted = self.store[self.view]
        rows, amounts, short = counts.rows, {}, 0
        for token, amount in wanted.items():
            row = rows.get(token)
            held = row[c] if row is not None else 0.0
            if held < amount * (1 - WEIGHT_ROUNDING) and not (self.rounded and amount < FORGOTTEN):
                if not self.store.evicted_tokens:
                    raise ValueError(
                        f"cannot unlearn {token!r}: its learned weight is smaller than the weight to remove; "
                        "nothing was changed"
                    )
                short += 1
            if held > 0:
                amounts[token] = to_subtract(held, amount, rounded=self.rounded)
        return amounts, short
