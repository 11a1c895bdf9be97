"""Moments: exact to rounding at any offset, mergeable, removable."""

import math
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.naive_bayes.statistics.moments import Moments

NUMBERS = st.lists(st.tuples(st.integers(-1000, 1000).map(float), st.integers(0, 1)), max_size=20)
OFFSETS = st.sampled_from([0.0, 1.0, 1e9])

Numbers = list[tuple[float, int]]


def _moments(numbers: Numbers, offset: float = 0.0) -> Moments:
    moments = Moments(n_classes=2)
    for x, c in numbers:
        moments.add(offset + x, c)
    return moments


def _assert_equal(a: Moments, b: Moments, scale: float = 1.0, offset: float = 0.0) -> None:
    """Compare to 1e-12 of the numbers' own size: means by their offset, squares by spread and offset."""
    assert a.n == b.n
    rounding = 1e-12 * (1.0 + offset)
    for c, n in enumerate(a.n):
        assert a.mean[c] == pytest.approx(b.mean[c], abs=rounding + 1e-12 * scale)
        spread = scale * scale * n
        assert a.squares[c] == pytest.approx(b.squares[c], abs=1e-12 * spread + 10 * rounding * scale * n)


def _exact(numbers: list[Fraction]) -> tuple[float, float, float]:
    if not numbers:
        return 0.0, 0.0, 0.0
    mean = sum(numbers, Fraction(0)) / len(numbers)
    return float(len(numbers)), float(mean), float(sum(((x - mean) ** 2 for x in numbers), Fraction(0)))


@given(NUMBERS, OFFSETS)
def test_moments_are_those_of_exact_arithmetic(numbers: Numbers, offset: float) -> None:
    """T38: this holds at offset 1e9 too, where a sum of x^2 loses every digit."""
    moments = _moments(numbers, offset)
    for c in (0, 1):
        n, mean, squares = _exact([Fraction(offset) + Fraction(x) for x, c_x in numbers if c_x == c])
        assert moments.n[c] == n
        assert moments.mean[c] == pytest.approx(mean, rel=1e-14, abs=1e-12)
        assert moments.squares[c] == pytest.approx(squares, rel=1e-9, abs=1e-12 * (1.0 + offset))


@given(NUMBERS, OFFSETS, st.randoms(use_true_random=False))
def test_order_leaves_only_rounding(numbers: Numbers, offset: float, random: Random) -> None:
    """The difference is at most 1e-12 of the numbers' size."""
    shuffled = list(numbers)
    random.shuffle(shuffled)
    _assert_equal(_moments(shuffled, offset), _moments(numbers, offset), 1000.0, offset)


@given(NUMBERS, NUMBERS, OFFSETS)
def test_merging_is_learning_both(left: Numbers, right: Numbers, offset: float) -> None:
    """The result is the same in either direction."""
    for first, second in ((left, right), (right, left)):
        together = _moments(first, offset)
        together.merge(_moments(second, offset), [0, 1])
        _assert_equal(together, _moments(left + right, offset), 1000.0, offset)


@given(NUMBERS, NUMBERS, NUMBERS, OFFSETS)
def test_merging_is_associative(a: Numbers, b: Numbers, c: Numbers, offset: float) -> None:
    """(a + b) + c is a + (b + c), to rounding."""
    left = _moments(a, offset)
    left.merge(_moments(b, offset), [0, 1])
    left.merge(_moments(c, offset), [0, 1])
    inner, right = _moments(b, offset), _moments(a, offset)
    inner.merge(_moments(c, offset), [0, 1])
    right.merge(inner, [0, 1])
    _assert_equal(left, right, 1000.0, offset)


@given(NUMBERS)
def test_merging_goes_by_class_not_by_column(numbers: Numbers) -> None:
    """The other moments may have fewer classes, in another order."""
    elsewhere = _moments([(x, 1 - c) for x, c in numbers])
    together = _moments([])
    together.merge(elsewhere, [1, 0])
    assert (together.n, together.mean) == (_moments(numbers).n, _moments(numbers).mean)


