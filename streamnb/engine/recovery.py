"""What must hold before the engine goes on from a snapshot. In doubt it stops, and says so."""

from __future__ import annotations

from collections.abc import Mapping

from streamnb.base import Account, Accounts, Partition, Snapshot, Start, differences
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


def skip(accounts: Accounts, resume: Mapping[Partition, int | None]) -> list[dict[str, object]]:
    """Go on where the log still can, and say what is not there any more.

    Records that were never read count as lost. A log that ends before the position has lost what was learned
    from it, which no account can tell: the partition's begins anew.

    Parameters
    ----------
    accounts : Accounts
        Changed.
    resume : mapping of Partition to int or None
        Of a `PositionError`.

    Returns
    -------
    list of dict
        The lineage's events, one a partition.
    """
    events: list[dict[str, object]] = []
    for partition, offset in resume.items():
        account = accounts.pop(partition)
        event = {"event": "data_loss", "partition": str(partition), "from": account.next_offset, "to": offset}
        if offset is not None and offset < account.next_offset:
            accounts[partition] = Account(offset, offset)
            event |= {"from": offset, "to": account.next_offset, "learned": True}
        elif offset is not None:
            account.lost += offset - account.next_offset
            account.next_offset = offset
            accounts[partition] = account
        events.append(event)
    return events


class CatchUp:
    """Whether a restart has read again what came since its snapshot, and how much that was.

    Parameters
    ----------
    ends : mapping of Partition to int, or None
        Of the log at the start; ``None`` where they cannot be known: then nothing has to be caught up.
    """

    def __init__(self, ends: Mapping[Partition, int] | None = None) -> None:
        self.ends = ends
        self.done = False

    def is_known(self) -> bool:
        """Whether the log says where it ends."""
        return self.ends is not None

    def is_done(self, accounts: Accounts) -> bool:
        """Whether every partition stands at the end it had, or beyond; once done, for good."""
        ends = self.ends or {}
        self.done = self.done or all(accounts[one].next_offset >= end for one, end in ends.items())
        return self.done
