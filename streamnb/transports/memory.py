"""A log in memory, with the source, sink and clock to drive an engine without a broker.

It ships with the package, so that what embeds an engine can be tested as streamnb itself is. Nothing here
waits, and nothing is random: a log is read in the order in which it was appended to, partitions interleaved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from streamnb.base import Headers, Partition, RecordBatch, Start
from streamnb.errors import DeliveryError, PositionError
from streamnb.transports.positions import check_positions


class Mark(Enum):
    """What may stand in a `MemoryLog` between records, takes no offset and works once."""

    CRASH = "crash"
    END = "end"


CRASH = Mark.CRASH
"""The poll that would pass it raises `Crash`."""

END = Mark.END
"""The source that reaches it is finished until it is opened again."""


class Crash(BaseException):
    """The process dies here: raised by `MemorySource.poll` at a `CRASH` mark, for a test to catch.

    It is no `Exception`, so that nothing which handles errors can handle it.
    """


class MemoryRecord(NamedTuple):
    """One record of a `MemoryLog`, as `RecordBatch` has it in columns."""

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
        How many, at least 1.
    topic : str
        Its name.
    topic_id : str
        What tells it from another topic of the same name.

    Attributes
    ----------
    elements : list of MemoryRecord or Mark
        What was appended, in order.
    spent : set of int
        Where in `elements` the marks stand that have worked.
    begin, end : list of int
        The first offset held, and the offset after the last, of each partition.

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
            The record's offset; for a mark, the offset that the partition's next record will have.
        """
        offset = self.end[partition]
        if isinstance(value, Mark):
            self.elements.append(value)
        else:
            self.elements.append(MemoryRecord(partition, offset, value, key, headers, timestamp_ms))
            self.end[partition] += 1
        return offset

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete a partition's records before `offset`, as retention does."""
        assert self.begin[partition] <= offset <= self.end[partition], offset
        self.begin[partition] = offset

    def records(self, partition: int) -> list[MemoryRecord]:
        """The partition's records that were not deleted, in order."""
        return [
            element
            for element in self.elements
            if isinstance(element, MemoryRecord)
            and element.partition == partition
            and element.offset >= self.begin[partition]
        ]

    def partitions(self) -> list[Partition]:
        """The partitions, in order of number."""
        return [Partition(self.topic, number) for number in range(len(self.end))]


