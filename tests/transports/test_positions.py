"""Which partitions a source reads, and from which offsets, if their numbers were chosen."""

from __future__ import annotations

import pytest

from streamnb.base.protocols import Start
from streamnb.base.record import Partition
from streamnb.errors import PositionError, SettingsError
from streamnb.transports.positions import partitions_to_read, starting_positions

P0, P1, P2, OTHER = Partition("mail", 0), Partition("mail", 1), Partition("mail", 2), Partition("chat", 0)
BEGIN, END = {P0: 3, P1: 5}, {P0: 10, P1: 20}


def at_time(at_ms: int) -> dict[Partition, int | None]:
    """Return the offset of the first record at or after a time."""
    return {P0: 4 if at_ms < 1000 else None, P1: 6 if at_ms < 1000 else None}


def test_all_partitions_are_read_unless_some_were_chosen() -> None:
    """A partition that the topic lacks is named with those that it has."""
    assert partitions_to_read("mail", 2, None) == [P0, P1]
    assert partitions_to_read("mail", 3, (0, 2)) == [P0, P2]
    with pytest.raises(SettingsError, match="mail has 2 partitions, numbers 0 to 1, so partition 2 cannot"):
        partitions_to_read("mail", 2, (0, 2, 7))
    with pytest.raises(SettingsError, match="mail has 1 partition, number 0, so partition 1 cannot be read"):
        partitions_to_read("mail", 1, (1,))


@pytest.mark.parametrize(("start", "expected"), [("earliest", 5), ("latest", 20), (0, 6), (10**12, 20)])
def test_a_partition_that_was_chosen_later_begins_where_the_start_says(start: Start, expected: int) -> None:
    """It may be as old as the topic; the others go on at their positions."""
    found = starting_positions({P0: 7}, start, BEGIN, END, at_time, (0, 1))
    assert found == {P0: 7, P1: expected}


@pytest.mark.parametrize("start", ["earliest", "latest", 0])
def test_a_partition_that_nobody_chose_is_new_and_begins_at_its_first_record(start: Start) -> None:
    """Without `partitions` nothing that a snapshot lacks can be older than the snapshot."""
    assert starting_positions({P0: 7}, start, BEGIN, END, at_time) == {P0: 7, P1: 5}


def test_positions_in_partitions_that_others_read_are_left_alone() -> None:
    """Even if the log no longer holds them; those of another topic are an error as ever."""
    assert starting_positions({P0: 7, P2: 10**9}, "latest", BEGIN, END, at_time, (0, 1)) == {P0: 7, P1: 20}
    with pytest.raises(PositionError, match="mail-2 is gone"):
        starting_positions({P0: 7, P2: 0}, "latest", BEGIN, END, at_time)
    with pytest.raises(PositionError, match="chat-0 is gone"):
        starting_positions({P0: 7, OTHER: 0}, "latest", BEGIN, END, at_time, (0, 1))
    with pytest.raises(PositionError, match="mail-0 begins at offset 3"):
        starting_positions({P0: 1, P2: 0}, "latest", BEGIN, END, at_time, (0, 1))


def test_a_snapshot_of_other_partitions_alone_does_not_change_the_start() -> None:
    """All that is read now was chosen later."""
    assert starting_positions({P2: 4}, "latest", BEGIN, END, at_time, (0, 1)) == END
