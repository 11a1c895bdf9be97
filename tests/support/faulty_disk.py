"""A disk in memory that can refuse, write in part and lose unsynced data, in place of `os` in storage.

After a power cut, a synced file is unchanged, and a file with unsynced bytes has any number of its bytes,
perhaps followed by zeros. Each unsynced change of a directory has happened or not, at random. A killed
process loses only its descriptors.
"""

from __future__ import annotations

import errno
import fcntl
import os
import random
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamnb.storage import files, lock
from streamnb.transports.memory import Crash


@dataclass
class Inode:
    """A file: its bytes, and those that survive a power cut."""

    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    mode: int = 0o600
    number: int = 0


@dataclass
class Directory:
    """A directory: its names, those at the last sync, and the changes since then in order."""

    names: dict[str, Inode] = field(default_factory=dict)
    synced: dict[str, Inode] = field(default_factory=dict)
    since: list[tuple[str, Inode | None]] = field(default_factory=list)

    def put(self, name: str, inode: Inode | None) -> None:
        """Set a name to a file, or remove it."""
        if inode is None:
            del self.names[name]
        else:
            self.names[name] = inode
        self.since.append((name, inode))


@dataclass
class Fault:
    """A fault at operation number `at`: an errno, ``short`` (only a part is written) or ``kill``."""

    at: int
    what: int | str
    sticky: bool = False  # later operations fail too
    operation: str = ""  # count only operations with this name; by default all


