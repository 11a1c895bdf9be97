"""Decompression of record batches with a size limit, against decompression bombs.

Kafka limits only the compressed size of a batch, and one megabyte may decompress to a thousand. kafka-python
3.0.12 decompresses a batch of any size, so its decoders are not used here. Message formats of before Kafka
0.11 have no limit here, because brokers from 4.0 on no longer serve them.
"""

# ruff: noqa: SLF001  the client has no public names for the contents of a batch

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator

from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch

XERIAL = b"\x82SNAPPY\x00"
XERIAL_HEADER_BYTES = 16
GZIP_WINDOW = 31  # zlib's code for a gzip header and the largest window
ZSTD_WINDOW_BYTES = 1 << 27  # the window of zstd's highest level; the decoder refuses a larger one


def unpack(batch: DefaultRecordBatch, bytes_max: int) -> None:
    """Decompress a batch in place, unless it is larger than `bytes_max`.

    Raises
    ------
    CorruptRecordError
        The batch is larger when decompressed, or is not valid for its codec.
    UnsupportedCodecError
        The package for its codec is not installed.
    """
    kind = batch.compression_type
    if batch._decompressed or kind == batch.CODEC_NONE:
        return
    batch._assert_has_codec(kind)
    packed = bytes(memoryview(batch._buffer)[batch._pos :])
    try:
        unpacked = _UNPACK[kind](packed, bytes_max)
    except (_TooLarge, MemoryError):
        what = f"the {len(packed)} bytes decompress to more than {bytes_max}"
        raise CorruptRecordError(what) from None
    except Exception as error:
        raise CorruptRecordError(f"the batch cannot be decompressed: {error}") from error
    # The client copies it to a bytearray, and from that each value twice.
    batch._buffer, batch._pos, batch._decompressed = unpacked, 0, True


class _TooLarge(Exception):  # noqa: N818 it never leaves this module
    """The decompressed bytes exceed the limit."""


def _gzip(packed: bytes, bytes_max: int) -> bytes:
    unpacked = b""
    while packed:  # a gzip file may consist of several members
        member = zlib.decompressobj(GZIP_WINDOW)
        unpacked += _bounded(
            member.decompress(packed, bytes_max - len(unpacked) + 1), bytes_max - len(unpacked)
        )
        if not member.eof:
            raise ValueError("it ends early")
        packed = member.unused_data
    return unpacked


def _snappy(packed: bytes, bytes_max: int) -> bytes:
    import snappy

    unpacked = []
    for block in _snappy_blocks(packed):
        bytes_max -= _snappy_length(block)  # the codec refuses a block longer than it declares
        if bytes_max < 0:
            raise _TooLarge
        unpacked.append(snappy.decompress(block))
    return b"".join(unpacked)


def _snappy_blocks(packed: bytes) -> Iterator[bytes]:
    if not packed.startswith(XERIAL):
        yield packed
        return
    at = XERIAL_HEADER_BYTES
    while at < len(packed):
        (length,) = struct.unpack_from(">i", packed, at)
        if not 0 < length <= len(packed) - at - 4:
            raise ValueError("a snappy block is longer than the rest of the batch")
        yield packed[at + 4 : at + 4 + length]
        at += 4 + length


def _snappy_length(block: bytes) -> int:
    """Return the decompressed length that a block declares in its first bytes, a varint."""
    length = 0
    for i, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return length
    raise ValueError("a snappy block has no valid length")


def _lz4(packed: bytes, bytes_max: int) -> bytes:
    import lz4.frame

    frame = lz4.frame.LZ4FrameDecompressor()
    unpacked = _bounded(frame.decompress(packed, bytes_max + 1), bytes_max)
    if not frame.eof:
        raise ValueError("it ends early")
    return unpacked


def _zstd(packed: bytes, bytes_max: int) -> bytes:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    with decompressor.stream_reader(packed, read_across_frames=True) as reader:
        pieces, left = [], bytes_max + 1
        while left and (piece := reader.read(min(left, 1 << 20))):
            pieces.append(piece)
            left -= len(piece)
    return _bounded(b"".join(pieces), bytes_max)


def _bounded(unpacked: bytes, bytes_max: int) -> bytes:
    if len(unpacked) > bytes_max:
        raise _TooLarge
    return unpacked


_UNPACK: dict[int, Callable[[bytes, int], bytes]] = {
    DefaultRecordBatch.CODEC_GZIP: _gzip,
    DefaultRecordBatch.CODEC_SNAPPY: _snappy,
    DefaultRecordBatch.CODEC_LZ4: _lz4,
    DefaultRecordBatch.CODEC_ZSTD: _zstd,
}
