"""What is known beforehand: a dictionary or its size, the values of a field, pseudo-counts per token.

The answers are those of a model that has the whole dictionary in its counts, and of scikit-learn, whose
matrix has a column for each word.
"""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import naive_bayes

import streamnb
from streamnb import (
    Bernoulli,
    BernoulliNB,
    Beta,
    Categorical,
    CategoricalNB,
    ComplementNB,
    Flags,
    Laplace,
    LaplacePerToken,
    Multinomial,
    MultinomialNB,
    NaiveBayes,
    NoSmoothing,
    View,
    Words,
)

WORDS = ["win", "money", "lunch", "noon", "prize", "neurips"]
CORPUS = [("win money", "spam"), ("lunch noon win", "ham"), ("win win prize", "spam"), ("noon noon", "ham")]
MESSAGES = ["win", "money lunch", "neurips", "neurips neurips noon", "", "win prize money lunch noon neurips"]
ANY: Any = naive_bayes


def _row(text: str) -> list[int]:
    return [text.split().count(word) for word in WORDS]


def _agrees_with(theirs: Any, ours: Any) -> None:  # noqa: ANN401
    theirs.fit([_row(text) for text, _ in CORPUS], [label for _, label in CORPUS])
    for text, label in CORPUS:
        ours.learn_one(text, label)
    for text in MESSAGES:
        if text or not isinstance(ours, ComplementNB):  # theirs is uniform for an empty message
            expected = dict(zip(["ham", "spam"], theirs.predict_proba([_row(text)])[0], strict=True))
            assert ours.predict_proba_one(text) == pytest.approx(expected, rel=1e-10)


# ---- the dictionary


@pytest.mark.parametrize("vocabulary", [6, WORDS], ids=["size", "words"])
def test_a_dictionary_known_beforehand_is_a_column_per_word(vocabulary: Any) -> None:  # noqa: ANN401
    """scikit-learn's answers, with a word that was in no message."""
    smooth: dict[str, Any] = {"vocabulary": vocabulary, "unknown": "smooth"}
    _agrees_with(ANY.MultinomialNB(), MultinomialNB(**smooth))
    _agrees_with(ANY.MultinomialNB(alpha=0.1), MultinomialNB(0.1, **smooth))
    _agrees_with(ANY.ComplementNB(), ComplementNB(**smooth))
    _agrees_with(ANY.BernoulliNB(), BernoulliNB(**smooth))
    _agrees_with(ANY.BernoulliNB(alpha=0.3), BernoulliNB(0.3, **smooth))


@pytest.mark.parametrize("model", [MultinomialNB(vocabulary=6), MultinomialNB(vocabulary=WORDS)])
def test_shares_over_a_known_dictionary_sum_to_1(model: MultinomialNB) -> None:
    """Before anything was learned, too: 1/|V| each."""
    assert model.p_feature_given_class("win", "spam") == 1 / 6
    for text, label in CORPUS:
        model.learn_one(text, label)
    for label in ("ham", "spam"):
        assert math.fsum(model.p_feature_given_class(word, label) for word in WORDS) == pytest.approx(1.0)
    assert (model.n_terms, model.n_parameters()) == (6, 1 + 2 * 5)


def test_a_dictionary_that_is_too_small_grows() -> None:
    """Its size is a least one."""
    model, free = MultinomialNB(vocabulary=2), MultinomialNB()
    for text, label in CORPUS:
        model.learn_one(text, label)
        free.learn_one(text, label)
    assert [model.predict_proba_one(text) for text in MESSAGES] == [
        free.predict_proba_one(text) for text in MESSAGES
    ]


