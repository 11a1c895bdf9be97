"""The only room that opens files: state written once, a lock, lines in and lines out.

A file of state is published complete or not at all, under a name that did not exist, and never changed
afterwards. Whatever the operating system refuses becomes one sentence with the path, its reason and a hint.
The room is long because it is the only one: what a disk can do to the others is met here and nowhere else.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import io
import os
import select
import stat
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from streamnb.errors import DataError, DeliveryError, SettingsError, StorageError, StreamnbError

_CHUNK_BYTES = 1 << 18  # one read; a pipe gives at most 64 KiB at once
_LINES_BYTES_MAX = 1 << 24  # after so many bytes `read_lines` is content with fewer lines than asked

_HINTS = {
    errno.ENOENT: "Check the path.",
    errno.EACCES: "Give this user access, or choose another path.",
    errno.EPERM: "This user, or this file system, does not allow it: choose another directory.",
    errno.EEXIST: "Nothing is overwritten: choose another name, or remove it if no process writes there.",
    errno.ELOOP: "Name the file itself: links are not followed here.",
    errno.ENOSPC: "Free space on the disk, or choose another directory.",
    errno.EDQUOT: "Free space within the quota, or choose another directory.",
    errno.EFBIG: "This process may not write files as large: see `ulimit -f`.",
    errno.EROFS: "The file system is mounted read-only: choose another directory.",
    errno.EMFILE: "Raise the number of files this process may open: see `ulimit -n`.",
    errno.EIO: "The disk reports an error: look at `dmesg` before trusting it again.",
}


def _refusal(
    doing: str, path: Path | str, error: OSError, kind: type[StreamnbError] = StorageError
) -> StreamnbError:
    reason = error.strerror or str(error)
    hint = _HINTS.get(error.errno or 0, "Check the path and its file system.")
    return kind(f"Cannot {doing} {path}: {reason}.", hint)


@contextmanager
def _translated(doing: str, path: Path | str, kind: type[StreamnbError] = StorageError) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _refusal(doing, path, error, kind) from error


# Whole files


class WholeFile:
    """A regular file open for reading anywhere in it; made by `open_whole`.

    Attributes
    ----------
    size : int
        Bytes it had when it was opened.
    """

    def __init__(self, fd: int, path: Path, size: int) -> None:
        self.size = size
        self._fd = fd
        self._path = path

    def read_into(self, buffer: memoryview, offset: int) -> None:
        """Fill a buffer of bytes from `offset` on.

        Raises
        ------
        StorageError
            The file ends before the buffer is full, or the disk refused.
        """
        filled = 0
        with _translated("read", self._path):
            while filled < len(buffer):
                n = os.preadv(self._fd, [buffer[filled:]], offset + filled)
                if not n:
                    raise self._changed()
                filled += n

    def check_size(self) -> None:
        """See that the file is as long as when it was opened.

        Raises
        ------
        StorageError
            It is not.
        """
        if os.fstat(self._fd).st_size != self.size:
            raise self._changed()

    def _changed(self) -> StorageError:
        return StorageError(f"{self._path} changed while it was read.", "Let nothing else write there.")


@contextmanager
def open_whole(path: Path, bytes_max: int) -> Iterator[WholeFile]:
    """A regular file to read, its size checked before anything is.

    Parameters
    ----------
    path : Path
        Its last component may not be a symbolic link.
    bytes_max : int
        The most that it may hold.

    Raises
    ------
    StorageError
        The file is missing, a link, not a regular file, larger than `bytes_max`, or changed meanwhile.
    """
    with _translated("read", path):
        # Without O_NONBLOCK a named pipe would hold the process until somebody writes to it.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise StorageError(f"{path} is not a regular file.", "Name the file itself.")
        if status.st_size > bytes_max:
            raise StorageError(
                f"{path} has {status.st_size} bytes, more than the {bytes_max} allowed.",
                "It is not what was expected there, or the limit is too low.",
            )
        file = WholeFile(fd, path, status.st_size)
        yield file
        file.check_size()
    finally:
        os.close(fd)


def read_text(path: Path, bytes_max: int) -> str:
    """A small text file of UTF-8, such as a configuration. Links and pipes are followed.

    Raises
    ------
    StorageError
        The file cannot be read.
    DataError
        It has more than `bytes_max` bytes or is not UTF-8.
    """
    with _translated("read", path), path.open("rb") as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise DataError(f"{path} has more than {bytes_max} bytes.", "Is it the right file?")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: byte {error.start}.", "Save it as UTF-8.") from error


def write_text(path: Path, text: str) -> None:
    """Write a report in place, as UTF-8. Not for state: a failure leaves part of it.

    Raises
    ------
    StorageError
        The file cannot be written.
    """
    with _translated("write", path):
        path.write_text(text, encoding="utf-8", newline="\n")


def write_new(path: Path, chunks: Iterable[bytes | memoryview]) -> int:
    """Publish a new read-only file, durable and complete, or leave nothing behind.

    The content goes to ``.<name>.tmp`` beside it, is forced to the disk, appears under `path` by a hard
    link, which never overwrites, and the directory is forced to the disk as well. After an error nothing
    may be retried on the same file, because a second fsync can claim success for lost pages: the caller
    writes it anew from memory.

    Parameters
    ----------
    path : Path
        A name that does not exist.
    chunks : iterable of bytes or memoryview
        The content in order; a view must be C-contiguous. An exception it raises is passed on.

    Returns
    -------
    int
        Bytes written.

    Raises
    ------
    StorageError
        The name exists, or the disk refused; also where the new name could not be made durable, which is
        then removed again.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with _translated("write", path):
        if os.path.lexists(path):  # os.link decides; this only spares a long write in vain
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    with _translated("create", temporary):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(temporary, flags, 0o600)
        ours = os.fstat(fd)
    try:
        with _translated("write", path):
            written = _write_durably(fd, chunks)
            os.link(temporary, path, follow_symlinks=False)
            temporary.unlink()
            _sync_directory(path.parent)
    except BaseException as error:
        left = [name for name in (path, temporary) if not _withdrawn(name, ours)]
        if left and isinstance(error, StorageError):
            error.hint += f" Remove {' and '.join(map(str, left))} by hand: this could not be done either."
        raise
    return written


