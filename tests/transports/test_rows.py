"""Rows appended to an open batch by one call give the batch that kafka-python's own builder would make.

Without a broker: the batches are the client's own, and so is what closes them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from itertools import takewhile
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError
from kafka.producer.producer_batch import ProducerBatch
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from streamnb.base import Headers, twins
from streamnb.transports.kafka import rows as rows_module
from streamnb.transports.kafka.rows import OVERHEAD_BYTES, Rows, RowWriter, lacking_to_append, row_writer

_COMPILED = twins.load("streamnb.transports.kafka._sink")
compiled = pytest.mark.skipif(not twins.WANTED, reason="STREAMNB_PURE is set")

Row = tuple[bytes | None, bytes | None, Headers]

ZERO = TopicPartition("t", 0)
CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
MAX = 1 << 30
SOME_SIZES = st.sampled_from(
    [0, 1, 62, 63, 64, 127, 128, 8190, 8191, 8192, 70_000]
)  # a length's bytes change
BYTES = st.binary(max_size=20) | SOME_SIZES.map(lambda n: b"x" * n)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
HEADERS = st.lists(st.tuples(NAMES, BYTES), max_size=3) | st.just(()) | st.just([("é", b"")] * 70)
ROWS: st.SearchStrategy[Row] = st.tuples(st.none() | BYTES, st.none() | BYTES, HEADERS)
TIMES = st.integers(-5, 5) | st.sampled_from([0, 1_700_000_000_000, -(1 << 40), 1 << 61])


def columns(rows: Sequence[Row]) -> tuple[list[bytes | None], list[bytes | None], list[Headers]]:
    """Values, keys and headers."""
    return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]


def begun(codec: int, batch_size: int, timestamp_ms: int, first: Row) -> MemoryRecordsBuilder:
    """Return a builder with its first record."""
    builder = MemoryRecordsBuilder(2, codec, batch_size)
    assert builder.append(timestamp_ms, first[1], first[0], list(first[2]))
    return builder


def closed(builder: MemoryRecordsBuilder, *, transactional: bool) -> bytes:
    """Return the batch as the sender closes it."""
    builder.set_producer_state(7, 3, 11, transactional)
    builder.close()
    return bytes(builder.buffer())


@compiled
@pytest.mark.parametrize("codec", CODECS, ids=CODECS.get)
@given(
    first=ROWS,
    first_ms=TIMES,
    calls=st.lists(st.tuples(st.lists(ROWS, max_size=8), TIMES), max_size=4),
    batch_size=st.sampled_from([100, 300, 20_000, 262_144]),
    transactional=st.booleans(),
)
def test_the_batch_has_the_bytes_of_the_clients_own_builder(
    codec: int,
    first: Row,
    first_ms: int,
    calls: list[tuple[list[Row], int]],
    batch_size: int,
    transactional: bool,
) -> None:
    """Null, empty and large keys and values, headers, falling timestamps, every codec; the same rows fit."""
    assert _COMPILED is not None
    ours, theirs = (begun(codec, batch_size, first_ms, first) for _ in range(2))
    for rows, now_ms in calls:
        n, size, largest = _COMPILED.append_rows(ours, *columns(rows), 0, len(rows), MAX, MAX, now_ms)
        appended = (theirs.append(now_ms, key, value, list(headers)) for value, key, headers in rows)
        fitting = list(takewhile(lambda one: one is not None, appended))

        assert n == len(fitting)
        assert size == sum(len(value or b"") + len(key or b"") for value, key, _ in rows[:n])
        assert largest == max((one.size for one in fitting), default=0)
        if n < len(rows):
            break
    assert (ours.next_offset(), ours.size_in_bytes(), ours.is_full()) == (
        theirs.next_offset(),
        theirs.size_in_bytes(),
        theirs.is_full(),
    )
    assert closed(ours, transactional=transactional) == closed(theirs, transactional=transactional)


@compiled
def test_a_batch_of_many_calls_is_read_as_it_was_written() -> None:
    """A thousand calls of a row each, and one call of a thousand rows, give the same batch."""
    assert _COMPILED is not None
    rows: list[Row] = [(b"%d" % i, None if i % 3 else b"k", [("h", b"v")] * (i % 2)) for i in range(1000)]
    one, many = (begun(0, 1 << 20, 5, rows[0]) for _ in range(2))
    assert _COMPILED.append_rows(one, *columns(rows), 1, 5000, MAX, MAX, 4)[0] == 999
    for i in range(1, 1000):
        assert _COMPILED.append_rows(many, *columns(rows), i, 1, MAX, MAX, 4)[0] == 1
    buffers = [closed(builder, transactional=False) for builder in (one, many)]
    (batch,) = MemoryRecords(buffers[0])

    assert buffers[0] == buffers[1]
    assert batch.validate_crc()
    read = [(record.value, record.key, list(record.headers)) for record in batch]
    assert read == [(value, key, list(headers)) for value, key, headers in rows]


class Odd(str):
    """A name that encodes itself in its own way."""

    __slots__ = ()


@compiled
@pytest.mark.parametrize(
    "row",
    [
        (bytearray(b"x"), None, ()),
        (b"x", memoryview(b"x"), ()),
        ("text", None, ()),
        (b"x", None, [("name", None)]),
        (b"x", None, [("name", bytearray(b"x"))]),
        (b"x", None, [(b"name", b"x")]),
        (b"x", None, [("\ud800", b"x")]),
        (b"x", None, [(Odd("name"), b"x")]),
        (b"x", None, [["name", b"x"]]),
        (b"x", None, [("name", b"x", b"y")]),
        (b"x", None, {"name": b"x"}),
        (b"x" * 1000, None, ()),
        (b"x", None, [("name", b"x" * 1000)]),
    ],
    ids=[
        "bytearray",
        "memoryview",
        "text",
        "header without a value",
        "header of a bytearray",
        "name of bytes",
        "name that is not text",
        "name that encodes itself",
        "header in a list",
        "header of three",
        "headers in a dict",
        "large value",
        "large header",
    ],
)
def test_a_row_that_is_not_plain_or_too_large_is_left_to_send(row: Row) -> None:
    """The rows before it are taken, and its error stays that of the client."""
    assert _COMPILED is not None
    builder = begun(0, 1 << 20, 5, (b"first", None, ()))
    given = columns([(b"taken", b"k", [("name", b"x")]), row, (b"not taken", None, ())])
    assert _COMPILED.append_rows(builder, *given, 0, 3, MAX, 1000, 5) == (1, 6, 20)
    before = builder.size_in_bytes()
    assert _COMPILED.append_rows(builder, *given, 1, 2, MAX, 1000, 5) == (0, 0, 0)
    assert builder.size_in_bytes() == before
    assert builder.next_offset() == 2


@compiled
def test_the_largest_record_is_that_of_the_client() -> None:
    """`max_request_size` counts the client's estimate: one byte more is not taken."""
    assert _COMPILED is not None
    row: Row = (b"v" * 100, b"k" * 10, [("name", b"x" * 7)])
    at_most = DefaultRecordBatchBuilder.estimate_size_in_bytes(row[1], row[0], list(row[2])) - OVERHEAD_BYTES
    for limit, n in ((at_most, 1), (at_most - 1, 0)):
        builder = begun(0, 1 << 20, 5, (b"first", None, ()))
        assert _COMPILED.append_rows(builder, *columns([row]), 0, 1, MAX, limit, 5)[0] == n


