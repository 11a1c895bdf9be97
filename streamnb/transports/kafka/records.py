"""A consumer that bounds the bytes of a poll, and reports the offsets of a record that it cannot decode.

kafka-python 3.0.12 raises from ``poll`` for a header name that is not UTF-8 or a batch with a wrong checksum.
Its next ``poll`` then never returns: the generator that reads the batch has ended, and the client keeps
waiting for it. Seeking past the record would avoid that, but lose the good records behind it in the same
batch. This module therefore catches the error inside the decoder, where the batch and its offsets are known.

With the compiled `_batches`, the records of a poll are taken in `Columns`, each of which is one record to the
client. A trial at the first consumer shows that the installed client takes them so; otherwise every record is
decoded by itself, which is slower and gives the same.
"""

# ruff: noqa: SLF001  the client has no public names for the state of a batch

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cache, partial
from types import SimpleNamespace

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord, Fetcher
from kafka.errors import CorruptRecordError, StaleMetadata, UnsupportedCodecError
from kafka.protocol.consumer import IsolationLevel
from kafka.record.abc import ABCRecordBatch
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from kafka.structs import OffsetAndMetadata

from streamnb.base import HEADER_BYTES, POLL_BYTES_MAX, Unreadable, twins
from streamnb.transports.kafka.batches import HEADERS_MAX, Batches, Cut
from streamnb.transports.kafka.columns import Columns, Piece, Taken, batch_of

log = logging.getLogger(__name__)

MAGIC = 2  # of the record batches that `_batches` reads
ANY_OFFSET = -(1 << 63)  # no record is before it

_compiled = twins.load("streamnb.transports.kafka._batches")


class _Budget:
    """How many bytes of records the current poll may still return, and how many records were odd."""

    def __init__(self) -> None:
        self.left = POLL_BYTES_MAX
        self.odd = 0


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
            _PartitionRecords, self._budget, self._unreadable, decompressed_bytes_max, columns_fit()
        )
        self._append_records = self._fetcher._append
        self._fetcher._append = self._append_within_budget
        self._fetch_max_wait_ms = self._fetcher.config["fetch_max_wait_ms"]
        self._fetch_requests = self._fetcher._create_fetch_requests
        self._fetcher._create_fetch_requests = self._fetch_requests_in_time
        self._ask_for_offsets = self._fetcher._send_list_offsets_requests
        self._fetcher._send_list_offsets_requests = self._offsets_of_all

    def poll(self, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Piece]]:
        """Return records of each partition: at most `max_records`, and about `POLL_BYTES_MAX` bytes."""
        self._budget.left = POLL_BYTES_MAX
        found: dict[TopicPartition, list[Piece]] = super().poll(timeout_ms, max_records)
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

    def _fetch_requests_in_time(self) -> object:
        """Create fetch requests, which do not wait at the broker while fetched records wait here.

        They leave out the partitions of those records. If the others have nothing new, the broker would keep
        the request for `fetch_max_wait_ms`, and the client sends it no other one before the answer.
        """
        fetcher = self._fetcher
        has_records = bool(fetcher._completed_fetches or fetcher._next_partition_records)
        fetcher.config["fetch_max_wait_ms"] = 0 if has_records else self._fetch_max_wait_ms
        return self._fetch_requests()

    async def _offsets_of_all(self, timestamps: Mapping[TopicPartition, int]) -> object:
        """Look up offsets, or raise the retriable `StaleMetadata` while a partition has no leader.

        3.0.12 leaves such a partition out of its request and then fails with a ``KeyError``.
        """
        if any(self._cluster.leader_for_partition(one) in {None, -1} for one in timestamps):
            for one in timestamps:
                self._cluster.add_topic(one.topic)
            raise StaleMetadata
        return await self._ask_for_offsets(timestamps)

    def known_partitions(self, topic: str) -> Collection[int]:
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
        in_columns: bool,
        *args: object,
        **configs: object,
    ) -> None:
        self._budget = budget
        self._unreadable = unreadable
        self._decompressed_bytes_max = decompressed_bytes_max
        self._cut: Cut | None = self._columns if in_columns else None
        self._noted_until = 0
        self._records_max = self._full_at = 0  # of the current `take`
        self._before_first = True
        super().__init__(*args, **configs)

    def take(self, n: int) -> Taken:
        """Return the next records, at most `n`; the record that uses up the poll's budget is the last one."""
        self._maybe_raise_next_inline_exception()
        pieces: list[Piece] = []
        taken = 0
        # A comparison with the client's own sum costs less than a sum of ours.
        self._records_max, self._full_at = n, self._budget.left + self.bytes_read
        try:
            for record in self.record_iterator:
                self._before_first = False
                if type(record.value) is Columns:
                    pieces.append(record.value)
                    taken += len(record.value)
                    self._full_at -= HEADER_BYTES * record.value.n_headers
                else:
                    pieces.append(record)
                    taken += 1
                    if record.headers:
                        self._full_at -= HEADER_BYTES * len(record.headers)
                if taken >= n or self.bytes_read >= self._full_at:
                    break
                self._records_max = n - taken
        except Exception as error:
            if not pieces:
                raise
            self._next_inline_exception = error  # the next call raises it, as in the client's own method
        self._budget.left = self._full_at - self.bytes_read
        return Taken(pieces, taken)

    def _columns(self, batch: ABCRecordBatch) -> Columns | None:
        """Return the next records of a batch, at most what `take` still wants, or None before an odd one.

        Every record of a batch of before Kafka 0.11 is odd.
        """
        if batch.magic != MAGIC:
            self._note_odd()
            return None
        left = batch._num_records - batch._next_record_index
        is_append_time = batch.timestamp_type == batch.LOG_APPEND_TIME
        assert _compiled is not None
        found = _compiled.cut(
            batch._buffer,
            batch._pos,
            left,
            batch.base_offset,
            batch.max_timestamp if is_append_time else batch.first_timestamp,
            is_append_time,
            self.fetch_offset if self._before_first else ANY_OFFSET,
            self._records_max,
            self._full_at - self.bytes_read,
            HEADER_BYTES,
            HEADERS_MAX,
        )
        if found is None:
            if left > 0:
                self._note_odd()
            return None
        offsets, values, keys, times, headers, last, n, batch._pos, size, n_headers = found
        batch._next_record_index += n
        self.records_read += n - 1  # the client adds one
        return Columns(offsets, values, keys, times, headers, last, size, n_headers)

    def _note_odd(self) -> None:
        self._budget.odd += 1
        if self._budget.odd == 1:
            log.info(
                "%s-%d @ %d or behind it: a record is not as clients write it. kafka-python decodes it, or "
                "finds it unreadable, which takes longer; this is logged once",
                *self.topic_partition,
                self.next_fetch_offset,
            )

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
        batches = Batches(records, self._note, self._decompressed_bytes_max, self._cut)
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