@pytest.mark.parametrize("kind", [MultinomialNB, ComplementNB, BernoulliNB])
def test_other_words_than_those_given_are_left_out(kind: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """Learned and scored; also after the model was saved."""
    model = kind(vocabulary=["win", "noon"])
    for text, label in CORPUS:
        model.learn_one(text, label)
    assert set(model.feature_counts) == {"win", "noon"}
    assert model.predict_proba_one("win lunch other") == model.predict_proba_one("win")
    model.save(tmp_path / "model.snb")
    loaded: Any = streamnb.load(tmp_path / "model.snb")
    assert loaded.vocabulary == ["win", "noon"]
    assert loaded.predict_proba_one("win lunch") == model.predict_proba_one("win")
    assert loaded.digest() == model.digest()
    with pytest.raises(ValueError, match="`vocabulary` cannot change after learning"):
        model.vocabulary = ["win"]


def test_the_most_frequent_words_as_the_vocabulary() -> None:
    """The lectures' classifier of the most frequent words alone."""
    model = MultinomialNB()
    for text, label in CORPUS:
        model.learn_one(text, label)
    frequent = [word for word, _ in model.feature_totals.most_common(2)]
    assert frequent == ["win", "noon"]
    of_them = MultinomialNB(vocabulary=frequent)
    for text, label in CORPUS:
        of_them.learn_one(text, label)
    assert of_them.n_terms == 2
    assert of_them.p_feature_given_class("win", "spam") == 4 / 5


@pytest.mark.parametrize("head", ["product", "calibrated"])
def test_a_view_of_given_words(head: Any) -> None:  # noqa: ANN401
    """Any model may have one; it runs on the plain driver, and says so if the compiled one is wanted."""
    words = Words(vocabulary=frozenset(WORDS[:3]))
    model = NaiveBayes([View("words", words)], head=head)
    assert not model.state.compiled
    event_model: Any = model.state.views[0].event_model
    assert event_model.vocabulary_min == 3
    for text, label in CORPUS:
        model.learn_one({"text": text}, label)
    assert sorted(model.state.counts["words"].rows) == ["lunch", "money", "win"]
    assert model.score_one({"text": "win noon"}).known_tokens.tolist() == [1]
    assert model.score_one({"text": "win noon"}).unknown_tokens.tolist() == [0]  # it is not read at all
    other = NaiveBayes([View("words", Words(vocabulary=frozenset(["win"])))], head=head)
    with pytest.raises(ValueError, match="differ in settings"):
        other.merge(model)


def test_the_calibrated_head_takes_the_size_of_the_dictionary() -> None:
    """Its odds have |V| in them."""
    answers = []
    for size in (0, 1000):
        model = NaiveBayes([View("words", Words(), Multinomial(vocabulary_min=size))])
        for text, label in [*CORPUS, ("win", "spam")] * 3:
            model.learn_one({"text": text}, label)
        answers.append(model.predict_proba_one({"text": "win noon"}))
    assert answers[0] != answers[1]


def test_the_plane_has_the_words_that_nobody_has_seen_in_its_intercept() -> None:
    """As scikit-learn's weights have."""
    ours = BernoulliNB(vocabulary=WORDS)
    for text, label in CORPUS:
        ours.learn_one(text, label)
    intercept, weights = ours.linear_weights(("ham", "spam"))
    for text in ("win", "money lunch", ""):
        joint = ours.joint_log_likelihood(text)
        u = intercept + sum(weights[word] for word in text.split())
        assert u == pytest.approx(joint["ham"] - joint["spam"])


# ---- the values of a field


@pytest.mark.parametrize("values_min", [6, {"die": 6}], ids=["every field", "by name"])
def test_a_die_of_six_sides(values_min: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """It shows 1, 1, 2: six probabilities that sum to 1, of which four sides have never been seen."""
    model = CategoricalNB(values_min=values_min)
    assert model.p_feature_given_class("die", 5, "fair") == 1 / 6
    for side in (1, 1, 2):
        model.learn_one({"die": side, "colour": "red"}, "fair")
    shares = [model.p_feature_given_class("die", side, "fair") for side in range(1, 7)]
    assert shares == [3 / 9, 2 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9]
    for side, share in enumerate(shares, 1):
        assert math.exp(model.joint_log_likelihood({"die": side})["fair"]) == pytest.approx(share)
    assert model.p_feature_given_class("colour", "red", "fair") == (4 / 9 if values_min == 6 else 1.0)
    model.save(tmp_path / "die.snb")
    assert streamnb.load(tmp_path / "die.snb").predict_proba_one({"die": 6}) == model.predict_proba_one(
        {"die": 6}
    )
    assert model.n_parameters() == (10 if values_min == 6 else 5)


def test_values_known_beforehand_are_scikit_learns_min_categories() -> None:
    """Also where more values are seen than were said."""
    rows, labels = [[0, 0], [0, 1], [0, 0], [1, 1]], [1, 1, 2, 2]
    for least in ([3, 4], [1, 5], [2, 2]):
        theirs = naive_bayes.CategoricalNB(min_categories=np.array(least)).fit(rows, labels)
        ours = CategoricalNB(values_min=dict(zip("ab", least, strict=True)))
        for row, label in zip(rows, labels, strict=True):
            ours.learn_one(dict(zip("ab", row, strict=True)), label)
        for message in itertools.product(*(range(max(n, 2)) for n in least)):
            expected = dict(zip([1, 2], theirs.predict_proba([message])[0], strict=True))
            assert ours.predict_proba_one(dict(zip("ab", message, strict=True))) == pytest.approx(expected)


# ---- pseudo-counts per token, and normed weights


def test_pseudo_counts_per_token_are_scikit_learns_vector() -> None:
    """Tokens that are named are in the vocabulary from the beginning."""
    alphas = dict(zip(WORDS, [0.5, 1.0, 2.0, 0.1, 3.0, 0.7], strict=True))
    smoothing = LaplacePerToken(alphas)
    vector = np.array(list(alphas.values()))
    _agrees_with(ANY.MultinomialNB(alpha=vector), MultinomialNB(smoothing=smoothing))
    _agrees_with(ANY.ComplementNB(alpha=vector), ComplementNB(smoothing=smoothing))
    _agrees_with(ANY.ComplementNB(alpha=vector, norm=True), ComplementNB(smoothing=smoothing, norm=True))
    model = MultinomialNB(smoothing=smoothing)
    assert model.p_feature_given_class("prize", "spam") == 3.0 / 7.3


def test_tokens_that_are_not_named_have_the_common_pseudo_count() -> None:
    """With the same number for all it is Laplace's."""
    ours, plain = MultinomialNB(smoothing=LaplacePerToken({"win": 1.0}, alpha=1.0)), MultinomialNB()
    for text, label in CORPUS:
        ours.learn_one(text, label)
        plain.learn_one(text, label)
    for text in MESSAGES:
        assert ours.predict_proba_one(text) == pytest.approx(plain.predict_proba_one(text), rel=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 0.1])
def test_normed_weights_are_scikit_learns(alpha: float) -> None:
    """With all words learned, and with some known beforehand."""
    _agrees_with(ANY.ComplementNB(alpha=alpha, norm=True), ComplementNB(alpha, norm=True, vocabulary=WORDS))
    model = ComplementNB(norm=True)
    for text, label in CORPUS:
        model.learn_one(text, label)
    why = model.explain_one("win noon")
    joint = model.joint_log_likelihood("win noon")
    assert why is not None
    assert why.total == pytest.approx(joint[why.classes[0]] - joint[why.classes[1]])


# ---- wrong arguments


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ComplementNB(0, norm=True), "`norm` needs"),
        (lambda: ComplementNB(smoothing=LaplacePerToken({"a": 0.0}), norm=True), "`norm` needs"),
        (lambda: Multinomial(norm=True), "`norm` needs"),
        (lambda: Multinomial(NoSmoothing(), vocabulary_min=-1), "`vocabulary_min` must be"),
        (lambda: Bernoulli(Beta(), vocabulary_min=-1), "`vocabulary_min` must be"),
        (lambda: Categorical(Laplace(), values_min=-1), "`values_min` must be"),
        (lambda: Categorical(Laplace(), values_min={"a": -1}), "`values_min` must be"),
        (lambda: CategoricalNB(values_min={"a": "b"}), "`values_min` must be a whole number or a mapping"),  # type: ignore[dict-item]
        (lambda: MultinomialNB(vocabulary="win"), "`vocabulary` must be"),
        (lambda: MultinomialNB(vocabulary=True), "`vocabulary` must be"),
        (lambda: LaplacePerToken({"a": -1.0}), "pseudo-count of 'a' must be"),
        (lambda: LaplacePerToken({}, alpha=math.nan), "pseudo-count of 'alpha' must be"),
        (lambda: View("f", Flags(), Bernoulli(vocabulary_min=3)), "flags have no vocabulary"),
        (
            lambda: NaiveBayes([View("w", Words(vocabulary=frozenset("a")))], compiled=True),
            "cannot run in compiled code",
        ),
        (
            lambda: NaiveBayes([View("w", Words(), Multinomial(LaplacePerToken({})))], head="calibrated"),
            "the calibrated head needs Laplace",
        ),
    ],
)
def test_wrong_arguments_are_refused(make: Any, words: str) -> None:  # noqa: ANN401
    """By one sentence."""
    with pytest.raises(ValueError, match=words):
        make()
