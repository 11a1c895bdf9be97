"""The kept inverse is the inverse of the scatter matrix it follows, or there is none."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.batch import Floats
from streamnb.naive_bayes.statistics.inverse_scatter import (
    GROWTH_MAX,
    INFLATION_MAX,
    InverseScatter,
    inverted,
)


def _sums(d: int, n: int, seed: int = 0) -> Floats:
    rows = np.random.default_rng(seed).normal(size=(n, d))
    return rows.T @ rows


@pytest.mark.parametrize("d", [1, 2, 7, 40])
@pytest.mark.parametrize("unit", [1e-90, 1.0, 1e90])
def test_it_is_the_inverse_in_any_unit(d: int, unit: float) -> None:
    """The log of the determinant is right too, although the determinant itself would overflow."""
    sums = _sums(d, 3 * d)
    found = inverted(sums * unit * unit)
    assert found is not None
    inverse, log_det = found
    assert inverse * unit * unit == pytest.approx(np.linalg.inv(sums), rel=1e-9, abs=1e-9)
    expected = np.linalg.slogdet(sums)[1] + 2 * d * math.log(unit)
    assert log_det == pytest.approx(expected, rel=1e-12, abs=1e-9)
    assert bool((inverse == inverse.T).all())


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.0]],
        [[1e-201]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 0.0], [0.0, 0.0]],
        [[1.0, 1.0 - 1e-11], [1.0 - 1e-11, 1.0]],
    ],
)
def test_what_is_not_safely_positive_definite_has_none(matrix: list[list[float]]) -> None:
    """Cases: a constant, a sum of other coordinates, an impossible correlation, a correlation near 1."""
    assert inverted(np.array(matrix)) is None


def test_a_strong_correlation_is_still_one() -> None:
    """Only above a variance inflation of 1e10 is the inverse mostly rounding error."""
    r = 1.0 - 1e-9
    found = inverted(np.array([[1.0, r], [r, 1.0]]))
    assert found is not None
    assert found[0][0, 0] == pytest.approx(1.0 / (1.0 - r * r), rel=1e-6)
    assert found[0][0, 0] < INFLATION_MAX


@given(st.integers(1, 8), st.integers(0, 10**6))
def test_it_follows_what_is_added(d: int, seed: int) -> None:
    """After a hundred outer products it is still the inverse, and symmetric to the bit."""
    rng = np.random.default_rng(seed)
    sums = _sums(d, 2 * d + 2, seed)
    kept = InverseScatter()
    kept.renew(sums)
    for _ in range(100):
        step, weight = rng.normal(size=d), float(rng.uniform(0.0, 3.0))
        sums += weight * np.outer(step, step)
        kept.add(step, weight)
    expected = inverted(sums)
    if kept.matrix is None:  # the first sums were nearly singular
        assert np.linalg.cond(_sums(d, 2 * d + 2, seed)) > 1e3
        return
    assert expected is not None
    assert bool((kept.matrix == kept.matrix.T).all())
    assert kept.matrix == pytest.approx(expected[0], rel=1e-7, abs=1e-10)
    assert kept.log_det == pytest.approx(expected[1], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("far", [math.sqrt(GROWTH_MAX) * 1.01, 1e10, 1e100, 1e300])
def test_a_step_too_far_out_ends_it(far: float) -> None:
    """There is no overflow and no warning; the inverse is computed again later."""
    kept = InverseScatter()
    kept.renew(np.eye(2))
    kept.add(np.array([far, 0.0]), 1.0)
    assert kept.matrix is None


def test_sums_that_become_nearly_singular_end_it() -> None:
    """The check uses the variance inflation of each coordinate."""
    kept = InverseScatter()
    kept.renew(np.eye(2))
    kept.check(np.array([1.0, 1e9]))
    assert kept.matrix is not None
    kept.check(np.array([1.0, 1e11]))
    assert kept.matrix is None


def test_it_can_be_forgotten() -> None:
    """After a reset, and without sums, there is none."""
    kept = InverseScatter()
    kept.renew(np.eye(2))
    kept.renew(None)
    assert (kept.matrix, kept.log_det, kept.age) == (None, 0.0, 0)
