"""The partitions that a source reads and the positions where it begins: no record is skipped silently.

The log must have the partitions that were chosen, and it must still hold the positions of a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from streamnb.base import Partition, Start
from streamnb.errors import PositionError, PositionLostError, SettingsError


def partitions_to_read(topic: str, count: int, chosen: Sequence[int] | None) -> list[Partition]:
    """Return the chosen partitions of a topic with so many partitions, by default all.

    Raises
    ------
    SettingsError
        The topic does not have a chosen partition.
    """
    lacking = [number for number in chosen or () if number >= count]
    if lacking:
        has = "1 partition, number 0" if count == 1 else f"{count} partitions, numbers 0 to {count - 1}"
        raise SettingsError(
            f"Topic {topic} has {has}, so partition {lacking[0]} cannot be read.",
            "Correct `source.partitions`, or add partitions to the topic.",
        )
    return [Partition(topic, number) for number in (range(count) if chosen is None else chosen)]


def starting_positions(
    next_offsets: Mapping[Partition, int],
    start: Start,
    begin: Mapping[Partition, int],
    end: Mapping[Partition, int],
    at_time: Callable[[int], Mapping[Partition, int | None]],
    chosen: Sequence[int] | None = None,
) -> dict[Partition, int]:
    """Return the first offset to read in each partition, by the rules of `Source.open` in the protocols.

    Parameters
    ----------
    next_offsets, start
        The arguments of `Source.open`.
    begin, end : mapping of Partition to int
        The first offset and the end offset of each partition now.
    at_time : callable
        Returns, for a time in milliseconds since 1970, the offset of the first record at or after it in each
        partition, and ``None`` for a partition without such a record.
    chosen : sequence of int, optional
        The numbers of the partitions, if they were chosen. Then other processes read the other partitions of
        the topics, so their positions are ignored; and a partition that is missing from `next_offsets` need
        not be a new one, so it begins where `start` says.

    Raises
    ------
    PositionError
        The log does not hold a position of `next_offsets`.
    SettingsError
        `start` is before 1970.
    """
    if chosen is not None:
        topics = {one.topic for one in begin}
        next_offsets = {p: at for p, at in next_offsets.items() if p in begin or p.topic not in topics}
    if next_offsets:
        check_positions(next_offsets, begin, end)
    if start == "earliest" or begin.keys() <= next_offsets.keys() or (next_offsets and chosen is None):
        return {**begin, **next_offsets}
    if start == "latest":
        return {**end, **next_offsets}
    if start < 0:
        raise SettingsError(f"`start` is {start}, before 1970.", "Give milliseconds since 1970.")
    first = {one: end[one] if at is None else at for one, at in at_time(start).items()}
    return {**first, **next_offsets}


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


def position_lost(what: str) -> PositionLostError:
    """Return the error for a position that the log held at `open` and no longer holds."""
    hint = (
        "Lengthen the topic's retention and start again; the error at that start names the missing offsets."
    )
    return PositionLostError(what, hint)
