"""The numbers of partitions that a process may be told to read."""

from __future__ import annotations

import pytest

from streamnb.base.record import PARTITION_MAX, checked_partitions
from streamnb.errors import SettingsError


def test_chosen_partitions_are_sorted_and_none_means_all() -> None:
    """The order of a list means nothing; the largest number that Kafka has is taken."""
    assert checked_partitions((5, 0, 2)) == (0, 2, 5)
    assert checked_partitions([PARTITION_MAX]) == (PARTITION_MAX,)
    assert checked_partitions(None) is None


@pytest.mark.parametrize(
    ("numbers", "what"),
    [
        ([], "names no partition"),
        ([0, -1], "has -1, which is no partition's number"),
        ([PARTITION_MAX + 1], "has 2147483648, which is no"),
        ([3, 1, 3], "names partition 3 more than once"),
    ],
)
def test_a_list_that_no_topic_can_have_is_refused(numbers: list[int], what: str) -> None:
    """An empty list would read nothing, and a number that is there twice is a typing error."""
    with pytest.raises(SettingsError, match=what):
        checked_partitions(numbers)
