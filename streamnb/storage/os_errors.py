"""Translation of the operating system's errors into one sentence with the path, the reason and a hint."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamnb.errors import PathError, StorageError

_HINTS = {
    errno.ENOENT: "Check the path.",
    errno.EACCES: "Give this user access, or choose another path.",
    errno.EPERM: "This user or this file system does not permit it: choose another directory.",
    errno.EEXIST: "Existing files are kept: choose another name, or remove the file if no process uses it.",
    errno.ELOOP: "Name the file itself: links are not followed here.",
    errno.ENOSPC: "Free space on the disk, or choose another directory.",
    errno.EDQUOT: "Free space within the quota, or choose another directory.",
    errno.EFBIG: "This process may not write files this large: see `ulimit -f`.",
    errno.EROFS: "The file system is mounted read-only: choose another directory.",
    errno.EMFILE: "Raise the number of files this process may open: see `ulimit -n`.",
    errno.EBADF: "It is closed: open it, or redirect it to a file.",
    errno.EIO: "The disk reports an error: check `dmesg` before you trust it again.",
}

_OF_THE_PATH = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EACCES,
        errno.EPERM,
        errno.EEXIST,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.EINVAL,
        errno.ENXIO,
    }
)
"""What is wrong with the path itself, so that no other run with it can succeed."""


def storage_error(doing: str, path: Path | str, error: OSError) -> StorageError:
    """Return the error for an operation on a path that the operating system refused.

    A path that is wrong itself gives a `PathError`, whose exit code is that of wrong settings.

    Examples
    --------
    >>> print(storage_error("write", "scores.jsonl", OSError(errno.ENOSPC, "No space left on device")))
    Cannot write scores.jsonl: No space left on device. Free space on the disk, or choose another directory.
    """
    reason = error.strerror or str(error)
    hint = _HINTS.get(error.errno or 0, "Check the path and its file system.")
    kind = PathError if error.errno in _OF_THE_PATH else StorageError
    return kind(f"Cannot {doing} {path}: {reason}.", hint)


@contextmanager
def translated(doing: str, path: Path | str) -> Iterator[None]:
    """Raise an `OSError` from inside the block as the `storage_error` of this operation and path."""
    try:
        yield
    except OSError as error:
        raise storage_error(doing, path, error) from error
