"""The Gaussian event model and its traps: distance, constants, single observations, units, gaps."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.naive_bayes.event_models import Gaussian
from streamnb.naive_bayes.statistics.moments import Moments


def _moments(*classes: list[float]) -> Moments:
    moments = Moments(len(classes))
    for c, numbers in enumerate(classes):
        for x in numbers:
            moments.add(x, c)
    return moments


def _normal(mean: float, n: int = 500, seed: int = 0) -> list[float]:
    random = Random(seed)
    return [random.gauss(mean, 1.0) for _ in range(n)]


def test_the_density_is_the_formula() -> None:
    """``var_c = (squares_c + k v) / (n_c + k)``, where v is the variance of all numbers about their mean."""
    moments = _moments([1.0, 3.0], [11.0, 13.0, 15.0])
    numbers = [1.0, 3.0, 11.0, 13.0, 15.0]
    mean = sum(numbers) / 5
    v = sum((x - mean) ** 2 for x in numbers) / 5
    for k in (0.5, 1.0, 3.0):
        for z, m, squares, n in zip(
            Gaussian(k).log_density(5.0, moments, [0, 1]), (2.0, 13.0), (2.0, 8.0), (2, 3), strict=True
        ):
            variance = (squares + k * v) / (n + k)
            assert z == pytest.approx(-math.log(variance) / 2 - (5.0 - m) ** 2 / (2 * variance), rel=1e-12)


@pytest.mark.parametrize("x", [-1e9, -40.0, 0.0, 8.0, 30.0, 40.0])
def test_T29_the_nearer_class_wins_at_any_distance(x: float) -> None:
    """There is no lower bound of a log density at which two improbable classes become equal."""
    a, b = Gaussian().log_density(x, _moments(_normal(0.0), _normal(100.0, seed=1)), [0, 1])
    assert a > b


@pytest.mark.parametrize("x", [60.0, 92.0, 140.0, 1e9])
def test_T29_the_same_from_the_other_side(x: float) -> None:
    """The order is that of distance measured in the class's own standard deviation."""
    moments = _moments(_normal(0.0), _normal(100.0, seed=0))
    a, b = Gaussian().log_density(x, moments, [0, 1])
    assert b > a


def test_T30_a_constant_class_wins_where_it_matches_exactly() -> None:
    """Its variance of zero is steadied by the pooled variance."""
    moments = _moments([5.0] * 100, _normal(5.0, 100))
    constant, spread = Gaussian().log_density(5.0, moments, [0, 1])
    assert constant > spread


def test_T31_one_observation_a_class_is_enough() -> None:
    """The nearest class wins, thanks to the pseudo-observation of the pooled variance."""
    moments = _moments([1.0], [2.0])
    for x, nearer in ((1.0, 0), (2.0, 1), (-7.0, 0), (1.49, 0), (1.51, 1)):
        z = Gaussian().log_density(x, moments, [0, 1])
        assert z[nearer] > z[1 - nearer]


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6, 1e9, 1e12])
def test_T32_units_do_not_matter(unit: float) -> None:
    """Differences between classes, on which alone the posterior depends, agree to 1e-9."""
    plain = _moments(_normal(0.0, 100), _normal(1.0, 50, seed=1), [2.0])
    scaled = _moments(
        *([x * unit for x in numbers] for numbers in (_normal(0.0, 100), _normal(1.0, 50, seed=1), [2.0]))
    )
    for x in (-3.0, 0.0, 0.5, 2.0, 30.0):
        z = Gaussian().log_density(x, plain, [0, 1, 2])
        w = Gaussian().log_density(x * unit, scaled, [0, 1, 2])
        assert [value - w[0] for value in w] == pytest.approx(
            [value - z[0] for value in z], rel=1e-9, abs=1e-9
        )


