"""Files of state, which are written once, and their directories.

A file is published complete or not at all, under a name that did not exist, and never changed afterwards.
All calls go through `os`, so that tests can replace it by `tests/support/faulty_disk.py`. Only this module,
`lock` and `lines` open files, so everything that a disk can refuse is handled in these three.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from streamnb.errors import DataError, PathError, StorageError
from streamnb.storage.os_errors import translated

# Whole files


class WholeFile:
    """A regular file, open for reading at any offset; made by `open_whole`.

    Attributes
    ----------
    size : int
        Its length in bytes when it was opened.
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
        """Check that the file is as long as when it was opened.

        Raises
        ------
        StorageError
            The length has changed.
        """
        if os.fstat(self._fd).st_size != self.size:
            raise self._changed()

    def _changed(self) -> StorageError:
        return StorageError(
            f"{self._path} changed while it was read.", "Stop the other process that writes to it."
        )


@contextmanager
def open_whole(path: Path, bytes_max: int) -> Iterator[WholeFile]:
    """Open a regular file for reading, after a check of its size.

    Parameters
    ----------
    path : Path
        Its last component must not be a symbolic link.
    bytes_max : int
        The largest size that is accepted.

    Raises
    ------
    StorageError
        The file is missing, a link, not a regular file, larger than `bytes_max`, or changed while it was
        open.
    """
    with translated("read", path):
        # Without O_NONBLOCK, opening a named pipe would block until another process opens it for writing.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise PathError(f"{path} is not a regular file.", "Name the file itself.")
        if status.st_size > bytes_max:
            raise StorageError(
                f"{path} has {status.st_size} bytes, more than the {bytes_max} allowed.",
                "Check that it is the right file.",
            )
        file = WholeFile(fd, path, status.st_size)
        yield file
        file.check_size()
    finally:
        os.close(fd)


def read_text(path: Path, bytes_max: int) -> str:
    """Return the text of a small UTF-8 file, such as a configuration. Links and pipes are followed.

    Raises
    ------
    StorageError
        The file cannot be read.
    DataError
        The file has more than `bytes_max` bytes or is not UTF-8.
    """
    with translated("read", path), path.open("rb") as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise DataError(f"{path} has more than {bytes_max} bytes.", "Check that it is the right file.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 at byte {error.start}.", "Save it as UTF-8.") from error


def write_text(path: Path, text: str) -> None:
    """Write a report as UTF-8, replacing what is there. Not for state: a failure leaves a partial file.

    Raises
    ------
    StorageError
        The file cannot be written.
    """
    with translated("write", path):
        path.write_text(text, encoding="utf-8", newline="\n")


def write_new(path: Path, chunks: Iterable[bytes | memoryview]) -> int:
    """Publish a new read-only file, complete and durable, or leave nothing behind; return its size.

    The content is written to ``.<name>.tmp`` in the same directory and synced. A hard link, which never
    overwrites, gives it the name `path`, and the directory is synced too. After an error the caller must
    write the whole file again from memory, because a second fsync on the same file can report success
    although pages were lost.

    Parameters
    ----------
    path : Path
        A name that does not exist.
    chunks : iterable of bytes or memoryview
        The content in order; a view must be C-contiguous. An exception it raises is passed on.

    Returns
    -------
    int
        The number of bytes written.

    Raises
    ------
    StorageError
        The name exists, or the disk refused. If only the directory could not be synced, the new name is
        removed again.
    """
    temporary = _beside(path, "tmp")
    with translated("write", path):
        if os.path.lexists(path):  # os.link checks it reliably; this check saves writing a long file in vain
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
            error.hint += f" Remove {' and '.join(map(str, left))} by hand: removing failed too."
        raise
    return written


def write_over(path: Path, chunks: Iterable[bytes | memoryview]) -> int:
    """Write a read-only file as `write_new` does, in the place of the one with its name, if there is one.

    Raises
    ------
    StorageError
        The disk refused; a file that was there stays as it was.
    """
    staged = _beside(path, "new")
    written = write_new(staged, chunks)
    with translated("write", path):
        try:
            os.replace(staged, path)
        except OSError:
            os.unlink(staged)
            raise
        sync_directory(path.parent)
    return written


def _beside(path: Path, suffix: str) -> Path:
    if not path.name:
        raise PathError(f"`{path}` is a directory, not the name of a file.", "Name the file to write.")
    return path.with_name(f".{path.name}.{suffix}")


