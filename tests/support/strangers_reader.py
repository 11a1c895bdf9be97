"""An independent reader of snapshots, written only from the description in `streamnb/storage/container.py`.

It tests that the description is complete, and it can be a starting point for a reader in another language.
It implements CRC-32C itself, because the standard library has no such function.
"""

from __future__ import annotations

import json
import struct
from typing import Any

_TYPES = {b"|u1": ("B", 1), b"<u4": ("I", 4), b"<u8": ("Q", 8), b"<f4": ("f", 4), b"<f8": ("d", 8)}
_CRC_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x82F63B78 if _byte & 1 else 0)
    _CRC_TABLE.append(_byte)


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of some bytes; that of ``123456789`` is 0xE3069283."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def read(data: bytes) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the header and the sections (numbers, or rows of numbers), after assertions on everything."""
    magic, major, _minor, n_sections, header_size, file_size = struct.unpack_from("<8sHHIQQ", data, 0)
    assert (magic, major, file_size) == (b"\x89SNB\r\n\x1a\n", 1, len(data))
    footer = struct.unpack_from("<8sQII", data, file_size - 24)
    table = 32 + header_size
    start = _end_of_padding(data, table + 80 * n_sections)
    assert footer == (b"SNB\nEND\n", file_size, crc32c(data[:start]), 0)
    header = json.loads(data[32:table].decode("utf-8"))
    sections: dict[str, list[Any]] = {}
    for i in range(n_sections):
        entry = struct.unpack_from("<32s8sQQQQII", data, table + 80 * i)
        name, kind, dimensions, rows, columns, offset, checksum, zero = entry
        assert (offset, zero) == (start, 0)
        letter, size = _TYPES[kind.rstrip(b"\0")]
        numbers = struct.unpack_from(f"<{rows * columns}{letter}", data, offset)
        start = _end_of_padding(data, offset + rows * columns * size)
        assert crc32c(data[offset:start]) == checksum
        as_rows = [list(numbers[row * columns : (row + 1) * columns]) for row in range(rows)]
        sections[name.rstrip(b"\0").decode()] = as_rows if dimensions == 2 else list(numbers)
    assert start == file_size - 24
    return header, sections


def _end_of_padding(data: bytes, at: int) -> int:
    end = -(-at // 4096) * 4096
    assert not any(data[at:end])
    return end
