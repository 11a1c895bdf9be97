"""Smoothing and priors: every distribution sums to 1, and a setting that cannot give one is refused."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb import NaiveBayes, load
from streamnb.base import Label
from streamnb.naive_bayes.event_models.priors import FixedPrior, LearnedPrior, UniformPrior
from streamnb.naive_bayes.event_models.smoothing import (
    Dirichlet,
    Laplace,
    LaplacePerToken,
    NoSmoothing,
    TokenSmoothing,
)

COUNTS = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)).filter(any), min_size=1, max_size=40
)
ALPHAS = st.floats(1e-6, 1e6)


def _p(
    smoothing: Laplace | Dirichlet | NoSmoothing, n_k: float, pooled: float, n_c: float, n: float, v: int
) -> float:
    return (n_k + smoothing.pseudo_count(pooled, n, v)) / (n_c + smoothing.pseudo_total(v))


@given(COUNTS, st.floats(1e-3, 1e6))
def test_dirichlet_seen_and_unknown_are_one(counts: list[tuple[int, int]], mu: float) -> None:
    """T2: the probabilities of all known tokens and of the unknown token sum to 1 in every class."""
    n, vocabulary = float(sum(map(sum, counts))), len(counts)
    for c in (0, 1):
        n_c = float(sum(row[c] for row in counts))
        seen = math.fsum(_p(Dirichlet(mu), row[c], sum(row), n_c, n, vocabulary) for row in counts)
        unknown = _p(Dirichlet(mu), 0.0, 0.0, n_c, n, vocabulary)
        assert unknown > 0
        assert seen + unknown == pytest.approx(1.0, abs=1e-12)


@given(COUNTS, ALPHAS)
def test_laplace_over_the_vocabulary_is_one(counts: list[tuple[int, int]], alpha: float) -> None:
    """T2: the pseudo-count of the class is `alpha` for each token of the vocabulary."""
    n, vocabulary = float(sum(map(sum, counts))), len(counts)
    for c in (0, 1):
        n_c = float(sum(row[c] for row in counts))
        seen = math.fsum(_p(Laplace(alpha), row[c], sum(row), n_c, n, vocabulary) for row in counts)
        assert seen == pytest.approx(1.0, abs=1e-12)


@given(COUNTS)
def test_maximum_likelihood_is_the_shares(counts: list[tuple[int, int]]) -> None:
    """Nothing is added: a probability is a count over its total."""
    n, n_0 = float(sum(map(sum, counts))), float(sum(row[0] for row in counts))
    if n_0:
        shares = [_p(NoSmoothing(), row[0], sum(row), n_0, n, len(counts)) for row in counts]
        assert shares == [row[0] / n_0 for row in counts]


@given(COUNTS, st.floats(1e-3, 1e6))
def test_dirichlet_follows_the_stream_where_a_class_is_silent(
    counts: list[tuple[int, int]], mu: float
) -> None:
    """A class without tokens has the background distribution."""
    n, vocabulary = float(sum(map(sum, counts))), len(counts)
    for row in counts:
        background = (sum(row) + 0.5) / (n + (vocabulary + 1) / 2)
        assert _p(Dirichlet(mu), 0.0, sum(row), 0.0, n, vocabulary) == pytest.approx(background, rel=1e-12)


@pytest.mark.parametrize("value", [-1.0, 0.0, -0.0, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("make", [Laplace, Dirichlet, lambda value: FixedPrior({"a": value})])
def test_T8_pseudo_counts_that_make_no_distribution_are_refused(
    make: Callable[[float], object], value: float
) -> None:
    """The constructor refuses them, before the first message."""
    with pytest.raises(ValueError, match="above 0"):
        make(value)


@pytest.mark.parametrize("value", [-1e-9, math.nan, math.inf])
def test_T8_a_prior_smoothed_below_nothing_is_refused(value: float) -> None:
    """0 is allowed and gives the shares of the stream."""
    with pytest.raises(ValueError, match="0 or above"):
        LearnedPrior(value)


@pytest.mark.parametrize("p", [{}, {"a": 1.0, "b": -0.5}, {"a": 1.0, "b": math.nan}, {"a": math.inf}])
def test_a_fixed_prior_that_is_no_distribution_is_refused(p: dict[Label, float]) -> None:
    """It names no class, or has a value that is no probability."""
    with pytest.raises(ValueError, match="at least one class"):
        FixedPrior(p)


CLASS_COUNTS = st.lists(st.integers(1, 10_000).map(float), min_size=1, max_size=10)


@given(CLASS_COUNTS, st.floats(0, 100))
def test_learned_prior_is_the_smoothed_shares(counts: list[float], smoothing: float) -> None:
    """The shares are ``(D_c + s) / (D + s S)``, and they sum to 1."""
    labels = [str(c) for c in range(len(counts))]
    p = [math.exp(value) for value in LearnedPrior(smoothing).log_p([*labels], counts)]
    total = sum(counts) + smoothing * len(counts)
    assert p == pytest.approx([(n + smoothing) / total for n in counts], rel=1e-12)
    assert math.fsum(p) == pytest.approx(1.0, abs=1e-12)


@given(CLASS_COUNTS)
def test_uniform_prior_ignores_the_shares(counts: list[float]) -> None:
    """Each class gets one over the number of classes labelled."""
    labels = [str(c) for c in range(len(counts))]
    assert UniformPrior().log_p([*labels], counts) == [-math.log(len(counts))] * len(counts)


@pytest.mark.parametrize(("p", "labels"), [({True: 0.9, False: 0.1}, [True, False]), ({1: 9, 7: 1}, [1, 7])])
def test_F13_the_keys_of_a_fixed_prior_are_labels_of_any_type(
    p: dict[Label, float], labels: list[Label], tmp_path: Path
) -> None:
    """Also after the model was saved; a probability of 0 excludes a class."""
    prior = FixedPrior(p)
    assert prior.log_p(labels, [5.0, 5.0]) == pytest.approx([math.log(0.9), math.log(0.1)])
    model = NaiveBayes(prior=prior, head="product")
    for label in labels:
        model.learn_one({"text": "same"}, label)
    assert model.predict_proba_one({"text": "same"})[labels[0]] == pytest.approx(0.9)
    model.save(tmp_path / "m.snb")
    assert load(tmp_path / "m.snb").prior == prior
    model = NaiveBayes(prior=FixedPrior({labels[0]: 0.0, labels[1]: 1.0}), head="product")
    for label in labels:
        model.learn_one({"text": "same"}, label)
    assert model.predict_proba_one({"text": "same"}) == {labels[0]: 0.0, labels[1]: 1.0}
    assert model.predict_proba_one({"text": "else"}) == {labels[0]: 0.0, labels[1]: 1.0}


def test_a_fixed_prior_is_what_was_given() -> None:
    """The given numbers are divided by their sum; a class that is not named gets the share of one message."""
    p = [
        math.exp(value)
        for value in FixedPrior({"ham": 3.0, "spam": 1.0}).log_p(["spam", "ham", "new"], [5.0, 3.0, 1.0])
    ]
    assert p == pytest.approx([0.25, 0.75, 0.1], rel=1e-12)


@pytest.mark.parametrize(
    "smoothing", [Laplace(0.3), LaplacePerToken({"win": 0.5, "the": 3.0}, 0.2), Dirichlet(7.0), NoSmoothing()]
)
@pytest.mark.parametrize("scale", [0.25, 1.0, 64.0])
def test_counts_and_pseudo_counts_that_grow_alike_give_the_same_share(
    smoothing: TokenSmoothing, scale: float
) -> None:
    """In a model that forgets, a message of now has the weight `scale`, and so has each pseudo-count."""

    def share(by: float) -> float:
        n_kc, n_k, n_c, n, vocabulary = 2.0 * by, 3.0 * by, 40.0 * by, 90.0 * by, 25
        count = n_kc + smoothing.pseudo_count(n_k, n, vocabulary, by)
        return count / (n_c + smoothing.pseudo_total(vocabulary, by))

    assert share(scale) == pytest.approx(share(1.0), rel=1e-14)


@pytest.mark.parametrize(
    ("given_as", "labels"),
    [({"true": 9.0, "false": 1.0}, [True, False]), ({"1": 9.0, "0": 1.0}, [1, 0])],
)
def test_F13_a_prior_by_the_text_of_a_label_is_that_by_the_label(
    given_as: dict[str, float], labels: list[Label]
) -> None:
    """A file and a snapshot hold labels as JSON writes them."""
    by_label = dict(zip(labels, given_as.values(), strict=True))
    for prior in (FixedPrior(given_as), FixedPrior(by_label)):
        assert prior.p == given_as
        assert prior.log_p(labels, [5.0, 5.0]) == pytest.approx([math.log(0.9), math.log(0.1)], rel=1e-12)
