"""Against scikit-learn's MultinomialNB: the same posteriors on known words, learned in one pass."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import MultinomialNB as Theirs

from streamnb.classifiers import MultinomialNB
from streamnb.smoothing import FixedPrior, Prior, UniformPrior

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
    for row in [*queries, [0] * 8, *(row for row, _ in corpus)]:
        expected = dict(zip(theirs.classes_, theirs.predict_proba([row])[0], strict=True))
        assert ours.predict_proba_one(_counts(row)) == pytest.approx(expected, rel=1e-10, abs=1e-10)
        joint = dict(zip(theirs.classes_, theirs.predict_joint_log_proba([row])[0], strict=True))
        if prior != "fixed":  # ours is up to the constant that the posterior divides out
            assert ours.joint_log_likelihood(_counts(row)) == pytest.approx(joint, rel=1e-10, abs=1e-10)
