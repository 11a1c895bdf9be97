"""Edges of bins: fixed ones as in the lectures, learned ones that settle once and count every number once."""

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamnb.base.frozen import Section
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.statistics.bin_edges import BinnedNumber, FixedEdges, LearnedEdges

AREA = FixedEdges((400.0, 800.0, 1200.0, 1600.0))
NUMBER = st.one_of(st.integers(-20, 20).map(float), st.floats(allow_nan=False, allow_infinity=False))
NUMBERS = st.lists(st.tuples(NUMBER, st.integers(0, 1), st.sampled_from([1.0, 2.0, 0.5])), max_size=30)

Numbers = list[tuple[float, int, float]]
Counts = dict[tuple[str, int], float]


def _learned(numbers: Numbers, bins: int = 4, warm_up: int = 8) -> tuple[LearnedEdges, Counts]:
    """Return the edges after a list of numbers was learned, and what was counted under them."""
    edges = LearnedEdges(bins, warm_up)
    counts: Counts = {}
    for number in numbers:
        _count(counts, edges.learn(*number))
    return edges, counts


def _count(counts: Counts, binned: list[BinnedNumber], sign: int = 1) -> None:
    for label, c, weight in binned:
        counts[label, c] = counts.get((label, c), 0.0) + sign * weight


def _digest(edges: LearnedEdges) -> str:
    return edges.digest("x", "age", "ab").hex()


# ---- fixed edges


def test_a_house_of_890_square_feet_has_the_value_3() -> None:
    """The lectures' living areas <400, 400-800, 800-1200, 1200-1600 and >1600 have the values 1 to 5."""
    assert AREA.labels() == ["<400", "400-800", "800-1200", "1200-1600", ">1600"]
    assert (AREA.value(890.0), AREA.label(890.0)) == (3, "800-1200")


@pytest.mark.parametrize(
    ("x", "value"),
    [(-math.inf, 1), (399.999, 1), (400.0, 2), (1199.0, 3), (1200.0, 4), (1600.0, 5), (math.inf, 5)],
)
def test_a_bin_holds_its_lower_edge(x: float, value: int) -> None:
    """It does not hold its upper edge, which belongs to the next bin."""
    assert AREA.value(x) == value
    assert AREA.label(x) == AREA.labels()[value - 1]


@pytest.mark.parametrize("x", [None, math.nan])
def test_a_missing_number_has_no_bin(x: float | None) -> None:
    """Both its value and its label are ``None``."""
    assert AREA.value(x) is None
    assert AREA.label(x) is None


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8, unique=True))
def test_every_bin_has_a_label_of_its_own(numbers: list[float]) -> None:
    """Labels differ however close two edges are."""
    fixed = FixedEdges(tuple(sorted(set(numbers))))
    assert len(set(fixed.labels())) == len(fixed.edges) + 1


@pytest.mark.parametrize("edges", [(), (math.nan,), (1.0, math.inf), (2.0, 1.0), (1.0, 1.0), (0.0, -0.0)])
def test_edges_must_grow(edges: tuple[float, ...]) -> None:
    """The constructor refuses edges that do not."""
    with pytest.raises(ValueError, match="`edges`"):
        FixedEdges(edges)


# ---- learned edges


@given(NUMBERS)
def test_every_number_is_counted_once_or_waits(numbers: Numbers) -> None:
    """All are counted under the same edges, in their class, with their weight."""
    edges, counts = _learned(numbers)
    if edges.fixed is None:
        assert len(numbers) < 8
        assert not counts
        assert sorted(numbers) == edges.waiting
        return
    expected: Counts = {}
    for x, c, weight in numbers:
        label = edges.fixed.label(x)
        assert label is not None
        _count(expected, [BinnedNumber(label, c, weight)])
    assert counts == expected
    assert edges.waiting == []


@given(NUMBERS, st.integers(2, 6), st.randoms(use_true_random=False))
@example([(x, 0, 1.0) for x in (0.0, -1.0, -0.0, 0.0, 0.0, 0.0, 0.0, -1.0)], 4, Random(1))
@example([(x, 0, 1.0) for x in (0.0, -1.0, -0.0, 0.0, 0.0, 0.0, 0.0, -1.0)], 4, Random(5))
def test_the_order_of_the_first_numbers_leaves_no_trace(numbers: Numbers, bins: int, random: Random) -> None:
    """Later numbers do not move the edges either."""
    first, rest = numbers[:8], numbers[8:]
    shuffled = list(first)
    random.shuffle(shuffled)
    edges, counts = _learned(first + rest, bins)
    again, recounted = _learned(shuffled + list(reversed(rest)), bins)
    assert _digest(again) == _digest(edges)
    assert recounted == counts