@compiled
def test_no_more_is_taken_than_the_limits_allow() -> None:
    """Rows, and bytes of values and keys; and nothing by a builder that is new or closed."""
    assert _COMPILED is not None
    given = columns([(b"abc", b"de", ())] * 5)
    for rows_max, bytes_max, n in ((3, MAX, 3), (9, 14, 2), (9, 15, 3), (0, MAX, 0), (9, 4, 0), (-1, -1, 0)):
        builder = begun(0, 1 << 20, 5, (b"first", None, ()))
        assert _COMPILED.append_rows(builder, *given, 0, rows_max, bytes_max, MAX, 5)[:2] == (n, 5 * n)
    builder.close()
    for one in (builder, MemoryRecordsBuilder(2, 0, 1 << 20)):
        assert _COMPILED.append_rows(one, *given, 0, 5, MAX, MAX, 5) == (0, 0, 0)


class Partitions:
    """The metadata of a topic of one partition."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the numbers of the partitions."""
        return {0} if topic == "t" else None


class Sender:
    """Counts how often it was woken."""

    woken = 0

    def wakeup(self) -> None:
        """Count."""
        self.woken += 1


def a_producer(**settings: object) -> SimpleNamespace:
    """Return what a writer uses of a producer, around the client's own accumulator."""
    return SimpleNamespace(
        config={"max_request_size": 1 << 20},
        _accumulator=RecordAccumulator(**settings),
        _closed=False,
        _metadata=Partitions(),
        _sender=Sender(),
        _transaction_manager=None,
    )