@given(NUMBERS, NUMBERS, OFFSETS)
def test_adding_then_removing_is_nothing(kept: Numbers, passing: Numbers, offset: float) -> None:
    """The moments are equal to rounding, and exactly 0 if no number remains."""
    moments = _moments(kept + passing, offset)
    for x, c in passing:
        moments.remove(offset + x, c)
    _assert_equal(moments, _moments(kept, offset), 1000.0, offset)
    for x, c in kept:
        moments.remove(offset + x, c)
    assert moments.digest("x", "ab").hex() == Moments(n_classes=2).digest("x", "ab").hex()


@given(NUMBERS, st.integers(0, 1))
def test_removing_too_much_changes_nothing(numbers: Numbers, c: int) -> None:
    """Less was learned than is to be removed."""
    moments = _moments(numbers)
    before = moments.digest("x", "ab").hex()
    with pytest.raises(ValueError, match="smaller than the weight to remove"):
        moments.remove(1.0, c, weight=moments.n[c] + 0.5)
    assert moments.digest("x", "ab").hex() == before


@given(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.3, 1 / 3, 1e-5, 1e9 + 0.1, 5e-324]), st.floats(1e-6, 1e9)),
        min_size=1,
        max_size=20,
    )
)
def test_squares_never_fall_by_learning(numbers: list[tuple[float, float]]) -> None:
    """Rounding may move the mean past a number; the sum of squares does not decrease for that."""
    moments = Moments(n_classes=1)
    before = 0.0
    for x, weight in numbers:
        moments.add(x, 0, weight=weight)
        assert moments.squares[0] >= before
        before = moments.squares[0]


@given(NUMBERS, st.integers(1, 8))
def test_a_weight_is_repetition(numbers: Numbers, weight: int) -> None:
    """A number of weight 3 is that number three times."""
    weighted = Moments(n_classes=2)
    for x, c in numbers:
        weighted.add(x, c, weight=float(weight))
    _assert_equal(weighted, _moments([item for item in numbers for _ in range(weight)]), 1000.0)


@given(NUMBERS, OFFSETS)
def test_the_pooled_variance_knows_no_classes(numbers: Numbers, offset: float) -> None:
    """It is the variance of all numbers about their common mean."""
    n, _, squares = _exact([Fraction(offset) + Fraction(x) for x, _ in numbers])
    found_n, variance = _moments(numbers, offset).pooled()
    assert found_n == n
    assert variance == pytest.approx(squares / n if n else 0.0, rel=1e-9, abs=1e-12 * (1.0 + offset))


@given(NUMBERS, OFFSETS)
def test_restoring_is_the_way_back(numbers: Numbers, offset: float) -> None:
    """The moments are equal to the bit."""
    moments = _moments(numbers, offset)
    frozen = moments.freeze()
    restored = Moments()
    restored.restore(frozen)
    moments.add(1.0, 0)
    restored.add(1.0, 0)
    assert restored.digest("x", "ab").hex() == moments.digest("x", "ab").hex()
    assert frozen.shape == (3, 2)


@given(NUMBERS)
def test_the_digest_goes_by_view_and_class(numbers: Numbers) -> None:
    """The order of the classes makes no difference, nor does a class without numbers."""
    swapped = _moments([(x, 1 - c) for x, c in numbers])
    assert swapped.digest("x", "ba").hex() == _moments(numbers).digest("x", "ab").hex()
    more = _moments(numbers)
    more.add_class()
    assert more.digest("x", "abc").hex() == _moments(numbers).digest("x", "ab").hex()
    if numbers:
        assert more.digest("y", "abc").hex() != more.digest("x", "abc").hex()


def test_numbers_as_large_as_are_allowed_stay_finite() -> None:
    """1e100 and its square are added many times."""
    moments = Moments(n_classes=1)
    for i in range(1000):
        moments.add(1e100 * (-1) ** i, 0, weight=1e9)
    assert math.isfinite(moments.squares[0])
    assert moments.pooled()[1] == pytest.approx(1e200, rel=1e-2)
