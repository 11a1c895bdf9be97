"""Records cut into columns are those that kafka-python decodes one by one, whatever the bytes are."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from kafka.consumer.fetcher import Fetcher
from kafka.record.memory_records import MemoryRecordsBuilder

from streamnb.base import HEADER_BYTES, POLL_BYTES_MAX, twins
from streamnb.transports.kafka import records
from streamnb.transports.kafka.batches import HEADERS_MAX
from tests.fuzz.kafka_batches import Fetch, Take, campaign, compare
from tests.support.raw_batches import (
    APPEND_TIME,
    CODECS,
    CONTROL,
    TRANSACTIONAL,
    raw_batch,
    raw_record,
    varint,
)

_COMPILED = twins.load("streamnb.transports.kafka._batches")
pytestmark = pytest.mark.skipif(not twins.WANTED, reason="STREAMNB_PURE is set")

ALL = (Take(1000, POLL_BYTES_MAX),)
GOOD = [raw_record(i, b"value %d" % i, key=b"k" if i % 2 else None, after_ms=-i) for i in range(9)]


def ways(
    data: bytes, *takes: Take, offset: int = 0, aborted: Sequence[tuple[int, int]] = ()
) -> dict[str, int]:
    """Compare both readers on a fetch, and return how many records were taken in which way."""
    return dict(compare(Fetch(data, offset, tuple(aborted), takes or ALL)))


def test_random_batches_are_read_alike() -> None:
    """Headers, keys, gaps, transactions, every codec, and bytes that are changed: a few hundred fetches."""
    total = campaign(300, 1)

    assert total["columns"] > 1000
    assert total["singly"] > 100


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("n", [1, 2, 4, 1000])
def test_every_codec_is_cut_whatever_a_poll_takes(codec: str, n: int) -> None:
    """No record goes the plain way."""
    data = raw_batch(GOOD, codec, first_ms=50) + raw_batch(GOOD, codec, base_offset=12)

    assert ways(data, Take(n, POLL_BYTES_MAX)) == {"columns": 18, "unreadable": 0}


@pytest.mark.parametrize("bytes_left", [-1, 0, 1, 13, 14, 15, 40, HEADER_BYTES, 3 * HEADER_BYTES])
def test_a_piece_ends_with_the_record_that_uses_up_the_poll(bytes_left: int) -> None:
    """By the sizes that records state, and what their headers take in memory."""
    some = [raw_record(i, b"x" * i, n_headers=i % 3) for i in range(9)]
    for offset in (0, 3):
        assert ways(raw_batch(some), Take(1000, bytes_left), offset=offset) == {
            "columns": 9 - offset,
            "unreadable": 0,
        }


@pytest.mark.parametrize("offset", [0, 1, 8, 9, 10, 12, 13, 30])
def test_records_before_the_position_are_passed_over(offset: int) -> None:
    """A fetch returns whole batches, and compaction leaves gaps."""
    gaps = [raw_record(delta, b"x") for delta in (0, 3, 4, 8)]
    data = raw_batch(gaps, base_offset=1, last_delta=9) + raw_batch(GOOD, "gzip", base_offset=11)

    assert "singly" not in ways(data, Take(2, POLL_BYTES_MAX), offset=offset)


def test_aborted_and_control_batches_are_left_to_the_client() -> None:
    """Records of a transaction that spans batches, of one that was aborted, and the markers between."""
    markers = [raw_record(0, b"\0" * 6, key=bytes((0, 0, 0, committed))) for committed in (0, 1)]

    def sent(at: int, producer: int, rows: Sequence[bytes] = GOOD, more: int = 0) -> bytes:
        return raw_batch(rows, base_offset=at, attributes=TRANSACTIONAL | more, producer=producer)

    data = sent(0, 4) + sent(9, 5) + sent(18, 4) + sent(27, 5, markers[:1], CONTROL)
    data += sent(28, 4, markers[1:], CONTROL) + sent(29, 5) + sent(38, 5, markers[1:], CONTROL)

    assert ways(data, aborted=[(9, 5)]) == {"columns": 27, "unreadable": 0}


def test_batches_of_before_kafka_0_11_are_left_to_the_client_with_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Between batches that are cut, too."""
    caplog.set_level("INFO")
    old = MemoryRecordsBuilder(1, 0, 1 << 10, offset=9)
    for value in (b"a", b"b"):
        old.append(5, None, value, [])
    old.close()
    data = raw_batch(GOOD) + bytes(old.buffer()) + raw_batch(GOOD, base_offset=11)

    assert ways(data) == {"columns": 18, "singly": 2, "unreadable": 0}
    assert sum("kafka-python decodes it" in line for line in caplog.messages) == 1


