r"""The snapshot container: a file format for a JSON header and named arrays. Version 1.3, little-endian.

    prologue   magic 89 53 4E 42 0D 0A 1A 0A ("\x89SNB\r\n\x1a\n", which a transfer in text mode changes),
               u16 major, u16 minor, u32 number of sections, u64 bytes of header, u64 bytes of the file
    header     canonical JSON: UTF-8, keys sorted, no spaces
    table      for each section 80 bytes: name (32 bytes, zero-filled), type (8 bytes, zero-filled: one of
               ``|u1 <u4 <u8 <f4 <f8``), u64 dimensions (1 or 2), u64 rows, u64 columns (1 if one dimension),
               u64 offset, u32 CRC-32C of the section and its padding, u32 zero
    sections   raw arrays, row by row, each at a multiple of 4,096 and zero-filled to the next one
    footer     magic 53 4E 42 0A 45 4E 44 0A ("SNB\nEND\n"), u64 bytes of the file,
               u32 CRC-32C of all bytes before the first section, u32 zero

The part before the sections is zero-filled to a multiple of 4,096 too, and its checksum covers the filling.
So every byte is either under a checksum or compared with the only value it may have, and readers detect any
flipped bit and any truncation. Readers refuse another major version. A minor version may add sections and
keys of the header; `streamnb.storage.newer_minor` states which of them an older reader ignores.
`streamnb.storage.migrations` converts the contents of an older minor version.

A snapshot uses the container as follows. `format` in the header is "streamnb snapshot". `accounts` lists
topic, partition and `next_offset`, the first offset whose record is not in the state. `values.classes` names
the columns of the sections. `CountStore.freeze` documents `token_bytes`, `token_bounds` and `counts`, which
hold the tokens and their counts. This description is complete: `tests/support/strangers_reader.py` reads
snapshots with nothing else.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np
import orjson
from crc32c import crc32c

from streamnb.base import Section
from streamnb.errors import SnapshotError

Allocate = Callable[[int], memoryview]
"""Returns writable memory of the given number of bytes, which nothing else uses."""

MAJOR, MINOR = 1, 4
ALIGNMENT = 4096
SECTIONS_MAX = 64
HEADER_BYTES_MAX = 1 << 24
NAME_BYTES_MAX = 32
FILE_BYTES_MAX = 1 << 37

_MAGIC = b"\x89SNB\r\n\x1a\n"
_END = b"SNB\nEND\n"
_PROLOGUE = struct.Struct("<8sHHIQQ")
_ENTRY = struct.Struct("<32s8sQQQQII")
_FOOTER = struct.Struct("<8sQII")
_TYPES = ("|u1", "<u4", "<u8", "<f4", "<f8")
_PARALLEL_BYTES = 1 << 24  # in smaller files a second thread costs more than it saves
_PIECE_BYTES = 1 << 18  # small enough that a piece is still in the processor's cache when it is verified


class Contents(NamedTuple):
    """The contents of a container: a JSON object, arrays by name, and the minor version of the format."""

    header: dict[str, object]
    sections: dict[str, Section]
    minor: int = 0


class _Entry(NamedTuple):
    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    offset: int
    checksum: int

    @property
    def size(self) -> int:
        return int(self.dtype.itemsize) * math.prod(self.shape)


class File(Protocol):
    """A file that a container is read from: `streamnb.storage.files.WholeFile`, or bytes in memory."""

    @property
    def size(self) -> int:
        """The length of the file in bytes."""

    def read_into(self, buffer: memoryview, offset: int) -> None:
        """Fill a buffer with the bytes from `offset` on; callers never ask for bytes past the end."""


class _BytesFile:
    """Bytes in memory, read through the `File` Protocol."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._view = memoryview(data)

    def read_into(self, buffer: memoryview, offset: int) -> None:
        buffer[:] = self._view[offset : offset + len(buffer)]


def fresh(size: int) -> memoryview:
    """Return `size` uninitialized bytes, allocated by numpy."""
    return np.empty(size, np.uint8).data


