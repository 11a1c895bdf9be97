"""Check that a log still holds the positions of a snapshot, so that no record is skipped silently."""

from __future__ import annotations

from collections.abc import Mapping

from streamnb.base import Partition
from streamnb.errors import PositionError


def check_positions(
    next_offsets: Mapping[Partition, int], begin: Mapping[Partition, int], end: Mapping[Partition, int]
) -> None:
    """Check that every position lies between the first offset of its partition and the end of the log.

    Parameters
    ----------
    next_offsets : mapping of Partition to int
        The positions of a snapshot.
    begin, end : mapping of Partition to int
        The first offset and the end offset of each partition now.

    Raises
    ------
    PositionError
        Records may be lost. The error names the missing offsets and the likely cause; its `resume` holds the
        offset at which ``engine.on_data_loss = "skip"`` would continue.
    """
    found: list[tuple[str, str]] = []
    resume: dict[tuple[str, int], int | None] = {}
    for partition, offset in next_offsets.items():
        first, last = begin.get(partition), end.get(partition)
        if first is None or last is None:
            hint = "The topic was re-created with fewer partitions, or was removed from `topics`."
            found.append((f"{partition} is gone; the snapshot's next offset in it is {offset}.", hint))
            resume[partition] = None
        elif offset < first:
            hint = "The topic's retention deleted these records. Lengthen the retention."
            missing = f"offsets {offset} to {first - 1} ({first - offset} records at most) are missing"
            found.append((f"{partition} begins at offset {first}: {missing}.", hint))
            resume[partition] = first
        elif offset > last:
            hint = "The topic was re-created, or its newest records were lost with a broker."
            missing = f"offsets {last} to {offset - 1}, already learned, are missing"
            found.append((f"{partition} ends at offset {last}: {missing}.", hint))
            resume[partition] = last
    if found:
        what = " ".join(sentence for sentence, _ in found)
        allow = (
            '`engine.on_data_loss = "skip"` continues without the missing records or partition and lists the '
            "loss in every later snapshot."
        )
        raise PositionError(what, f"{found[0][1]} {allow}", resume)
