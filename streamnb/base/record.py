"""Records: bytes with an address (topic, partition, offset) in a log.

A transport passes records to the engine as columns, one `RecordBatch` per partition and poll, and never as
objects of a client library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from streamnb.errors import SettingsError

Headers = Sequence[tuple[str, bytes]]
"""A record's headers, in order; a name may occur more than once."""

PARTITION_MAX = (1 << 31) - 1  # Kafka's numbers have 32 bits
HEADER_BYTES = 100  # of a header's Python objects: a message may have hundreds of thousands of empty headers


class Partition(NamedTuple):
    """A sequence of records with offsets of its own: a partition of a Kafka topic, or a file (number 0)."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


def checked_partitions(numbers: Sequence[int] | None) -> tuple[int, ...] | None:
    """Return the numbers of the partitions to read, sorted; ``None`` for all partitions.

    Raises
    ------
    SettingsError
        The list is empty, names a partition twice, or has a number that no partition has.

    Examples
    --------
    >>> checked_partitions([2, 0])
    (0, 2)
    """
    if numbers is None:
        return None
    hint = "Give the numbers of some partitions, such as [0, 1], or leave it out to read all."
    if not numbers:
        raise SettingsError("`partitions` names no partition.", hint)
    for number in numbers:
        if not 0 <= number <= PARTITION_MAX:
            raise SettingsError(f"`partitions` has {number}, which is no partition's number.", hint)
    if len(set(numbers)) < len(numbers):
        twice = min(number for number in numbers if numbers.count(number) > 1)
        raise SettingsError(f"`partitions` names partition {twice} more than once.", hint)
    return tuple(sorted(numbers))


def record_bytes(value: bytes | None, key: bytes | None, headers: Headers) -> int:
    """Return about how much memory a record takes in a poll: value, key and headers.

    Examples
    --------
    >>> record_bytes(b"value", None, [("name", b"content")])
    116
    """
    found = len(value or b"") + len(key or b"")
    if headers:  # most records have none
        found += sum(HEADER_BYTES + len(name) + len(content) for name, content in headers)
    return found


@dataclass(slots=True)
class Unreadable:
    """A range of offsets that the client could not extract from the log, and the cause."""

    first_offset: int
    next_offset: int
    cause: str


@dataclass(slots=True)
class RecordBatch:
    """The records of one partition that one poll returned, as columns of equal length.

    Parameters
    ----------
    partition : Partition
    offsets : sequence of int
        Rising, with gaps where the log was compacted or holds control records.
    values : list of bytes or None
        ``None`` is a Kafka tombstone.
    keys : list of bytes or None
    timestamps_ms : sequence of int
        Milliseconds since 1970; -1 where the log has no timestamp.
    headers : list of Headers
    next_offset : int
        The offset at which to resume *after* the batch, as Kafka commits it: one more than the last offset
        that the batch covers, including gaps and unreadable offsets.
    unreadable : list of Unreadable
        Ranges inside the batch that hold no usable record.
    """

    partition: Partition
    offsets: Sequence[int]
    values: list[bytes | None]
    keys: list[bytes | None]
    timestamps_ms: Sequence[int]
    headers: list[Headers]
    next_offset: int
    unreadable: list[Unreadable] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, end: int) -> RecordBatch:
        """Return the rows from `start` to before `end`, with the next offset and no unreadable ranges."""
        return RecordBatch(
            partition=self.partition,
            offsets=self.offsets[start:end],
            values=self.values[start:end],
            keys=self.keys[start:end],
            timestamps_ms=self.timestamps_ms[start:end],
            headers=self.headers[start:end],
            next_offset=self.next_offset,
        )
