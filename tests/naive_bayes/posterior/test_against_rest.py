"""The log odds of tokens against the rest, and the features made of them."""

import math

import pytest
from hypothesis import given

from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.smoothing import Laplace
from streamnb.naive_bayes.posterior.against_rest import against_rest, length_norm, token_odds
from tests.naive_bayes.event_models.test_multinomial import MESSAGE, ROWS, Rows, counts_of


@given(ROWS.filter(bool), MESSAGE)
def test_odds_are_centred_and_of_known_tokens(rows: Rows, message: dict[str, float]) -> None:
    """Each token's log odds sum to 0 over the classes; unknown tokens are left out."""
    odds = token_odds(Multinomial(), message, counts_of(rows), [0, 1, 2])
    assert [odd.token for odd in odds] == [token for token in message if token in rows]
    for odd in odds:
        n_t = sum(rows[odd.token])
        assert math.fsum(odd.d) == pytest.approx(0.0, abs=1e-12 * (1 + max(map(abs, odd.d))))
        assert odd.f == message[odd.token]
        assert odd.rare == pytest.approx(odd.f * n_t / (n_t + 15), rel=1e-15)


@given(ROWS.filter(bool), MESSAGE)
def test_two_classes_mirror_each_other(rows: Rows, message: dict[str, float]) -> None:
    """With two classes, the odds of one are the negated odds of the other."""
    rows = {token: row for token, row in rows.items() if row[0] + row[1]}
    odds = token_odds(Multinomial(), message, counts_of(rows, 2), [0, 1])
    for values in against_rest(odds, 2):
        assert values[0] == -values[1]


def test_no_known_token_says_nothing() -> None:
    """All four features are exactly 0: unknown words are no evidence."""
    assert against_rest([], 3) == [[0.0] * 3] * 4
    assert length_norm(0.0) == 1.0


def test_a_worked_example() -> None:
    """One token, seen 3 times in one class and once in the other, computed by hand."""
    counts = counts_of({"a": [3.0, 1.0, 0.0], "b": [1.0, 2.0, 0.0]}, 2)
    (odd,) = token_odds(Multinomial(Laplace(0.1)), {"a": 1.0}, counts, [0, 1])
    d = math.log(3.1 / 4.3) - math.log(1.1 / 3.3)  # centred already: the other is its mirror
    assert odd.d == pytest.approx([d, -d], rel=1e-14)
    z, rare = 2**0.7, 4 / 19
    x, q, rare_x, rare_q = against_rest([odd], 2)
    assert x[0] == pytest.approx(d / z, rel=1e-14)
    assert q[0] == pytest.approx(d * d / 4 / z, rel=1e-14)
    assert rare_x[0] == pytest.approx(rare * d / z, rel=1e-14)
    assert rare_q[0] == pytest.approx(rare * d * d / 2 / z, rel=1e-14)
