"""The log in memory behaves like a broker's log, and simulates a crash at each `CRASH` mark."""

from __future__ import annotations

import pytest

from streamnb.base.limits import POLL_BYTES_MAX
from streamnb.base.protocols import Clock, Sink, Source, Start
from streamnb.base.record import HEADER_BYTES, Partition
from streamnb.errors import DeliveryError, PositionError, SettingsError
from streamnb.transports.memory import CRASH, END, Crash, MemoryClock, MemoryLog, MemorySink, MemorySource

P0, P1 = Partition("memory", 0), Partition("memory", 1)


def drain(source: Source, records_max: int = 100) -> list[bytes | None]:
    """Return the values of one poll."""
    return [value for batch in source.poll(records_max, 0) for value in batch.values]


def filled(n: int) -> MemoryLog:
    """Return a log of the records 0 to n - 1, one second apart."""
    log = MemoryLog()
    for i in range(n):
        log.append(b"%d" % i, timestamp_ms=1000 * i)
    return log


def test_a_batch_holds_all_columns_of_a_partition() -> None:
    """A poll returns one batch per partition, with every field of its records, tombstones included."""
    log = MemoryLog(partitions=2)
    assert log.append(b"a", 1, b"key", [("h", b"1"), ("h", b"2")], 7) == 0
    assert log.append(b"b") == 0
    assert log.append(None, 1) == 1
    source: Source = MemorySource(log)
    assert source.open({}, "earliest") == {P0: 0, P1: 0}

    first, second = source.poll(100, 0)

    assert (first.partition, first.offsets, first.values, first.next_offset) == (P0, [0], [b"b"], 1)
    assert (second.partition, second.offsets, second.values, second.next_offset) == (
        P1,
        [0, 1],
        [b"a", None],
        2,
    )
    assert (second.keys, second.timestamps_ms) == ([b"key", None], [7, -1])
    assert second.headers == [[("h", b"1"), ("h", b"2")], ()]
    assert source.poll(100, 0) == []
    assert source.end_offsets() == {P0: 1, P1: 2}
    assert not source.finished()


