"""The multinomial event model: token weights and likelihoods."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.naive_bayes.event_models.multinomial import Multinomial, log_weight
from streamnb.naive_bayes.event_models.smoothing import Dirichlet, Laplace, NoSmoothing, Smoothing
from streamnb.naive_bayes.statistics.view_counts import ViewCounts

ROWS = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.lists(st.integers(0, 50).map(float), min_size=3, max_size=3).filter(any),
    max_size=8,
)
MESSAGE = st.dictionaries(
    st.sampled_from("abcdefghxyz"), st.sampled_from([0.69140625, 1.0, 2.0, 7.0]), max_size=8
)
SMOOTHINGS = st.sampled_from([Laplace(1.0), Laplace(0.1), Dirichlet(10.0), Dirichlet(1000.0)])

Rows = dict[str, list[float]]


def counts_of(rows: Rows, n_classes: int = 3) -> ViewCounts:
    """Return the counts of one view."""
    counts = ViewCounts(n_classes)
    for token, row in rows.items():
        for c, n in enumerate(row[:n_classes]):
            if n:
                counts.add({token: n}, c)
    return counts


# ---- what a token that stands m times weighs


@given(st.integers(1, 100_000))
def test_log_weights_are_multiples_of_a_256th(m: int) -> None:
    """They are within half a step of ``ln(1 + m)``, and sums of them are exact."""
    weight = log_weight(float(m))
    assert weight * 256 == int(weight * 256)
    assert abs(weight - math.log1p(m)) <= 1 / 512 + 1e-12


@given(st.lists(st.integers(1, 5000), max_size=50), st.randoms(use_true_random=False))
def test_sums_of_log_weights_do_not_know_their_order(ms: list[int], random: object) -> None:
    """Sums in any order are equal to the bit, which is the reason for the rounding."""
    weights = [log_weight(float(m)) for m in ms]
    total = sum(weights)
    random.shuffle(weights)  # type: ignore[attr-defined]
    assert sum(weights) == total == math.fsum(weights)


def test_weights_of_a_message() -> None:
    """The weight is the number of occurrences, 1, or a logarithm."""
    counts = {"a": 1.0, "b": 3.0, "c": 2000.0}
    assert Multinomial(weight="counts").features(counts) == counts
    assert Multinomial(weight="boolean").features(counts) == {"a": 1.0, "b": 1.0, "c": 1.0}
    assert Multinomial(weight="log").features(counts) == {"a": 177 / 256, "b": 355 / 256, "c": 1946 / 256}


def test_features_are_the_messages_own() -> None:
    """T27: the result is a new mapping, not the caller's."""
    counts = {"a": 1.0}
    assert Multinomial(weight="counts").features(counts) is not counts


# ---- the lectures' likelihood


@given(ROWS, MESSAGE, SMOOTHINGS, st.sampled_from(["skip", "smooth"]))
def test_the_likelihood_is_the_formula(
    rows: Rows, message: dict[str, float], smoothing: Smoothing, unknown: str
) -> None:
    """``sum f log phi_kc``, with unknown tokens only if they are smoothed."""
    counts = counts_of(rows)
    model = Multinomial(smoothing, "counts", unknown)  # type: ignore[arg-type]
    n, vocabulary = sum(map(sum, rows.values())), len(rows)
    for c, z in enumerate(model.log_likelihood(message, counts, [0, 1, 2])):
        expected = 0.0
        n_c = sum(row[c] for row in rows.values())
        for token, f in message.items():
            row = rows.get(token, [0.0] * 3)
            if n and (token in rows or unknown == "smooth"):
                if isinstance(smoothing, Dirichlet):
                    background = (sum(row) + 0.5) / (n + (vocabulary + 1) / 2)
                    phi = (row[c] + smoothing.mu * background) / (n_c + smoothing.mu)
                else:
                    assert isinstance(smoothing, Laplace)
                    phi = (row[c] + smoothing.alpha) / (n_c + smoothing.alpha * vocabulary)
                expected += f * math.log(phi)
        assert z == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(ROWS, MESSAGE, SMOOTHINGS)
def test_token_by_token_it_is_the_same_sum(
    rows: Rows, message: dict[str, float], smoothing: Smoothing
) -> None:
    """The parts of an explanation add up to the likelihood, to the bit."""
    counts, model = counts_of(rows), Multinomial(smoothing, "counts", "smooth")
    z = [0.0, 0.0, 0.0]
    for _, parts in model.parts(message, counts, [0, 1, 2]):
        z = [value + part for value, part in zip(z, parts, strict=True)]
    assert model.log_likelihood(message, counts, [0, 1, 2]) == z


@given(ROWS, MESSAGE)
def test_classes_without_labels_take_no_part(rows: Rows, message: dict[str, float]) -> None:
    """A declared class between two others changes no other class's likelihood."""
    spread = {token: [row[0], 0.0, row[1]] for token, row in rows.items() if row[0] + row[1]}
    model = Multinomial(Dirichlet(10.0), "counts", "smooth")
    two = model.log_likelihood(message, counts_of({t: [r[0], r[2]] for t, r in spread.items()}, 2), [0, 1])
    assert model.log_likelihood(message, counts_of(spread), [0, 2]) == two


def test_maximum_likelihood_of_an_unseen_word_is_nothing() -> None:
    """It is minus infinity for the class that never had the word, and never an exception or NaN."""
    counts = counts_of({"a": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 0.0]})
    model = Multinomial(NoSmoothing(), "counts", "smooth")
    assert model.log_likelihood({"a": 2.0}, counts, [0, 1]) == [0.0, -math.inf]
    assert model.log_likelihood({"a": 1.0, "b": 1.0}, counts, [0, 1]) == [-math.inf, -math.inf]
    assert model.log_likelihood({"neurips": 1.0}, counts, [0, 1, 2]) == [-math.inf] * 3
    assert model.log_likelihood({"neurips": 1.0}, ViewCounts(2), [0, 1]) == [0.0, 0.0]
