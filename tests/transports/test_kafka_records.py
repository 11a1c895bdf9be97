"""A record that would fill the memory is skipped before it is decoded, and the records around it are not."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from kafka.record.default_records import DefaultRecordBatch

from streamnb.transports.kafka.batches import HEADERS_MAX, Batch
from tests.support.raw_batches import CODECS, raw_batch, raw_record

MANY = 8_000_000
UNPACKED_MAX = 64 << 20


def read(data: bytes) -> tuple[list[bytes | None], list[tuple[int, int, str]]]:
    """Return the values of a batch, and the offsets that cannot be read with the cause."""
    noted: list[tuple[int, int, str]] = []

    def note(first: int, end: int, error: Exception) -> None:
        noted.append((first, end, str(error)))

    batch = Batch(DefaultRecordBatch(data), note, UNPACKED_MAX)
    return [record.value for record in batch], noted


@pytest.mark.parametrize("codec", CODECS)
def test_A16_millions_of_headers_are_skipped_and_cost_neither_memory_nor_time(codec: str) -> None:
    """As tuples they would take 500 MB, and as long to decode as the watchdog waits for a poll."""
    many = raw_record(1, b"many", n_headers=MANY)
    data = raw_batch([raw_record(0, b"before", n_headers=2), many, raw_record(2, b"after")], codec)
    tracemalloc.start()
    began_s = time.process_time()
    found = read(data)
    took_s = time.process_time() - began_s
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert found[0] == [b"before", b"after"]
    (noted,) = found[1]
    assert noted[:2] == (1, 2)
    assert f"the record has {MANY} headers, more than {HEADERS_MAX}" in noted[2]
    assert peak < 2 * UNPACKED_MAX  # of the batch itself, and of what decompresses it
    assert took_s < 2.0


def test_A16_as_many_headers_as_are_allowed_are_decoded() -> None:
    """A large value alone is no reason to skip a record, nor is its key."""
    large = bytes(1 << 20)
    batch = [
        raw_record(0, large, key=large, n_headers=HEADERS_MAX),
        raw_record(1, None, key=None, n_headers=HEADERS_MAX),
        raw_record(2, large, key=large, n_headers=HEADERS_MAX + 1),
        raw_record(3, large),
    ]

    assert read(raw_batch(batch))[0] == [large, None, large]