class MemorySource:
    """A `MemoryLog` behind `streamnb.base.protocols.Source`; `poll` never waits.

    Records come in the order in which they were appended. A mark is met after every record appended before
    it and works once: a source opened on the same log after that passes it.

    Attributes
    ----------
    committed : dict of Partition to int
        The offsets of every `commit`, the last of each partition.
    """

    def __init__(self, log: MemoryLog) -> None:
        self.committed: dict[Partition, int] = {}
        self._log = log
        self._positions: dict[int, int] = {}
        self._cursor = 0
        self._finished = False

    def identity(self) -> Mapping[str, str]:
        """The log's names and ids."""
        return {"cluster": "memory", f"topic {self._log.topic}": self._log.topic_id}

    def open(self, next_offsets: Mapping[Partition, int], start: Start) -> Mapping[Partition, int]:
        """Take every partition and go to its position.

        Raises
        ------
        PositionError
            The log has no such partition, begins after, or ends before, a position.
        """
        log = self._log
        begin, end = (dict(zip(log.partitions(), ends, strict=True)) for ends in (log.begin, log.end))
        check_positions(next_offsets, begin, end)
        if next_offsets:
            taken = {
                partition: next_offsets.get(partition, log.begin[partition.number])
                for partition in log.partitions()
            }
        else:
            taken = {partition: self._first(partition.number, start) for partition in log.partitions()}
        self._positions = {partition.number: next_offset for partition, next_offset in taken.items()}
        self._finished = False
        self._cursor = self._first_element()
        return taken

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:  # noqa: ARG002 - never waits
        """At most `records_max` records, one batch a partition, up to the next mark.

        Raises
        ------
        Crash
            Nothing stands before a `CRASH` mark any more.
        PositionError
            Records were deleted before they were read.
        """
        assert self._positions, "open() comes first"
        self._check_positions()
        log = self._log
        taken: dict[int, list[MemoryRecord]] = {}
        n = 0
        while self._cursor < len(log.elements) and n < records_max and not self._finished:
            element = log.elements[self._cursor]
            if isinstance(element, Mark):
                if self._cursor not in log.spent:
                    if element is CRASH and n:
                        break
                    log.spent.add(self._cursor)
                    if element is CRASH:
                        raise Crash
                    self._finished = True
            elif element.offset >= self._positions[element.partition]:
                taken.setdefault(element.partition, []).append(element)
                n += 1
            self._cursor += 1
        for number, records in taken.items():
            self._positions[number] = records[-1].offset + 1
        return [self._batch(number, records) for number, records in sorted(taken.items())]

    def added(self) -> Mapping[Partition, int]:
        """What `MemoryLog.begin` and `end` have gained."""
        new = [partition for partition in self._log.partitions() if partition.number not in self._positions]
        found = {partition: self._log.begin[partition.number] for partition in new}
        self._positions |= {partition.number: offset for partition, offset in found.items()}
        return found

    def end_offsets(self) -> Mapping[Partition, int] | None:
        """The offset after each partition's last record; marks do not count."""
        return dict(zip(self._log.partitions(), self._log.end, strict=True))

    def finished(self) -> bool:
        """Whether an `END` mark was reached since the source was opened."""
        return self._finished

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Keep the offsets in `committed`."""
        self.committed.update(next_offsets)

    def close(self) -> None:
        """Let go of the positions. Closing twice does nothing."""
        self._positions = {}

    def _first(self, number: int, start: Start) -> int:
        if start == "earliest":
            return self._log.begin[number]
        if start != "latest":
            for record in self._log.records(number):
                if record.timestamp_ms >= start:
                    return record.offset
        return self._log.end[number]

    def _first_element(self) -> int:
        """Where to read on: the first record not passed yet, and the marks right before it."""
        elements = self._log.elements
        index = 0
        for i, element in enumerate(elements):
            if isinstance(element, MemoryRecord):
                if element.offset >= self._positions[element.partition]:
                    break
                index = i + 1
        return index

    def _check_positions(self) -> None:
        for number, position in self._positions.items():
            partition, begin = Partition(self._log.topic, number), self._log.begin[number]
            if position < begin:
                raise PositionError(
                    f"{partition} begins at offset {begin}: offsets {position} to {begin - 1} are lost.",
                    "They were deleted before they were learned: keep records longer than a stop lasts.",
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
    """A `MemoryLog` behind `streamnb.base.protocols.Sink`.

    Parameters
    ----------
    log : MemoryLog
        A record from input partition p goes to partition p modulo the log's.
    fail_after : int or None
        How many records are delivered before every further one is lost; ``None``: no end.

    Attributes
    ----------
    flushed : int
        Records acknowledged by a `flush`.
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
        """Append the records; a loss shows at the next call, as with a broker.

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
        """Count what was published as acknowledged.

        Raises
        ------
        DeliveryError
            A record was lost.
        """
        self._check()
        self.flushed = self._delivered

    def close(self) -> None:
        """Do nothing, however often."""

    def _check(self) -> None:
        if self._lost:
            raise DeliveryError(
                f"A record for {self._log.topic} was lost after {self._delivered} were delivered.",
                "`fail_after` asked for it.",
            )


class MemoryClock:
    """A clock moved by hand, behind `streamnb.base.protocols.Clock`.

    Parameters
    ----------
    monotonic_s : float
        Where the seconds that never go back begin.
    wall_ms : int
        Where the milliseconds since 1970 begin.

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
        """Seconds since the clock was made, and where it began."""
        return self._monotonic_s

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return self._wall_ms

    def advance(self, seconds: float) -> None:
        """Move both times on by `seconds`, at least 0."""
        assert seconds >= 0, seconds
        self._monotonic_s += seconds
        self._wall_ms += round(seconds * 1000)
