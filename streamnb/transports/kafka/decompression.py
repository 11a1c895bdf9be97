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
from io import BytesIO

from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch

XERIAL = b"\x82SNAPPY\x00"
XERIAL_HEADER_BYTES = 16
GZIP_WINDOW = 31  # zlib's code for a gzip header and the largest window
PIECE_BYTES = 1 << 20
CHUNK_BYTES = 1 << 16
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


class _Unpacked(BytesIO):
    """Decompressed bytes, which are written in pieces: `getvalue` then needs no second copy of them."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__()
        self._left = bytes_max

    def add(self, piece: bytes) -> None:
        """Append a piece.

        Raises
        ------
        _TooLarge
            With it there would be more bytes than are allowed.
        """
        self._left -= len(piece)
        if self._left < 0:
            raise _TooLarge
        self.write(piece)


def _gzip(packed: bytes, bytes_max: int) -> bytes:
    unpacked, member = _Unpacked(bytes_max), zlib.decompressobj(GZIP_WINDOW)
    for chunk in _chunks(packed):
        rest = chunk
        while rest:
            if member.eof:  # a gzip file may consist of several members
                member = zlib.decompressobj(GZIP_WINDOW)
            unpacked.add(member.decompress(rest, PIECE_BYTES))
            rest = member.unused_data if member.eof else member.unconsumed_tail
    while not member.eof and (piece := member.decompress(b"", PIECE_BYTES)):
        unpacked.add(piece)
    if packed and not member.eof:
        raise ValueError("it ends early")
    return unpacked.getvalue()


def _chunks(packed: bytes) -> Iterator[bytes]:
    """Yield the bytes in small parts: what a decoder has not read yet, it copies with every piece."""
    return (packed[at : at + CHUNK_BYTES] for at in range(0, len(packed), CHUNK_BYTES))


def _snappy(packed: bytes, bytes_max: int) -> bytes:
    import snappy

    unpacked = _Unpacked(bytes_max)
    for block in _snappy_blocks(packed):
        length = _snappy_length(block)  # the codec refuses a block longer than it declares
        if length > bytes_max:
            raise _TooLarge
        if block is packed:
            whole: bytes = snappy.decompress(block)
            return whole
        unpacked.add(snappy.decompress(block))
    return unpacked.getvalue()


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

    unpacked, frame = _Unpacked(bytes_max), lz4.frame.LZ4FrameDecompressor()
    for chunk in _chunks(packed):
        if frame.eof:
            break
        unpacked.add(frame.decompress(chunk, PIECE_BYTES))
        while not (frame.eof or frame.needs_input):
            unpacked.add(frame.decompress(b"", PIECE_BYTES))
    while not frame.eof and (piece := frame.decompress(b"", PIECE_BYTES)):
        unpacked.add(piece)
    if not frame.eof:
        raise ValueError("it ends early")
    return unpacked.getvalue()


def _zstd(packed: bytes, bytes_max: int) -> bytes:
    import zstandard

    unpacked = _Unpacked(bytes_max)
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    with decompressor.stream_reader(packed, read_across_frames=True) as reader:
        while piece := reader.read(PIECE_BYTES):
            unpacked.add(piece)
    return unpacked.getvalue()


_UNPACK: dict[int, Callable[[bytes, int], bytes]] = {
    DefaultRecordBatch.CODEC_GZIP: _gzip,
    DefaultRecordBatch.CODEC_SNAPPY: _snappy,
    DefaultRecordBatch.CODEC_LZ4: _lz4,
    DefaultRecordBatch.CODEC_ZSTD: _zstd,
}