ODD = {
    "a header name that is not UTF-8": raw_record(9, b"", n_headers=1, header=b"\2\xff\0"),
    "a header without a name": raw_record(9, b"", n_headers=1, header=varint(-1) + b"\0"),
    "a header that is longer than the record": raw_record(9, b"", n_headers=1, header=varint(60) + b"a"),
    "too many headers": raw_record(9, b"", n_headers=HEADERS_MAX + 1),
    "more headers than there are": varint(6) + b"\0\0" + varint(9) + b"\1\0\x14",
    "fewer than no headers": varint(6) + b"\0\0" + varint(9) + b"\1\0\1",
    "a length that is too long": varint(200) + raw_record(9, b"")[1:],
    "a length that is too short": varint(3) + raw_record(9, b"")[1:],
    "no length": varint(0) + raw_record(9, b"")[1:],
    "a length below 0": varint(-1) + raw_record(9, b"")[1:],
    "a length of 70 bits": b"\xff" * 9 + b"\x7f",
    "a length of 77 bits": b"\xff" * 10 + b"\x01",
    "a key of 2^62 bytes": varint(15) + b"\0\0" + varint(9) + varint(1 << 62) + b"\0\0",
    "a value that leaves the record": varint(6) + b"\0\0" + varint(9) + b"\1" + varint(63) + b"\0",
    "a key of -5 bytes": varint(6) + b"\0\0" + varint(9) + varint(-5) + b"\0\0",
    "attributes of two bytes": varint(7) + b"\x80\0\0" + varint(9) + b"\1\0\0",
    "a timestamp past 64 bits": varint(15) + b"\0" + b"\xfe" * 9 + b"\x7f" + varint(9) + b"\1\0\0",
    "a sum of timestamps past 64 bits": raw_record(9, b"", after_ms=(1 << 63) - 1),
    "an offset of before": raw_record(3, b""),
    "an offset below the batch": raw_record(-3, b""),
    "an offset past 64 bits": raw_record((1 << 63) - 1, b""),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("n", [1, 3, 1000])
def test_an_odd_record_goes_the_plain_way_and_those_around_it_do_not(odd: bytes, n: int) -> None:
    """Its offset and its fault are those that the client finds."""
    after = [raw_record(10 + i, b"after") for i in range(3)]
    data = raw_batch([*GOOD, odd, *after], base_offset=5, first_ms=9) + raw_batch(GOOD, base_offset=30)
    found = ways(data, Take(n, POLL_BYTES_MAX))

    assert found["columns"] >= 18


@pytest.mark.parametrize("count", [-1, 0, 3, 10, (1 << 31) - 1])
def test_a_number_of_records_that_lies_is_found_out(count: int) -> None:
    """It chooses no memory, and what it leaves over is reported."""
    lost = 0 if count == 10 or count > 1000 else 9 - max(count, 0)  # all nine were read before the lie showed
    found = ways(raw_batch(GOOD, count=count) + raw_batch(GOOD, base_offset=9))

    assert found == {"columns": 18 - lost, "unreadable": lost}


def test_times_that_the_broker_gave_are_of_the_whole_batch() -> None:
    """Not the sums with each record's own; and a record may be null, or empty, in key and value."""
    some = [raw_record(0, None, key=b""), raw_record(1, b"", key=None), raw_record(2, None)]

    assert ways(raw_batch(some, attributes=APPEND_TIME, max_ms=77, first_ms=3)) == {
        "columns": 3,
        "unreadable": 0,
    }


def test_nothing_is_read_behind_the_end_of_the_bytes() -> None:
    """Every part of a batch gives what a copy of the part gives, though the rest stands behind it."""
    assert _COMPILED is not None
    data = b"".join([*GOOD[:3], raw_record(3, b"abc", n_headers=2, header=b"\2a\2b")])
    limits = (4, 0, 0, False, 0, 1000, 1 << 30, HEADER_BYTES, HEADERS_MAX)
    for end in range(len(data) + 1):
        found = _COMPILED.cut(memoryview(data)[:end], 0, *limits)
        assert found == _COMPILED.cut(data[:end], 0, *limits)
        assert found is None or found[7] <= end
    assert _COMPILED.cut(data, len(data) + 1, *limits) is None
    assert _COMPILED.cut(data, -1, *limits) is None


def test_what_stands_behind_a_record_that_is_cut_short_is_left_to_the_client() -> None:
    """It takes a last header that the bytes do not hold, if the length lies alike, and goes past it."""
    short = raw_record(9, b"value", n_headers=1, header=varint(1) + b"h" + varint(4) + b"1234")[:-2]

    assert ways(raw_batch([*GOOD, short], count=11) + raw_batch(GOOD, base_offset=10))["columns"] == 18


def test_a_client_that_reads_columns_otherwise_is_read_record_by_record(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And it is logged once."""
    records.columns_fit.cache_clear()
    assert records.columns_fit()

    def is_gone(*_: object) -> int:
        raise AttributeError("_append")

    try:
        for other in (is_gone, lambda *_: 0):
            records.columns_fit.cache_clear()
            monkeypatch.setattr(Fetcher, "_append", other)
            with caplog.at_level(logging.WARNING):
                assert not records.columns_fit()
                assert not records.columns_fit()
        assert len(caplog.records) == 2
        assert "decoded one by one" in caplog.text
    finally:
        records.columns_fit.cache_clear()