@given(NUMBERS.filter(lambda numbers: len(numbers) >= 8), st.integers(2, 6))
def test_an_edge_is_the_smallest_number_with_its_share_below(numbers: Numbers, bins: int) -> None:
    """The share is of the weight, checked in exact arithmetic; equal edges become one."""
    numbers = numbers[:8]
    edges, _ = _learned(numbers, bins)
    total = sum((Fraction(weight) for _, _, weight in numbers), Fraction(0))
    expected = set()
    for k in range(1, bins):
        for x in sorted({x for x, _, _ in numbers}):
            below = sum((Fraction(weight) for y, _, weight in numbers if y < x), Fraction(0))
            if below >= total * k / bins:
                expected.add(x)
                break
    assert edges.fixed is not None
    assert edges.fixed.edges == tuple(sorted(expected) or [min(x for x, _, _ in numbers)])


def test_quantiles_of_an_even_spread_are_even() -> None:
    """Four bins of a hundred numbers hold 25 each."""
    numbers = [float(x) for x in range(100)]
    Random(0).shuffle(numbers)
    edges, counts = _learned([(x, 0, 1.0) for x in numbers], 4, 100)
    assert edges.fixed == FixedEdges((25.0, 50.0, 75.0))
    assert set(counts.values()) == {25.0}


def test_a_value_met_very_often_has_a_bin_of_its_own() -> None:
    """Of ten numbers nine are zero: the bins are zero and above."""
    edges, _ = _learned([(0.0, 0, 1.0)] * 9 + [(5.0, 0, 1.0)], 4, 10)
    assert edges.fixed == FixedEdges((5.0,))


def test_numbers_all_equal_are_the_only_edge() -> None:
    """Later numbers may lie below it."""
    edges, counts = _learned([(5.0, 0, 1.0)] * 8)
    assert edges.fixed == FixedEdges((5.0,))
    assert counts == {(">5", 0): 8.0}
    assert edges.label(4.0) == "<5"


def test_a_missing_number_is_not_waited_for() -> None:
    """``None`` and NaN are ignored; an infinite number is refused and changes nothing."""
    edges = LearnedEdges(2, 1)
    assert edges.learn(None, 0) == edges.learn(math.nan, 0) == edges.unlearn(None, 0) == []
    with pytest.raises(ValueError, match="finite"):
        edges.learn(math.inf, 0)
    assert (edges.waiting, edges.fixed, edges.label(1.0)) == ([], None, None)
    assert edges.learn(1.0, 0) == [BinnedNumber(">1", 0, 1.0)]
    assert edges.label(None) is None


@given(NUMBERS, NUMBERS)
def test_learning_then_unlearning_is_nothing(kept: Numbers, passing: Numbers) -> None:
    """The counts are as before in every case, and the waiting numbers too if the edges have not settled."""
    edges, counts = _learned(kept)
    before = _digest(edges)
    for number in passing:
        _count(counts, edges.learn(*number))
    settled = edges.fixed is not None
    for number in passing:
        _count(counts, edges.unlearn(*number), -1)
    expected: Counts = {}
    if edges.fixed is not None:
        for x, c, weight in kept:
            _count(expected, [BinnedNumber(edges.fixed.label(x) or "", c, weight)])
    assert {key: n for key, n in counts.items() if n} == expected
    if not settled:
        assert _digest(edges) == before


def test_unlearning_what_does_not_wait_changes_nothing() -> None:
    """A number of another class or weight, or another number, is refused."""
    edges, _ = _learned([(1.0, 0, 1.0)])
    for number in ((1.0, 1, 1.0), (1.0, 0, 2.0), (2.0, 0, 1.0)):
        with pytest.raises(ValueError, match="not learned with this weight"):
            edges.unlearn(*number)
    assert edges.waiting == [(1.0, 0, 1.0)]