def _write_durably(fd: int, chunks: Iterable[bytes | memoryview]) -> int:
    """Write the chunks, make the file read-only, sync and close it; return the number of bytes."""
    try:
        written = sum(write_all(fd, chunk) for chunk in chunks)
        os.fchmod(fd, 0o400)
        os.fsync(fd)
        return written
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes | memoryview) -> int:
    """Write all of `data`, in as many calls as the system needs, and return the number of bytes."""
    view = memoryview(data)
    if not view.nbytes:  # an empty view of two dimensions cannot be cast
        return 0
    view = view.cast("B")
    written = 0
    while written < len(view):
        written += os.write(fd, view[written:])
    return written


def _withdrawn(name: Path, ours: os.stat_result) -> bool:
    """Remove `name` if it is the file that this process created; return whether no such file is left."""
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
    """Sync a directory, so that its names survive a power cut."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directory(path: Path, *, create: bool = True) -> None:
    """Create a directory and its missing parents durably, or check that an existing one is usable.

    Without `create`, only check that this would succeed.

    New directories are private to this user. A link to a directory, and a directory of another user, are
    accepted, because volumes are mounted like that.

    Raises
    ------
    StorageError
        The path is not a directory, or this user cannot write in it, or every user can.
    """
    with translated("create the directory", path):
        missing = [directory for directory in (path, *path.parents) if not os.path.exists(directory)]
        if missing and not create:
            above = missing[-1].parent
            if not os.path.isdir(above) or not os.access(above, os.W_OK | os.X_OK, effective_ids=True):
                raise PermissionError(errno.EACCES, f"this user cannot write in {above}")
            return
        for directory in reversed(missing):
            try:
                os.mkdir(directory, 0o700)
            except FileExistsError:  # another process has just created it, or it is a dangling link
                if not os.path.isdir(directory):
                    raise
            sync_directory(directory.parent)
        status = os.stat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise PathError(f"{path} is not a directory.", "Name a directory, or a path that does not exist yet.")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK, effective_ids=True):
        raise PathError(
            f"This user cannot write in the directory {path}.",
            "Give this user access, or choose another directory.",
        )
    if status.st_mode & stat.S_IWOTH:
        raise PathError(
            f"Every user can write in the directory {path}, so its files cannot be trusted.",
            "Choose a directory inside it, or `chmod o-w` it.",
        )


def list_names(directory: Path, suffix: str) -> list[str]:
    """Return the sorted names in `directory` that end with `suffix`, without hidden ones.

    Raises
    ------
    StorageError
        The directory cannot be read.
    """
    with translated("list", directory):
        names = os.listdir(directory)
    return sorted(name for name in names if name.endswith(suffix) and not name.startswith("."))


def is_directory(path: Path) -> bool:
    """Return whether the path is a directory or a link to one."""
    return os.path.isdir(path)


def remove(path: Path) -> None:
    """Remove a file durably.

    Raises
    ------
    StorageError
        The file does not exist or cannot be removed.
    """
    with translated("remove", path):
        os.unlink(path)
        sync_directory(path.parent)


def move(path: Path, directory: Path) -> Path:
    """Move a file durably into a directory of the same file system, and return its new path.

    The directory is created if it is missing. Nothing is overwritten.

    Raises
    ------
    StorageError
        The file does not exist, its name exists in `directory`, or the disk refused.
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
    """Return a file's modification time in milliseconds since 1970.

    Raises
    ------
    StorageError
        The file does not exist.
    """
    with translated("look at", path):
        return os.lstat(path).st_mtime_ns // 1_000_000


def sweep_temporary(directory: Path, is_ours: Callable[[str], bool]) -> list[str]:
    """Remove the temporary files of a killed `write_new`, and sync the directory.

    The directory may hold files of others, so only regular files are removed that were to have one of our
    names.

    Call it only under the directory's lock, or it removes the file of a writer that is still alive. The sync
    makes durable what the killed writer had just published: otherwise a restart could continue from a file
    that a power cut can still remove.

    Parameters
    ----------
    directory : Path
    is_ours : callable
        Returns whether a file of this name is written there.

    Returns
    -------
    list of str
        The removed names, sorted.

    Raises
    ------
    StorageError
        The directory cannot be read, or a file in it cannot be removed.
    """
    with translated("sweep", directory):
        left = []
        for name in sorted(os.listdir(directory)):
            wanted = name.removeprefix(".").removesuffix(".tmp")
            if name != f".{wanted}.tmp" or not is_ours(wanted):
                continue
            if stat.S_ISREG(os.lstat(directory / name).st_mode):
                os.unlink(directory / name)
                left.append(name)
        sync_directory(directory)
    return left
