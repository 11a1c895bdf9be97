"""Find out which scores an earlier process published; the lineage records how scores are delivered.

The brokers know it, not the snapshots: these may be lost, set aside, or those of another directory.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

from streamnb.base import Partition
from streamnb.errors import PositionError, SettingsError

DELIVERY = "scores delivered"
PUBLISHED = "published before"
BEGUN = "begun from a snapshot"
MERGED = "merged"
_log = logging.getLogger("streamnb.engine")
_ONCE_AT_LEAST = 'You can start once with `engine.scores = "at_least_once"`: it may publish scores twice.'


def delivery_noted(lineage: Sequence[Mapping[str, object]], group: str | None) -> dict[str, object] | None:
    """Return the event that the lineage lacks about how scores are delivered from now on.

    The last such event counts; without one, delivery was at least once.

    Parameters
    ----------
    lineage : sequence of mapping
    group : str or None
        The consumer group of exactly-once delivery; ``None`` for at least once.

    Returns
    -------
    dict or None
        ``None`` if the lineage is up to date.
    """
    noted = _groups(lineage)
    if (noted[-1] if noted else None) == group:
        return None
    return {"event": DELIVERY, "scores": "exactly once" if group else "at least once", "group": group}


def published_before(
    lineage: Sequence[Mapping[str, object]],
    group: str,
    next_offsets: Mapping[Partition, int],
    committed: Mapping[Partition, int],
    ends: Mapping[Partition, int] | None,
    new: Collection[Partition] = (),
) -> tuple[dict[Partition, int], dict[str, object] | None]:
    """Return the offsets up to which scores were published in committed transactions.

    Parameters
    ----------
    lineage : sequence of mapping
        The snapshot's.
    group : str
        The consumer group that offsets are committed under.
    next_offsets : mapping of Partition to int
        The snapshot's.
    committed : mapping of Partition to int
        The offsets that transactions committed under the group, from the brokers.
    ends : mapping of Partition to int or None
        The offset after the last record of each partition.
    new : collection of Partition
        The partitions that the snapshot did not have.

    Returns
    -------
    published : dict of Partition to int
        Records of lower offsets are learned again and not published.
    change : dict or None
        The event that the lineage lacks, if for these snapshots exactly-once delivery only begins now. If
        an engine with other snapshots has published scores under the group, the event holds how far.

    Raises
    ------
    PositionError
        A committed offset is past the log's end, or before the offset of a snapshot of the same delivery,
        so it is not known which scores were published.
    SettingsError
        Scores were published under another group.
    """
    change = delivery_noted(lineage, group)
    if change is not None:
        earlier = _groups(lineage)
        if earlier and earlier[-1] is not None:
            raise SettingsError(
                f"Earlier exactly-once scores used the group {earlier[-1]}, "
                f"but `source.group` is now {group}.",
                f"Set `source.group` back. {_ONCE_AT_LEAST}",
            )
        return _published_elsewhere(lineage, group, next_offsets, committed, ends, change)
    for partition, offset in next_offsets.items():
        at, end = committed.get(partition), (ends or {}).get(partition)
        if (at is None and offset == 0) or (partition in new and (at or 0) < offset):
            continue  # the partition was added after the last commit, or an engine that added it was killed
        if at is None or at < offset or (end is not None and at > end):
            found = "has committed no offset" if at is None else f"has committed offset {at}"
            raise PositionError(
                f"The group {group} {found} in {partition}; the snapshot's next offset is {offset}, and the "
                f"partition ends at {end}.",
                f"The group was reset, or its offset expired. {_ONCE_AT_LEAST}",
            )
    return {one: max(at, next_offsets.get(one, at)) for one, at in committed.items()}, None


def _groups(lineage: Sequence[Mapping[str, object]]) -> list[object]:
    """Return the group of each event about delivery since these snapshots began, ``None`` for at least once.

    What came before a start from another engine's snapshot was that engine's delivery, and what came before
    snapshots were merged was the delivery of several engines, each under its own group.
    """
    groups: list[object] = []
    for event in lineage:
        if event.get("event") == DELIVERY:
            groups.append(event.get("group"))
        elif event.get("event") in {BEGUN, MERGED}:
            groups.clear()
    return groups


def _merged_groups(lineage: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the groups under which the engines of merged snapshots published scores exactly once."""
    names = [event.get("event") for event in lineage]
    last = len(names) - names[::-1].index(MERGED) if MERGED in names else 0
    if BEGUN in names[last:]:
        return []
    found = {event.get("group") for event in lineage[:last] if event.get("event") == DELIVERY}
    return sorted(str(one) for one in found if one is not None)


def _published_elsewhere(
    lineage: Sequence[Mapping[str, object]],
    group: str,
    next_offsets: Mapping[Partition, int],
    committed: Mapping[Partition, int],
    ends: Mapping[Partition, int] | None,
    change: dict[str, object],
) -> tuple[dict[Partition, int], dict[str, object]]:
    """Return what `published_before` does where the lineage does not know of this group's scores."""
    if groups := _merged_groups(lineage):
        _log.warning(
            "The snapshot was merged from those of engines that published scores exactly once, under the "
            "groups %s. Scores that they published after those snapshots are published again under %s.",
            ", ".join(groups),
            group,
        )
    published = {one: max(at, committed.get(one, at)) for one, at in next_offsets.items()}
    past = {one: at for one, at in published.items() if at > next_offsets[one]}
    for partition, at in past.items():
        end = (ends or {}).get(partition, at)
        if at > end:
            raise PositionError(
                f"Scores up to offset {at} of {partition} were published under the group {group}, but the "
                f"log ends at {end}.",
                "The group's offsets belong to another log: set another `source.group`.",
            )
    if past:
        places = ", ".join(f"{one} @ {at}" for one, at in sorted(past.items()))
        _log.warning(
            "An engine with other snapshots published scores exactly once under the group %s, up to %s. "
            "Records below these offsets are learned, but their scores are not published again. To publish "
            "them, set another `source.group`.",
            group,
            places,
        )
        change = change | {PUBLISHED: {str(one): at for one, at in sorted(past.items())}}
    return published, change