def _write_durably(fd: int, chunks: Iterable[bytes | memoryview]) -> int:
    """Write, make read-only, force to the disk and close."""
    try:
        written = sum(_write_all(fd, chunk) for chunk in chunks)
        os.fchmod(fd, 0o400)
        os.fsync(fd)
    finally:
        os.close(fd)
    return written


def _write_all(fd: int, data: bytes | memoryview) -> int:
    view = memoryview(data)
    if not view.nbytes:  # such a view cannot be cast
        return 0
    view = view.cast("B")
    written = 0
    while written < len(view):
        written += os.write(fd, view[written:])
    return written


def _withdrawn(name: Path, ours: os.stat_result) -> bool:
    """Whether `name` is no longer there, or was never ours to remove."""
    try:
        if os.path.samestat(ours, name.lstat()):
            name.unlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


# Directories


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directory(path: Path) -> None:
    """Make sure of a directory that this user can use, creating it and its parents durably.

    What is created is private to this user. A link to a directory, or one that another user owns, is
    accepted, since volumes are mounted like that.

    Raises
    ------
    StorageError
        Something else stands there, this user may not write in it, or every user may.
    """
    with _translated("create the directory", path):
        missing = [directory for directory in (path, *path.parents) if not directory.exists()]
        for directory in reversed(missing):
            directory.mkdir(mode=0o700, exist_ok=True)
            _sync_directory(directory.parent)
        status = path.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise StorageError(
            f"{path} is not a directory.", "Name a directory, or a path that does not exist yet."
        )
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK, effective_ids=True):
        raise StorageError(
            f"The directory {path} cannot be written by this user.",
            "Give this user access, or choose another directory.",
        )
    if status.st_mode & stat.S_IWOTH:
        raise StorageError(
            f"Every user may write in the directory {path}.",
            "What lies there could be anybody's: choose a directory inside it, or `chmod o-w` it.",
        )