class Appended:
    """A writer, a batch that the client opened, and the failures that were heard."""

    def __init__(self, **settings: object) -> None:
        self.producer = a_producer(**settings)
        self.accumulator = self.producer._accumulator
        self.writer = RowWriter(self.producer)
        self.failures: list[object] = []
        self.first, *_ = self.accumulator.append(ZERO, None, None, b"first", [])

    def rows(self, n: int, value: bytes = b"v", partition: TopicPartition = ZERO) -> Rows | None:
        """Append as many rows."""
        return self.writer.append(
            partition,
            *columns([(value, None, ())] * n),
            0,
            rows_max=MAX,
            bytes_max=MAX,
            failed=self.failures.append,
        )

    def taken(self) -> ProducerBatch:
        """Take the oldest batch, as the sender does."""
        batch = self.accumulator._batches[ZERO].popleft()
        batch.records.close()
        return batch

    def split(self, batch: ProducerBatch) -> None:
        """Split it, as the sender does when the broker refuses it as too large."""
        self.accumulator.split_and_reenqueue(batch)
        self.accumulator.deallocate(batch)


@compiled
def test_the_rows_of_a_call_have_one_future() -> None:
    """It is done with the batch; the client's own record in the batch is too."""
    appended = Appended()
    rows, more = appended.rows(100), appended.rows(5)
    assert rows is not None
    assert more is not None
    assert (rows.n, rows.size, more.n, rows.is_done) == (100, 100, 5, False)
    with pytest.raises(KafkaTimeoutError):
        rows.get(0.01)
    batch = appended.taken()
    assert batch.record_count == len(batch._record_futures) == 106
    assert batch.complete(1000, -1)
    rows.get(0)
    more.get(0)
    assert appended.first.get(0).offset == 1000
    assert rows.is_done
    assert appended.failures == []


@compiled
def test_a_batch_that_is_given_up_is_heard_at_once_and_kept() -> None:
    """By the callback of the client's thread, and again by who asks; with the error of the first row."""
    appended = Appended()
    rows = appended.rows(3)
    assert rows is not None
    error = MessageSizeTooLargeError("too large")
    appended.taken().complete_exceptionally(error, lambda i: KafkaError(f"of record {i}", error))
    assert [str(one) for one in appended.failures] == [str(KafkaError("of record 1", error))]
    for _ in range(2):
        with pytest.raises(KafkaError, match="of record 1"):
            rows.get(0)


@compiled
def test_a_batch_that_is_aborted_is_done() -> None:
    """As by `abandon` and by a transaction that has failed; no row is appended afterwards."""
    appended = Appended()
    rows = appended.rows(3)
    assert rows is not None
    appended.accumulator.close()
    assert appended.rows(3) is None
    appended.accumulator.abort_incomplete_batches()
    with pytest.raises(KafkaError, match="closed forcefully"):
        rows.get(0)
    assert appended.accumulator._appends_in_progress.get() == 0


@compiled
def test_a_batch_that_is_split_is_done_when_all_its_parts_are() -> None:
    """Split twice, by the client; who waits meanwhile waits on, and each row is in one of the parts."""
    appended = Appended()
    rows = appended.rows(99)
    assert rows is not None
    waited: list[bool] = []

    def wait() -> None:
        rows.get(20)
        waited.append(rows.is_done)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    time.sleep(0.05)
    appended.split(appended.taken())
    appended.split(appended.taken())
    sizes = []
    while appended.accumulator._batches[ZERO]:
        assert not rows.is_done
        part = appended.taken()
        sizes.append(part.record_count)
        assert part.record_count == len(part._record_futures)
        part.complete(sum(sizes[:-1]), -1)
    waiting.join(10)

    assert sizes == [25, 25, 50]
    assert rows.is_done
    assert waited == [True]
    assert appended.failures == []


@compiled
def test_a_part_that_is_refused_is_a_failure_of_its_rows() -> None:
    """The first part was delivered, the second was not: the rows were not."""
    appended = Appended()
    rows, later = appended.rows(5), appended.rows(2)
    assert rows is not None
    assert later is not None
    appended.split(appended.taken())
    error = MessageSizeTooLargeError("too large")
    appended.taken().complete(0, -1)
    appended.taken().complete_exceptionally(error, lambda _: error)

    assert [one for one in appended.failures if one is not error] == []
    assert len(appended.failures) == 2 + 2
    for one in (rows, later):
        assert one.is_done
        with pytest.raises(MessageSizeTooLargeError):
            one.get(0)


