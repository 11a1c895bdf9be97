"""The lock on a directory: one learner holds it, its file names the holder, and a lost lock is detected."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from streamnb.errors import FencedError, StorageError
from streamnb.storage.os_errors import translated

_HOLDER_BYTES_MAX = 512


class Lock:
    """The exclusive lock on a directory; `close` or the end of the process releases it.

    A forked child shares the lock; a program started with exec does not.

    Attributes
    ----------
    epoch : int
        How many times the lock has been taken: each holder's epoch is one more than that of the one before.
    """

    def __init__(self, fd: int, path: Path, epoch: int) -> None:
        self.epoch = epoch
        self._fd = fd
        self._path = path

    def check(self) -> None:
        """Check that this learner still holds the lock; call it before every publication.

        If the directory was moved and created again, or if the file system does not enforce locks, another
        learner may hold it by now. Then nothing may be published in the directory any more.

        Raises
        ------
        FencedError
            Another learner holds the lock, or the lock file is gone.
        StorageError
            The lock file cannot be read.
        """
        same, holder = False, b""
        with translated("look at", self._path), suppress(FileNotFoundError):
            found = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                same = self._fd >= 0 and os.path.samestat(os.fstat(found), os.fstat(self._fd))
                holder = os.pread(found, _HOLDER_BYTES_MAX, 0)
            finally:
                os.close(found)
        if not same or not holder.startswith(b"epoch %d, " % self.epoch):
            raise FencedError(
                f"This learner no longer holds the lock on {self._path.parent}; "
                f"the lock file names {_holder(holder)}.",
                "Make sure that only one learner runs, and restart it: it resumes from the last snapshot.",
            )

    def close(self) -> None:
        """Release the lock. Closing twice does nothing.

        The lock file stays: if it were removed, two learners could lock two files of the same name.
        """
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def lock_directory(path: Path) -> Lock:
    """Take the lock ``<path>/lock`` without waiting.

    Raises
    ------
    StorageError
        Another learner holds the lock, or the directory cannot be locked.
    """
    with translated("lock", path):
        fd = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            epoch = _epoch_after(os.pread(fd, _HOLDER_BYTES_MAX, 0))
            began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            line = f"epoch {epoch}, process {os.getpid()} on {socket.gethostname()} since {began}\n".encode()
            os.pwrite(fd, line, 0)
            os.ftruncate(fd, len(line))
            os.fsync(fd)
        except BlockingIOError as error:
            in_use = _in_use(path, fd)
            os.close(fd)
            raise in_use from error
        except OSError:
            os.close(fd)
            raise
    return Lock(fd, path / "lock", epoch)


def check_unlocked(path: Path) -> None:
    """Check that no learner holds the lock ``<path>/lock``, and change nothing.

    Raises
    ------
    StorageError
        A learner holds it, or the directory cannot be locked.
    """
    with translated("lock", path), suppress(FileNotFoundError):
        fd = os.open(path / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _in_use(path, fd) from error
        finally:
            os.close(fd)


def _in_use(path: Path, fd: int) -> StorageError:
    holder = _holder(os.pread(fd, _HOLDER_BYTES_MAX, 0))
    return StorageError(
        f"The snapshot directory {path} is in use by another learner; the lock file names {holder}.",
        "Stop that learner, or give this one a directory of its own.",
    )


def _epoch_after(content: bytes) -> int:
    """Return one more than the epoch in a lock file; 1 if the file has none."""
    digits = content.removeprefix(b"epoch ").partition(b",")[0]
    return int(digits) + 1 if digits.isdigit() else 1


def _holder(content: bytes) -> str:
    """Return the holder that a lock file names, for an error."""
    line = content.decode("ascii", "replace").strip().partition(", ")[2]
    return line if line.isprintable() and line else "nobody"
