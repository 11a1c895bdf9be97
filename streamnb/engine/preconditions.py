"""What must hold before the engine goes on from a snapshot. In doubt it stops, and says so."""

from __future__ import annotations

from collections.abc import Mapping

from streamnb.base import Snapshot, Start, differences
from streamnb.errors import PositionError, SettingsError, SnapshotError


def starting_point(
    newest: Snapshot | None, begin_from: Snapshot | None, start: Start | None
) -> Snapshot | None:
    """The snapshot to restore: the newest; at a first start the one to begin from, or none.

    Begun from a snapshot, the stream is read from `start`, or from its beginning where that is not said.

    Raises
    ------
    SettingsError
        There is a snapshot and another one to begin from; or none, and no word on where to start.
    """
    if newest is not None and begin_from is not None:
        raise SettingsError(
            "There are snapshots in the directory already, so nothing can be begun from another one.",
            "Leave `--from` out to go on, or set another `snapshots.directory`.",
        )
    if newest is None and begin_from is None and start is None:
        raise SettingsError(
            "`engine.start` is not set, and there is no snapshot to resume from.",
            'Set it to "earliest", "latest" or a time in milliseconds since 1970.',
        )
    return newest if newest is not None else begin_from


def check_statistics(snapshot: Snapshot, statistics: Mapping[str, object]) -> None:
    """The settings that the counts depend on must be the ones they were counted under.

    Raises
    ------
    SnapshotError
        They are not; the differences are named.
    """
    changes = differences(snapshot.statistics, statistics)
    if changes:
        raise SnapshotError(
            f"Snapshot {snapshot.sequence} was made with other settings: {'; '.join(changes)}.",
            "Its counts mean something else. Restore the settings, or begin in another directory.",
        )


def check_identity(source: Mapping[str, str], identity: Mapping[str, str], whose: str) -> None:
    """Offsets mean something only in the log they were taken from.

    Parameters
    ----------
    source : mapping of str to str
        Where `whose` offsets are from.
    identity : mapping of str to str
        What the log says it is now.
    whose : str

    Raises
    ------
    PositionError
        The cluster or a topic is another one, under the same name perhaps.
    """
    for name, then in source.items():
        now = identity.get(name, then)
        if now != then:
            raise PositionError(
                f"The {name} is {now}; {whose} belongs to {then}, so its offsets mean nothing here.",
                "Point `[source]` at the log it came from, or begin in another directory with `--from`.",
            )