@compiled
def test_a_part_that_is_refused_is_heard_before_the_parts_behind_it_are_done() -> None:
    """They may wait until they expire; `flush` must not."""
    appended = Appended()
    rows = appended.rows(7)
    assert rows is not None
    appended.split(appended.taken())
    error = MessageSizeTooLargeError("too large")
    appended.taken().complete_exceptionally(error, lambda _: error)

    assert rows.is_done
    with pytest.raises(MessageSizeTooLargeError):
        rows.get(0)


@compiled
def test_a_row_that_does_not_fit_is_left_and_the_sender_is_woken() -> None:
    """The client opens the next batch; one that is exactly full is sent at once."""
    appended = Appended(batch_size=200)
    size = appended.accumulator._batches[ZERO][0].records.size_in_bytes()
    assert appended.rows(1, b"x" * 200) is None
    assert appended.producer._sender.woken == 0
    assert appended.rows(1, b"x" * (200 - size - 9)) is not None
    assert appended.accumulator._batches[ZERO][0].records.is_full()
    assert appended.producer._sender.woken == 1
    assert appended.rows(1) is None


@compiled
def test_rows_for_which_no_batch_is_open_are_left() -> None:
    """Also for a partition that the topic no longer has, and after the producer was closed."""
    appended = Appended()
    assert appended.rows(1, partition=TopicPartition("t", 1)) is None
    assert appended.rows(1, partition=TopicPartition("u", 0)) is None
    assert dict(appended.accumulator._batches).keys() == {ZERO}
    appended.producer._closed = True
    assert appended.rows(1) is None
    appended.producer._closed = False
    appended.taken()
    assert appended.rows(1) is None


@compiled
def test_a_failed_transaction_takes_no_rows() -> None:
    """The client's own check is asked before each call, as `send` asks it for each record."""
    appended, failure = Appended(), KafkaError("failed")

    class Manager:
        def is_transactional(self) -> bool:
            return True

        def maybe_add_partition_to_transaction(self, partition: TopicPartition) -> None:
            assert partition == ZERO
            raise failure

    appended.producer._transaction_manager = Manager()
    with pytest.raises(KafkaError, match="failed"):
        appended.rows(1)
    assert appended.accumulator._batches[ZERO][-1].record_count == 1


@compiled
def test_the_client_that_is_installed_is_supported(caplog: pytest.LogCaptureFixture) -> None:
    """The version that `pyproject.toml` asks for; brokers with an old format are not, which is logged."""
    lacking_to_append.cache_clear()
    assert lacking_to_append() == ()
    assert row_writer(a_producer()) is not None
    assert caplog.messages == []
    assert row_writer(a_producer(message_version=1)) is None
    assert caplog.messages == [
        "The brokers are older than Kafka 0.11: records are sent one by one, which is slower."
    ]


@compiled
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (RecordAccumulator, "split_and_reenqueue"),
        (MemoryRecordsBuilder, "is_full"),
        (DefaultRecordBatchBuilder, "_num_records"),
        (None, "_sender"),
    ],
)
def test_a_client_without_a_name_sends_record_by_record(
    owner: type | None, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once, with what is missing."""
    caplog.set_level(logging.WARNING)
    producer = a_producer()
    if owner is None:
        delattr(producer, name)
    else:
        monkeypatch.delattr(owner, name)
    for cached in (lacking_to_append, rows_module._warn_of):
        cached.cache_clear()
    try:
        assert [row_writer(producer) for _ in range(2)] == [None, None]
    finally:
        for cached in (lacking_to_append, rows_module._warn_of):
            cached.cache_clear()
    (said,) = caplog.messages
    assert name in said
    assert "sent one by one" in said


@compiled
def test_a_client_that_keeps_its_records_otherwise_sends_record_by_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever it changed: a sample batch of both is compared."""
    monkeypatch.setattr(rows_module, "_compiled", SimpleNamespace(append_rows=lambda *_: (0, 0, 0)))
    lacking_to_append.cache_clear()
    try:
        assert lacking_to_append() == ("the record batches of 3.0.12",)
    finally:
        lacking_to_append.cache_clear()


def test_without_the_compiled_module_there_is_no_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """``STREAMNB_PURE=1`` chooses it too."""
    monkeypatch.setattr(rows_module, "_compiled", None)
    assert row_writer(a_producer()) is None
