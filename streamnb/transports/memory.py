"""A log in memory, with a source, a sink and a clock, to run an engine without a broker.

It is part of the package so that an application that embeds an engine can test it as streamnb tests itself.
Nothing here waits and nothing is random: records are read in the order of the appends, across partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from streamnb.base import (
    POLL_BYTES_MAX,
    Headers,
    Partition,
    RecordBatch,
    Start,
    checked_partitions,
    record_bytes,
)
from streamnb.errors import DeliveryError, PositionLostError
from streamnb.transports.positions import partitions_to_read, starting_positions


class Mark(Enum):
    """A marker between the records of a `MemoryLog`. It has no offset and takes effect once."""

    CRASH = "crash"
    END = "end"


CRASH = Mark.CRASH
"""Makes the poll that reaches it raise `Crash`."""

END = Mark.END
"""Makes the source that reaches it report `finished` until it is opened again."""


class Crash(BaseException):
    """The sudden death of the process: `MemorySource.poll` raises it at a `CRASH` mark, for a test to catch.

    It is not an `Exception`, so that no error handling of the engine can catch it.
    """


class MemoryRecord(NamedTuple):
    """One record of a `MemoryLog`, with the fields that are columns in `RecordBatch`."""

    partition: int
    offset: int
    value: bytes | None
    key: bytes | None
    headers: Headers
    timestamp_ms: int


class MemoryLog:
    """A topic in memory.

    Parameters
    ----------
    partitions : int
        The number of partitions, at least 1.
    topic : str
        The topic's name.
    topic_id : str
        The topic's id, which distinguishes it from another topic of the same name.

    Attributes
    ----------
    elements : list of MemoryRecord or Mark
        All records and marks, in the order of the appends.
    spent : set of int
        The indices in `elements` of the marks that have taken effect.
    begin, end : list of int
        For each partition the first offset that was not deleted, and the offset after the last record.

    Examples
    --------
    >>> log = MemoryLog()
    >>> log.append(b"one"), log.append(CRASH), log.append(b"two")
    (0, 1, 1)
    """

    def __init__(self, partitions: int = 1, topic: str = "memory", topic_id: str = "memory-1") -> None:
        assert partitions >= 1, partitions
        self.topic = topic
        self.topic_id = topic_id
        self.elements: list[MemoryRecord | Mark] = []
        self.spent: set[int] = set()
        self.begin = [0] * partitions
        self.end = [0] * partitions

    def append(
        self,
        value: bytes | Mark | None,
        partition: int = 0,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp_ms: int = -1,
    ) -> int:
        """Append a record, a tombstone (``None``) or a mark.

        Returns
        -------
        int
            The record's offset; for a mark, the offset of the partition's next record.
        """
        offset = self.end[partition]
        if isinstance(value, Mark):
            self.elements.append(value)
        else:
            self.elements.append(MemoryRecord(partition, offset, value, key, headers, timestamp_ms))
            self.end[partition] += 1
        return offset

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete the partition's records before `offset`, as Kafka's retention does."""
        assert self.begin[partition] <= offset <= self.end[partition], offset
        self.begin[partition] = offset

    def records(self, partition: int) -> list[MemoryRecord]:
        """Return the partition's records that were not deleted, in order of offset."""
        return [
            element
            for element in self.elements
            if isinstance(element, MemoryRecord)
            and element.partition == partition
            and element.offset >= self.begin[partition]
        ]

    def partitions(self) -> list[Partition]:
        """Return the partitions, in order of number."""
        return [Partition(self.topic, number) for number in range(len(self.end))]