def list_names(directory: Path, suffix: str) -> list[str]:
    """The names in `directory` that end with `suffix`, sorted; hidden ones are not listed.

    Raises
    ------
    StorageError
        The directory cannot be read.
    """
    with _translated("list", directory):
        names = [entry.name for entry in directory.iterdir()]
    return sorted(name for name in names if name.endswith(suffix) and not name.startswith("."))


def remove(path: Path) -> None:
    """Remove a file durably.

    Raises
    ------
    StorageError
        It is not there, or cannot be removed.
    """
    with _translated("remove", path):
        path.unlink()
        _sync_directory(path.parent)


def move(path: Path, directory: Path) -> Path:
    """Move a file into a directory of the same file system, durably; nothing there is overwritten.

    Raises
    ------
    StorageError
        It is not there, the name is taken in `directory`, or the disk refused.
    """
    make_directory(directory)
    moved = directory / path.name
    with _translated("move", path):
        os.link(path, moved, follow_symlinks=False)
        _sync_directory(directory)
        path.unlink()
        _sync_directory(path.parent)
    return moved


def modified_ms(path: Path) -> int:
    """When a file was written, in milliseconds since 1970, as far as its file system knows.

    Raises
    ------
    StorageError
        It is not there.
    """
    with _translated("look at", path):
        return path.lstat().st_mtime_ns // 1_000_000


def sweep_temporary(directory: Path) -> list[str]:
    """Remove what a `write_new` that was killed left behind; only under the directory's lock.

    Returns
    -------
    list of str
        The names removed, sorted.

    Raises
    ------
    StorageError
        The directory cannot be read, or a file in it not be removed.
    """
    with _translated("sweep", directory):
        left = sorted(entry for entry in directory.iterdir() if entry.match(".*.tmp"))
        for path in left:
            path.unlink()
    return [path.name for path in left]


class Lock:
    """A directory's exclusive lock: a context manager, let go by `close` or the process's end.

    A forked child shares it; an executed program does not.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def close(self) -> None:
        """Let go. Closing twice does nothing. The file stays: removing it would let two learners in."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def lock_directory(path: Path) -> Lock:
    """Take the lock on ``<path>/lock`` at once, or not at all.

    Raises
    ------
    StorageError
        Another holds it, or the directory cannot be locked.
    """
    with _translated("lock", path):
        fd = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise StorageError(
                f"The snapshot directory {path} is in use by another learner.",
                "Stop that learner, or give this one a directory of its own.",
            ) from error
        except OSError:
            os.close(fd)
            raise
    return Lock(fd)


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
            self._failure = _refusal("read", self._name, error)
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
        *pieces, rest = chunk.split(b"\n")
        if pieces and self._open_bytes:
            self._complete(pieces.pop(0), terminated=True)
        if b"\r\n" in chunk or max(map(len, pieces), default=0) > self._line_bytes_max:
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
    with _translated("read", name, DataError):
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
                _write_all(self._fd, b"\n".join(lines) + b"\n")

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
            with _translated("write", self._name):
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
            self._failure = _refusal("write", self._name, error)
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
    with _translated("write", name):
        fd = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            status = os.fstat(fd)
            if stat.S_ISREG(status.st_mode):
                if status.st_size:
                    _end_torn_line(fd, name)
                else:
                    _sync_directory(Path(name).parent)
        except OSError:
            os.close(fd)
            raise
    return Appender(fd, name)


def _end_torn_line(fd: int, name: str) -> None:
    with closing(io.FileIO(name)) as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            _write_all(fd, b"\n")


def silence_stdout() -> None:
    """Let what is still buffered for a reader that has gone away go nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
