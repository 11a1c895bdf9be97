"""Files of state, written once, and the directories they lie in.

A file is published complete or not at all, under a name that did not exist, and never changed afterwards.
Both are touched through `os` alone, so that `tests/support/faulty_disk.py` can stand in. With `lock` and
`lines` this is all that opens files: what a disk can do to the others is met here.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from streamnb.errors import DataError, StorageError
from streamnb.storage.os_errors import translated

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
        with translated("read", self._path):
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
    with translated("read", path):
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
    with translated("read", path), path.open("rb") as file:
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
    with translated("write", path):
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
    with translated("write", path):
        if os.path.lexists(path):  # os.link decides; this only spares a long write in vain
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    with translated("create", temporary):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(temporary, flags, 0o600)
        ours = os.fstat(fd)
    try:
        with translated("write", path):
            written = _write_durably(fd, chunks)
            os.link(temporary, path, follow_symlinks=False)
            os.unlink(temporary)
            sync_directory(path.parent)
    except BaseException as error:
        left = [name for name in (path, temporary) if not _withdrawn(name, ours)]
        if left and isinstance(error, StorageError):
            error.hint += f" Remove {' and '.join(map(str, left))} by hand: this could not be done either."
        raise
    return written


def _write_durably(fd: int, chunks: Iterable[bytes | memoryview]) -> int:
    """Write, make read-only, force to the disk and close."""
    try:
        written = sum(write_all(fd, chunk) for chunk in chunks)
        os.fchmod(fd, 0o400)
        os.fsync(fd)
    finally:
        os.close(fd)
    return written


def write_all(fd: int, data: bytes | memoryview) -> int:
    """Write every byte, however few the system takes at once; their number is returned."""
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
        if os.path.samestat(ours, os.lstat(name)):
            os.unlink(name)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


# Directories


def sync_directory(directory: Path) -> None:
    """Force a directory's names to the disk."""
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
    with translated("create the directory", path):
        missing = [directory for directory in (path, *path.parents) if not os.path.exists(directory)]
        for directory in reversed(missing):
            try:
                os.mkdir(directory, 0o700)
            except FileExistsError:  # by another process meanwhile, or a link that leads nowhere
                if not os.path.isdir(directory):
                    raise
            sync_directory(directory.parent)
        status = os.stat(path)
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
    with translated("list", directory):
        names = os.listdir(directory)
    return sorted(name for name in names if name.endswith(suffix) and not name.startswith("."))


def is_directory(path: Path) -> bool:
    """Whether a directory, or a link to one, is there."""
    return os.path.isdir(path)


def remove(path: Path) -> None:
    """Remove a file durably.

    Raises
    ------
    StorageError
        It is not there, or cannot be removed.
    """
    with translated("remove", path):
        os.unlink(path)
        sync_directory(path.parent)


def move(path: Path, directory: Path) -> Path:
    """Move a file into a directory of the same file system, durably; nothing there is overwritten.

    Raises
    ------
    StorageError
        It is not there, the name is taken in `directory`, or the disk refused.
    """
    make_directory(directory)
    moved = directory / path.name
    with translated("move", path):
        os.link(path, moved, follow_symlinks=False)
        sync_directory(directory)
        os.unlink(path)
        sync_directory(path.parent)
    return moved


def modified_ms(path: Path) -> int:
    """When a file was written, in milliseconds since 1970, as far as its file system knows.

    Raises
    ------
    StorageError
        It is not there.
    """
    with translated("look at", path):
        return os.lstat(path).st_mtime_ns // 1_000_000


def sweep_temporary(directory: Path) -> list[str]:
    """Remove what a `write_new` that was killed left behind; only under the directory's lock.

    What it had published already may not be on the disk yet: it is afterwards, so that nobody goes on from a
    file that a power cut could still take away.

    Returns
    -------
    list of str
        The names removed, sorted.

    Raises
    ------
    StorageError
        The directory cannot be read, or a file in it not be removed.
    """
    with translated("sweep", directory):
        left = sorted(
            name for name in os.listdir(directory) if name.startswith(".") and name.endswith(".tmp")
        )
        for name in left:
            os.unlink(directory / name)
        sync_directory(directory)
    return left
