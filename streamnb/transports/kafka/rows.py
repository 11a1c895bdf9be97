"""Rows in a producer's open batch by one call: one future for all of them instead of one for each.

95 % of the time in which kafka-python 3.0.12 sends a record is Python code per record. The client opens every
batch itself, with the first record that is sent to it, and it alone closes, compresses, numbers, sends,
retries and expires it. Only the records that follow the first are written here, by compiled code
(`_sink.append_rows`) under the lock of the accumulator, with the bytes that the client's builder would write.
"""

# ruff: noqa: SLF001  the client has no public names for the state of an open batch

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import cache

import kafka
from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaTimeoutError
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import ProducerBatch
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecordsBuilder

from streamnb.base import Headers, twins
from streamnb.transports.kafka.replaced import APPENDED, APPENDING

log = logging.getLogger(__name__)

MAGIC = 2  # of the record batches that `append_rows` writes
# What the client adds to the sizes of key, value and headers before it compares with `max_request_size`.
OVERHEAD_BYTES = DefaultRecordBatchBuilder.estimate_size_in_bytes(None, None, []) - 3

_compiled = twins.load("streamnb.transports.kafka._sink")


class Rows:
    """The delivery of the rows that one call appended to a batch; what `FutureRecordMetadata` is for one.

    Parameters
    ----------
    batch : ProducerBatch
    first : int
        The place of the first row in the batch.
    n : int
        The number of rows.
    size : int
        The bytes of their values and keys.
    failed : callable
        Called with the error if the batch is not delivered, by the client's thread.
    """

    __slots__ = ("_failed", "_first", "_produced", "_split", "n", "size")

    def __init__(
        self, batch: ProducerBatch, first: int, n: int, size: int, failed: Callable[[object], None]
    ) -> None:
        self.n = n
        self.size = size
        self._first = first
        self._failed = failed
        self._split: list[FutureRecordMetadata] = []
        self._produced = batch.produce_future
        self._produced.add_callback(self._settled).add_errback(failed)

    @property
    def is_done(self) -> bool:
        """Whether every row is acknowledged, or one has failed: the rows behind it may then wait for long."""
        if not self._split:
            return bool(self._produced.is_done)
        return all(one.is_done for one in self._split) or any(one.failed() for one in self._split)

    def get(self, timeout_s: float) -> None:
        """Wait until every row is acknowledged.

        Raises
        ------
        KafkaError
            A row was not delivered, or there is no answer in time; then `is_done` is still False.
        """
        deadline_s = time.monotonic() + timeout_s
        # A split ends this wait without a result: then the rows have futures of their own.
        if not self.is_done and not self._produced.wait(timeout_s) and not self._split:
            raise KafkaTimeoutError(f"no answer within {timeout_s} s")
        for one in self._split:
            one.get(max(deadline_s - time.monotonic(), 0))
        if not self._split:
            error = self._produced.exception or self._error(self._produced.value)
            if error is not None:
                raise error

    def split(self) -> list[FutureRecordMetadata]:
        """Return a future for each row, which the client binds to the batches that replace this one."""
        at = range(self._first, self._first + self.n)
        futures = [FutureRecordMetadata(self._produced, i, -1, None, -1, -1, -1) for i in at]
        for one in futures:
            one.add_errback(self._failed)
        self._split = futures
        return futures

    def _settled(self, result: tuple[int, int, Callable[[int], Exception] | None]) -> None:
        error = self._error(result)
        if error is not None:
            self._failed(error)

    def _error(self, result: tuple[int, int, Callable[[int], Exception] | None]) -> Exception | None:
        of_record = result[2]
        return None if of_record is None else of_record(self._first)


