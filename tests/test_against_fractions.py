"""Against exact fractions: on small corpora the product head is the textbook's arithmetic, to 1e-12."""

# ruff: noqa: N802 - a trap is named by its number

import math
from fractions import Fraction
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb.classifiers import MultinomialNB
from streamnb.event_models import Multinomial
from streamnb.naive_bayes import NaiveBayes
from streamnb.smoothing import FixedPrior, Laplace, LearnedPrior, NoSmoothing, Prior, Smoothing, UniformPrior
from streamnb.tokens import Tokenizer, Words
from streamnb.view import View

WORDS = ["free", "cash", "hi", "lunch", "noon", "neurips"]
CLASSES = ["ham", "spam", "work"]

Corpus = list[tuple[list[str], str]]
Weight = Literal["counts", "boolean"]
Unknown = Literal["skip", "smooth"]

CORPUS = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS[:-1]), max_size=6), st.sampled_from(CLASSES)),
    min_size=1,
    max_size=12,
)
MESSAGE = st.lists(st.sampled_from(WORDS), max_size=6)
# Pseudo-counts that are the same number as a float and as a fraction.
ALPHA = st.sampled_from([Fraction(0), Fraction(1, 8), Fraction(1, 2), Fraction(1), Fraction(3)])
PRIOR = st.sampled_from(["learned", "smoothed", "uniform", "fixed"])
FIXED = {"ham": 0.5, "spam": 0.25, "work": 0.25}


def _weighed(words: list[str], weight: Weight) -> dict[str, int]:
    return {word: words.count(word) if weight == "counts" else 1 for word in words}


def _prior_of(kind: str, corpus: Corpus, labels: list[str]) -> dict[str, Fraction]:
    n = {label: Fraction(sum(y == label for _, y in corpus)) for label in labels}
    if kind == "uniform":
        return dict.fromkeys(labels, Fraction(1, len(labels)))
    if kind == "fixed":
        return {label: Fraction(FIXED[label]) for label in labels}
    s = Fraction(1, 2) if kind == "smoothed" else Fraction(0)
    return {label: (n[label] + s) / (len(corpus) + s * len(labels)) for label in labels}


def _joint(
    corpus: Corpus, message: list[str], alpha: Fraction, weight: Weight, unknown: Unknown, prior: str
) -> dict[str, Fraction]:
    """``P(c) prod_k phi_kc^f_k`` as fractions."""
    labels = sorted({y for _, y in corpus})
    seen: dict[tuple[str, str], int] = {}
    for words, y in corpus:
        for word, f in _weighed(words, weight).items():
            seen[word, y] = seen.get((word, y), 0) + f
    vocabulary = {word for word, _ in seen}
    joint = _prior_of(prior, corpus, labels)
    if not vocabulary:
        return joint
    for label in labels:
        total = sum(n for (_, y), n in seen.items() if y == label) + alpha * len(vocabulary)
        for word, f in _weighed(message, weight).items():
            if word in vocabulary or unknown == "smooth":
                phi = (seen.get((word, label), 0) + alpha) / total if total else Fraction(0)
                joint[label] *= phi**f
    return joint


PRIORS: dict[str, Prior] = {
    "learned": LearnedPrior(),
    "smoothed": LearnedPrior(0.5),
    "uniform": UniformPrior(),
    "fixed": FixedPrior(FIXED),
}


def _log(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator) if x else -math.inf


@given(
    CORPUS, MESSAGE, ALPHA, st.sampled_from(["counts", "boolean"]), st.sampled_from(["skip", "smooth"]), PRIOR
)
@settings(max_examples=300)
def test_T9_the_posterior_is_the_fraction(
    corpus: Corpus, message: list[str], alpha: Fraction, weight: Weight, unknown: Unknown, prior: str
) -> None:
    """Under maximum likelihood, Laplace and Lidstone, whatever the prior; no hidden constant."""
    exact = _joint(corpus, message, alpha, weight, unknown, prior)
    model = MultinomialNB(float(alpha), weight=weight, unknown=unknown, prior=PRIORS[prior])
    for words, label in corpus:
        model.learn_one(_weighed(words, "counts"), label)
    counts = _weighed(message, "counts")
    joint = model.joint_log_likelihood(counts)
    assert joint.keys() == exact.keys()
    for label, value in exact.items():
        assert joint[label] == pytest.approx(_log(value), rel=1e-12, abs=1e-12)
    if not any(exact.values()):  # 0/0: the words say nothing
        exact = _prior_of(prior, corpus, sorted(exact))
    total = sum(exact.values())
    assert model.predict_proba_one(counts) == pytest.approx(
        {label: float(value / total) for label, value in exact.items()}, rel=1e-12, abs=1e-12
    )


@given(CORPUS, MESSAGE, st.sampled_from([NoSmoothing(), Laplace(1.0), Laplace(0.5)]))
def test_texts_and_term_counts_are_the_same_arithmetic(
    corpus: Corpus, message: list[str], smoothing: Smoothing
) -> None:
    """A view of words under the product head gives what the classic class gives, to the bit."""
    words = View("words", Words(), Multinomial(smoothing, "counts", "smooth"))
    texts = NaiveBayes([words], head="product", tokenizer=Tokenizer(rule="words"))
    terms = MultinomialNB(smoothing=smoothing)
    for tokens, label in corpus:
        texts.learn_one({"text": " ".join(tokens)}, label)
        terms.learn_one(_weighed(tokens, "counts"), label)
    query = " ".join(message)
    assert texts.predict_proba_one({"text": query}) == terms.predict_proba_one(_weighed(message, "counts"))
    assert texts.joint_log_likelihood({"text": query}) == terms.joint_log_likelihood(query)


CHINA = [
    ("Chinese Beijing Chinese", "yes"),
    ("Chinese Chinese Shanghai", "yes"),
    ("Chinese Macao", "yes"),
    ("Tokyo Japan Chinese", "no"),
]


def test_the_china_example() -> None:
    """3/4 (3/7)^3 (1/14)^2 against 1/4 (2/9)^3 (2/9)^2 (Manning, Raghavan and Schütze 2008, 13.1)."""
    model = MultinomialNB()
    for text, label in CHINA:
        model.learn_one(text, label)
    yes = Fraction(3, 4) * Fraction(3, 7) ** 3 * Fraction(1, 14) ** 2
    no = Fraction(1, 4) * Fraction(2, 9) ** 5
    query = "Chinese Chinese Chinese Tokyo Japan"
    assert model.joint_log_likelihood(query) == pytest.approx({"yes": _log(yes), "no": _log(no)}, rel=1e-13)
    assert model.predict_proba_one(query)["yes"] == pytest.approx(float(yes / (yes + no)), abs=1e-13)
    assert model.predict_one(query) == "yes"


@given(CORPUS, MESSAGE, st.integers(1, 5))
def test_a_weight_is_repetition(corpus: Corpus, message: list[str], weight: int) -> None:
    """A message of weight 3 is that message three times."""
    weighted, repeated = MultinomialNB(), MultinomialNB()
    for words, label in corpus:
        weighted.learn_one(_weighed(words, "counts"), label, weight=float(weight))
        for _ in range(weight):
            repeated.learn_one(_weighed(words, "counts"), label)
    counts = _weighed(message, "counts")
    assert weighted.predict_proba_one(counts) == repeated.predict_proba_one(counts)
