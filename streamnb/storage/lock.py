"""A directory's lock: one learner holds it, says who it is, and notices when it is not its own any more."""

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
    """A directory's exclusive lock: a context manager, let go by `close` or the process's end.

    A forked child shares it; an executed program does not.

    Attributes
    ----------
    epoch : int
        How often the lock was taken: each holder's is one more than the last one's.
    """

    def __init__(self, fd: int, path: Path, epoch: int) -> None:
        self.epoch = epoch
        self._fd = fd
        self._path = path

    def check(self) -> None:
        """See that the lock is still this one's, whatever happened to the directory meanwhile.

        Where the directory was moved and made again, or a file system does not keep locks, another learner
        may hold it by now; then nothing may be published there any more.

        Raises
        ------
        FencedError
            Another has taken it, or it is gone.
        StorageError
            The disk does not say.
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
                f"{self._path.parent} is not this learner's any more: {_holder(holder)} has it.",
                "Let only one learner run, and start again: it resumes from the last snapshot.",
            )

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
    with translated("lock", path):
        fd = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            epoch = _epoch_after(os.pread(fd, _HOLDER_BYTES_MAX, 0))
            began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            said = f"epoch {epoch}, process {os.getpid()} on {socket.gethostname()} since {began}\n".encode()
            os.pwrite(fd, said, 0)
            os.ftruncate(fd, len(said))
            os.fsync(fd)
        except BlockingIOError as error:
            holder = _holder(os.pread(fd, _HOLDER_BYTES_MAX, 0))
            os.close(fd)
            raise StorageError(
                f"The snapshot directory {path} is in use by another learner, {holder}.",
                "Stop that learner, or give this one a directory of its own.",
            ) from error
        except OSError:
            os.close(fd)
            raise
    return Lock(fd, path / "lock", epoch)


def _epoch_after(holder: bytes) -> int:
    """One more than what the last holder wrote; a directory without it begins at 1."""
    digits = holder.removeprefix(b"epoch ").partition(b",")[0]
    return int(digits) + 1 if digits.isdigit() else 1


def _holder(said: bytes) -> str:
    """Who says to hold a lock, for people."""
    line = said.decode("ascii", "replace").strip().partition(", ")[2]
    return line if line.isprintable() and line else "nobody that says so"
