"""A record batch decompresses to at most the limit, with every codec."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import tracemalloc

import pytest
import snappy
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from streamnb.transports.kafka.decompression import PIECE_BYTES, unpack

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
LIMIT = 1 << 20


def packed(codec: str, values: list[bytes]) -> DefaultRecordBatch:
    """Return a compressed batch as a broker serves it."""
    builder = DefaultRecordBatchBuilder(2, CODECS[codec], 0, -1, -1, -1, 1 << 30)
    for offset, value in enumerate(values):
        assert builder.append(offset, 0, None, value, []) is not None
    return DefaultRecordBatch(bytes(builder.build()))


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_within_the_limit_is_decompressed(codec: str) -> None:
    """Every record of the batch is intact."""
    values = [b"one", b"two" * 1000, b"", bytes(range(256)) * 100]
    batch = packed(codec, values)
    unpack(batch, LIMIT)

    assert [record.value for record in batch] == values


@pytest.mark.parametrize("codec", CODECS)
def test_A15_a_bomb_is_refused(codec: str) -> None:
    """A batch of eight times the limit is refused, although its compressed size is far below it."""
    batch = packed(codec, [bytes(8 * LIMIT)])
    with pytest.raises(CorruptRecordError, match="decompress to more than"):
        unpack(batch, LIMIT)


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_itself_is_allowed(codec: str) -> None:
    """A limit one byte below the size is too small."""
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
    """A truncated batch never gives a shorter value: if zstd does not notice, the record decoder does."""
    value = bytes(range(256)) * 40
    batch = packed(codec, [value])
    batch._buffer = batch._buffer[:-cut]
    try:
        unpack(batch, LIMIT)
        values = [record.value for record in batch]
    except CorruptRecordError:
        return
    assert values == [value]


def test_A15_a_bomb_in_one_block_of_snappy_is_refused_before_it_is_decompressed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clients that do not cut a batch into blocks make one; its first bytes declare its size."""
    batch = packed("snappy", [bytes(1000)])
    batch._buffer = bytes(batch._buffer)[: batch._pos] + snappy.compress(bytes(8 * LIMIT))

    def never(block: bytes) -> bytes:
        raise AssertionError(f"{len(block)} bytes were decompressed")

    monkeypatch.setattr(snappy, "decompress", never)
    with pytest.raises(CorruptRecordError, match="decompress to more than"):
        unpack(batch, LIMIT)


def test_several_gzip_members_are_one_batch() -> None:
    """The gzip format allows several members in a row, and the limit covers their sum."""
    batch = packed("gzip", [bytes(1000)])
    head = bytes(batch._buffer)[: batch._pos]
    content = gzip.decompress(bytes(batch._buffer)[batch._pos :])
    batch._buffer = head + gzip.compress(content[:3]) + gzip.compress(content[3:])
    unpack(batch, LIMIT)

    assert bytes(batch._buffer) == content


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_takes_little_more_memory_than_the_limit(codec: str) -> None:
    """A bomb of 64 MiB is refused in a process that may allocate only 24 MiB more.

    A `MemoryError` is refused with the same words, so the codec must not have ended with one.
    """
    program = (
        "import resource, snappy, lz4.frame, zstandard\n"
        "from streamnb.transports.kafka import decompression\n"
        "from tests.transports.test_kafka_decompression import "
        "CODECS, LIMIT, CorruptRecordError, packed, unpack\n"
        f"batch, codec = packed({codec!r}, [bytes(64 << 20)]), decompression._UNPACK[CODECS[{codec!r}]]\n"
        "def noted(*arguments):\n"
        "    try:\n        return codec(*arguments)\n"
        "    except MemoryError:\n        print('the memory was used up')\n        raise\n"
        f"decompression._UNPACK[CODECS[{codec!r}]] = noted\n"
        "held = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (held + (24 << 20),) * 2)\n"
        "try:\n    unpack(batch, LIMIT)\n"
        "except CorruptRecordError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "decompress to more than" in done.stdout, done.stderr
    assert "used up" not in done.stdout


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [1, PIECE_BYTES - 100, PIECE_BYTES, 5 * PIECE_BYTES + 7])
def test_a_batch_is_put_together_from_pieces(codec: str, size: int) -> None:
    """Whether it packs well or not at all: both ends of the pieces that are read and written are met."""
    values = [bytes(size), random.Random(size).randbytes(size)]
    batch = packed(codec, values)
    unpack(batch, 1 << 24)

    assert [record.value for record in batch] == values


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_is_decompressed_without_a_second_copy_of_it(codec: str) -> None:
    """The documented limit of a decompressed batch is one of memory, not half of it."""
    size = 32 << 20
    batch = packed(codec, [bytes(size)])
    tracemalloc.start()
    unpack(batch, 2 * size)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1.3 * size
