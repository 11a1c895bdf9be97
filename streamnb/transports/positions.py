"""Whether the positions of a snapshot still lie in the log."""

from __future__ import annotations

from collections.abc import Mapping

from streamnb.base import Partition
from streamnb.errors import PositionError


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
        Records may be lost: which, what may have happened, and where `engine.on_data_loss` could go on.
    """
    found: list[tuple[str, str]] = []
    resume: dict[tuple[str, int], int | None] = {}
    for partition, offset in next_offsets.items():
        first, last = begin.get(partition), end.get(partition)
        if first is None or last is None:
            hint = "The topic was made again with fewer partitions, or is no longer in `topics`."
            found.append((f"{partition} is gone, and the snapshot was at its offset {offset}.", hint))
            resume[partition] = None
        elif offset < first:
            hint = "The topic's retention removed them: lengthen it, and start from a newer snapshot."
            missing = f"offsets {offset} to {first - 1} ({first - offset} records at most) are missing"
            found.append((f"{partition} begins at offset {first}: {missing}.", hint))
            resume[partition] = first
        elif offset > last:
            hint = "The topic was made again, or its newest records were lost with their broker."
            missing = f"offsets {last} to {offset - 1}, already learned, are missing"
            found.append((f"{partition} ends at offset {last}: {missing}.", hint))
            resume[partition] = last
    if found:
        what = " ".join(sentence for sentence, _ in found)
        allow = '`engine.on_data_loss = "skip"` goes on without them, and says so in every later snapshot.'
        raise PositionError(what, f"{found[0][1]} {allow}", resume)
