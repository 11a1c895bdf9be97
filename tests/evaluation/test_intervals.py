"""Significance: McNemar's test against exact fractions, bootstrap intervals against known formulas."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streamnb.base.batch import Floats
from streamnb.evaluation import Outcomes, bootstrap, lam_pct, mcnemar, paired_difference
from streamnb.evaluation.intervals import DRAWN_MAX


def outcomes(loss: Floats, correct: NDArray[Any], margin: Floats | None = None) -> Outcomes:
    """Return the outcomes of judged messages of two alternating classes."""
    n = len(loss)
    truth = np.arange(n) % 2
    predicted = np.where(correct, truth, 1 - truth)
    return Outcomes(n, 0, truth, predicted, loss, loss, loss, loss if margin is None else margin)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomials_two_tails(first: int, second: int) -> None:
    """The p-value equals twice the smaller tail, summed in exact fractions, and at most 1."""
    n, fewer = first + second, min(first, second)
    tail = sum(Fraction(math.comb(n, k), 2**n) for k in range(fewer + 1))
    assert mcnemar(first, second) == pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-12)
    assert mcnemar(first, second) == mcnemar(second, first)


def test_mcnemar_of_many_is_the_normals() -> None:
    """With a million messages the p-value agrees with the normal approximation and does not overflow."""
    n, ahead = 1_000_000, 1_500
    z = (2 * ahead - 1) / math.sqrt(n)
    assert mcnemar(n // 2 + ahead, n // 2 - ahead) == pytest.approx(math.erfc(z / math.sqrt(2)), rel=1e-3)
    assert mcnemar(10_000, 0) == 0.0


@pytest.mark.parametrize("n", [500, 4 * DRAWN_MAX])
def test_an_interval_is_as_wide_as_the_standard_error_says(n: int) -> None:
    """The width is 2 * 1.96 standard errors within 10 %, for long streams too, which are subsampled."""
    draw = np.random.default_rng(1)
    loss, correct = draw.exponential(size=n), draw.random(n) < 0.8
    found = bootstrap(outcomes(loss, correct), two_classes=False)
    assert set(found) == {"log_loss", "accuracy"}
    for name, column in (("log_loss", loss), ("accuracy", correct)):
        error = column.std() / math.sqrt(n)
        low, high = found[name]
        assert low < column.mean() < high
        assert (high - low) / (2 * 1.96 * error) == pytest.approx(1.0, abs=0.1)


def test_the_interval_of_the_area_is_as_wide_as_the_formula_says() -> None:
    """The width follows Hanley and McNeil's standard error, for two normals one deviation apart."""
    draw, n = np.random.default_rng(2), 2000
    margin = draw.normal(size=n) + np.arange(n) % 2
    low, high = bootstrap(outcomes(np.ones(n), np.ones(n, np.bool_), margin), two_classes=True)[
        "roca_loss_pct"
    ]
    area = 0.5 * math.erfc(-1 / math.sqrt(2) / math.sqrt(2))
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    k = n / 2
    variance = (area * (1 - area) + (k - 1) * (q1 - area**2) + (k - 1) * (q2 - area**2)) / k**2
    assert (high - low) / (2 * 1.96 * 100 * math.sqrt(variance)) == pytest.approx(1.0, abs=0.1)
    assert low < 100 * (1 - area) < high


def test_the_interval_of_lam_is_as_wide_as_the_formula_says() -> None:
    """The width follows the delta method, for error rates of 0.1 and 0.3."""
    draw, n = np.random.default_rng(5), 8000
    shares = np.where(np.arange(n) % 2, 0.3, 0.1)
    judged = outcomes(np.ones(n), draw.random(n) >= shares)
    low, high = bootstrap(judged, two_classes=True)["lam_pct"]
    errors = [1.0 - float(judged.correct[judged.truth == label].mean()) for label in (0, 1)]
    lam = (lam_pct((errors[0], errors[1])) or 0.0) / 100
    of_odds = math.sqrt(sum(1 / (n / 2 * share * (1 - share)) for share in errors)) / 2
    assert (high - low) / (2 * 1.96 * 100 * lam * (1 - lam) * of_odds) == pytest.approx(1.0, abs=0.1)
    assert low < 100 * lam < high


def test_the_same_seed_gives_the_same_intervals() -> None:
    """Another seed gives other intervals."""
    draw = np.random.default_rng(3)
    judged = outcomes(draw.random(300), draw.random(300) < 0.5)
    first, again, other = (bootstrap(judged, two_classes=True, seed=seed) for seed in (7, 7, 8))
    assert first == again != other


def test_nothing_judged_has_no_interval() -> None:
    """With one class only, neither the area nor lam has an interval."""
    assert bootstrap(outcomes(np.zeros(0), np.zeros(0)), two_classes=True) == {}
    judged = outcomes(np.ones(4), np.ones(4))
    judged.truth[:] = 0
    assert set(bootstrap(judged, two_classes=True)) == {"log_loss", "accuracy"}


def test_a_difference_is_told_from_noise() -> None:
    """0.01 nats on every message is significant; 0.001 nats under strong noise is not."""
    draw, n = np.random.default_rng(4), 2000
    loss, right = draw.exponential(size=n), np.ones(n, np.bool_)
    better, level = outcomes(loss - 0.01, right), outcomes(loss + draw.normal(size=n) + 0.001, right)
    first, second = (
        paired_difference(better, outcomes(loss, right)),
        paired_difference(level, outcomes(loss, right)),
    )
    assert first.log_loss == pytest.approx(-0.01)
    assert not first.within_noise
    assert second.within_noise
    assert first.mcnemar_p == 1.0
