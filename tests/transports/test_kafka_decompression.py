"""A batch unpacks to a bound, whatever it is packed with."""

from __future__ import annotations

import gzip
import subprocess
import sys

import pytest
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from streamnb.transports.kafka.decompression import unpack

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
LIMIT = 1 << 20


def packed(codec: str, values: list[bytes]) -> DefaultRecordBatch:
    """A batch as a broker hands it out."""
    builder = DefaultRecordBatchBuilder(2, CODECS[codec], 0, -1, -1, -1, 1 << 30)
    for offset, value in enumerate(values):
        assert builder.append(offset, 0, None, value, []) is not None
    return DefaultRecordBatch(bytes(builder.build()))


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_within_the_bound_is_unpacked(codec: str) -> None:
    """Record for record."""
    values = [b"one", b"two" * 1000, b"", bytes(range(256)) * 100]
    batch = packed(codec, values)
    unpack(batch, LIMIT)

    assert [record.value for record in batch] == values


@pytest.mark.parametrize("codec", CODECS)
def test_A15_a_bomb_is_refused(codec: str) -> None:
    """Eight times the bound, from a fraction of it."""
    batch = packed(codec, [bytes(8 * LIMIT)])
    with pytest.raises(CorruptRecordError, match="decompressed_bytes_max"):
        unpack(batch, LIMIT)


@pytest.mark.parametrize("codec", CODECS)
def test_the_bound_itself_is_allowed(codec: str) -> None:
    """And one byte less is not."""
    batch = packed(codec, [bytes(1000)])
    unpack(packed(codec, [bytes(1000)]), LIMIT)
    unpack(batch, LIMIT)
    size = len(batch._buffer)
    unpack(packed(codec, [bytes(1000)]), size)
    with pytest.raises(CorruptRecordError):
        unpack(packed(codec, [bytes(1000)]), size - 1)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("cut", [1, 7, 100])
def test_damaged_bytes_are_refused(codec: str, cut: int) -> None:
    """Cut short, they never give a shorter value: what zstd does not notice its records do."""
    value = bytes(range(256)) * 40
    batch = packed(codec, [value])
    batch._buffer = batch._buffer[:-cut]
    try:
        unpack(batch, LIMIT)
        values = [record.value for record in batch]
    except CorruptRecordError:
        return
    assert values == [value]


def test_members_of_gzip_that_follow_each_other_are_one_batch() -> None:
    """As the format allows; the bound is for all of them."""
    batch = packed("gzip", [bytes(1000)])
    head = bytes(batch._buffer)[: batch._pos]
    content = gzip.decompress(bytes(batch._buffer)[batch._pos :])
    batch._buffer = head + gzip.compress(content[:3]) + gzip.compress(content[3:])
    unpack(batch, LIMIT)

    assert bytes(batch._buffer) == content


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_takes_no_more_memory_than_the_bound(codec: str) -> None:
    """64 MiB unpacked under a limit of 1 MiB, in a process that may hold little more than it held before."""
    program = (
        "import resource, snappy, lz4.frame, zstandard\n"
        "from tests.transports.test_kafka_decompression import "
        "CODECS, LIMIT, CorruptRecordError, packed, unpack\n"
        f"batch = packed({codec!r}, [bytes(64 << 20)])\n"
        "held = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (held + (24 << 20),) * 2)\n"
        "try:\n    unpack(batch, LIMIT)\n"
        "except CorruptRecordError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert "decompressed_bytes_max" in done.stdout, done.stderr
