"""Where scores and dead letters go, and the transactions around them where scores are exactly once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from streamnb.base import Clock, Partition, RecordBatch, Sink, Transactions
from streamnb.engine.dead_letters import DeadLetters
from streamnb.engine.progress import Progress
from streamnb.engine.published_scores import delivery_noted, published_before
from streamnb.engine.settings import Pace
from streamnb.errors import DeliveryError, FencedError, TooLargeError, TransactionError


@dataclass(kw_only=True, eq=False, repr=False)
class Delivery:
    """The sinks of scores and dead letters, with or without transactions.

    Parameters
    ----------
    sink : Sink
        For scores.
    dead_letters : DeadLetters
    progress : Progress
    pace : Pace
    clock : Clock
    transactions : Transactions, optional
        For scores that are published exactly once; both sinks publish into them.

    Attributes
    ----------
    published : dict of Partition to int
        What an earlier process published in a committed transaction: everything below these offsets.
    confirmed : dict of Partition to int
        The offsets of the newest transaction known to be committed, by an earlier process or by this one.
    unconfirmed : dict of Partition to int
        The offset after the newest record in the open transaction, for each partition that it concerns.
    """

    sink: Sink
    dead_letters: DeadLetters
    progress: Progress
    pace: Pace
    clock: Clock
    transactions: Transactions | None = None
    published: dict[Partition, int] = field(default_factory=dict, init=False)
    confirmed: dict[Partition, int] = field(default_factory=dict, init=False)
    unconfirmed: dict[Partition, int] = field(default_factory=dict, init=False)
    _began_s: float | None = field(default=None, init=False)  # when the open transaction began

    def resume(self, ends: Mapping[Partition, int] | None, new: Collection[Partition] = ()) -> None:
        """Find out what was published already, and note in the lineage how scores are delivered from now on.

        Parameters
        ----------
        ends : mapping of Partition to int or None
            The offset after the last record of each partition.
        new : collection of Partition
            Those that the snapshot did not have.
        """
        progress = self.progress
        if self.transactions is None:
            change = delivery_noted(progress.lineage, None)
        else:
            committed = self.transactions.recover(progress.accounts)  # shuts earlier learners out first
            self.published, change = published_before(
                progress.lineage, self.transactions.name, progress.next_offsets(), committed, ends, new
            )
            # A later start must find an offset of every partition that the snapshots have.
            if change is not None or any(one not in committed for one in new):
                self.transactions.begin()
                self.transactions.commit({**progress.next_offsets(), **self.published})
            self.confirmed = {**progress.next_offsets(), **self.published}
        if change is not None:
            progress.note(change)

    @contextmanager
    def transaction(self, batches: Sequence[RecordBatch]) -> Iterator[None]:
        """Publish the batches of one poll within a transaction, which stays open until `commit`.

        Where scores are at least once, or all of the batches were published before, there is none.

        Raises
        ------
        TransactionError
            A record was not delivered, so it is not known what became of the transaction.
        """
        ends = {records.partition: records.next_offset for records in batches}
        new = {one: at for one, at in ends.items() if at > self.published.get(one, 0)}
        self.unconfirmed |= new
        if new and self.transactions is not None and self._began_s is None:
            self.transactions.begin()
            self._began_s = self.clock.monotonic_s()
        try:
            yield
        except DeliveryError as error:
            if self.transactions is None or isinstance(error, FencedError | TooLargeError):
                raise
            raise TransactionError(error.what, error.hint) from error

    def is_open(self) -> bool:
        """Return whether a transaction is open."""
        return self._began_s is not None

    def is_old(self) -> bool:
        """Return whether the open transaction has lasted `Pace.transaction_interval_ms`."""
        interval_s = self.pace.transaction_interval_ms / 1000
        return self._began_s is not None and self.clock.monotonic_s() >= self._began_s + interval_s

    def commit(self) -> None:
        """Commit the open transaction, if there is one, with the next offset of every partition."""
        if self.transactions is not None and self._began_s is not None:
            passed = self.progress.next_offsets()
            offsets = {one: max(at, self.published.get(one, 0)) for one, at in passed.items()}
            self.transactions.commit(offsets)
            self.confirmed, self.unconfirmed, self._began_s = offsets, {}, None

    def flush(self) -> None:
        """Return when every score and dead letter was acknowledged.

        Raises
        ------
        DeliveryError
            One was not.
        """
        for sink in (self.sink, self.dead_letters.sink):
            sink.flush(self.pace.flush_timeout_ms)

    def close(self) -> None:
        """Close the sinks and the transactions; an open transaction is never committed."""
        for part in (self.sink, self.dead_letters.sink, self.transactions):
            if part is not None:
                part.close()