class MemorySource:
    """A `streamnb.base.protocols.Source` of a `MemoryLog`; `poll` never waits.

    `poll` returns records in the order of the appends. A mark takes effect after every record that was
    appended before it, and only once: a source that is opened on the same log later skips it.

    Parameters
    ----------
    log : MemoryLog
    partitions : sequence of int, optional
        The numbers of the partitions to read, as of a `KafkaSource`; by default all.

    Attributes
    ----------
    committed : dict of Partition to int
        The last offset that `commit` received for each partition.
    """

    def __init__(self, log: MemoryLog, partitions: Sequence[int] | None = None) -> None:
        self.committed: dict[Partition, int] = {}
        self._log = log
        self._chosen = checked_partitions(partitions)
        self._positions: dict[int, int] = {}
        self._cursor = 0
        self._finished = False

    def identity(self) -> Mapping[str, str]:
        """Return the ids of the cluster and of the topic."""
        return {"cluster": "memory", f"topic {self._log.topic}": self._log.topic_id}

    def open(self, next_offsets: Mapping[Partition, int], start: Start) -> Mapping[Partition, int]:
        """Assign the partitions to read and seek to their positions.

        Raises
        ------
        PositionError
            A partition of `next_offsets` does not exist, begins after its position or ends before it.
        SettingsError
            The log does not have a chosen partition.
        """
        log = self._log
        begin, end = ({one: ends[one.number] for one in self._assigned()} for ends in (log.begin, log.end))

        def at_time(at_ms: int) -> dict[Partition, int | None]:
            return {one: self._at_time(one.number, at_ms) for one in begin}

        taken = starting_positions(next_offsets, start, begin, end, at_time, self._chosen)
        self._positions = {partition.number: next_offset for partition, next_offset in taken.items()}
        self._finished = False
        self._cursor = self._first_element()
        return taken

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:  # noqa: ARG002 - never waits
        """Return at most `records_max` records before the next mark, in one batch per partition.

        Raises
        ------
        Crash
            The next element is a `CRASH` mark.
        PositionError
            Records were deleted before they were read.
        """
        assert self._positions, "open() comes first"
        self._check_positions()
        log = self._log
        taken: dict[int, list[MemoryRecord]] = {}
        n = n_bytes = 0
        while (
            self._cursor < len(log.elements)
            and n < records_max
            and n_bytes < POLL_BYTES_MAX
            and not self._finished
        ):
            element = log.elements[self._cursor]
            if isinstance(element, Mark):
                if self._cursor not in log.spent:
                    if element is CRASH and n:
                        break
                    log.spent.add(self._cursor)
                    if element is CRASH:
                        raise Crash
                    self._finished = True
            elif element.offset >= self._positions.get(element.partition, element.offset + 1):
                taken.setdefault(element.partition, []).append(element)
                n += 1
                n_bytes += record_bytes(element.value, element.key, element.headers)
            self._cursor += 1
        for number, records in taken.items():
            self._positions[number] = records[-1].offset + 1
        return [self._batch(number, records) for number, records in sorted(taken.items())]

    def added(self) -> Mapping[Partition, int]:
        """Assign the partitions that the log has gained, and return their first offsets.

        A source of chosen partitions takes none.
        """
        new = [partition for partition in self._assigned() if partition.number not in self._positions]
        found = {partition: self._log.begin[partition.number] for partition in new}
        self._positions |= {partition.number: offset for partition, offset in found.items()}
        return found

    def end_offsets(self) -> Mapping[Partition, int] | None:
        """Return the offset after each partition's last record; marks have no offset."""
        return {one: self._log.end[one.number] for one in self._assigned()}

    def written_offsets(self) -> Mapping[Partition, int] | None:
        """Return the same: what is in the log was committed."""
        return self.end_offsets()

    def finished(self) -> bool:
        """Return whether `poll` has reached an `END` mark since the source was opened."""
        return self._finished

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Store the offsets in `committed`."""
        self.committed.update(next_offsets)

    def close(self) -> None:
        """Drop the positions. Closing twice does nothing."""
        self._positions = {}

    def _assigned(self) -> list[Partition]:
        """Return the partitions that this source reads."""
        return partitions_to_read(self._log.topic, len(self._log.end), self._chosen)

    def _at_time(self, number: int, at_ms: int) -> int | None:
        return next((one.offset for one in self._log.records(number) if one.timestamp_ms >= at_ms), None)

    def _first_element(self) -> int:
        """Return the index of the first mark right before the first unread record, or of that record."""
        elements = self._log.elements
        index = 0
        for i, element in enumerate(elements):
            if isinstance(element, MemoryRecord):
                if element.offset >= self._positions.get(element.partition, element.offset + 1):
                    break
                index = i + 1
        return index

    def _check_positions(self) -> None:
        for number, position in self._positions.items():
            partition, begin = Partition(self._log.topic, number), self._log.begin[number]
            if position < begin:
                raise PositionLostError(
                    f"{partition} begins at offset {begin}: offsets {position} to {begin - 1} are lost.",
                    "They were deleted before they were read: lengthen the retention.",
                )

    def _batch(self, number: int, records: Sequence[MemoryRecord]) -> RecordBatch:
        return RecordBatch(
            partition=Partition(self._log.topic, number),
            offsets=[record.offset for record in records],
            values=[record.value for record in records],
            keys=[record.key for record in records],
            timestamps_ms=[record.timestamp_ms for record in records],
            headers=[record.headers for record in records],
            next_offset=records[-1].offset + 1,
        )


class MemorySink:
    """A `streamnb.base.protocols.Sink` that appends to a `MemoryLog`.

    Parameters
    ----------
    log : MemoryLog
        A record from input partition p goes to partition p modulo the log's partition count.
    fail_after : int or None
        The number of records to deliver before all further ones are lost; ``None`` delivers all.

    Attributes
    ----------
    flushed : int
        The number of records that `flush` has acknowledged.
    """

    def __init__(self, log: MemoryLog, fail_after: int | None = None) -> None:
        self.flushed = 0
        self._log = log
        self._fail_after = fail_after
        self._delivered = 0
        self._lost = False

    def publish(
        self,
        partition: int,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        headers: Sequence[Headers],
    ) -> None:
        """Append the records. A lost record raises only at the next call, as with a real broker.

        Raises
        ------
        DeliveryError
            An earlier record was lost.
        """
        self._check()
        number = partition % len(self._log.partitions())
        for value, key, pairs in zip(values, keys, headers, strict=True):
            if self._lost or self._delivered == self._fail_after:
                self._lost = True
                return
            self._log.append(value, number, key, pairs)
            self._delivered += 1

    def flush(self, timeout_ms: int) -> None:  # noqa: ARG002 - nothing to wait for
        """Acknowledge all published records.

        Raises
        ------
        DeliveryError
            A record was lost.
        """
        self._check()
        self.flushed = self._delivered

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _check(self) -> None:
        if self._lost:
            raise DeliveryError(
                f"A record for {self._log.topic} was lost after {self._delivered} were delivered.",
                "The sink was built with `fail_after`.",
            )


class MemoryClock:
    """A `streamnb.base.protocols.Clock` that only `advance` moves.

    Parameters
    ----------
    monotonic_s : float
        The initial monotonic time in seconds.
    wall_ms : int
        The initial wall time in milliseconds since 1970.

    Examples
    --------
    >>> clock = MemoryClock(wall_ms=1_000)
    >>> clock.advance(2.5)
    >>> clock.monotonic_s(), clock.wall_ms()
    (2.5, 3500)
    """

    def __init__(self, monotonic_s: float = 0.0, wall_ms: int = 0) -> None:
        self._monotonic_s = monotonic_s
        self._wall_ms = wall_ms

    def monotonic_s(self) -> float:
        """Return the monotonic time: the initial seconds plus all advances."""
        return self._monotonic_s

    def wall_ms(self) -> int:
        """Return the wall time in milliseconds since 1970."""
        return self._wall_ms

    def advance(self, seconds: float) -> None:
        """Move both times forward by `seconds`, which must not be negative."""
        assert seconds >= 0, seconds
        self._monotonic_s += seconds
        self._wall_ms += round(seconds * 1000)
