"""The bounds of the calibrated head: of a step, of its accumulators, of a snapshot; and of odds near 1."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.errors import SnapshotError
from streamnb.naive_bayes.posterior.calibrated_head import NOISE_BOUNDS, CalibratedHead
from streamnb.naive_bayes.posterior.odds import log_odds_of, never_labelled, softmax, sums_of_others

PHI = [[0.9, -0.9], [0.2, -0.2], [0.5, -0.5], [0.1, -0.1], [0.3, -0.1], [0.2, 0.1]]


def taught(*weights: float) -> CalibratedHead:
    """Return a head of one text view and two classes that has learned a label with each weight."""
    head = CalibratedHead(n_text_views=1, n_other_views=0)
    head.add_class()
    head.add_class()
    for weight in weights:
        opinion = head.opinion(PHI, [0, 1])
        head.learn(opinion, head.errors(opinion, 1, weight), PHI, [0, 1], 1, weight)
    return head


@pytest.mark.parametrize("weight", [1.5, 100.0, 1e9])
def test_a_weight_above_one_counts_as_one(weight: float) -> None:
    """In every number of the head; a lighter message moves it less."""
    heavy, one, light = taught(weight, 1.0), taught(1.0, 1.0), taught(0.5, 1.0)
    for name in ("weights", "weight_squares", "offsets", "offset_squares", "eta", "eta_squares"):
        assert getattr(heavy, name) == getattr(one, name)
    assert abs(light.offset_squares[0]) < abs(one.offset_squares[0])


def test_no_accumulator_falls_below_its_start() -> None:
    """However long nothing was learned: a step is then as large as the first one, and no larger."""
    head = taught(1.0, 1.0, 1.0)
    start = taught()
    head.fade(1e-300)
    for name in ("weight_squares", "offset_squares", "eta_squares"):
        assert getattr(head, name) == getattr(start, name)


@pytest.mark.parametrize(
    ("section", "place", "value"),
    [
        ("head_noise", (0, 0), -9.0001),
        ("head_noise", (0, 0), -0.4999),
        ("head_noise", (0, 0), 8.0),
        ("head_noise", (1, 0), 0.0999),
        ("head_weights", (1, 2), 0.999),
        ("head_offsets", (1, 1), 0.999),
    ],
)
def test_a_head_out_of_its_bounds_is_not_restored(section: str, place: tuple[int, int], value: float) -> None:
    """A snapshot of such a head is damaged; at its bounds it is restored."""
    head, sections = taught(), taught(1.0, 1.0).freeze()
    for eta in NOISE_BOUNDS:
        good = sections["head_noise"].copy()
        good[0, 0] = eta
        head.restore(sections | {"head_noise": good}, 2)
    forged = sections[section].copy()
    forged[place] = value
    with pytest.raises(SnapshotError):
        head.restore(sections | {section: forged}, 2)


def test_odds_keep_their_digits_where_a_probability_is_near_1() -> None:
    """What is left to the others is summed, and not subtracted from 1."""
    assert sums_of_others([1.0, 2.0**-66, 2.0**-65]) == [3 * 2.0**-66, 1.0, 1.0]
    (likeliest, *_) = log_odds_of([1.0, 1e-20, 2e-20])
    assert likeliest == pytest.approx(-math.log(3e-20), rel=1e-12)
    assert softmax([1000.0, 0.0, -1000.0]) == [1.0, 0.0, 0.0]
    assert softmax([-1000.0, -1000.0]) == [0.5, 0.5]


def test_a_declared_class_has_the_share_of_one_message() -> None:
    """Among C classes after D messages it is 1 / (D + C), and the labelled ones share the rest."""
    assert never_labelled([0.75, 0.25], [0, 2], [1], 3, 7.0) == pytest.approx([0.75 * 0.9, 0.1, 0.25 * 0.9])
    assert never_labelled([], [], [0, 1], 2, 0.0) == [0.5, 0.5]


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_mean_of_two_heads_is_within_their_bounds(mine: int, others: int) -> None:
    """Rounding took it below them, and no reader accepted the snapshot of such a merge."""
    head, other = taught(), taught()
    head.eta = other.eta = NOISE_BOUNDS[0]
    head.merge(other, [0, 1], mine / 7, others / 7)

    assert head.eta == NOISE_BOUNDS[0]
    assert min(head.weight_squares + head.offset_squares) >= 1.0
    assert head.eta_squares == other.eta_squares
