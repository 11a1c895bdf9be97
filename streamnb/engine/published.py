"""How scores are delivered, as the lineage tells it, and which were published before a start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamnb.base import Partition
from streamnb.errors import PositionError, SettingsError

DELIVERY = "scores delivered"
_ONCE_AT_LEAST = 'Or start once with `engine.scores = "at_least_once"`: scores may then be published twice.'


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
        The committed offsets do not lie between the state and the log's end: which scores were published
        cannot be told.
    SettingsError
        The group is another one than scores were published under.
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
