"""Records as columns on their way through kafka-python, which handles them one at a time.

The client's loop over a batch asks each record for its size, offset, key, value and headers, and hands these
on. `Columns` answers as one large record whose value is itself, so that the client's own code for checksums,
transactions, control batches and positions runs once per piece of a batch and not once per record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from kafka import TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.record.abc import ABCRecord

from streamnb.base import Headers, Partition, RecordBatch


class Columns(ABCRecord):  # type: ignore[misc]
    """Consecutive records of one batch, which the client takes for a single record.

    Parameters
    ----------
    offsets, values, keys, times, headers : list
        The columns, as in `RecordBatch`: of the records that are returned.
    offset : int
        Of the last record that was read.
    size_in_bytes : int
        The bytes of all records that were read, returned or not.
    n_headers : int
        How many headers the returned records have.
    """

    __slots__ = ("headers_of", "keys", "n_headers", "offset", "offsets", "size_in_bytes", "times", "values")

    key = None
    headers = ()
    timestamp = timestamp_type = -1
    checksum = None

    def __init__(
        self,
        offsets: list[int],
        values: list[bytes | None],
        keys: list[bytes | None],
        times: list[int],
        headers: list[Headers],
        offset: int,
        size_in_bytes: int,
        n_headers: int,
    ) -> None:
        self.offsets = offsets
        self.values = values
        self.keys = keys
        self.times = times
        self.headers_of = headers
        self.offset = offset
        self.size_in_bytes = size_in_bytes
        self.n_headers = n_headers

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def value(self) -> Columns:
        """The records themselves: what the client hands on as the value."""
        return self

    def validate_crc(self) -> bool:
        """Return True: records of magic 2 have no checksum of their own."""
        return True


Piece: TypeAlias = ConsumerRecord | Columns
"""What a batch is taken in: a record, or the columns of several."""


class Taken:
    """What one call took from a fetch: its length is the number of records, but it iterates over pieces."""

    def __init__(self, pieces: Sequence[Piece], n: int) -> None:
        self._pieces = pieces
        self._n = n

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._pieces)


def batch_of(partition: TopicPartition, found: Iterable[Piece], next_offset: int) -> RecordBatch:
    """Return the pieces of one poll as one batch."""
    batch = RecordBatch(Partition(*partition), [], [], [], [], [], next_offset)
    offsets: list[int] = []
    times: list[int] = []
    values, keys, headers = batch.values, batch.keys, batch.headers
    for one in found:
        if isinstance(one, Columns):
            offsets += one.offsets
            values += one.values
            keys += one.keys
            times += one.times
            headers += one.headers_of
        else:
            offsets.append(one.offset)
            values.append(one.value)
            keys.append(one.key)
            times.append(one.timestamp)
            headers.append(_headers(one.headers) if one.headers else ())
    batch.offsets, batch.timestamps_ms = offsets, times
    return batch


def _headers(found: Iterable[tuple[str, bytes | None]]) -> Headers:
    # Kafka allows a header without a value; streamnb treats it as an empty value.
    return [(name, value or b"") for name, value in found]
