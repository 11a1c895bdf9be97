"""The snapshot directory: the newest whole one in, a new one out, the oldest let go.

A snapshot is written to a temporary name, synced, published under a number that was never used, and the
directory synced; only then is an older one removed. So at every moment the directory holds a whole one,
or nothing was ever learned.
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from streamnb import files
from streamnb.container import Allocate, fresh
from streamnb.errors import SnapshotError
from streamnb.snapshot import Snapshot

SUFFIX = ".snb"
FILE_BYTES_MAX = 1 << 37
_log = logging.getLogger("streamnb.snapshots")


class SnapshotSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where and when.

    Parameters
    ----------
    directory : str
        One engine has it to itself.
    interval_s : float
        A snapshot is begun at least this often while records come in, unless one is still being written.
    interval_records : int
        And after this many records.
    keep : int
        How many of the newest stay.
    failures_max : int
        The engine stops when this many in a row could not be written.
    """

    directory: str = "snapshots"
    interval_s: float = 30.0
    interval_records: int = 100_000
    keep: int = 3
    failures_max: int = 3

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a limit below 1 or an interval not above 0."""
        if not self.interval_s > 0 or min(self.interval_records, self.keep, self.failures_max) < 1:
            raise ValueError("an interval must be above 0, and `keep` and `failures_max` at least 1")


class SnapshotDirectory:
    """Snapshots as files ``snapshot-<number>.snb`` in a directory that one learner holds by a lock.

    Parameters
    ----------
    directory : Path
        Made if it is missing.
    keep : int
        How many of the newest stay.
    allocate : Allocate
        Gives the memory that sections are read into.

    Raises
    ------
    StorageError
        The directory cannot be used, or another learner holds it.
    """

    def __init__(self, directory: Path, keep: int = 3, allocate: Allocate = fresh) -> None:
        self.directory = directory
        self.keep = keep
        self._allocate = allocate
        files.make_directory(directory)
        self._lock = files.lock_directory(directory)
        for name in files.sweep_temporary(directory):
            _log.info("removed %s, which a crash had left half written", directory / name)

    def newest(self) -> Snapshot | None:
        """The newest whole snapshot; ``None`` if none was ever written.

        Raises
        ------
        SnapshotError
            There are snapshots, and none is whole.
        """
        names = self._names()
        first_error: SnapshotError | None = None
        for name in reversed(names):
            try:
                return read(self.directory / name, self._allocate)
            except SnapshotError as error:
                _log.warning("%s", error)
                first_error = first_error or error
        if first_error is None:
            return None
        raise SnapshotError(
            f"None of the {len(names)} snapshots in {self.directory} can be used. {first_error.what}",
            "Put a whole snapshot there, or move the files away to begin again from the start of the stream.",
        )

    def write(self, snapshot: Snapshot) -> int:
        """Keep a snapshot under the next number, which is returned; remove those past `keep`.

        Raises
        ------
        StorageError
            It is not kept; the newest stays in force.
        """
        names = self._names()
        sequence = _number(names[-1]) + 1 if names else 1
        files.write_new(self.directory / _name(sequence), snapshot.numbered(sequence).encode())
        for name in self._names()[: -self.keep]:
            files.remove(self.directory / name)
        return sequence

    def close(self) -> None:
        """Let another learner have the directory. Closing twice does nothing."""
        self._lock.close()

    def _names(self) -> list[str]:
        return sorted(name for name in files.list_names(self.directory, SUFFIX) if _number(name) >= 0)


def read(path: Path, allocate: Allocate = fresh) -> Snapshot:
    """One snapshot file, verified.

    Parameters
    ----------
    path : Path
    allocate : Allocate
        Gives the memory that sections are read into.

    Raises
    ------
    SnapshotError
        It is torn, damaged, foreign or of another version.
    StorageError
        It cannot be read.
    """
    try:
        with files.open_whole(path, FILE_BYTES_MAX) as file:
            return Snapshot.read(file, allocate)
    except SnapshotError as error:
        raise SnapshotError(f"The snapshot {path} cannot be used. {error.what}", error.hint) from error


def write(path: Path, snapshot: Snapshot) -> int:
    """One snapshot into a file that does not exist yet; returns its size in bytes.

    Raises
    ------
    StorageError
        It could not be written; nothing is there.
    """
    return files.write_new(path, snapshot.encode())


def _name(sequence: int) -> str:
    return f"snapshot-{sequence:010d}{SUFFIX}"


def _number(name: str) -> int:
    digits = name.removeprefix("snapshot-").removesuffix(SUFFIX)
    return int(digits) if digits.isdecimal() and name == _name(int(digits)) else -1
