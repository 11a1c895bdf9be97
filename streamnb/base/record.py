"""A record: bytes with an address in a log.

Records cross the border in columns, one `RecordBatch` per partition and poll, never as objects of a
client: a transport fills the columns, the engine reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Headers = Sequence[tuple[str, bytes]]
"""A record's headers, in their order; a name may stand twice."""


class Partition(NamedTuple):
    """Where a log's records are numbered from 0: a Kafka topic's partition, or a file (number 0)."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


@dataclass(slots=True)
class Unreadable:
    """Offsets that the client could not take from the log, and why."""

    first_offset: int
    next_offset: int
    cause: str


@dataclass(slots=True)
class RecordBatch:
    """What one poll returned of one partition, as columns of equal length.

    Parameters
    ----------
    partition : Partition
    offsets : sequence of int
        Rising, with gaps where the log was compacted or holds control records.
    values : list of bytes or None
        ``None`` is Kafka's tombstone.
    keys : list of bytes or None
    timestamps_ms : sequence of int
        Milliseconds since 1970; -1 where the log has none.
    headers : list of Headers
    next_offset : int
        The offset after the last one this batch accounts for, gaps and unreadable ones included: the
        place to resume *after* the batch, as Kafka commits it.
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
