"""Record batches, whose records are cut into columns or decoded one at a time, and skipped if that fails.

kafka-python decodes a record in Python, which takes nine tenths of the time of reading. `_batches.cut`, the
compiled twin, cuts many records at once into `Columns`. It stops before each record that it does not surely
understand; that one record goes the plain way, which decodes it or reports its offset, and the columns go on
behind it. Without the twin every record goes the plain way. Both ways give the same.
"""

# ruff: noqa: SLF001  the client has no public names for the state of a batch

from __future__ import annotations

from collections.abc import Callable, Iterator

from kafka.errors import CorruptRecordError
from kafka.record.abc import ABCRecord, ABCRecordBatch
from kafka.record.memory_records import MemoryRecords
from kafka.record.util import decode_varint

from streamnb.transports.kafka.columns import Columns
from streamnb.transports.kafka.decompression import unpack

HEADERS_MAX = 100_000  # as librdkafka; 64 MiB of empty headers would be 31 million tuples, for 64 kB sent
HEADERS_BYTES_MIN = 2 * HEADERS_MAX  # of a record with so many: the lengths of a header's name and value

Note = Callable[[int, int, Exception], None]
"""A function that records unreadable offsets: the first, the one after the last, and the cause."""

Cut = Callable[[ABCRecordBatch], Columns | None]
"""A function that takes the next records of a batch as columns, or returns None where they are odd or old."""


class Batches:
    """The batches of one fetch, each as a `Batch`; after an error the next batch is still available."""

    def __init__(
        self, records: MemoryRecords, note: Note, decompressed_bytes_max: int, cut: Cut | None
    ) -> None:
        self._records = records
        self._note = note
        self._decompressed_bytes_max = decompressed_bytes_max
        self._cut = cut
        self.last: ABCRecordBatch | None = None

    def next_batch(self) -> Batch | None:
        """Return the next batch, or None behind the last one."""
        self.last = None
        self.last = self._records.next_batch()
        if self.last is None:
            return None
        return Batch(self.last, self._note, self._decompressed_bytes_max, self._cut)


class Batch:
    """One record batch that skips each record it cannot decode, by the length in front of the record.

    Parameters
    ----------
    batch : ABCRecordBatch
        The client's.
    note : Note
    decompressed_bytes_max : int
        A larger batch is corrupt.
    cut : Cut, optional
        Takes columns; without it, each record is decoded by itself.
    """

    def __init__(
        self, batch: ABCRecordBatch, note: Note, decompressed_bytes_max: int, cut: Cut | None = None
    ) -> None:
        self._batch = batch
        self._note = note
        self._decompressed_bytes_max = decompressed_bytes_max
        self._cut = cut

    def __getattr__(self, name: str) -> object:
        return getattr(self._batch, name)

    def __next__(self) -> ABCRecord:
        return next(self._batch)

    def __iter__(self) -> Iterator[ABCRecord]:  # a `Columns` is one too
        batch, cut, may_be_large_until = self._batch, self._cut, -1
        if batch.magic == 2:
            unpack(batch, self._decompressed_bytes_max)
            may_be_large_until = len(batch._buffer) - HEADERS_BYTES_MIN
        records = iter(batch)
        while True:
            if cut is not None and (columns := cut(batch)) is not None:
                yield columns
                continue
            try:
                if may_be_large_until > 0 and batch._pos < may_be_large_until:
                    self._bound_headers()
                record = next(records)
            except StopIteration:
                return
            except CorruptRecordError as error:
                self._skip(error)
            else:
                yield record

    def _bound_headers(self) -> None:
        """Raise ``CorruptRecordError`` if the next record has too many headers to be decoded at all.

        What is not a record is left to the client's decoder.
        """
        buffer = self._batch._buffer
        try:
            length, at = decode_varint(buffer, self._batch._pos)
            if length <= HEADERS_BYTES_MIN:
                return
            for _ in range(3):  # attributes, timestamp, offset
                _, at = decode_varint(buffer, at)
            for _ in range(2):  # key, value
                size, at = decode_varint(buffer, at)
                at += max(size, 0)
            n, _ = decode_varint(buffer, at)
        except (ValueError, IndexError):
            return
        if n > HEADERS_MAX:
            raise CorruptRecordError(f"the record has {n} headers, more than {HEADERS_MAX}")

    def _skip(self, error: CorruptRecordError) -> None:
        batch = self._batch
        if batch.magic != 2 or batch._next_record_index >= batch._num_records:
            raise error
        try:
            length, start = decode_varint(batch._buffer, batch._pos)
            _, timestamp = decode_varint(batch._buffer, start + 1)  # after one byte of attributes
            delta, _ = decode_varint(batch._buffer, timestamp)
        except (ValueError, IndexError):
            raise error from None
        if not (0 < length <= len(batch._buffer) - start and 0 <= delta <= batch.last_offset_delta):
            raise error
        batch._pos = start + length
        batch._next_record_index += 1
        self._note(batch.base_offset + delta, batch.base_offset + delta + 1, error)
