"""`streamnb snapshot rollback`: make an earlier snapshot the one the engine resumes from."""

from __future__ import annotations

from streamnb.cli.options import (
    DirectoryArgument,
    SequenceArgument,
)
from streamnb.errors import SettingsError


def rollback(directory: DirectoryArgument, sequence: SequenceArgument) -> None:
    """Go back to an earlier snapshot; stop the engine first.

    The engine then resumes from that snapshot. Newer snapshots are moved aside, none is deleted.
    """
    from streamnb.storage import SET_ASIDE, SnapshotDirectory, check_kept

    if not directory.is_dir():
        raise SettingsError(f"{directory} is not a directory.", "Pass the engine's `snapshots.directory`.")
    check_kept(directory, sequence)  # before the lock, which creates a file
    store = SnapshotDirectory(directory, sweep=False)
    try:
        now = store.roll_back(sequence)
    finally:
        store.close()
    print(
        f"snapshot {now} is a copy of snapshot {sequence}, and the engine resumes from it; "
        f"newer ones are in {directory / SET_ASIDE}"
    )