@given(st.sampled_from([1.0, 1e3, 1e6]))
def test_T38_an_offset_does_not_matter(offset: float) -> None:
    """Numbers far from 0 are told apart as well as numbers near 0."""
    plain = _moments(_normal(0.0, 50), _normal(3.0, 50, seed=1))
    moved = _moments([x + offset for x in _normal(0.0, 50)], [x + offset for x in _normal(3.0, 50, seed=1)])
    z, w = (Gaussian().log_density(x, m, [0, 1]) for x, m in ((1.0, plain), (1.0 + offset, moved)))
    assert w == pytest.approx(z, rel=1e-8)


def test_T34_a_missing_number_says_nothing() -> None:
    """NaN gives 0 for every class."""
    assert Gaussian().log_density(math.nan, _moments([1.0, 2.0], [5.0]), [0, 1]) == [0.0, 0.0]


def test_numbers_all_equal_say_nothing() -> None:
    """Without a spread there is no unit of distance; there is none before the first number either."""
    assert Gaussian().log_density(9.0, _moments([4.0, 4.0], [4.0]), [0, 1]) == [0.0, 0.0]
    assert Gaussian().log_density(9.0, _moments([], []), [0, 1]) == [0.0, 0.0]


@pytest.mark.parametrize(
    "spread", [1e-320, 1e-200, 1e-162, 5e-162, 1e-161, 3e-161, 1e-155, 1e-150, 1e-100, 1e90]
)
def test_a_spread_at_the_edge_of_floating_point_is_finite(spread: float) -> None:
    """If the square of the spread underflows, the result is 0, and never an exception or NaN."""
    moments = _moments([0.0] * 100, [0.0, 2 * spread])
    for x in (-spread, 0.0, spread, 1.0, 1e100):
        z = Gaussian().log_density(x, moments, [0, 1])
        assert not any(map(math.isnan, z))
    assert all(map(math.isfinite, Gaussian().log_density(spread, moments, [0, 1])))


def test_T35_a_class_without_the_number_has_the_pooled_density() -> None:
    """No constant favours or penalises the class; far out it wins, because it is the broadest."""
    moments = _moments([0.0, 1.0, 2.0], [9.0, 10.0, 11.0], [])
    pooled = _moments([0.0, 1.0, 2.0, 9.0, 10.0, 11.0])
    mean, variance = 5.5, pooled.squares[0] / 6
    for x in (-100.0, 5.5, 40.0):
        z = Gaussian().log_density(x, moments, [0, 1, 2])
        assert z[2] == pytest.approx(-math.log(variance) / 2 - (x - mean) ** 2 / (2 * variance), rel=1e-12)
    assert z[2] == max(z)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_T8_parameters_out_of_range_are_refused(value: float) -> None:
    """The constructor refuses them."""
    with pytest.raises(ValueError, match="0 or above and finite"):
        Gaussian(value)
    with pytest.raises(ValueError, match="above 0 and finite"):
        Gaussian(variance=value)
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        Gaussian(robust=value)


@pytest.mark.parametrize("robust", [1e-6, 0.05, 0.5])
def test_a_robust_density_is_the_mixture(robust: float) -> None:
    """``(1 - r) N(x; mean_c, var_c) + r N(x; mean, 4 v)``, near the class and far from it."""
    moments = Moments(n_classes=2)
    numbers = [(1.0, 0), (3.0, 0), (4.0, 0), (11.0, 1), (13.0, 1)]
    for x, c in numbers:
        moments.add(x, c)
    _, pooled = moments.pooled()
    mean = sum(x for x, _ in numbers) / len(numbers)

    def normal(x: float, about: float, variance: float) -> float:
        return math.exp(-((x - about) ** 2) / (2.0 * variance)) / math.sqrt(variance)

    model, plain = Gaussian(robust=robust), Gaussian()
    variances = plain.variances(moments, [0, 1], pooled)
    for x in (2.0, 7.0, 12.0, 30.0):
        expected = [
            math.log(
                (1.0 - robust) * normal(x, moments.mean[c], variances[c])
                + robust * normal(x, mean, 4.0 * pooled)
            )
            for c in (0, 1)
        ]
        assert model.log_density(x, moments, [0, 1]) == pytest.approx(expected, rel=1e-10)