def test_F9_a_poll_is_bounded_in_bytes() -> None:
    """The record that reaches the limit is the poll's last, and a record larger than the limit is read."""
    log, third = MemoryLog(), POLL_BYTES_MAX // 3
    sizes = [third, third, third, third, 4 * POLL_BYTES_MAX, 1, 1]
    for size in sizes:
        log.append(bytes(size))
    log.append(b"", headers=[("", b"")] * (POLL_BYTES_MAX // HEADER_BYTES + 1))
    log.append(b"last")
    source = MemorySource(log)
    source.open({}, "earliest")

    assert [[len(value or b"") for value in drain(source)] for _ in range(4)] == [
        sizes[:4],
        sizes[4:5],
        [1, 1, 0],
        [4],
    ]


def test_a_poll_takes_records_in_the_order_they_were_appended() -> None:
    """A poll returns at most `records_max` records over all partitions; later appends come after them."""
    log = MemoryLog(partitions=2)
    source = MemorySource(log)
    source.open({}, "earliest")
    for i in range(5):
        log.append(b"%d" % i, i % 2)

    assert [[batch.values for batch in source.poll(3, 0)] for _ in range(2)] == [
        [[b"0", b"2"], [b"1"]],
        [[b"4"], [b"3"]],
    ]
    log.append(b"5")
    assert drain(source) == [b"5"]


@pytest.mark.parametrize(
    ("start", "position"), [("earliest", 0), ("latest", 5), (0, 0), (1500, 2), (2000, 2), (4001, 5)]
)
def test_a_first_start_is_at_an_end_or_at_a_time(start: Start, position: int) -> None:
    """A time means the first record at or after it, or the end of the log if there is none."""
    source = MemorySource(filled(5))

    assert source.open({}, start) == {P0: position}
    assert drain(source) == [b"%d" % i for i in range(position, 5)]


def test_a_snapshots_positions_come_before_the_start() -> None:
    """A partition missing from the snapshot was added since, and is read from its first offset."""
    log = MemoryLog(partitions=2)
    for i in range(6):
        log.append(b"%d" % i, i % 2)
    log.delete_before(1, 1)
    source = MemorySource(log)

    assert source.open({P0: 2}, "latest") == {P0: 2, P1: 1}
    assert drain(source) == [b"4", b"3", b"5"]
    source.open({P0: 0, P1: 2}, "latest")
    assert drain(source) == [b"0", b"2", b"4", b"5"]


def test_a_source_of_chosen_partitions_reads_only_these() -> None:
    """Positions, ends and new partitions of the others do not concern it, and two sources read all."""
    log = MemoryLog(partitions=2)
    for i in range(6):
        log.append(b"%d" % i, i % 2)
    first, second = MemorySource(log, [0]), MemorySource(log, [1])

    assert first.open({P0: 1, P1: 99}, "earliest") == {P0: 1}
    assert second.open({P0: 1}, "latest") == {P1: 3}
    assert second.open({}, "earliest") == {P1: 0}
    log.begin.append(0)
    log.end.append(0)
    assert (first.added(), second.added()) == ({}, {})
    assert (first.end_offsets(), second.end_offsets()) == ({P0: 3}, {P1: 3})
    assert (drain(first), drain(second)) == ([b"2", b"4"], [b"1", b"3", b"5"])
    with pytest.raises(SettingsError, match="Topic memory has 3 partitions, numbers 0 to 2, so partition 3"):
        MemorySource(log, [3]).open({}, "earliest")


def test_a_position_that_the_log_does_not_hold_is_refused() -> None:
    """The first and the end offset are valid; an offset before, after or in another partition is not."""
    log = filled(5)
    log.delete_before(0, 2)
    source = MemorySource(log)

    assert [record.offset for record in log.records(0)] == [2, 3, 4]
    assert source.open({}, "earliest") == {P0: 2}
    assert source.open({P0: 5}, "earliest") == {P0: 5}
    for position, what in (
        ({P0: 1}, r"memory-0 begins at offset 2: offsets 1 to 1 \(1 records at most\) are missing"),
        ({P0: 6}, r"memory-0 ends at offset 5: offsets 5 to 5, already learned, are missing"),
        ({P1: 0}, r"memory-1 is gone; the snapshot's next offset in it is 0"),
    ):
        with pytest.raises(PositionError, match=what):
            source.open(position, "earliest")


def test_records_deleted_before_they_were_read_stop_the_source() -> None:
    """Deleting records before they are read is a loss, and not a gap to skip."""
    log = filled(5)
    source = MemorySource(log)
    source.open({}, "earliest")
    assert drain(source, 1) == [b"0"]
    log.delete_before(0, 3)

    with pytest.raises(PositionError, match="offsets 1 to 2 are lost"):
        source.poll(1, 0)


def test_a_crash_comes_once_after_the_records_before_it() -> None:
    """Delivered records stay delivered; a source that is opened on the log again skips the mark."""
    log = MemoryLog()
    for value in (b"0", b"1", CRASH, b"2"):
        log.append(value)
    source = MemorySource(log)
    source.open({}, "earliest")
    assert drain(source) == [b"0", b"1"]
    with pytest.raises(Crash):
        source.poll(100, 0)

    again = MemorySource(log)
    assert again.open({P0: 1}, "earliest") == {P0: 1}
    assert drain(again) == [b"1", b"2"]
    assert [record.offset for record in log.records(0)] == [0, 1, 2]


def test_two_crashes_in_a_row_are_two_crashes() -> None:
    """Two marks raise twice, even before the first record, as in a recovery that crashes again."""
    log = MemoryLog()
    for value in (CRASH, CRASH, b"0"):
        log.append(value)
    for _ in range(2):
        source = MemorySource(log)
        source.open({}, "earliest")
        with pytest.raises(Crash):
            source.poll(100, 0)
    source.open({}, "earliest")
    assert drain(source) == [b"0"]


def test_a_crash_is_not_an_error_that_can_be_handled() -> None:
    """An engine's `except Exception` must not catch it."""
    assert not issubclass(Crash, Exception)


def test_a_mark_before_the_position_is_skipped() -> None:
    """Marks directly in front of the position still take effect, because they were not reached."""
    log = MemoryLog()
    for value in (b"0", CRASH, b"1", END, b"2"):
        log.append(value)
    source = MemorySource(log)

    source.open({}, "latest")
    assert drain(source) == []
    source.open({P0: 2}, "earliest")
    assert drain(source) == []
    assert source.finished()


def test_an_end_finishes_the_source_until_it_is_opened_again() -> None:
    """Until then no poll returns a record behind the mark."""
    log = MemoryLog()
    for value in (b"0", END, b"1"):
        log.append(value)
    source = MemorySource(log)
    source.open({}, "earliest")

    assert not source.finished()
    assert drain(source) == [b"0"]
    assert source.finished()
    assert drain(source) == []
    source.open({P0: 1}, "earliest")
    assert not source.finished()
    assert drain(source) == [b"1"]
    assert not source.finished()


def test_a_log_is_known_by_its_id_and_commits_are_kept() -> None:
    """A recreated topic of the same name has another identity."""
    old, new = (
        MemorySource(MemoryLog(topic="mail")),
        MemorySource(MemoryLog(topic="mail", topic_id="memory-2")),
    )
    assert old.identity() == {"cluster": "memory", "topic mail": "memory-1"}
    assert old.identity() != new.identity()

    old.commit({P0: 3, P1: 4})
    old.commit({P0: 5})
    assert old.committed == {P0: 5, P1: 4}
    old.close()
    old.close()


def test_a_sink_keeps_partition_order_and_counts_what_it_acknowledged() -> None:
    """A record goes to its input partition modulo the log's partition count."""
    log = MemoryLog(partitions=2)
    sink = MemorySink(log)
    typed: Sink = sink
    typed.publish(0, [b"a", b"b"], [b"k", None], [[("h", b"1")], ()])
    typed.publish(3, [None], [None], [()])
    assert sink.flushed == 0
    typed.flush(1000)

    assert [(record.value, record.key, record.headers) for record in log.records(0)] == [
        (b"a", b"k", [("h", b"1")]),
        (b"b", None, ()),
    ]
    assert [record.value for record in log.records(1)] == [None]
    assert sink.flushed == 3
    typed.close()
    typed.close()


def test_a_lost_delivery_raises_from_the_next_call_on() -> None:
    """As with a broker, the `publish` that loses the record does not raise yet."""
    log = MemoryLog()
    sink = MemorySink(log, fail_after=2)
    sink.publish(0, [b"a"], [None], [()])
    sink.flush(0)
    sink.publish(0, [b"b", b"c", b"d"], [None] * 3, [()] * 3)

    for _ in range(2):
        with pytest.raises(DeliveryError):
            sink.flush(0)
        with pytest.raises(DeliveryError):
            sink.publish(0, [b"e"], [None], [()])
    assert [record.value for record in log.records(0)] == [b"a", b"b"]
    assert sink.flushed == 1


def test_a_sink_may_fail_from_the_first_record() -> None:
    """A sink that delivered exactly `fail_after` records has lost none."""
    never, exactly = MemorySink(MemoryLog(), fail_after=0), MemorySink(MemoryLog(), fail_after=1)
    never.flush(0)
    never.publish(0, [b"a"], [None], [()])
    exactly.publish(0, [b"a"], [None], [()])
    exactly.flush(0)

    assert exactly.flushed == 1
    with pytest.raises(DeliveryError):
        never.flush(0)


def test_a_clock_moves_only_by_hand() -> None:
    """`advance` moves the monotonic and the wall time together."""
    moved = MemoryClock(monotonic_s=5.0, wall_ms=1_700_000_000_000)
    clock: Clock = moved
    assert (clock.monotonic_s(), clock.wall_ms()) == (5.0, 1_700_000_000_000)
    moved.advance(0.25)
    assert (clock.monotonic_s(), clock.wall_ms()) == (5.25, 1_700_000_000_250)
