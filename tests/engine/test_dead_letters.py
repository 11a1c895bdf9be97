"""A record that cannot be used becomes a dead letter with reason and address; too many stop the engine."""

from __future__ import annotations

import hashlib

import pytest

from streamnb.base.record import Headers, Partition, RecordBatch, Unreadable
from streamnb.engine.dead_letters import CUT_BYTES, DETAIL_CHARACTERS, DeadLetterLimits, DeadLetters
from streamnb.errors import DataError, RecordError
from streamnb.transports.memory import MemoryClock, MemoryLog, MemoryRecord, MemorySink

OWN = "traceparent"


def aside(
    value: bytes | None,
    *,
    key: bytes | None = None,
    headers: Headers = (),
    limits: DeadLetterLimits | None = None,
    what: str = "It is no JSON.",
) -> MemoryRecord:
    """Return the dead letter of a record at offset 41 of partition 2."""
    log = MemoryLog(partitions=3)
    letters = DeadLetters(
        MemorySink(log), MemoryClock(wall_ms=1_700_000_000_123), limits or DeadLetterLimits()
    )
    batch = RecordBatch(
        partition=Partition("mail", 2),
        offsets=[40, 41],
        values=[b'{"text": "a"}', value],
        keys=[None, key],
        timestamps_ms=[1, 1_600_000_000_456],
        headers=[(), headers],
        next_offset=42,
    )
    letters.publish(batch, [(1, RecordError("json_syntax", what))])
    (record,) = log.records(2)
    return record


@pytest.mark.parametrize("value", [b"", b"{", b"\xff\xfe\0", bytes(range(256)), b'{"text": "a"}\r\n', None])
def test_the_bytes_are_unchanged(value: bytes | None) -> None:
    """Value, key and headers are kept, also a tombstone's ``None``; a header name may occur twice."""
    own = [(OWN, b"\xff"), (OWN, b"2"), ("", b"")]
    record = aside(value, key=b"\0k", headers=own)
    assert record.value == value
    assert record.key == b"\0k"
    assert list(record.headers[-3:]) == own


def test_the_headers_say_why_and_where_from() -> None:
    """They come in this order, before the record's own headers."""
    assert list(aside(b"{").headers) == [
        ("streamnb.reason", b"json_syntax"),
        ("streamnb.detail", b"It is no JSON."),
        ("streamnb.topic", b"mail"),
        ("streamnb.partition", b"2"),
        ("streamnb.offset", b"41"),
        ("streamnb.timestamp_ms", b"1600000000456"),
        ("streamnb.dead_lettered_ms", b"1700000000123"),
    ]


def test_a_large_value_is_cut_and_identified() -> None:
    """Its size and SHA-256 identify it; at the limit it is not cut."""
    limits = DeadLetterLimits(bytes_max=10_000)
    whole = bytes(i % 251 for i in range(10_000))
    assert aside(whole, limits=limits).value == whole
    value = whole + b"x"
    record = aside(value, limits=limits)
    assert record.value == value[:CUT_BYTES]
    cut = f"10001 bytes, SHA-256 {hashlib.sha256(value).hexdigest()}"
    assert dict(record.headers)["streamnb.cut"] == cut.encode()


@pytest.mark.parametrize("value", [b"{", None])
def test_a_large_key_is_cut_and_large_headers_are_left_out(value: bytes | None) -> None:
    """Otherwise the broker would refuse the dead letter, and the stream would stop at this record."""
    limits = DeadLetterLimits(bytes_max=10_000)
    for key, headers in (
        (b"k" * 10_001, []),
        (b"k", [(OWN, b"x" * 100)] * 100),
        (b"k", [("n" * 9_999, b"xx")]),
    ):
        record = aside(value, key=key, headers=headers, limits=limits)
        assert record.value == value
        assert record.key == key[:CUT_BYTES]
        names = [name for name, _ in record.headers]
        assert OWN not in names
        assert names[-1] == "streamnb.cut"
        assert dict(record.headers)["streamnb.cut"].startswith(b"%d bytes, SHA-256 " % len(value or b""))


