"""Reading and appending lines of a file, pipe or terminal, in bounded memory and never with a torn line."""

from __future__ import annotations

import gzip
import io
import os
import select
import stat
import time
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from streamnb.base import POLL_BYTES_MAX
from streamnb.errors import DataError, PathError, ReaderGoneError, SettingsError, StreamnbError
from streamnb.storage.files import sync_directory, write_all
from streamnb.storage.os_errors import storage_error, translated

_CHUNK_BYTES = 1 << 18  # per read; a pipe gives at most 64 KiB at once

# Lines in


@dataclass(frozen=True, slots=True)
class LongLine:
    """Placeholder for a line that was too long to keep.

    Parameters
    ----------
    bytes_total : int
        The line's length without the terminator.
    """

    bytes_total: int


class LineReader:
    r"""Reads lines of a file or pipe without their terminator, ``\n`` or ``\r\n``; made by `open_lines`.

    Memory stays below about `POLL_BYTES_MAX` bytes plus one line of `line_bytes_max`, whatever the input
    holds.
    """

    def __init__(self, raw: io.FileIO, name: str, line_bytes_max: int) -> None:
        self._raw = raw
        self._gzip = gzip.GzipFile(fileobj=raw, mode="rb") if name.endswith(".gz") else None
        self._live = not stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
        self._name = name
        self._line_bytes_max = line_bytes_max
        self._ready: deque[bytes | LongLine] = deque()
        self._open_pieces: list[bytes] = []  # the unfinished line; only its last byte if it is too long
        self._open_bytes = 0
        self._lines_read = 0
        self._at_end = False
        self._failure: StreamnbError | None = None

    @property
    def ended(self) -> bool:
        """Whether the input's end was reached; true at the latest after `read_lines` returned nothing."""
        return self._at_end

    @property
    def share_read(self) -> float | None:
        """The share of the file's bytes on disk that was read, from 0 to 1; ``None`` for a pipe."""
        size = 0 if self._live else os.fstat(self._raw.fileno()).st_size
        return min(1.0, self._raw.tell() / size) if size else None

    def read_lines(self, n: int, timeout_ms: int | None = None) -> list[bytes | LongLine]:
        """Return at most `n` lines, and none only at the end or after `timeout_ms`.

        It returns fewer than `n` once it has read `POLL_BYTES_MAX` bytes, and from a pipe or terminal as
        soon as at least one line is complete. The last line need not end in a newline. A failure is raised
        only after the lines before it were returned.

        Parameters
        ----------
        n : int
            At least 1.
        timeout_ms : int or None
            How long to wait for the first line of a pipe or terminal; ``None`` waits forever.

        Raises
        ------
        DataError
            The gzip data is torn or damaged; the error names the line.
        StorageError
            The disk refused.
        """
        deadline_s = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        taken_bytes = 0
        while len(self._ready) < n and not self._at_end and self._failure is None:
            if self._ready and (self._live or taken_bytes >= POLL_BYTES_MAX):
                break
            chunk = self._read(deadline_s)
            if chunk is None:
                break
            taken_bytes += len(chunk)
            self._split(chunk)
        if not self._ready and self._failure is not None:
            raise self._failure
        return [self._ready.popleft() for _ in range(min(n, len(self._ready)))]

    def skip(self, n: int) -> int:
        """Skip `n` lines and return how many there were, which is fewer than `n` at the end.

        Raises
        ------
        DataError, StorageError
            As `read_lines`.
        """
        skipped = 0
        while skipped < n and (lines := self.read_lines(min(n - skipped, 4096))):
            skipped += len(lines)
        return skipped

    def close(self) -> None:
        """Close the input, except standard input. Closing twice does nothing."""
        if self._gzip is not None:
            self._gzip.close()
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, deadline_s: float | None) -> bytes | None:
        """Return the next bytes, ``b""`` at the end, or ``None`` after a timeout or a failure."""
        try:
            if self._gzip is not None:
                return self._gzip.read1(_CHUNK_BYTES)
            while not self._live or self._wait(deadline_s):
                chunk = self._raw.read(_CHUNK_BYTES)
                if chunk is not None:  # None: the descriptor does not block, and poll woke without data
                    return chunk
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self._failure = DataError(
                f"{self._name} is torn or damaged after line {self._lines_read}: {error}.",
                "Check it with `gzip -t`, then fetch or write it again.",
            )
            self._failure.__cause__ = error
        except OSError as error:
            self._failure = storage_error("read", self._name, error)
            self._failure.__cause__ = error
        return None

    def _wait(self, deadline_s: float | None) -> bool:
        poll = select.poll()
        poll.register(self._raw, select.POLLIN)
        left_ms = None if deadline_s is None else max(0.0, deadline_s - time.monotonic()) * 1000
        return bool(poll.poll(left_ms))

    def _split(self, chunk: bytes) -> None:
        if not chunk:
            self._at_end = True
            if self._open_bytes:
                self._complete(b"", terminated=False)
            return
        pieces = chunk.split(b"\n")
        rest = pieces.pop()
        if pieces and self._open_bytes:
            self._complete(pieces.pop(0), terminated=True)
        if b"\r" in chunk or max(map(len, pieces), default=0) > self._line_bytes_max:
            for piece in pieces:
                self._complete(piece, terminated=True)
        else:  # the common case: no line needs a \r removed or is too long
            self._ready.extend(pieces)
            self._lines_read += len(pieces)
        if rest:
            self._open_pieces.append(rest)
            self._open_bytes += len(rest)
            if self._open_bytes > self._line_bytes_max + 1:  # + 1 for a \r that is not part of the line
                self._open_pieces = [rest[-1:]]

    def _complete(self, piece: bytes, *, terminated: bool) -> None:
        bytes_total = self._open_bytes + len(piece)
        if self._open_bytes:
            piece = b"".join((*self._open_pieces, piece))
            self._open_pieces = []
            self._open_bytes = 0
        if terminated and piece.endswith(b"\r"):
            piece = piece[:-1]
            bytes_total -= 1
        self._ready.append(piece if bytes_total <= self._line_bytes_max else LongLine(bytes_total))
        self._lines_read += 1