class RowWriter:
    """Appends rows to the open batches of a producer; `row_writer` makes it.

    Parameters
    ----------
    producer : KafkaProducer
    """

    def __init__(self, producer: KafkaProducer) -> None:
        assert _compiled is not None
        self._append_rows = _compiled.append_rows
        self._producer = producer
        self._record_bytes_max = producer.config["max_request_size"] - OVERHEAD_BYTES
        accumulator = producer._accumulator
        self._split = accumulator.split_and_reenqueue
        accumulator.split_and_reenqueue = self._split_with_rows

    def append(
        self,
        partition: TopicPartition,
        values: list[bytes | None],
        keys: list[bytes | None],
        headers: list[Headers],
        begin: int,
        *,
        rows_max: int,
        bytes_max: int,
        failed: Callable[[object], None],
    ) -> Rows | None:
        """Append rows from `begin` on to the partition's open batch, as many as it and the limits allow.

        Returns
        -------
        Rows or None
            ``None`` if no batch is open, or if the first row does not fit into it or is not plain bytes:
            send this row by the client's own `send`, which opens a batch or raises.

        Raises
        ------
        KafkaError
            The open transaction has failed.
        """
        producer, accumulator = self._producer, self._producer._accumulator
        known = producer._metadata.partitions_for_topic(partition.topic)
        if producer._closed or known is None or partition.partition not in known:
            return None
        manager = producer._transaction_manager
        if manager is not None and manager.is_transactional():
            manager.maybe_add_partition_to_transaction(partition)
        accumulator._appends_in_progress.increment()
        try:
            with accumulator._tp_lock(partition):
                queue = accumulator._batches.get(partition)
                if accumulator._closed or not queue:
                    return None
                batch = queue[-1]
                first, now_ms = batch.records.next_offset(), int(time.time() * 1000)
                limits = (rows_max, bytes_max, self._record_bytes_max)
                n, size, largest = self._append_rows(
                    batch.records, values, keys, headers, begin, *limits, now_ms
                )
                if not n:
                    return None
                batch.max_record_size = max(batch.max_record_size, largest)
                batch.last_append = time.monotonic()
                rows = Rows(batch, first, n, size, failed)
                batch._record_futures += [rows] * n
                full = len(queue) > 1 or batch.records.is_full()
        finally:
            accumulator._appends_in_progress.decrement()
        if full:
            producer._sender.wakeup()
        return rows

    def _split_with_rows(self, batch: ProducerBatch, now: float | None = None) -> int:
        """Give each row a future of its own before the client splits a batch that the broker refused."""
        futures = batch._record_futures
        at = 0
        while at < len(futures):
            rows = futures[at]
            if isinstance(rows, Rows):
                futures[at : at + rows.n] = rows.split()
                at += rows.n
            else:
                at += 1
        n: int = self._split(batch, now=now)
        return n


def row_writer(producer: KafkaProducer) -> RowWriter | None:
    """Return a producer's `RowWriter`, or ``None`` where records have to be sent one by one.

    That is so without the compiled module, with brokers older than 0.11, and with a version of the client
    that lacks what a `RowWriter` uses. The last two are logged.
    """
    if _compiled is None:
        return None
    lacking = [name for name in APPENDING if not hasattr(producer, name)] or lacking_to_append()
    if lacking:
        _warn_of(tuple(lacking))
        return None
    if producer._accumulator.config["message_version"] != MAGIC:
        log.warning("The brokers are older than Kafka 0.11: records are sent one by one, which is slower.")
        return None
    return RowWriter(producer)


@cache
def _warn_of(lacking: tuple[str, ...]) -> None:
    log.warning(
        "kafka-python %s lacks %s. Its records are sent one by one, which takes many times the processor "
        "time; streamnb was tested with kafka-python 3.0.12.",
        kafka.__version__,
        ", ".join(lacking),
    )


@cache
def lacking_to_append() -> tuple[str, ...]:
    """Return what a `RowWriter` uses and this version of the client does not have.

    A sample batch shows it, without a broker: its attributes, and the bytes that it holds in the end.
    """
    partition = TopicPartition("sample", 0)
    try:
        accumulator = RecordAccumulator()
        accumulator.append(partition, 1, b"key", b"value", [])
        batch = accumulator._batches[partition][-1]
        samples = {type(one): one for one in (accumulator, batch, batch.records, batch.records._builder)}
        lacking = tuple(
            f"{owner.__qualname__}.{name}"
            for owner, names in APPENDED.items()
            for name in names
            if not hasattr(samples.get(owner, owner), name)
        )
        return lacking or (() if _writes_the_same_bytes() else ("the record batches of 3.0.12",))
    except Exception as error:  # noqa: BLE001 - whatever a changed client raises, it is not the one known
        return (repr(error),)


def _writes_the_same_bytes() -> bool:
    """Return whether compiled code and the client's builder fill a small batch with the same bytes."""
    assert _compiled is not None
    rows: tuple[tuple[bytes | None, bytes | None, Headers], ...] = (
        (b"value", None, [("name", b"content")]),
        (None, b"key", []),
    )
    ours, theirs = (MemoryRecordsBuilder(MAGIC, 0, 1024) for _ in range(2))
    for one in (ours, theirs):
        one.append(5, None, b"first", [])
    columns = [list(column) for column in zip(*rows, strict=True)]
    _compiled.append_rows(ours, *columns, 0, len(rows), 1000, 1000, 4)
    for value, key, headers in rows:
        theirs.append(4, key, value, headers)
    for one in (ours, theirs):
        one.close()
    return bool(ours.buffer() == theirs.buffer() and ours.next_offset() == theirs.next_offset())