class FaultyDisk:
    """A simulated disk, with the functions of `os` and `fcntl` that snapshots use.

    Attributes
    ----------
    fault : Fault or None
        The next fault.
    done : list of str
        The operations of this process, in order.
    dead : bool
        Whether the process was killed. Then its operations have no effect.
    """

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self.done: list[str] = []
        self.dead = False
        self._counted = 0
        self._directories: dict[str, Directory] = {"/": Directory()}
        self._open: dict[int, tuple[str, Inode | None, int]] = {}
        self._locked: dict[int, Inode] = {}
        self._next_fd = 1000
        self._inodes = 0
        self.path = SimpleNamespace(
            exists=self._exists, lexists=self._exists, isdir=self._is_directory, samestat=os.path.samestat
        )

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - constants, and os.strerror
        return getattr(os, name)

    # ---- faults

    def arm(self, fault: Fault | None) -> None:
        """Set the next fault; operations are counted from now."""
        self.fault, self._counted = fault, 0

    def restart(self, draw: random.Random | None = None) -> None:
        """Start a new process; with `draw`, after a power cut that loses unsynced data at random."""
        self.dead, self._open, self._locked, self.done = False, {}, {}, []
        self.arm(None)
        if draw is not None:
            for directory in self._directories.values():
                _cut(directory, draw)

    def visible(self, directory: str) -> dict[str, bytes]:
        """Return the names in a directory with their files' bytes."""
        return {name: bytes(inode.data) for name, inode in self._directories[directory].names.items()}

    # ---- os

    def open(self, path: Path | str, flags: int, mode: int = 0o777) -> int:
        self._step("open")
        folder, name = self._at(path)
        if self._is_directory(path):
            return self._descriptor(str(path), None)
        directory = self._directories[folder]
        inode = directory.names.get(name)
        if inode is not None and flags & os.O_EXCL:
            raise _refused(errno.EEXIST)
        if inode is None:
            if not flags & os.O_CREAT:
                raise _refused(errno.ENOENT)
            self._inodes += 1
            inode = Inode(mode=mode, number=self._inodes)
            directory.put(name, inode)
        return self._descriptor(str(path), inode)

    def write(self, fd: int, data: memoryview) -> int:
        inode = self._inode(fd)
        if self._step("write") == "short":
            data = data[: (len(data) + 1) // 2]
        inode.data += data
        return len(data)

    def preadv(self, fd: int, views: list[memoryview], offset: int) -> int:
        self._step("preadv")
        part = self._inode(fd).data[offset : offset + len(views[0])]
        views[0][: len(part)] = part
        return len(part)

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        self._step("pread")
        return bytes(self._inode(fd).data[offset : offset + size])

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        inode = self._inode(fd)
        self._step("pwrite")
        inode.data[offset : offset + len(data)] = data
        return len(data)

    def ftruncate(self, fd: int, size: int) -> None:
        self._step("ftruncate")
        del self._inode(fd).data[size:]

    def fsync(self, fd: int) -> None:
        self._step("fsync")
        path, inode, _ = self._open[fd]
        if inode is not None:
            inode.synced = bytes(inode.data)
            return
        directory = self._directories[path]
        directory.synced, directory.since = dict(directory.names), []

    def close(self, fd: int) -> None:
        self._open.pop(fd, None)  # no fault here: the descriptor is gone even if close reports an error
        self._locked.pop(fd, None)

    def fchmod(self, fd: int, mode: int) -> None:
        self._step("fchmod")
        self._inode(fd).mode = mode

    def fstat(self, fd: int) -> SimpleNamespace:
        return _stat(self._inode(fd))

    def lstat(self, path: Path | str) -> SimpleNamespace:
        self._step("lstat")
        return _stat(self._found(path))

    def stat(self, path: Path | str) -> SimpleNamespace:
        self._step("stat")
        return _stat(None if self._is_directory(path) else self._found(path))

    def link(self, source: Path, target: Path, *, follow_symlinks: bool) -> None:
        assert not follow_symlinks
        self._step("link")
        folder, name = self._at(target)
        if name in self._directories[folder].names:
            raise _refused(errno.EEXIST)
        self._directories[folder].put(name, self._found(source))

    def unlink(self, path: Path | str) -> None:
        self._step("unlink")
        self._found(path)
        folder, name = self._at(path)
        self._directories[folder].put(name, None)

    def listdir(self, path: Path | str) -> list[str]:
        self._step("listdir")
        return list(self._directories[str(path)].names)

    def mkdir(self, path: Path | str, mode: int) -> None:
        self._step("mkdir")
        assert mode == 0o700
        self._directories.setdefault(str(path), Directory())

    def access(self, path: Path | str, mode: int, *, effective_ids: bool) -> bool:
        return self._is_directory(path)

    # ---- fcntl

    LOCK_EX, LOCK_NB = fcntl.LOCK_EX, fcntl.LOCK_NB

    def flock(self, fd: int, flags: int) -> None:
        self._step("flock")
        if any(held is self._inode(fd) for held in self._locked.values()):
            raise BlockingIOError(errno.EWOULDBLOCK, "locked")
        self._locked[fd] = self._inode(fd)

    # ---- internals

    def _step(self, operation: str) -> str | None:
        """Count an operation, and apply the fault if it is due."""
        if self.dead:
            raise Crash
        self.done.append(operation)
        fault = self.fault
        if fault is None or (fault.operation and fault.operation != operation):
            return None
        self._counted += 1
        if self._counted != fault.at and not (fault.sticky and self._counted > fault.at):
            return None
        if fault.what == "kill":
            self.dead = True
            raise Crash
        if isinstance(fault.what, int):
            raise _refused(fault.what)
        return fault.what

    def _descriptor(self, path: str, inode: Inode | None) -> int:
        self._next_fd += 1
        self._open[self._next_fd] = path, inode, 0
        return self._next_fd

    def _inode(self, fd: int) -> Inode:
        inode = self._open[fd][1]
        assert inode is not None, "a directory has no bytes"
        return inode

    def _at(self, path: Path | str) -> tuple[str, str]:
        folder, _, name = str(path).rpartition("/")
        if (folder or "/") not in self._directories:
            raise _refused(errno.ENOENT)
        return folder or "/", name

    def _found(self, path: Path | str) -> Inode:
        folder, name = self._at(path)
        inode = self._directories[folder].names.get(name)
        if inode is None:
            raise _refused(errno.ENOENT)
        return inode

    def _is_directory(self, path: Path | str) -> bool:
        return str(path) in self._directories

    def _exists(self, path: Path | str) -> bool:
        folder, _, name = str(path).rpartition("/")
        return self._is_directory(path) or name in self._directories.get(folder, Directory()).names


def _refused(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def _stat(inode: Inode | None) -> SimpleNamespace:
    mode, inode = (stat.S_IFDIR | 0o700, Inode()) if inode is None else (stat.S_IFREG | inode.mode, inode)
    return SimpleNamespace(
        st_mode=mode, st_dev=1, st_ino=inode.number, st_size=len(inode.data), st_mtime_ns=0
    )


def _cut(directory: Directory, draw: random.Random) -> None:
    """Apply a power cut: keep each unsynced change of a name, and unsynced bytes of files, at random."""
    names = dict(directory.synced)
    for name, inode in directory.since:
        if draw.random() < 0.5:
            if inode is None:
                names.pop(name, None)
            else:
                names[name] = inode
    for inode in names.values():
        if inode.data != inode.synced:
            written = len(inode.data)
            kept = draw.choice([len(inode.synced), written, draw.randrange(written + 1)])
            rest = bytes(written - kept) if draw.random() < 0.5 else b""  # length written, page not
            inode.data = bytearray(inode.data[:kept] + rest)
            inode.synced = bytes(inode.data)
    directory.names, directory.synced, directory.since = names, dict(names), []


@contextmanager
def in_place_of_the_disk(disk: FaultyDisk) -> Iterator[FaultyDisk]:
    """Make `streamnb.storage.files` and `streamnb.storage.lock` use the simulated disk."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (files, lock):
            patch.setattr(module, "os", disk)
        patch.setattr(lock, "fcntl", disk)
        yield disk
