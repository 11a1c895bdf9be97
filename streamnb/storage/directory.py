"""The snapshot directory: it loads the newest intact snapshot, adds new ones and removes expired ones.

A new snapshot is written to a temporary file and synced, published under a number that was never used, and
the directory is synced. Only then is an older snapshot removed, so once one was written the directory always
holds an intact one. `streamnb.storage.retention` decides which snapshots stay.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from streamnb.base import Snapshot
from streamnb.errors import SnapshotError, StorageError
from streamnb.storage import files, snapshot_file
from streamnb.storage.container import FILE_BYTES_MAX, Allocate, fresh
from streamnb.storage.lock import check_unlocked, lock_directory
from streamnb.storage.retention import Listed, expired

SUFFIX = ".snb"
PINNED = ".pinned"
SET_ASIDE = "set-aside"
_log = logging.getLogger("streamnb.snapshots")


class SnapshotDirectory:
    """A store of snapshots as files ``snapshot-<number>.snb`` in a directory that one learner locks.

    Parameters
    ----------
    directory : Path
        Created if it is missing.
    keep : int
        How many of the newest snapshots stay.
    keep_hours : int
        For how many hours back the first snapshot of each hour stays too.
    allocate : Allocate
        Allocates the memory that sections are read into.
    sweep : bool
        Whether to remove at once what a killed writer left half written.

    Raises
    ------
    StorageError
        The directory cannot be used, or another learner holds it.
    """

    def __init__(
        self,
        directory: Path,
        keep: int = 3,
        keep_hours: int = 0,
        allocate: Allocate = fresh,
        *,
        sweep: bool = True,
    ) -> None:
        self.directory = directory
        self.keep = keep
        self.keep_hours = keep_hours
        self._allocate = allocate
        files.make_directory(directory)
        self._lock = lock_directory(directory)
        if sweep:
            self._sweep()

    def newest(self) -> Snapshot | None:
        """Return the newest intact snapshot, or ``None`` if there has never been one.

        Raises
        ------
        SnapshotError
            There are snapshots, but none is intact.
        """
        return _newest(self.directory, self._allocate)

    def write(self, snapshot: Snapshot) -> int:
        """Keep a snapshot under the next number, remove expired ones, and return the number.

        Raises
        ------
        StorageError
            The snapshot was not kept; the previous one stays in force.
        FencedError
            Another learner has taken over the directory.
        """
        sequence = self._publish(snapshot)
        try:
            self._prune()
        except StorageError as error:  # the new snapshot is in force, and an extra old one does no harm
            _log.warning("an expired snapshot was not removed. %s", error)
        return sequence

    def set_aside_all(self) -> list[str]:
        """Move all snapshots to ``set-aside``, so that a learner can start over, and return their names.

        Raises
        ------
        SnapshotError
            A snapshot is intact, so there is no reason to start over.
        """
        try:
            newest = self.newest()
        except SnapshotError:
            return self._set_aside(_names(self.directory))
        if newest is None:
            return []
        raise SnapshotError(
            f"Snapshot {newest.sequence} in {self.directory} is intact, so nothing has to be rebuilt.",
            "Start without `--rebuild`; to go back to an older snapshot, use `streamnb snapshot rollback`.",
        )

    def roll_back(self, sequence: int) -> int:
        """Publish a kept snapshot again under the next number, move the newer ones aside, return the number.

        The snapshot is in force as soon as it has its new, highest number, so a crash leaves either the state
        before or the rollback in force. The newer ones are moved so that `newest` does not return one of them
        if the new file gets damaged.

        Parameters
        ----------
        sequence : int

        Returns
        -------
        int
            The snapshot's new number.

        Raises
        ------
        SnapshotError
            The snapshot is damaged.
        StorageError
            There is no snapshot with that number, or the disk refused.
        """
        newer = [name for name in _names(self.directory) if _number(name) > sequence]
        snapshot = read_snapshot(self.directory / _name(sequence), self._allocate)
        newest = _number(newer[-1]) if newer else sequence
        event: dict[str, object] = {"event": "rolled back", "to": sequence, "from": newest}
        snapshot.lineage.append(event)
        self._sweep()
        new_sequence = self._publish(snapshot)
        self._set_aside(newer)
        return new_sequence

    def close(self) -> None:
        """Release the directory, so that another learner can use it. Closing twice does nothing."""
        self._lock.close()

    def _sweep(self) -> None:
        for name in files.sweep_temporary(self.directory, _is_ours):
            _log.info("removed %s, which a crash had left half written", self.directory / name)

    def _publish(self, snapshot: Snapshot) -> int:
        aside = self.directory / SET_ASIDE
        used = _names(self.directory) + (_names(aside) if files.is_directory(aside) else [])
        sequence = max(map(_number, used), default=0) + 1
        files.write_new(
            self.directory / _name(sequence), self._checked(snapshot_file.encode(snapshot.numbered(sequence)))
        )
        return sequence

    def _checked(self, chunks: Iterator[bytes | memoryview]) -> Iterator[bytes | memoryview]:
        """Yield the chunks, then check the lock at the last moment before the file gets its name."""
        yield from chunks
        self._lock.check()

    def _prune(self) -> None:
        pinned = set(files.list_names(self.directory, PINNED))
        held = [
            Listed(_number(name), files.modified_ms(self.directory / name), name + PINNED in pinned)
            for name in _names(self.directory)
        ]
        for sequence in expired(held, self.keep, self.keep_hours):
            files.remove(self.directory / _name(sequence))

    def _set_aside(self, names: Sequence[str]) -> list[str]:
        for name in names:
            files.move(self.directory / name, self.directory / SET_ASIDE)
        return list(names)


def inspect_directory(directory: Path, allocate: Allocate = fresh) -> Snapshot | None:
    """Return the newest intact snapshot as a learner would find it, and change nothing.

    Raises
    ------
    SnapshotError
        There are snapshots, but none is intact.
    StorageError
        A learner could not use the directory, or one holds it.
    """
    files.make_directory(directory, create=False)
    if not files.is_directory(directory):
        return None
    check_unlocked(directory)
    return _newest(directory, allocate)


def check_kept(directory: Path, sequence: int) -> None:
    """Check that there is a snapshot with this number.

    Raises
    ------
    StorageError
        There is none.
    """
    files.modified_ms(directory / _name(sequence))


def pin(directory: Path, sequence: int) -> None:
    """Pin a snapshot, so that it is never removed as expired. Pinning twice does nothing.

    This needs no lock, so an engine may be using the directory.

    Raises
    ------
    StorageError
        There is no snapshot with that number.
    """
    check_kept(directory, sequence)
    mark = directory / (_name(sequence) + PINNED)
    if mark.name not in files.list_names(directory, PINNED):
        files.write_new(mark, [])


def unpin(directory: Path, sequence: int) -> None:
    """Unpin a snapshot, so that it is removed once it has expired.

    Raises
    ------
    StorageError
        The snapshot is not pinned.
    """
    files.remove(directory / (_name(sequence) + PINNED))


def read_snapshot(path: Path, allocate: Allocate = fresh) -> Snapshot:
    """Read and verify one snapshot file.

    Parameters
    ----------
    path : Path
    allocate : Allocate
        Allocates the memory that sections are read into.

    Raises
    ------
    SnapshotError
        The file is torn, damaged, not a snapshot, or has another version.
    StorageError
        The file cannot be read.
    """
    try:
        with files.open_whole(path, FILE_BYTES_MAX) as file:
            return snapshot_file.read(file, allocate, str(path))
    except SnapshotError as error:
        raise SnapshotError(f"The snapshot {path} cannot be used. {error.what}", error.hint) from error


def write_snapshot(path: Path, snapshot: Snapshot, *, overwrite: bool = False) -> int:
    """Write one snapshot to a file, whole or not at all, and return its size in bytes.

    Parameters
    ----------
    path : Path
    snapshot : Snapshot
    overwrite : bool
        Whether a file of that name is replaced; its old content stays until the new one is complete.

    Raises
    ------
    StorageError
        The file exists, or could not be written; no part of the new content remains.
    """
    write = files.write_over if overwrite else files.write_new
    return write(path, snapshot_file.encode(snapshot))


def _newest(directory: Path, allocate: Allocate) -> Snapshot | None:
    names = _names(directory)
    first_error: SnapshotError | None = None
    for name in reversed(names):
        try:
            return read_snapshot(directory / name, allocate)
        except SnapshotError as error:
            _log.warning("%s", error)
            first_error = first_error or error
    if first_error is None:
        return None
    raise SnapshotError(
        f"None of the {len(names)} snapshots in {directory} can be used. {first_error.what}",
        "Copy an intact snapshot into the directory, or start over from `engine.start` with "
        "`streamnb run --rebuild`.",
    )


def _is_ours(name: str) -> bool:
    return _number(name.removesuffix(PINNED)) >= 0


def _names(directory: Path) -> list[str]:
    ours = (name for name in files.list_names(directory, SUFFIX) if _number(name) >= 0)
    return sorted(ours, key=_number)  # a number of eleven digits follows those of ten


def _name(sequence: int) -> str:
    return f"snapshot-{sequence:010d}{SUFFIX}"


def _number(name: str) -> int:
    digits = name.removeprefix("snapshot-").removesuffix(SUFFIX)
    return int(digits) if digits.isdecimal() and name == _name(int(digits)) else -1