def encode(header: Mapping[str, object], sections: Mapping[str, Section]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a container's file, piece by piece.

    Parameters
    ----------
    header : mapping
        Values that JSON can represent.
    sections : mapping of str to ndarray
        Arrays with one or two dimensions, of type uint8, uint32, uint64, float32 or float64.

    Yields
    ------
    bytes or memoryview
        The next part of the file; an array's is a view, not a copy.

    Raises
    ------
    SnapshotError
        `read` would refuse the file; nothing was yielded.
    """
    try:
        text = orjson.dumps(header, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise _unwritable(f"its header is not JSON ({error})") from error
    if len(text) > HEADER_BYTES_MAX:
        raise _unwritable(f"its header has {len(text)} bytes, more than {HEADER_BYTES_MAX}")
    if len(sections) > SECTIONS_MAX:
        raise _unwritable(f"it has {len(sections)} sections, more than {SECTIONS_MAX}")
    arrays = {name: np.ascontiguousarray(array) for name, array in sections.items()}
    head_size = _PROLOGUE.size + len(text) + _ENTRY.size * len(arrays)
    offset = head_size + _padding(head_size)
    table = []
    for name, array in arrays.items():
        if array.dtype.str not in _TYPES or array.ndim > 2 or not _is_name(name):
            raise _unwritable(f"section `{name}` ({array.dtype}, {array.ndim} dimensions) has no place in it")
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
    widest = max((n for array in arrays.values() for n in array.shape), default=0)
    if size > FILE_BYTES_MAX or widest > size:
        raise _unwritable(f"it has {size} bytes, and an array of {widest} rows or columns")
    prologue = _PROLOGUE.pack(_MAGIC, MAJOR, MINOR, len(arrays), len(text), size)
    head = b"".join([prologue, text, *table, bytes(_padding(head_size))])
    yield head
    for array in arrays.values():
        yield _bytes(array)
        yield bytes(_padding(array.nbytes))
    yield _FOOTER.pack(_END, size, crc32c(head), 0)


def decode(data: bytes, allocate: Allocate = fresh) -> Contents:
    """Return the contents of a container in memory; see `read`.

    Raises
    ------
    SnapshotError
        The bytes are not a container, are torn or damaged, or have another major version.
    """
    return read(_BytesFile(data), allocate)


def read(file: File, allocate: Allocate = fresh) -> Contents:
    """Read a container and verify every byte of it.

    Each section is read once, into memory of its own, and each piece is verified while it is in the
    processor's cache. A damaged table cannot cause a huge allocation: no section is allocated that the file
    is too small to fill.

    Parameters
    ----------
    file : File
    allocate : Allocate
        Allocates the memory of the sections. The arrays are read-only views of it.

    Raises
    ------
    SnapshotError
        The file is not a container, is torn or damaged, or has another major version.
    """
    size = file.size
    start = _part(file, 0, min(size, _PROLOGUE.size))
    if start[: len(_MAGIC)] != _MAGIC:
        raise SnapshotError("It does not begin like a snapshot.", "Check which file was put there.")
    if size < _PROLOGUE.size + _FOOTER.size:
        raise _torn("it is shorter than any snapshot")
    _, major, minor, n_sections, header_size, stated_size = _PROLOGUE.unpack(start)
    if major != MAJOR:
        raise SnapshotError(
            f"It has container version {major}.{minor}; this streamnb reads {MAJOR}.x.",
            "Run the version of streamnb that wrote it; the file was not changed.",
        )
    if stated_size != size:
        raise _torn(f"it has {size} bytes, but its prologue states {stated_size}")
    body_end = size - _FOOTER.size
    end, footer_size, head_checksum, zero = _FOOTER.unpack(_part(file, body_end, _FOOTER.size))
    if end != _END or footer_size != size or zero != 0:
        raise _torn("its last bytes are not a snapshot's")
    head_size = _PROLOGUE.size + header_size + _ENTRY.size * n_sections
    head_end = head_size + _padding(head_size)
    if n_sections > SECTIONS_MAX or header_size > HEADER_BYTES_MAX or head_end > body_end:
        raise _torn("its prologue states a header or table that is too large")
    head = memoryview(_part(file, 0, head_end))
    if crc32c(head) != head_checksum or head[head_size:] != bytes(head_end - head_size):
        raise _torn("the checksum of its header is wrong")
    table = _PROLOGUE.size + header_size
    sections = _sections(file, head[table:head_size], head_end, body_end, allocate)
    return Contents(_header(head[_PROLOGUE.size : table]), sections, minor)


def _header(text: memoryview) -> dict[str, object]:
    try:
        header = orjson.loads(text)
        orjson.dumps(header)  # orjson reads deeper nesting than it writes, and the header is written again
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:
        raise _torn("its header is not JSON, or nested too deeply") from error
    if not isinstance(header, dict):
        raise _torn("its header is not an object")
    return header


def _sections(file: File, table: memoryview, start: int, end: int, allocate: Allocate) -> dict[str, Section]:
    """Read the sections, which must fill `start` to `end` without gaps; in large files two at a time."""
    entries: dict[str, _Entry] = {}
    for i, at in enumerate(range(0, len(table), _ENTRY.size)):
        entry = _entry(table[at : at + _ENTRY.size], file.size)
        after = entry.offset + entry.size
        after += _padding(after)
        if entry.offset != start or after > end or entry.name in entries:
            raise _torn(f"its table gives section {i} a wrong place or a name twice")
        entries[entry.name] = entry
        start = after
    if start != end:
        raise _torn("it has bytes that belong to no section")
    if file.size < _PARALLEL_BYTES:
        return {name: _section(file, entry, allocate) for name, entry in entries.items()}
    with ThreadPoolExecutor(2, "streamnb-read") as pool:  # at a start a second core has nothing else to do
        largest_first = sorted(entries, key=lambda name: -entries[name].size)
        read = {name: pool.submit(_section, file, entries[name], allocate) for name in largest_first}
        return {name: read[name].result() for name in entries}


def _section(file: File, entry: _Entry, allocate: Allocate) -> Section:
    """Read one section, and verify its checksum and its padding."""
    size, checksum = entry.size, 0
    memory = allocate(size)
    for at in range(0, size, _PIECE_BYTES):
        piece = memory[at : at + _PIECE_BYTES]
        file.read_into(piece, entry.offset + at)
        checksum = crc32c(piece, checksum)
    padding = _part(file, entry.offset + size, _padding(size))
    if crc32c(padding, checksum) != entry.checksum or padding != bytes(len(padding)):
        raise _torn(f"the checksum of section `{entry.name}` is wrong")
    return np.frombuffer(memory.toreadonly(), entry.dtype).reshape(entry.shape)


def _part(file: File, offset: int, size: int) -> bytearray:
    """Return a few bytes of a file."""
    part = bytearray(size)
    file.read_into(memoryview(part), offset)
    return part


def _entry(packed: memoryview, file_size: int) -> _Entry:
    name, dtype, dimensions, rows, columns, offset, checksum, zero = _ENTRY.unpack(packed)
    text = dtype.rstrip(b"\0").decode("ascii", "replace")
    if text not in _TYPES or dimensions not in {1, 2} or (dimensions == 1 and columns != 1) or zero:
        raise _torn("its table has a type or shape that no snapshot has")
    if max(rows, columns) > file_size:
        raise _torn("its table has a section that is larger than the file")
    shape = (rows,) if dimensions == 1 else (rows, columns)
    return _Entry(name.rstrip(b"\0").decode("ascii", "replace"), np.dtype(text), shape, offset, checksum)


def _is_name(name: str) -> bool:
    return name.isascii() and 0 < len(name) <= NAME_BYTES_MAX and not name.endswith("\0")


def _padding(size: int) -> int:
    return -size % ALIGNMENT


def _bytes(array: Section) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _unwritable(why: str) -> SnapshotError:
    return SnapshotError(
        f"The snapshot was not written, because no reader would accept it: {why}.",
        "Earlier snapshots stay as they are. Use fewer views, classes or partitions.",
    )


def _torn(why: str) -> SnapshotError:
    return SnapshotError(
        f"It is torn or damaged: {why}.",
        "Use another snapshot; an engine resumes from its newest intact one.",
    )
