"""The evidence that the calibrated head takes from strings, computed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.naive_bayes.posterior.calibrated_head import CalibratedHead
from streamnb.naive_bayes.posterior.string_evidence import ByteOdds, contributions, string_features

ODDS = st.lists(
    st.builds(
        lambda string, f, d: ByteOdds(string, float(f), [d, -d]),
        st.text(max_size=3),
        st.integers(1, 9),
        st.floats(-30, 30),
    ),
    max_size=9,
)


def test_three_features_sum_up_the_bytes_of_a_text() -> None:
    """The sum, the square law, and the sum of what is at most 1; all by (L + 8)^-.7."""
    odds = [ByteOdds("ab", 2.0, [3.0, -3.0]), ByteOdds("bc", 1.0, [-0.5, 0.5])]
    z = (3 + 8) ** -0.7

    x, q, clipped = string_features(odds, 2)

    assert x == pytest.approx([z * 5.5, z * -5.5])
    assert q == pytest.approx([z / 4 * (2 * 9 - 0.25), z / -4 * (2 * 9 - 0.25)])
    assert clipped == pytest.approx([z * 1.5, z * -1.5])


def test_a_text_without_bytes_is_no_evidence() -> None:
    """All features are 0."""
    assert string_features([], 2) == [[0.0, 0.0]] * 3


@given(ODDS, st.lists(st.floats(0, 5), min_size=3, max_size=3))
def test_the_contributions_add_up_to_the_weighted_features(
    odds: list[ByteOdds], weights: list[float]
) -> None:
    """Of one class minus those of the other."""
    features = string_features(odds, 2)
    expected = sum(weight * (row[0] - row[1]) for weight, row in zip(weights, features, strict=True))

    assert math.fsum(value for _, value in contributions(odds, weights, 0, 1)) == pytest.approx(
        expected, rel=1e-9, abs=1e-9
    )


def test_the_head_starts_to_believe_the_first_feature_and_never_weighs_one_below_0() -> None:
    """Strings that speak for the wrong class lose their weight and no more."""
    head = CalibratedHead(1, 0, n_string_views=1)
    for _ in range(2):
        head.add_class()
    first = head.first_of_strings
    assert head.weights[first:] == [0.5, 0.0, 0.0]
    phi = [[0.0, 0.0]] * first + [[1.0, -1.0]] * 3

    for _ in range(200):
        opinion = head.opinion(phi, [0, 1])
        head.learn(opinion, head.errors(opinion, 1, 1.0), phi, [0, 1], 1, 1.0)

    assert head.weights[first:] == [0.0, 0.0, 0.0]
