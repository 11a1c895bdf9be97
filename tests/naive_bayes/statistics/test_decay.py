"""Sums whose landmark moves: what is dropped leaves the totals too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streamnb.naive_bayes.statistics.decay import FORGOTTEN, fade_rows

COUNTS = st.sampled_from([0.0, 2.0**-33, 2.0**-31, 0.5, 1.0, 3.0, 1e6])


@given(st.lists(st.tuples(COUNTS, COUNTS), max_size=8), st.integers(-70, 3))
def test_totals_are_the_sums_of_the_counts_that_are_left(
    counts: list[tuple[float, float]], power: int
) -> None:
    """Multiplied totals would keep the weight of what was dropped."""
    rows = {f"t{i}": list(row) for i, row in enumerate(counts)}
    totals = [sum(row[c] for row in counts) for c in range(2)]
    fade_rows(rows, totals, 2.0**power)

    assert totals == [sum(row[c] for row in rows.values()) for c in range(2)]
    assert all(any(row) for row in rows.values())
    if power < 0:
        assert all(count == 0.0 or count >= FORGOTTEN for row in rows.values() for count in row)
