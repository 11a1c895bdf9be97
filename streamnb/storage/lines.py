"""Lines in and lines out: of a file, a pipe, a terminal; bounded, and none of them torn."""

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

from streamnb.errors import DataError, DeliveryError, SettingsError, StreamnbError
from streamnb.storage.files import sync_directory, write_all
from streamnb.storage.os_errors import storage_error, translated

_CHUNK_BYTES = 1 << 18  # one read; a pipe gives at most 64 KiB at once
_LINES_BYTES_MAX = 1 << 24  # after so many bytes `read_lines` is content with fewer lines than asked

# Lines in


@dataclass(frozen=True, slots=True)
class LongLine:
    """In the place of a line that was too long to keep.

    Parameters
    ----------
    bytes_total : int
        Its length without the terminator.
    """

    bytes_total: int


class LineReader:
    r"""Lines of a file or pipe without their terminators, ``\n`` or ``\r\n``; made by `open_lines`.

    Memory is bounded by the lines asked for, 16 MiB and one line, whatever the input holds.
    """

    def __init__(self, raw: io.FileIO, name: str, line_bytes_max: int) -> None:
        self._raw = raw
        self._gzip = gzip.GzipFile(fileobj=raw, mode="rb") if name.endswith(".gz") else None
        self._live = not stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
        self._name = name
        self._line_bytes_max = line_bytes_max
        self._ready: deque[bytes | LongLine] = deque()
        self._open_pieces: list[bytes] = []  # the line whose end was not seen yet, or its last byte
        self._open_bytes = 0
        self._lines_read = 0
        self._at_end = False
        self._failure: StreamnbError | None = None

    @property
    def ended(self) -> bool:
        """Whether every line was returned; known at the latest after a `read_lines` that gave none."""
        return self._at_end

    @property
    def share_read(self) -> float | None:
        """How much of the file was read, from 0 to 1, by its bytes on the disk; ``None`` for a pipe."""
        size = 0 if self._live else os.fstat(self._raw.fileno()).st_size
        return min(1.0, self._raw.tell() / size) if size else None

    def read_lines(self, n: int, timeout_ms: int | None = None) -> list[bytes | LongLine]:
        """At most `n` lines; none only at the end or after `timeout_ms`.

        A pipe or terminal gives what has come, at least one line, and is not asked for more. The last
        line need not end in a newline. A failure is raised after the lines before it were returned.

        Parameters
        ----------
        n : int
            At least 1.
        timeout_ms : int or None
            How long to wait for the first line of a pipe or terminal; ``None`` waits for ever.

        Raises
        ------
        DataError
            The gzip data is torn or damaged; names the line.
        StorageError
            The disk refused.
        """
        deadline_s = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        taken_bytes = 0
        while len(self._ready) < n and not self._at_end and self._failure is None:
            if self._ready and (self._live or taken_bytes >= _LINES_BYTES_MAX):
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
        """Pass over `n` lines and say how many there were: fewer at the end.

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
        """Let go. Closing twice does nothing; standard input stays open."""
        if self._gzip is not None:
            self._gzip.close()
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, deadline_s: float | None) -> bytes | None:
        """The next bytes; none at the end; ``None`` where nothing came in time or the input failed."""
        try:
            if self._gzip is not None:
                return self._gzip.read1(_CHUNK_BYTES)
            while not self._live or self._wait(deadline_s):
                chunk = self._raw.read(_CHUNK_BYTES)
                if chunk is not None:  # None: not blocking, and woken for nothing
                    return chunk
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self._failure = DataError(
                f"{self._name} is torn or damaged after line {self._lines_read}: {error}.",
                "`gzip -t` checks it; fetch or write it again.",
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
        else:  # nothing to cut or to leave out
            self._ready.extend(pieces)
            self._lines_read += len(pieces)
        if rest:
            self._open_pieces.append(rest)
            self._open_bytes += len(rest)
            if self._open_bytes > self._line_bytes_max + 1:  # one more, which may be a \r
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
    """Open JSON lines for reading.

    Parameters
    ----------
    path : Path or str
        ``-`` is standard input (the descriptor itself, so nothing else may read it); a name that ends
        in ``.gz`` is decompressed.
    line_bytes_max : int
        A longer line becomes a `LongLine`.

    Raises
    ------
    DataError
        There is no such input, or it cannot be read.
    """
    name = str(path)
    with translated("read", name, DataError):
        raw = io.FileIO(0, closefd=False) if name == "-" else io.FileIO(name)
    status = os.fstat(raw.fileno())
    if name.endswith(".gz") and not (stat.S_ISREG(status.st_mode) and status.st_size):
        raw.close()
        if stat.S_ISREG(status.st_mode):
            raise DataError(f"{name} is empty, not even a gzip header.", "Fetch or write it again.")
        raise DataError(f"{name} is not a regular file.", "Pipe it: `zcat FILE | streamnb ... -`.")
    return LineReader(raw, "standard input" if name == "-" else name, line_bytes_max)


# Lines out


class Appender:
    """Lines to the end of a file, a pipe or a terminal; made by `open_append`.

    After a failure every call raises it again: what was written may be torn.
    """

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self._name = name
        self._regular = stat.S_ISREG(os.fstat(fd).st_mode)
        self._failure: StreamnbError | None = None

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines, which hold no terminator, and one newline after each, at once.

        Raises
        ------
        DeliveryError
            The reader of a pipe has gone (the cause is a `BrokenPipeError`): time to end quietly.
        StorageError
            The disk refused.
        """
        if lines:
            with self._kept_failure():
                write_all(self._fd, b"\n".join((*lines, b"")))

    def sync(self) -> None:
        """Return when a file's lines are on the disk; a pipe or terminal has them already.

        Raises
        ------
        DeliveryError, StorageError
            As `write`.
        """
        with self._kept_failure():
            if self._regular:
                os.fsync(self._fd)

    def close(self) -> None:
        """Let go. Closing twice does nothing; standard output stays open.

        Raises
        ------
        StorageError
            The disk refused only now.
        """
        fd, self._fd = self._fd, -1
        if fd > 1:  # neither closed before nor standard output
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
        except BrokenPipeError as error:
            self._failure = DeliveryError(f"The reader of {self._name} has gone.", "Start it again.")
            raise self._failure from error
        except OSError as error:
            self._failure = storage_error("write", self._name, error)
            raise self._failure from error


def open_append(path: Path | str) -> Appender:
    """Open a file to append lines to, creating it where it is missing.

    A file that ends in the middle of a line, as a killed writer leaves it, gets a newline first: the torn
    line stays alone.

    Parameters
    ----------
    path : Path or str
        ``-`` is standard output.

    Raises
    ------
    SettingsError
        The name ends in ``.gz``: what is compressed cannot be made durable line by line.
    StorageError
        It cannot be opened.
    """
    name = str(path)
    if name == "-":
        return Appender(1, "standard output")
    if name.endswith(".gz"):
        raise SettingsError(
            f"{name} would be compressed, and lines cannot be.", "Write to a name without `.gz`."
        )
    with translated("write", name):
        fd = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
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


def silence_stdout() -> None:
    """Let what is still buffered for a reader that has gone away go nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
