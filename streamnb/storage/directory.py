"""The snapshot directory: the newest whole one in, a new one out, the oldest let go.

A snapshot is written to a temporary name, synced, published under a number that was never used, and the
directory synced; only then is an older one removed. So at every moment the directory holds a whole one,
or nothing was ever learned. Nothing but `streamnb.storage.retention` decides which one that is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from streamnb.base import Snapshot
from streamnb.errors import SnapshotError, StorageError
from streamnb.storage import files, snapshot_file
from streamnb.storage.container import Allocate, fresh
from streamnb.storage.lock import lock_directory
from streamnb.storage.retention import Held, expendable

SUFFIX = ".snb"
PINNED = ".pinned"
SET_ASIDE = "set-aside"
FILE_BYTES_MAX = 1 << 37
_log = logging.getLogger("streamnb.snapshots")


class SnapshotDirectory:
    """Snapshots as files ``snapshot-<number>.snb`` in a directory that one learner holds by a lock.

    Parameters
    ----------
    directory : Path
        Made if it is missing.
    keep : int
        How many of the newest stay.
    keep_hours : int
        For so many hours back the first of each hour stays too.
    allocate : Allocate
        Gives the memory that sections are read into.

    Raises
    ------
    StorageError
        The directory cannot be used, or another learner holds it.
    """

    def __init__(
        self, directory: Path, keep: int = 3, keep_hours: int = 0, allocate: Allocate = fresh
    ) -> None:
        self.directory = directory
        self.keep = keep
        self.keep_hours = keep_hours
        self._allocate = allocate
        files.make_directory(directory)
        self._lock = lock_directory(directory)
        for name in files.sweep_temporary(directory):
            _log.info("removed %s, which a crash had left half written", directory / name)

    def newest(self) -> Snapshot | None:
        """The newest whole snapshot; ``None`` if none was ever written.

        Raises
        ------
        SnapshotError
            There are snapshots, and none is whole.
        """
        names = _names(self.directory)
        first_error: SnapshotError | None = None
        for name in reversed(names):
            try:
                return read_snapshot(self.directory / name, self._allocate)
            except SnapshotError as error:
                _log.warning("%s", error)
                first_error = first_error or error
        if first_error is None:
            return None
        raise SnapshotError(
            f"None of the {len(names)} snapshots in {self.directory} can be used. {first_error.what}",
            "Put a whole one there, or begin anew from `engine.start` with `streamnb run --rebuild`.",
        )

    def write(self, snapshot: Snapshot) -> int:
        """Keep a snapshot under the next number, which is returned; let go of those past their time.

        Raises
        ------
        StorageError
            It is not kept; the newest stays in force.
        FencedError
            Another learner has taken the directory meanwhile.
        """
        sequence = self._publish(snapshot)
        try:
            self._prune()
        except StorageError as error:  # the new one is in force: that an old one stays is no harm
            _log.warning("an old snapshot stays. %s", error)
        return sequence

    def set_aside_all(self) -> list[str]:
        """Move snapshots of which none is whole to ``set-aside``, to begin anew; their names are returned.

        Raises
        ------
        SnapshotError
            One is whole: there is nothing to rebuild.
        """
        try:
            newest = self.newest()
        except SnapshotError:
            return self._set_aside(_names(self.directory))
        if newest is None:
            return []
        raise SnapshotError(
            f"Snapshot {newest.sequence} in {self.directory} is whole, so nothing has to be rebuilt.",
            "Start without `--rebuild`; to go back to an older one: `streamnb snapshot rollback`.",
        )

    def roll_back(self, sequence: int) -> int:
        """Let a kept snapshot be in force again, under the next number, and move the newer ones aside.

        A crash on the way leaves either what was, or the one gone back to: that is in force as soon as it is
        there, and moving the others only keeps them from being taken for it.

        Parameters
        ----------
        sequence : int

        Returns
        -------
        int
            The number it has now.

        Raises
        ------
        SnapshotError
            It is damaged.
        StorageError
            There is none of that number, or the disk refused.
        """
        newer = [name for name in _names(self.directory) if _number(name) > sequence]
        back = read_snapshot(self.directory / _name(sequence), self._allocate)
        newest = _number(newer[-1]) if newer else sequence
        event: dict[str, object] = {"event": "rolled back", "to": sequence, "from": newest}
        back.lineage.append(event)
        now = self._publish(back)
        self._set_aside(newer)
        return now

    def close(self) -> None:
        """Let another learner have the directory. Closing twice does nothing."""
        self._lock.close()

    def _publish(self, snapshot: Snapshot) -> int:
        aside = self.directory / SET_ASIDE
        used = _names(self.directory) + (_names(aside) if files.is_directory(aside) else [])
        sequence = max(map(_number, used), default=0) + 1
        files.write_new(
            self.directory / _name(sequence), self._checked(snapshot_file.encode(snapshot.numbered(sequence)))
        )
        return sequence

    def _checked(self, chunks: Iterator[bytes | memoryview]) -> Iterator[bytes | memoryview]:
        """The chunks, and before the file gets its name the check that the directory is still ours."""
        yield from chunks
        self._lock.check()

    def _prune(self) -> None:
        pinned = set(files.list_names(self.directory, PINNED))
        held = [
            Held(_number(name), files.modified_ms(self.directory / name), name + PINNED in pinned)
            for name in _names(self.directory)
        ]
        for sequence in expendable(held, self.keep, self.keep_hours):
            files.remove(self.directory / _name(sequence))

    def _set_aside(self, names: Sequence[str]) -> list[str]:
        for name in names:
            files.move(self.directory / name, self.directory / SET_ASIDE)
        return list(names)


def pin(directory: Path, sequence: int) -> None:
    """Let a snapshot stay whatever comes after it; pinned twice is pinned.

    An engine may hold the directory meanwhile.

    Raises
    ------
    StorageError
        There is none of that number.
    """
    files.modified_ms(directory / _name(sequence))
    mark = directory / (_name(sequence) + PINNED)
    if mark.name not in files.list_names(directory, PINNED):
        files.write_new(mark, [])


def unpin(directory: Path, sequence: int) -> None:
    """Let a pinned snapshot go when its time has come.

    Raises
    ------
    StorageError
        It is not pinned.
    """
    files.remove(directory / (_name(sequence) + PINNED))


def read_snapshot(path: Path, allocate: Allocate = fresh) -> Snapshot:
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
            return snapshot_file.read(file, allocate)
    except SnapshotError as error:
        raise SnapshotError(f"The snapshot {path} cannot be used. {error.what}", error.hint) from error


def write_snapshot(path: Path, snapshot: Snapshot) -> int:
    """One snapshot into a file that does not exist yet; returns its size in bytes.

    Raises
    ------
    StorageError
        It could not be written; nothing is there.
    """
    return files.write_new(path, snapshot_file.encode(snapshot))


def _names(directory: Path) -> list[str]:
    return sorted(name for name in files.list_names(directory, SUFFIX) if _number(name) >= 0)


def _name(sequence: int) -> str:
    return f"snapshot-{sequence:010d}{SUFFIX}"


def _number(name: str) -> int:
    digits = name.removeprefix("snapshot-").removesuffix(SUFFIX)
    return int(digits) if digits.isdecimal() and name == _name(int(digits)) else -1
