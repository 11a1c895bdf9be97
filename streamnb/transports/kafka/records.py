"""A consumer that bounds the bytes of a poll, and reports the offsets of a record that it cannot decode.

kafka-python 3.0.12 raises from ``poll`` for a header name that is not UTF-8 or a batch with a wrong checksum.
Its next ``poll`` then never returns: the generator that reads the batch has ended, and the client keeps
waiting for it. Seeking past the record would avoid that, but lose the good records behind it in the same
batch. This module therefore catches the error inside the decoder, where the batch and its offsets are known.
"""

# ruff: noqa: SLF001  the client has no public names for the state of a batch

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord, Fetcher
from kafka.errors import CorruptRecordError, StaleMetadata, UnsupportedCodecError
from kafka.record.abc import ABCRecord, ABCRecordBatch
from kafka.record.memory_records import MemoryRecords
from kafka.record.util import decode_varint

from streamnb.base import HEADER_BYTES, POLL_BYTES_MAX, Unreadable
from streamnb.transports.kafka.decompression import unpack

Note = Callable[[int, int, Exception], None]
"""A function that records unreadable offsets: the first, the one after the last, and the cause."""


class _Budget:
    """How many bytes of records the current poll may still return."""

    def __init__(self) -> None:
        self.left = POLL_BYTES_MAX


