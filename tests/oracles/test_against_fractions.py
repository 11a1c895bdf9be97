"""Against exact fractions: on small corpora the product head is the textbook's arithmetic, to 1e-12."""

import math
from fractions import Fraction
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb.naive_bayes.estimators import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Bernoulli, Categorical, Multinomial
from streamnb.naive_bayes.event_models.priors import FixedPrior, LearnedPrior, Prior, UniformPrior
from streamnb.naive_bayes.event_models.smoothing import Beta, Laplace, NoSmoothing, Smoothing
from streamnb.naive_bayes.features.readers import Categories, Category, Flags, Words
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.view import View

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
        weighted.learn_one(_weighed(words, "counts"), label, w=float(weight))
        for _ in range(weight):
            repeated.learn_one(_weighed(words, "counts"), label)
    counts = _weighed(message, "counts")
    assert weighted.predict_proba_one(counts) == repeated.predict_proba_one(counts)


def _agree(
    joint: dict[str, float], p: dict[str, float], exact: dict[str, Fraction], prior: dict[str, Fraction]
) -> None:
    """Joints to 1e-12, and posteriors, where 0/0 is the prior."""
    assert joint.keys() == exact.keys()
    for label, value in exact.items():
        assert joint[label] == pytest.approx(_log(value), rel=1e-12, abs=1e-12)
    shares = exact if any(exact.values()) else prior
    total = sum(shares.values())
    expected = {label: float(value / total) for label, value in shares.items()}
    assert p == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(CORPUS, MESSAGE, ALPHA, ALPHA, st.sampled_from(["skip", "smooth"]), st.integers(1, 3))
@settings(max_examples=300)
def test_T9_coins_are_the_fractions(
    corpus: Corpus, message: list[str], a: Fraction, b: Fraction, unknown: Unknown, weight: int
) -> None:
    """Present words, absent words and unknown ones, under any Beta, maximum likelihood among them."""
    labels = sorted({y for _, y in corpus})
    vocabulary = {word for words, _ in corpus for word in words}
    prior = _prior_of("learned", corpus, labels)
    exact = dict(prior)
    for label in labels:
        n_c = weight * sum(y == label for _, y in corpus)
        for word in vocabulary | (set(message) if unknown == "smooth" else set()):
            n_jc = weight * sum(word in words for words, y in corpus if y == label)
            phi = (n_jc + a) / (n_c + a + b)
            exact[label] *= phi if word in message else (1 - phi if word in vocabulary else 1)
    model = BernoulliNB(smoothing=Beta(float(a), float(b)), unknown=unknown)
    for words, label in corpus:
        model.learn_one(dict.fromkeys(words, 1), label, w=float(weight))
    x = dict.fromkeys(message, 1)
    joint, p = model.joint_log_likelihood(x), model.predict_proba_one(x)
    _agree(joint, p, exact, prior)  # type: ignore[arg-type]


@given(CORPUS, MESSAGE, ALPHA)
def test_complements_are_the_fractions(corpus: Corpus, message: list[str], alpha: Fraction) -> None:
    """The reciprocal of what all other classes together give the message."""
    labels = sorted({y for _, y in corpus})
    prior = _prior_of("learned", corpus, labels)
    vocabulary = {word for words, _ in corpus for word in words}
    others = {label: [word for words, y in corpus if y != label for word in words] for label in labels}
    theta = {
        label: [
            (others[label].count(word) + alpha) / total
            if (total := len(others[label]) + alpha * len(vocabulary))
            else Fraction(0)
            for word in message
        ]
        for label in labels
    }
    model = ComplementNB(float(alpha))
    for words, label in corpus:
        model.learn_one(_weighed(words, "counts"), label)
    p = model.predict_proba_one(_weighed(message, "counts"))
    if not vocabulary or all(set(row) <= {1} for row in theta.values()):
        expected = prior
    elif any(0 in row for row in theta.values()):  # words that only one class has: it is the one
        certain = [label for label in labels if 0 in theta[label]]
        shared = {label: Fraction(label in certain, len(certain)) for label in labels}
        expected = prior if len(certain) == len(labels) else shared  # 0/0: the words say nothing
    else:
        weights = {label: 1 / math.prod(theta[label], start=Fraction(1)) for label in labels}
        expected = {label: weights[label] / sum(weights.values()) for label in labels}
    assert p == pytest.approx({label: float(v) for label, v in expected.items()}, rel=1e-12, abs=1e-12)


