"""Protocols of the engine's partners: model, source, sink, transactions, snapshot store and clock.

The engine imports this module instead of any model, transport or configuration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

from streamnb.base.batch import Batch, Scores
from streamnb.base.frozen import FrozenState, Sections
from streamnb.base.record import Headers, Partition, RecordBatch
from streamnb.base.snapshot import Snapshot

Start = Literal["earliest", "latest"] | int
"""Where to begin without a snapshot: an end of the log, or the first record at or after a time.

A time is in milliseconds since 1970.
"""


class Classifier(Protocol):
    """A model that learns from batches and returns scores."""

    @property
    def evicted_tokens(self) -> int:
        """How many rare tokens were forgotten so far, because the counts had reached their limit."""

    def step(self, batch: Batch, *, score: bool = True, learn: bool = True) -> Scores:
        """Score each message in order and then learn it, if it has a label; or do only one of the two."""

    def freeze(self) -> FrozenState:
        """Return the state as plain values and arrays that later learning does not change.

        Another thread may compute its digest while this one continues to learn.
        """

    def restore(self, values: Mapping[str, object], sections: Sections) -> None:
        """Load the state that `freeze` returned.

        Raises
        ------
        SnapshotError
            It is not a state of this model.
        """

    def digest(self) -> dict[str, str]:
        """Return two hashes: ``order_free`` of the state that message order cannot change, ``all`` of all."""

    def state_settings(self) -> dict[str, object]:
        """Return the settings that the state depends on; a snapshot made with others cannot be restored."""

    def reading_settings(self) -> dict[str, object]:
        """Return the settings that affect only how scores are computed from the state; they may change."""


class SnapshotStore(Protocol):
    """Where snapshots are kept. Only one learner holds it at a time.

    The engine calls `newest` before it begins; after that only the snapshot thread writes.
    """

    def newest(self) -> Snapshot | None:
        """Return the newest intact snapshot, or ``None`` if there has never been one.

        Raises
        ------
        SnapshotError
            There are snapshots, but none is intact.
        """

    def write(self, snapshot: Snapshot) -> int:
        """Keep a snapshot durably under the next number, remove the oldest, and return the number.

        Raises
        ------
        StorageError
            The snapshot was not kept; the previous one stays in force.
        """

    def close(self) -> None:
        """Release the store, so that another learner can hold it. Closing twice does nothing."""


class Source(Protocol):
    """Where records come from. Offsets are the log's own, and the engine chooses where to resume."""

    def identity(self) -> Mapping[str, str]:
        """Return which log this is: names (``cluster``, ``topic mail``) and ids that survive a restart.

        Raises
        ------
        TransportError
            The log cannot be reached.
        """

    def open(self, next_offsets: Mapping[Partition, int], start: Start) -> Mapping[Partition, int]:
        """Take the partitions to read, seek to where reading begins, and return these positions.

        By default these are all partitions. Where their numbers were chosen, the others are left to other
        processes: their positions in `next_offsets` are ignored and not returned, and a chosen partition
        that is missing from `next_offsets` begins at `start`, because it need not be new.

        Parameters
        ----------
        next_offsets : mapping of Partition to int
            The positions in a snapshot; empty at a first start. A partition that is missing from a non-empty
            mapping is new and is read from its beginning.
        start : Start
            Where to begin if `next_offsets` is empty.

        Returns
        -------
        mapping of Partition to int
            The position in every partition that is read.

        Raises
        ------
        PositionError
            The log begins after a position or ends before it, so records may have been lost.
        """

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """Return at most `records_max` records, after waiting at most `timeout_ms` for the first one.

        A poll ends after about `POLL_BYTES_MAX` bytes, and a later one returns the rest: fewer records than
        `records_max` are no sign that there are no more.
        """

    def added(self) -> Mapping[Partition, int]:
        """Take the partitions that were created since the last call, and return where each begins.

        Where the numbers of the partitions were chosen, none is taken, and the first call after one was
        created logs it.

        The engine calls it before every `poll`, so it must be cheap when nothing was created.
        """

    def end_offsets(self) -> Mapping[Partition, int] | None:
        """Return the offset after the current last record per partition; ``None`` if it cannot be known."""

    def written_offsets(self) -> Mapping[Partition, int] | None:
        """Return the offset after the last record written, also in a transaction that is still open.

        It may be a second old. Where `end_offsets` is lower, an open transaction holds records back.
        """

    def finished(self) -> bool:
        """Return whether the source has ended for good, as at the end of a file."""

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Publish the positions of a snapshot for tools that show lag; streamnb never reads them back.

        Another thread than the one that polls calls this, `end_offsets` and `written_offsets`.
        """

    def close(self) -> None:
        """Release the log. Closing twice does nothing."""


class Sink(Protocol):
    """Where records go."""

    def publish(
        self,
        partition: int,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        headers: Sequence[Headers],
    ) -> None:
        """Send records, given as columns, whose input came from the partition with this number.

        Records from one input partition keep their order. Blocks while too many records are in flight.

        Raises
        ------
        DeliveryError
            An earlier record was not acknowledged.
        """

    def flush(self, timeout_ms: int) -> None:
        """Wait until everything published has been acknowledged.

        Raises
        ------
        DeliveryError
            A record published since the sink was opened was not acknowledged.
        """

    def close(self) -> None:
        """Release the sink. Closing twice does nothing."""


class Transactions(Protocol):
    """Transactions: a batch's scores and offsets become visible together or not at all, exactly once.

    The sinks that were made with this object publish into its open transaction. After a `TransactionError`
    discard the object, its sinks and the model, and start again with new ones from the last snapshot.
    """

    @property
    def name(self) -> str:
        """The group whose offsets are committed; a second learner with this name fences the first one."""

    def recover(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Fence earlier learners, end the transactions they left open, and return the committed offsets.

        These are only the offsets that transactions committed, not those that `Source.commit` did.

        Raises
        ------
        TransportError
            The brokers do not answer.
        """

    def begin(self) -> None:
        """Open a transaction."""

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Commit the records published since `begin` together with these offsets.

        Raises
        ------
        FencedError
            Another learner with this name has started.
        TransactionError
            It is unknown whether the transaction was committed.
        """

    def close(self) -> None:
        """End without committing an open transaction. Closing twice does nothing."""


class Clock(Protocol):
    """The time, used to decide when a snapshot is due and for the headers of dead letters."""

    def monotonic_s(self) -> float:
        """Return seconds that never go back."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970."""
