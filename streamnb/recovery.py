"""What must hold before the engine goes on from a snapshot. In doubt it stops, and says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamnb.errors import PositionError, SettingsError, SnapshotError
from streamnb.protocols import Start
from streamnb.record import Partition
from streamnb.snapshot import Snapshot, differences

DELIVERY = "scores delivered"
_ONCE_AT_LEAST = 'Or start once with `engine.scores = "at_least_once"`: scores may then be published twice.'


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


def check_identity(snapshot: Snapshot, identity: Mapping[str, str]) -> None:
    """Offsets mean something only in the log they were taken from.

    Raises
    ------
    PositionError
        The cluster or a topic is another one, under the same name perhaps.
    """
    for name, then in snapshot.source.items():
        now = identity.get(name, then)
        if now != then:
            raise PositionError(
                f"The {name} is {now}; snapshot {snapshot.sequence} belongs to {then}, "
                "so its offsets mean nothing here.",
                "Point `[source]` at the log it came from, or begin in another directory with `--from`.",
            )


def check_positions(
    next_offsets: Mapping[Partition, int], begin: Mapping[Partition, int], end: Mapping[Partition, int]
) -> None:
    """Every position must lie in its log, between the first record kept and the end.

    Parameters
    ----------
    next_offsets : mapping of Partition to int
        Of a snapshot.
    begin, end : mapping of Partition to int
        Of the log now.

    Raises
    ------
    PositionError
        Records may be lost: which, and what may have happened.
    """
    for partition, offset in next_offsets.items():
        first, last = begin.get(partition), end.get(partition)
        if first is None or last is None:
            hint = "The topic was made again with fewer partitions, or is no longer in `topics`."
            raise PositionError(f"{partition} is gone, and the snapshot was at its offset {offset}.", hint)
        if offset < first:
            hint = "The topic's retention removed them: lengthen it, and start from a newer snapshot."
            missing = f"offsets {offset} to {first - 1} ({first - offset} records at most) are missing"
            raise PositionError(f"{partition} begins at offset {first}: {missing}.", hint)
        if offset > last:
            hint = "The topic was made again, or its newest records were lost with their broker."
            missing = f"offsets {last} to {offset - 1}, already learned, are missing"
            raise PositionError(f"{partition} ends at offset {last}: {missing}.", hint)


def delivery_noted(lineage: Sequence[Mapping[str, object]], group: str | None) -> dict[str, object] | None:
    """What the lineage lacks of how scores are delivered now: exactly once under a group, or at least once.

    ``None`` where it says so already: the last note counts, and without one it was at least once.
    """
    noted = [event.get("group") for event in lineage if event.get("event") == DELIVERY]
    if (noted[-1] if noted else None) == group:
        return None
    return {"event": DELIVERY, "scores": "exactly once" if group else "at least once", "group": group}


def published_before(
    lineage: Sequence[Mapping[str, object]],
    group: str,
    next_offsets: Mapping[Partition, int],
    committed: Mapping[Partition, int],
    ends: Mapping[Partition, int] | None,
) -> tuple[dict[Partition, int], dict[str, object] | None]:
    """Up to which offsets scores were published in committed transactions.

    Parameters
    ----------
    lineage : sequence of mapping
        Of the snapshot.
    group : str
        Under which offsets are committed.
    next_offsets : mapping of Partition to int
        Where the state stands.
    committed : mapping of Partition to int
        What the brokers say.
    ends : mapping of Partition to int or None
        Of the log.

    Returns
    -------
    published : dict of Partition to int
        What lies before is learned again and not published.
    change : dict or None
        What the lineage does not say yet: the offsets are then only those of lag tools, and begin with the
        state.

    Raises
    ------
    PositionError
        The committed offsets do not reach from the state to the log's end: which scores were published
        cannot be told.
    """
    change = delivery_noted(lineage, group)
    if change is not None:
        earlier = [event.get("group") for event in lineage if event.get("event") == DELIVERY]
        if earlier and earlier[-1] is not None:
            raise SettingsError(
                f"Scores were published exactly once under the group {earlier[-1]}, and now it is {group}.",
                f"Set `source.group` back. {_ONCE_AT_LEAST}",
            )
        return dict(next_offsets), change
    for partition, offset in next_offsets.items():
        at, end = committed.get(partition), (ends or {}).get(partition)
        if at is None and offset == 0:
            continue  # a partition that was added since
        if at is None or at < offset or (end is not None and at > end):
            stands = "has no offset" if at is None else f"stands at offset {at}"
            raise PositionError(
                f"The group {group} {stands} in {partition}, where the state is at {offset} of {end}.",
                f"Somebody reset it, or it expired. {_ONCE_AT_LEAST}",
            )
    return dict(committed), None