Field = st.sampled_from([None, "red", "blue", 1, "1", True])
TABLE = st.lists(
    st.tuples(st.fixed_dictionaries({"a": Field, "b": Field}), st.sampled_from(CLASSES)),
    min_size=1,
    max_size=10,
)


@given(
    TABLE,
    st.fixed_dictionaries({"a": Field, "b": Field, "c": Field}),
    ALPHA,
    st.sampled_from(["skip", "smooth"]),
)
@settings(max_examples=300)
def test_categories_are_the_fractions(
    table: list[tuple[dict[str, object], str]], query: dict[str, object], alpha: Fraction, unknown: Unknown
) -> None:
    """Each field by its own values and its own messages; missing values drop out of both."""
    labels = sorted({y for _, y in table})
    prior = _prior_of("learned", [([], y) for _, y in table], labels)
    exact = dict(prior)
    for label in labels:
        for field, value in query.items():
            seen = [repr(x[field]) for x, _ in table if x.get(field) is not None]
            here = [repr(x[field]) for x, y in table if y == label and x.get(field) is not None]
            if value is None or not seen or (unknown == "skip" and repr(value) not in seen):
                continue
            total = len(here) + alpha * len(set(seen))
            exact[label] *= (here.count(repr(value)) + alpha) / total if total else 0
    model = CategoricalNB(float(alpha), unknown=unknown)
    for x, label in table:
        model.learn_one(x, label)
    joint, p = model.joint_log_likelihood(query), model.predict_proba_one(query)
    _agree(joint, p, exact, prior)  # type: ignore[arg-type]


FLAG = st.sampled_from([None, True, False])
FLAGS = st.lists(
    st.tuples(st.fixed_dictionaries({"a": FLAG, "b": FLAG}), st.sampled_from(CLASSES)),
    min_size=1,
    max_size=10,
)


@given(FLAGS, st.fixed_dictionaries({"a": FLAG, "b": FLAG, "c": FLAG}), ALPHA, ALPHA)
def test_flags_are_the_fractions(
    table: list[tuple[dict[str, bool | None], str]], query: dict[str, bool | None], a: Fraction, b: Fraction
) -> None:
    """A coin of two sides for each name, flipped only where it is there."""
    labels = sorted({y for _, y in table})
    prior = _prior_of("learned", [([], y) for _, y in table], labels)
    exact = dict(prior)
    for label in labels:
        for name, value in query.items():
            if value is None or not any(x.get(name) is not None for x, _ in table):
                continue
            here = [x[name] for x, y in table if y == label and x.get(name) is not None]
            total = len(here) + a + b
            exact[label] *= (here.count(value) + (a if value else b)) / total if total else 0
    model = NaiveBayes([View("flags", Flags(), Bernoulli(Beta(float(a), float(b))))])
    for x, label in table:
        model.learn_one(x, label)
    joint, p = model.joint_log_likelihood(query), model.predict_proba_one(query)
    _agree(joint, p, exact, prior)  # type: ignore[arg-type]


@given(TABLE, st.fixed_dictionaries({"a": Field, "b": Field}))
def test_named_columns_and_a_mapping_are_one_thing(
    table: list[tuple[dict[str, object], str]], query: dict[str, object]
) -> None:
    """The engine's columns, the estimators' mapping, and a category a view: the same posterior."""
    fields = NaiveBayes([View("f", Categories(fields=("a", "b")))])
    mapping = NaiveBayes([View("f", Categories("x"), Categorical())])
    single = NaiveBayes([View("a", Category("a")), View("b", Category("b"))], compiled=False)
    for x, label in table:
        fields.learn_one(x, label)
        mapping.learn_one({"x": x}, label)
        single.learn_one(x, label)
    p = fields.predict_proba_one(query)
    assert p == mapping.predict_proba_one({"x": query})
    assert p == pytest.approx(single.predict_proba_one(query), rel=1e-12)
