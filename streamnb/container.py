r"""The snapshot container: one file, readable by a stranger in any language. Version 1.0, little-endian.

    prologue   magic 89 53 4E 42 0D 0A 1A 0A ("\x89SNB\r\n\x1a\n": damage by text mode shows),
               u16 major, u16 minor, u32 number of sections, u64 bytes of header, u64 bytes of the file
    header     canonical JSON: UTF-8, keys sorted, no spaces
    table      for each section 80 bytes: name (32 bytes, zero-filled), type (8 bytes, zero-filled: one of
               ``|u1 <u2 <u8 <f8``), u64 dimensions (1 or 2), u64 rows, u64 columns (1 if one dimension),
               u64 offset, u32 CRC-32C of the section and its padding, u32 zero
    sections   raw arrays, row by row, each at a multiple of 4,096 and zero-filled to the next one
    footer     magic 53 4E 42 0A 45 4E 44 0A ("SNB\nEND\n"), u64 bytes of the file,
               u32 CRC-32C of all bytes before the first section, u32 zero

The part before the sections is zero-filled to 4,096 as well, and its checksum covers the filling. So every
byte of the file is under a checksum or compared with what it must be: a flipped bit or a missing end is seen.
A minor version may add sections, which older readers leave alone; another major version is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import orjson
from crc32c import crc32c

from streamnb.errors import SnapshotError
from streamnb.sections import Section

MAJOR, MINOR = 1, 0
ALIGNMENT = 4096
SECTIONS_MAX = 64
HEADER_BYTES_MAX = 1 << 24

_MAGIC = b"\x89SNB\r\n\x1a\n"
_END = b"SNB\nEND\n"
_PROLOGUE = struct.Struct("<8sHHIQQ")
_ENTRY = struct.Struct("<32s8sQQQQII")
_FOOTER = struct.Struct("<8sQII")
_TYPES = ("|u1", "<u2", "<u8", "<f8")


class Contents(NamedTuple):
    """What a container holds: a JSON object and arrays by name."""

    header: dict[str, object]
    sections: dict[str, Section]


class _Entry(NamedTuple):
    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    offset: int
    checksum: int

    @property
    def size(self) -> int:
        return int(self.dtype.itemsize) * int(np.prod(self.shape, dtype=object))


def encode(header: Mapping[str, object], sections: Mapping[str, Section]) -> Iterator[bytes | memoryview]:
    """The file, piece by piece.

    Parameters
    ----------
    header : mapping
        Anything JSON can say.
    sections : mapping of str to ndarray
        Of one or two dimensions and type uint8, uint16, uint64 or float64.

    Yields
    ------
    bytes or memoryview
        The arrays are not copied.
    """
    text = orjson.dumps(header, option=orjson.OPT_SORT_KEYS)
    arrays = {name: np.ascontiguousarray(array) for name, array in sections.items()}
    head_size = _PROLOGUE.size + len(text) + _ENTRY.size * len(arrays)
    offset = head_size + _padding(head_size)
    table = []
    for name, array in arrays.items():
        assert array.dtype.str in _TYPES, array.dtype
        padding = bytes(_padding(array.nbytes))
        checksum = crc32c(padding, crc32c(_bytes(array)))
        rows, columns = (*array.shape, 1)[:2]
        table.append(
            _ENTRY.pack(
                name.encode(), array.dtype.str.encode(), array.ndim, rows, columns, offset, checksum, 0
            )
        )
        offset += array.nbytes + len(padding)
    size = offset + _FOOTER.size
    prologue = _PROLOGUE.pack(_MAGIC, MAJOR, MINOR, len(arrays), len(text), size)
    head = b"".join([prologue, text, *table, bytes(_padding(head_size))])
    yield head
    for array in arrays.values():
        yield _bytes(array)
        yield bytes(_padding(array.nbytes))
    yield _FOOTER.pack(_END, size, crc32c(head), 0)


def decode(data: bytes) -> Contents:
    """The header and the sections of a file, every byte of it verified. The arrays share `data`'s memory.

    Raises
    ------
    SnapshotError
        The file is not a container, is torn or damaged, or is of another major version.
    """
    if data[: len(_MAGIC)] != _MAGIC:
        raise SnapshotError("It does not begin like a snapshot.", "Was another file put there?")
    if len(data) < _PROLOGUE.size + _FOOTER.size:
        raise _torn("it is shorter than any snapshot")
    _, major, minor, n_sections, header_size, size = _PROLOGUE.unpack_from(data)
    if major != MAJOR:
        raise SnapshotError(
            f"It is of container version {major}.{minor}; this streamnb reads {MAJOR}.x.",
            "Start the version of streamnb that wrote it.",
        )
    if size != len(data):
        raise _torn(f"it has {len(data)} bytes and says {size}")
    end, footer_size, head_checksum, zero = _FOOTER.unpack_from(data, size - _FOOTER.size)
    if end != _END or footer_size != size or zero != 0:
        raise _torn("its last bytes are not a snapshot's")
    head_size = _PROLOGUE.size + header_size + _ENTRY.size * n_sections
    head_end = head_size + _padding(head_size)
    if n_sections > SECTIONS_MAX or header_size > HEADER_BYTES_MAX or head_end > size - _FOOTER.size:
        raise _torn("its header does not fit into it")
    view = memoryview(data)
    if crc32c(view[:head_end]) != head_checksum or any(view[head_size:head_end]):
        raise _torn("the checksum of its header is wrong")
    header_end = _PROLOGUE.size + header_size
    sections = _sections(view, header_end, n_sections, head_end, size - _FOOTER.size)
    try:
        header = orjson.loads(view[_PROLOGUE.size : header_end])
        orjson.dumps(header)  # reads deeper nesting than it writes, and a header is written again
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:
        raise _torn("its header is not JSON, or nested too deeply") from error
    if not isinstance(header, dict):
        raise _torn("its header is not an object")
    return Contents(header, sections)


def _sections(data: memoryview, table: int, n_sections: int, start: int, end: int) -> dict[str, Section]:
    """The sections, which lie end to end between `start` and `end`."""
    sections: dict[str, Section] = {}
    for i in range(n_sections):
        entry = _entry(data, table + i * _ENTRY.size)
        after = entry.offset + entry.size
        after += _padding(after)
        if entry.offset != start or after > end or entry.name in sections:
            raise _torn(f"section {i} is not where the table says")
        if crc32c(data[start:after]) != entry.checksum or any(data[entry.offset + entry.size : after]):
            raise _torn(f"the checksum of section `{entry.name}` is wrong")
        array = np.frombuffer(data[entry.offset : entry.offset + entry.size], entry.dtype)
        sections[entry.name] = array.reshape(entry.shape)
        start = after
    if start != end:
        raise _torn("there is more in it than its table says")
    return sections


def _entry(data: memoryview, at: int) -> _Entry:
    name, dtype, dimensions, rows, columns, offset, checksum, zero = _ENTRY.unpack_from(data, at)
    text = dtype.rstrip(b"\0").decode("ascii", "replace")
    if text not in _TYPES or dimensions not in {1, 2} or (dimensions == 1 and columns != 1) or zero:
        raise _torn("its table names a type or shape that no snapshot has")
    if max(rows, columns) > len(data):
        raise _torn("its table names a section larger than the file")
    shape = (rows,) if dimensions == 1 else (rows, columns)
    return _Entry(name.rstrip(b"\0").decode("ascii", "replace"), np.dtype(text), shape, offset, checksum)


def _padding(size: int) -> int:
    return -size % ALIGNMENT


def _bytes(array: Section) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _torn(why: str) -> SnapshotError:
    return SnapshotError(
        f"It is torn or damaged: {why}.", "An older snapshot beside it is used if one is whole."
    )
