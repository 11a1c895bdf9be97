"""Against scikit-learn's five naive Bayes classes: the same posteriors, learned in one pass, to 1e-10."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import naive_bayes
from sklearn.naive_bayes import MultinomialNB as Theirs

from streamnb.naive_bayes.estimators import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    MultinomialNB,
)
from streamnb.naive_bayes.event_models.priors import FixedPrior, Prior, UniformPrior

WORDS = list("abcdefgh")
CLASSES = ["ham", "spam", "work"]
ROW = st.lists(st.integers(0, 5), min_size=8, max_size=8)
CORPUS = st.lists(st.tuples(ROW, st.sampled_from(CLASSES)), min_size=2, max_size=25).filter(
    lambda corpus: (
        len({label for _, label in corpus}) > 1 and all(sum(row[k] for row, _ in corpus) for k in range(8))
    )
)


def _counts(row: list[int]) -> dict[str, int]:
    return dict(zip(WORDS, row, strict=True))


def _by_class(classes: Sequence[str], matrix: NDArray[np.float64]) -> list[dict[str, float]]:
    """Their answers, asked for all at once, as ours are given."""
    return [dict(zip(classes, row, strict=True)) for row in matrix.tolist()]


@given(
    CORPUS,
    st.lists(ROW, max_size=4),
    st.sampled_from([1.0, 0.1, 3.0]),
    st.sampled_from(["learned", "uniform", "fixed"]),
)
def test_posteriors_agree(
    corpus: list[tuple[list[int], str]], queries: list[list[int]], alpha: float, prior: str
) -> None:
    """To 1e-10, message by message, with learned, uniform and fixed priors."""
    labels = sorted({label for _, label in corpus})
    shares = {"ham": 0.5, "spam": 0.25, "work": 0.25}
    given_shares = [shares[label] / sum(shares[other] for other in labels) for label in labels]
    theirs = Theirs(
        alpha=alpha, fit_prior=prior == "learned", class_prior=given_shares if prior == "fixed" else None
    ).fit(np.array([row for row, _ in corpus]), [label for _, label in corpus])
    priors: dict[str, Prior] = {"uniform": UniformPrior(), "fixed": FixedPrior(shares)}
    ours = MultinomialNB(alpha, prior=priors.get(prior))
    for row, label in corpus:
        ours.learn_one(_counts(row), label)
    rows = [*queries, [0] * 8, *(row for row, _ in corpus)]
    posteriors = _by_class(theirs.classes_, theirs.predict_proba(rows))
    joints = _by_class(theirs.classes_, theirs.predict_joint_log_proba(rows))
    for row, expected, joint in zip(rows, posteriors, joints, strict=True):
        assert ours.predict_proba_one(_counts(row)) == pytest.approx(expected, rel=1e-10, abs=1e-10)
        if prior != "fixed":  # ours is up to the constant that the posterior divides out
            assert ours.joint_log_likelihood(_counts(row)) == pytest.approx(joint, rel=1e-10, abs=1e-10)


ALPHA = st.sampled_from([1.0, 0.1, 3.0])


@given(CORPUS, st.lists(ROW, max_size=4), ALPHA)
def test_bernoulli_agrees(
    corpus: list[tuple[list[int], str]], queries: list[list[int]], alpha: float
) -> None:
    """Posteriors and joints, absent words included."""
    theirs = naive_bayes.BernoulliNB(alpha=alpha).fit([row for row, _ in corpus], [y for _, y in corpus])
    ours = BernoulliNB(alpha)
    for row, label in corpus:
        ours.learn_one(_counts(row), label)
    rows = [*queries, [0] * 8, *(row for row, _ in corpus)]
    posteriors = _by_class(theirs.classes_, theirs.predict_proba(rows))
    joints = _by_class(theirs.classes_, theirs.predict_joint_log_proba(rows))
    for row, expected, joint in zip(rows, posteriors, joints, strict=True):
        assert ours.joint_log_likelihood(_counts(row)) == pytest.approx(joint, rel=1e-10, abs=1e-10)
        assert ours.predict_proba_one(_counts(row)) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@given(CORPUS, st.lists(ROW, max_size=4), ALPHA)
def test_complement_agrees(
    corpus: list[tuple[list[int], str]], queries: list[list[int]], alpha: float
) -> None:
    """But for a message without a word: theirs is uniform, ours the shares."""
    theirs = naive_bayes.ComplementNB(alpha=alpha).fit([row for row, _ in corpus], [y for _, y in corpus])
    ours = ComplementNB(alpha)
    for row, label in corpus:
        ours.learn_one(_counts(row), label)
    rows = [*queries, *(row for row, _ in corpus)]
    for row, expected in zip(rows, _by_class(theirs.classes_, theirs.predict_proba(rows)), strict=True):
        if any(row):
            assert ours.predict_proba_one(_counts(row)) == pytest.approx(expected, rel=1e-10, abs=1e-10)


TABLE = st.lists(
    st.tuples(st.lists(st.integers(0, 2), min_size=3, max_size=3), st.sampled_from(CLASSES)),
    min_size=3,
    max_size=25,
).filter(lambda table: all({row[i] for row, _ in table} == {0, 1, 2} for i in range(3)))


@given(TABLE, ALPHA)
def test_categories_agree(table: list[tuple[list[int], str]], alpha: float) -> None:
    """Three fields of three values."""
    theirs = naive_bayes.CategoricalNB(alpha=alpha).fit([row for row, _ in table], [y for _, y in table])
    ours = CategoricalNB(alpha)
    for row, label in table:
        ours.learn_one(dict(zip("abc", row, strict=True)), label)
    rows = [row for row, _ in table]
    for row, expected in zip(rows, _by_class(theirs.classes_, theirs.predict_proba(rows)), strict=True):
        assert ours.predict_proba_one(dict(zip("abc", row, strict=True))) == pytest.approx(
            expected, rel=1e-10, abs=1e-10
        )


@pytest.mark.parametrize("seed", range(10))
def test_gaussians_agree(seed: int) -> None:
    """Maximum likelihood on both sides: no pseudo-observation, no smoothing of the variance."""
    random = np.random.default_rng(seed)
    y = random.choice(CLASSES, size=40)
    X = random.normal(size=(40, 4)) * [1.0, 1e-3, 1e3, 5.0] + [[CLASSES.index(label)] for label in y]
    theirs = naive_bayes.GaussianNB(var_smoothing=0.0).fit(X, y)
    ours = GaussianNB(pseudo_observations=0.0)
    ours.learn_many([dict(zip("abcd", row, strict=True)) for row in X.tolist()], y.tolist())
    rows = (random.normal(size=(20, 4)) * [1.0, 1e-3, 1e3, 5.0]).tolist()
    joints = ours.joint_log_likelihood_many([dict(zip("abcd", row, strict=True)) for row in rows])
    for joint, expected in zip(
        joints, _by_class(theirs.classes_, theirs.predict_joint_log_proba(rows)), strict=True
    ):
        assert joint == pytest.approx(expected, rel=1e-10)  # the density itself, with its constant
    for row, expected in zip(rows, _by_class(theirs.classes_, theirs.predict_proba(rows)), strict=True):
        assert ours.predict_proba_one(dict(zip("abcd", row, strict=True))) == pytest.approx(
            expected, rel=1e-10, abs=1e-10
        )