class Consumer(KafkaConsumer):  # type: ignore[misc]
    """kafka-python's consumer, with a ``poll`` that does not raise for a record that cannot be decoded.

    A poll ends at the record with which it has `POLL_BYTES_MAX` bytes.
    """

    def __init__(self, *, decompressed_bytes_max: int, **configs: object) -> None:
        super().__init__(**configs)
        # 3.0.12 accepts the setting `allow_auto_create_topics` but never passes it to its metadata requests:
        # without this line the broker would create a misspelt topic.
        self._cluster.config["allow_auto_create_topics"] = False
        self._unreadable: list[tuple[TopicPartition, Unreadable]] = []
        self._budget = _Budget()
        self._fetcher.PartitionRecords = partial(
            _PartitionRecords, self._budget, self._unreadable, decompressed_bytes_max
        )
        self._append_records = self._fetcher._append
        self._fetcher._append = self._append_within_budget
        self._ask_for_offsets = self._fetcher._send_list_offsets_requests
        self._fetcher._send_list_offsets_requests = self._offsets_of_all

    def poll(self, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return records of each partition: at most `max_records`, and about `POLL_BYTES_MAX` bytes."""
        self._budget.left = POLL_BYTES_MAX
        found: dict[TopicPartition, list[ConsumerRecord]] = super().poll(timeout_ms, max_records)
        return found

    def _append_within_budget(
        self, drained: object, part: object, max_records: int, update_offsets: bool
    ) -> int:
        """Take records and return their number, or `max_records` if the poll is full, which ends it."""
        n: int = self._append_records(drained, part, max_records, update_offsets)
        return n if self._budget.left > 0 else max_records

    def bound_fetches(self, bytes_max: int) -> None:
        """Set how many bytes of a partition later fetches request."""
        self._fetcher.config["max_partition_fetch_bytes"] = bytes_max

    async def _offsets_of_all(self, timestamps: Mapping[TopicPartition, int]) -> object:
        """Look up offsets, or raise the retriable `StaleMetadata` while a partition has no leader.

        3.0.12 leaves such a partition out of its request and then fails with a ``KeyError``.
        """
        if any(self._cluster.leader_for_partition(one) in {None, -1} for one in timestamps):
            for one in timestamps:
                self._cluster.add_topic(one.topic)
            raise StaleMetadata
        return await self._ask_for_offsets(timestamps)

    def known_partitions(self, topic: str) -> Iterable[int]:
        """Return the partitions in the cached metadata, which is at most ``metadata_max_age_ms`` old."""
        return self._cluster.partitions_for_topic(topic) or ()

    def next_offset(self, partition: TopicPartition) -> int:
        """Return the position after all records and gaps that `poll` has passed, without a request."""
        return int(self._subscription.assignment[partition].position.offset)

    def take_unreadable(self, partition: TopicPartition, next_offset: int) -> list[Unreadable]:
        """Remove and return the unreadable ranges of a partition before an offset."""
        taken = [one for one in self._unreadable if one[0] == partition and one[1].first_offset < next_offset]
        for one in taken:
            self._unreadable.remove(one)
        return [unreadable for _, unreadable in taken]


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of one partition from one fetch response, without those that cannot be decoded."""

    def __init__(
        self,
        budget: _Budget,
        unreadable: list[tuple[TopicPartition, Unreadable]],
        decompressed_bytes_max: int,
        *args: object,
        **configs: object,
    ) -> None:
        self._budget = budget
        self._unreadable = unreadable
        self._decompressed_bytes_max = decompressed_bytes_max
        self._noted_until = 0
        super().__init__(*args, **configs)

    def take(self, n: int) -> list[ConsumerRecord]:
        """Return the next records, at most `n`; the record that uses up the poll's budget is the last one."""
        self._maybe_raise_next_inline_exception()
        records: list[ConsumerRecord] = []
        budget, read = self._budget, self.bytes_read
        left = budget.left + read  # a comparison with the client's own sum costs less than a sum of ours
        try:
            for record in islice(self.record_iterator, n):
                records.append(record)
                if record.headers:
                    left -= HEADER_BYTES * len(record.headers)
                if self.bytes_read >= left:
                    break
        except Exception as error:
            if not records:
                raise
            self._next_inline_exception = error  # the next call raises it, as in the client's own method
        budget.left = left - self.bytes_read
        return records

    def _note(self, first_offset: int, next_offset: int, error: Exception) -> None:
        # A fetch returns whole batches: the offsets before the requested one were reported earlier.
        first_offset = max(first_offset, self.fetch_offset, self.next_fetch_offset, self._noted_until)
        if first_offset < next_offset:
            self._noted_until = next_offset
            noted = Unreadable(first_offset, next_offset, str(error))
            self._unreadable.append((self.topic_partition, noted))

    def _unpack_records(
        self, tp: TopicPartition, records: MemoryRecords, key_deserializer: None, value_deserializer: None
    ) -> Iterator[ConsumerRecord]:
        batches = _Batches(records, self._note, self._decompressed_bytes_max)
        while True:
            try:
                yield from super()._unpack_records(tp, batches, key_deserializer, value_deserializer)
            except (UnsupportedCodecError, MemoryError):
                raise  # the fault is in this process, not in the bytes: skipping would lose good records
            except Exception as error:
                batch = batches.last
                if batch is None or batch.magic != 2:
                    # The end of the batch is unknown too, so no exact range can be skipped.
                    raise CorruptRecordError(f"{tp.topic}-{tp.partition}: {error}") from error
                self._note(batch.base_offset, batch.next_offset, error)
                self.next_fetch_offset = batch.next_offset
            else:
                return


class _Batches:
    """The batches of one fetch, each as a `_Batch`; after an error the next batch is still available."""

    def __init__(self, records: MemoryRecords, note: Note, decompressed_bytes_max: int) -> None:
        self._records = records
        self._note = note
        self._decompressed_bytes_max = decompressed_bytes_max
        self.last: ABCRecordBatch | None = None

    def next_batch(self) -> _Batch | None:
        self.last = None
        self.last = self._records.next_batch()
        return None if self.last is None else _Batch(self.last, self._note, self._decompressed_bytes_max)


class _Batch:
    """One record batch that skips each record it cannot decode, by the length in front of the record."""

    def __init__(self, batch: ABCRecordBatch, note: Note, decompressed_bytes_max: int) -> None:
        self._batch = batch
        self._note = note
        self._decompressed_bytes_max = decompressed_bytes_max

    def __getattr__(self, name: str) -> object:
        return getattr(self._batch, name)

    def __next__(self) -> ABCRecord:
        return next(self._batch)

    def __iter__(self) -> Iterator[ABCRecord]:
        if self._batch.magic == 2:
            unpack(self._batch, self._decompressed_bytes_max)
        records = iter(self._batch)
        while True:
            try:
                record = next(records)
            except StopIteration:
                return
            except CorruptRecordError as error:
                self._skip(error)
            else:
                yield record

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