@given(NUMBERS, NUMBERS)
def test_merging_counts_every_number_once(left: Numbers, right: Numbers) -> None:
    """The other side's classes are in another order; two that settled on different edges are refused and
    unchanged.
    """
    (mine, counts), (theirs, their_counts) = _learned(left), _learned([(x, 1 - c, w) for x, c, w in right])
    if mine.fixed is not None and theirs.fixed is not None and mine.fixed != theirs.fixed:
        before = _digest(mine)
        with pytest.raises(ValueError, match="different bin edges"):
            mine.merge(theirs, [1, 0])
        assert _digest(mine) == before
        return
    _count(counts, mine.merge(theirs, [1, 0]))
    for (label, c), weight in their_counts.items():
        _count(counts, [BinnedNumber(label, 1 - c, weight)])
    if mine.fixed is None:
        assert mine.waiting == sorted(left + right)
        assert len(left + right) < 8
        return
    expected: Counts = {}
    for x, c, weight in left + right:
        _count(expected, [BinnedNumber(mine.fixed.label(x) or "", c, weight)])
    assert counts == expected


def test_other_settings_do_not_merge() -> None:
    """The error names the settings of both sides."""
    with pytest.raises(ValueError, match="different bins, 3 bins after 8 numbers and 4 bins after 8 numbers"):
        LearnedEdges(4, 8).merge(LearnedEdges(3, 8), [])


@given(NUMBERS, NUMBERS)
def test_restoring_is_the_way_back(numbers: Numbers, later: Numbers) -> None:
    """The state is equal to the bit, before the edges settle and after."""
    edges, counts = _learned(numbers)
    restored, recounted = LearnedEdges(4, 8), dict(counts)
    restored.restore(edges.freeze("age"), 2, "age")
    for number in later:
        _count(counts, edges.learn(*number))
        _count(recounted, restored.learn(*number))
    assert recounted == counts
    assert _digest(restored) == _digest(edges)


@given(NUMBERS.filter(bool))
def test_the_digest_goes_by_view_field_and_class(numbers: Numbers) -> None:
    """The order of the classes makes no difference."""
    edges, _ = _learned(numbers)
    swapped, _ = _learned([(x, 1 - c, weight) for x, c, weight in numbers])
    assert swapped.digest("x", "age", "ba").hex() == _digest(edges)
    assert edges.digest("y", "age", "ab").hex() != _digest(edges)
    assert edges.digest("x", "size", "ab").hex() != _digest(edges)


SETTLED: dict[str, Section] = {"x_edges": np.array([[1.0], [2.0]]), "x_waiting": np.zeros((0, 3))}
WAITING: dict[str, Section] = {"x_edges": np.zeros((0, 1)), "x_waiting": np.array([[1.0, 0.0, 1.0]])}


@pytest.mark.parametrize(
    "frozen",
    [
        SETTLED | {"x_edges": np.array([[2.0], [1.0]])},
        SETTLED | {"x_edges": np.array([[1.0], [math.nan]])},
        SETTLED | {"x_edges": np.arange(4.0).reshape(4, 1)},
        SETTLED | {"x_waiting": WAITING["x_waiting"]},
        WAITING | {"x_waiting": np.array([[1.0, 2.0, 1.0]])},
        WAITING | {"x_waiting": np.array([[1.0, -1.0, 1.0]])},
        WAITING | {"x_waiting": np.array([[1.0, 0.5, 1.0]])},
        WAITING | {"x_waiting": np.array([[1.0, 0.0, 0.0]])},
        WAITING | {"x_waiting": np.array([[math.inf, 0.0, 1.0]])},
        WAITING | {"x_waiting": np.array([[2.0, 0.0, 1.0], [1.0, 0.0, 1.0]])},
        WAITING | {"x_waiting": np.array([[float(i), 0.0, 1.0] for i in range(8)])},
        {"x_edges": SETTLED["x_edges"]},
        {"x_waiting": WAITING["x_waiting"]},
    ],
)
def test_what_no_stream_gives_is_refused(frozen: dict[str, Section]) -> None:
    """The state stays as it was."""
    edges = LearnedEdges(4, 8)
    for good in (SETTLED, WAITING):
        edges.restore(good, 2, "x")
    with pytest.raises(SnapshotError, match="`x_"):
        edges.restore(frozen, 2, "x")
    assert (edges.waiting, edges.fixed) == ([(1.0, 0, 1.0)], None)


@pytest.mark.parametrize(("bins", "warm_up"), [(1, 8), (1001, 8), (4, 0), (4, 100_001)])
def test_settings_have_limits(bins: int, warm_up: int) -> None:
    """The constructor refuses settings outside them."""
    with pytest.raises(ValueError, match=r"`(bins|warm_up)` must be from"):
        LearnedEdges(bins, warm_up)