def open_lines(path: Path | str, line_bytes_max: int) -> LineReader:
    """Open a file or pipe of JSON lines for reading.

    Parameters
    ----------
    path : Path or str
        ``-`` is standard input (the descriptor itself, so nothing else may read it). A file whose name ends
        in ``.gz`` is decompressed.
    line_bytes_max : int
        A longer line becomes a `LongLine`.

    Raises
    ------
    StorageError
        The input cannot be read; a `PathError` if it does not exist or is a directory.
    DataError
        A compressed file is empty.
    """
    name = str(path)
    with translated("read", name):
        raw = io.FileIO(0, closefd=False) if name == "-" else io.FileIO(name)
    status = os.fstat(raw.fileno())
    if name.endswith(".gz") and not (stat.S_ISREG(status.st_mode) and status.st_size):
        raw.close()
        if stat.S_ISREG(status.st_mode):
            raise DataError(f"{name} is empty; it lacks even a gzip header.", "Fetch or write it again.")
        raise PathError(f"{name} is not a regular file.", "Pipe it: `zcat FILE | streamnb ... -`.")
    return LineReader(raw, "standard input" if name == "-" else name, line_bytes_max)


def first_line(path: str, bytes_max: int = 1 << 16) -> bytes | None:
    """Return the first line of a file or its first bytes, which do not change while lines are appended.

    Return ``None`` for a pipe, whose lines can be read only once, for a file that cannot be read, and while
    the line has no end.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            line = file.readline(bytes_max)
    except (OSError, EOFError, zlib.error):
        return None
    return line if line.endswith(b"\n") or len(line) == bytes_max else None


def place_of(path: str, descriptor: int) -> str | tuple[int, int] | None:
    """Return what all names of a file have in common: device and inode.

    Parameters
    ----------
    path : str
    descriptor : int
        The file that ``-`` stands for.

    Returns
    -------
    tuple, str or None
        The resolved path if there is no file yet, ``None`` for a pipe, a terminal or a device.
    """
    try:
        status = os.fstat(descriptor) if path == "-" else os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


# Lines out


class Appender:
    """Appends lines to a file, pipe or terminal; made by `open_append`.

    After a failure every call raises it again, because a line may have been written in part.
    """

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self._name = name
        self._regular = stat.S_ISREG(os.fstat(fd).st_mode)
        self._failure: StreamnbError | None = None

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines, given without terminators, with a newline after each.

        Raises
        ------
        ReaderGoneError
            The reader of a pipe has exited.
        StorageError
            The disk refused.
        """
        if lines:
            with self._kept_failure():
                write_all(self._fd, b"\n".join((*lines, b"")))

    def sync(self) -> None:
        """Sync a file to the disk; for a pipe or terminal do nothing.

        Raises
        ------
        ReaderGoneError, StorageError
            As `write`.
        """
        with self._kept_failure():
            if self._regular:
                os.fsync(self._fd)

    def close(self) -> None:
        """Close the output, except standard output. Closing twice does nothing.

        Raises
        ------
        StorageError
            The system reported a failed write only on closing.
        """
        fd, self._fd = self._fd, -1
        if fd > 1:  # -1 is closed already, 1 is standard output
            with translated("write", self._name):
                os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _kept_failure(self) -> Iterator[None]:
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except OSError as error:
            self._failure = output_error(self._name, error)
            raise self._failure from error


def output_error(name: str, error: OSError) -> StreamnbError:
    """Return the error for an output that cannot be written, or that nobody reads any more."""
    if isinstance(error, BrokenPipeError):
        return ReaderGoneError(f"The program reading {name} has exited.", "Start it again.")
    return storage_error("write", name, error)


def open_append(path: Path | str) -> Appender:
    """Open a file for appending lines, and create it if it is missing, readable by its owner alone.

    Scores and dead letters hold ids and words of messages. A file that exists keeps its mode, so an operator
    who wants to share it creates it first.

    If the file ends in the middle of a line, as a killed writer leaves it, a newline is added first, so that
    the torn line is not joined with the next one.

    Parameters
    ----------
    path : Path or str
        ``-`` is standard output.

    Raises
    ------
    SettingsError
        The name ends in ``.gz``: compressed data cannot be made durable line by line.
    StorageError
        The file cannot be opened.
    """
    name = str(path)
    if name == "-":
        return Appender(1, "standard output")
    if name.endswith(".gz"):
        raise SettingsError(
            f"Lines cannot be written to {name}: compressed output is not supported.",
            "Choose a name without `.gz`.",
        )
    with translated("write", name):
        fd = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            status = os.fstat(fd)
            if stat.S_ISREG(status.st_mode):
                if status.st_size:
                    _end_torn_line(fd, name)
                else:
                    sync_directory(Path(name).parent)
        except OSError:
            os.close(fd)
            raise
    return Appender(fd, name)


def _end_torn_line(fd: int, name: str) -> None:
    with closing(io.FileIO(name)) as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            write_all(fd, b"\n")


def replace_by_null(descriptor: int, mode: int = os.O_WRONLY) -> None:
    """Let a standard stream be the null device, so that what is buffered for it can be flushed."""
    null = os.open(os.devnull, mode)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)