@cache
def columns_fit() -> bool:
    """Return whether records are taken in columns: the reader was built, and the installed client lets it.

    The trial reads a small batch in both ways. Another version of the client may handle records otherwise
    than `Columns` expects; then this is logged, and every record is decoded by itself.
    """
    if _compiled is None:
        return False
    try:
        found = _trial(in_columns=True)
        differs = found[0] != 1 or found != _trial(in_columns=False)
    except Exception as error:  # noqa: BLE001 whatever it is, the plain way is not concerned
        log.warning("Records are decoded one by one, which is slower: kafka-python does not fit (%r)", error)
        return False
    if differs:
        log.warning("Records are decoded one by one, which is slower: kafka-python reads columns differently")
    return not differs


def _trial(*, in_columns: bool) -> list[object]:
    """Return what two calls of the client take from a batch of three records, the first one of them old."""
    builder = MemoryRecordsBuilder(2, 0, 1 << 10, offset=6)
    for key, value, headers in ((b"a", b"b", []), (None, b"", [("c", b"d")]), (b"", None, [])):
        builder.append(1, key, value, headers)
    builder.close()
    partition, unreadable = TopicPartition("trial", 0), list[tuple[TopicPartition, Unreadable]]()
    part = _PartitionRecords(
        _Budget(), unreadable, 1 << 10, in_columns, 7, partition, builder.records(),
        isolation_level=IsolationLevel.READ_COMMITTED,
    )  # fmt: skip
    state = SimpleNamespace(position=OffsetAndMetadata(7, "", -1), highwater=9)
    subscriptions = SimpleNamespace(
        is_assigned=bool, is_fetchable=bool, assignment=defaultdict(lambda: state)
    )
    fetcher = SimpleNamespace(_subscriptions=subscriptions, _sensors=None)
    found: list[object] = []
    for n in (1, 5):
        drained: dict[TopicPartition, list[Piece]] = defaultdict(list)
        found.append(Fetcher._append(fetcher, drained, part, n, True))
        found.append(batch_of(partition, drained[partition], state.position.offset))
    return [*found, part.bytes_read, part.records_read, bool(part), unreadable]