def test_a_detail_is_short_and_always_utf_8() -> None:
    """A detail may quote text of the record."""
    detail = dict(aside(b"{", what="x" * 10**6).headers)["streamnb.detail"]
    assert detail == b"x" * DETAIL_CHARACTERS
    assert dict(aside(b"{", what="\ud800").headers)["streamnb.detail"] == b"\\ud800"


def test_an_unreadable_range_leaves_a_stub() -> None:
    """The stub has no bytes, because none could be read, but names the offsets."""
    log = MemoryLog()
    letters = DeadLetters(MemorySink(log), MemoryClock(wall_ms=9), DeadLetterLimits())
    batch = RecordBatch(
        Partition("mail", 0),
        [],
        [],
        [],
        [],
        [],
        9,
        [Unreadable(3, 4, "bad checksum"), Unreadable(5, 9, "cut")],
    )
    letters.publish(batch, [])
    first, second = log.records(0)
    assert (first.value, first.key) == (None, None)
    assert list(first.headers) == [
        ("streamnb.reason", b"unreadable"),
        ("streamnb.detail", b"Offsets 3 to 3: bad checksum"),
        ("streamnb.topic", b"mail"),
        ("streamnb.partition", b"0"),
        ("streamnb.offset", b"3"),
        ("streamnb.timestamp_ms", b"-1"),
        ("streamnb.dead_lettered_ms", b"9"),
    ]
    assert dict(second.headers)["streamnb.detail"] == b"Offsets 5 to 8: cut"


def test_nothing_to_put_aside_is_nothing_published() -> None:
    """Not even an empty batch is published."""
    log = MemoryLog()
    letters = DeadLetters(MemorySink(log), MemoryClock(), DeadLetterLimits())
    letters.publish(RecordBatch(Partition("mail", 0), [0], [b"{}"], [None], [-1], [()], 1), [])
    assert log.elements == []


def letters(ratio_max: float, window: int) -> DeadLetters:
    """Return dead letters with this limit."""
    limits = DeadLetterLimits(ratio_max=ratio_max)
    return DeadLetters(MemorySink(MemoryLog()), MemoryClock(), limits, ratio_window_records=window)


def test_too_large_a_share_of_a_window_stops_the_engine() -> None:
    """One dead letter beyond the share is enough; windows are counted in records, not in time."""
    at_the_limit = letters(0.5, 10)
    for _ in range(20):
        at_the_limit.check_ratio(2, 1)
    beyond = letters(0.5, 10)
    beyond.check_ratio(9, 5)
    with pytest.raises(
        DataError, match=r"6 of the last 11 records became dead letters.*`dead_letters\.ratio_max`"
    ):
        beyond.check_ratio(2, 1)


def test_each_window_is_counted_by_itself() -> None:
    """Dead letters of an earlier window do not count, and neither do its good records."""
    it = letters(0.5, 10)
    it.check_ratio(10, 5)
    it.check_ratio(9, 9)
    with pytest.raises(DataError, match="9 of the last 10"):
        it.check_ratio(1, 0)


def test_a_share_of_one_never_stops_and_of_zero_always_does() -> None:
    """These are the two ends of the range."""
    letters(1.0, 1).check_ratio(10, 10)
    letters(0.0, 1).check_ratio(10, 0)
    with pytest.raises(DataError):
        letters(0.0, 1).check_ratio(10, 1)


@pytest.mark.parametrize(
    "limits",
    [
        {"ratio_max": 1.1},
        {"ratio_max": -0.1},
        {"ratio_max": float("nan")},
        {"bytes_max": 0},
    ],
)
def test_limits_out_of_range_are_refused(limits: dict[str, float]) -> None:
    """They are refused when they are set, not when the first record arrives."""
    with pytest.raises(ValueError, match="ratio_max"):
        DeadLetterLimits(**limits)  # type: ignore[arg-type]
