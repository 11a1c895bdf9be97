"""What the engine asks of the worlds it stands between: a model, a source, a sink, a snapshot store.

The engine imports this room and no model, transport or configuration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

from streamnb.base.batch import Batch, Scores
from streamnb.base.frozen import FrozenState, Sections
from streamnb.base.record import Headers, Partition, RecordBatch
from streamnb.base.snapshot import Snapshot

Start = Literal["earliest", "latest"] | int
"""Where to begin without a snapshot: an end of the log, or the first record at or after a time in ms."""


class Classifier(Protocol):
    """A model that learns: columns in, scores out."""

    def step(self, batch: Batch, *, score: bool = True, learn: bool = True) -> Scores:
        """Score each message, then learn it if it has a label, in order; or only one of the two."""

    def freeze(self) -> FrozenState:
        """The state as plain values and arrays that no later learning changes.

        Its digest may be asked for by another thread, while this one learns on.
        """

    def restore(self, values: Mapping[str, object], sections: Sections) -> None:
        """Take the place of what `freeze` gave.

        Raises
        ------
        SnapshotError
            It is not a state of this model.
        """

    def digest(self) -> dict[str, str]:
        """What two identical states have in common: ``order_free`` and ``all``."""

    def state_settings(self) -> dict[str, object]:
        """The settings that the state depends on."""

    def reading_settings(self) -> dict[str, object]:
        """The settings that only say how the state is read."""


class SnapshotStore(Protocol):
    """Where snapshots are kept. One learner holds it at a time.

    The engine asks for the newest before it begins; from then on only one thread writes, which is not the
    engine's own.
    """

    def newest(self) -> Snapshot | None:
        """The newest whole snapshot; ``None`` if none was ever written.

        Raises
        ------
        SnapshotError
            There are files, and none is whole.
        """

    def write(self, snapshot: Snapshot) -> int:
        """Keep a snapshot, durably, under the next number, which is returned; let go of the oldest.

        Raises
        ------
        StorageError
            It is not kept; the newest stays in force.
        """

    def close(self) -> None:
        """Let another learner have it. Closing twice does nothing."""


class Source(Protocol):
    """Where records come from. Offsets are the log's own; a source never chooses where to resume."""

    def identity(self) -> Mapping[str, str]:
        """What log this is: names (``cluster``, ``topic mail``) to ids that survive a restart.

        Raises
        ------
        TransportError
            The log cannot be reached.
        """

    def open(self, next_offsets: Mapping[Partition, int], start: Start) -> Mapping[Partition, int]:
        """Take the partitions and seek.

        Parameters
        ----------
        next_offsets : mapping of Partition to int
            Positions of a snapshot; empty at a first start. A partition that a non-empty mapping lacks
            was added since and is read from its beginning.
        start : Start
            Where to begin when `next_offsets` is empty.

        Returns
        -------
        mapping of Partition to int
            The position taken in every partition.

        Raises
        ------
        PositionError
            The log begins after, or ends before, a position: records may be lost.
        """

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """At most `records_max` records, waiting at most `timeout_ms` for the first."""

    def added(self) -> Mapping[Partition, int]:
        """Take the partitions that came into being since the last time; where each begins to be read.

        Asked before every `poll`, so what it costs when there are none is next to nothing.
        """

    def end_offsets(self) -> Mapping[Partition, int] | None:
        """The offset after the last record of each partition now; ``None`` where that cannot be known."""

    def finished(self) -> bool:
        """Whether no record will ever follow (the end of a file)."""

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Tell lag tools how far a snapshot reaches; advice, never read back."""

    def close(self) -> None:
        """Let go of the log. Closing twice does nothing."""


class Sink(Protocol):
    """Where records go."""

    def publish(
        self,
        partition: int,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        headers: Sequence[Headers],
    ) -> None:
        """Send columns of records that came from the input partition of that number.

        Records of one input partition keep their order. Blocks while too many are in flight.

        Raises
        ------
        DeliveryError
            An earlier record was not acknowledged.
        """

    def flush(self, timeout_ms: int) -> None:
        """Return when everything published was acknowledged.

        Raises
        ------
        DeliveryError
            Something was not, since the sink was opened.
        """

    def close(self) -> None:
        """Let go. Closing twice does nothing."""


class Transactions(Protocol):
    """What makes scores exactly once: a batch's records and offsets are seen together, or not at all.

    The sinks that were made with it publish into the open transaction. After a `TransactionError` nothing of
    it, of its sinks or of the model may be used any more: a new one, and the last snapshot, take their place.
    """

    @property
    def name(self) -> str:
        """Whose offsets are committed: two learners of one name shut each other out."""

    def recover(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Shut out earlier learners, end what they left open, and say which offsets are committed.

        Raises
        ------
        TransportError
            The brokers do not answer.
        """

    def begin(self) -> None:
        """Open a transaction."""

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Commit what was published since `begin`, and these offsets with it.

        Raises
        ------
        FencedError
            Another learner of this name has begun.
        TransactionError
            It is not known whether it was committed.
        """

    def close(self) -> None:
        """Let go; an open transaction is never committed. Closing twice does nothing."""


class Clock(Protocol):
    """Time, for when a snapshot is due and for the dead letters' headers."""

    def monotonic_s(self) -> float:
        """Seconds that never go back."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
