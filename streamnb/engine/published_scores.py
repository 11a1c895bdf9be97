"""Find out which scores an earlier process published; the lineage records how scores are delivered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamnb.base import Partition
from streamnb.errors import PositionError, SettingsError

DELIVERY = "scores delivered"
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
        The group's committed offsets, from the brokers.
    ends : mapping of Partition to int or None
        The offset after the last record of each partition.

    Returns
    -------
    published : dict of Partition to int
        Records of lower offsets are learned again and not published.
    change : dict or None
        The event that the lineage lacks, if exactly-once delivery only begins now. The committed offsets
        were then only advice for lag tools, and `published` is `next_offsets`.

    Raises
    ------
    PositionError
        A committed offset is not between the snapshot's and the log's end, so it is not known which scores
        were published.
    SettingsError
        Scores were published under another group.
    """
    change = delivery_noted(lineage, group)
    if change is not None:
        earlier = [event.get("group") for event in lineage if event.get("event") == DELIVERY]
        if earlier and earlier[-1] is not None:
            raise SettingsError(
                f"Earlier exactly-once scores used the group {earlier[-1]}, "
                f"but `source.group` is now {group}.",
                f"Set `source.group` back. {_ONCE_AT_LEAST}",
            )
        return dict(next_offsets), change
    for partition, offset in next_offsets.items():
        at, end = committed.get(partition), (ends or {}).get(partition)
        if at is None and offset == 0:
            continue  # the partition was added after the last commit
        if at is None or at < offset or (end is not None and at > end):
            found = "has committed no offset" if at is None else f"has committed offset {at}"
            raise PositionError(
                f"The group {group} {found} in {partition}; the snapshot is at {offset}, the end at {end}.",
                f"The group was reset, or its offset expired. {_ONCE_AT_LEAST}",
            )
    return dict(committed), None
