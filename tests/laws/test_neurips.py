"""The story of "neurips": a word of the dictionary that no message of either class has ever held.

The lectures' filter meets it in a mail. Maximum likelihood gives it probability 0 in both classes, so both
joints are 0 and the posterior is 0/0. Laplace makes it finite, and lets it vote all the same: for the class
with fewer words. Where unknown words are skipped it is silent.
"""

import math

import pytest

from streamnb.naive_bayes.estimators import MultinomialNB
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.smoothing import NoSmoothing
from streamnb.naive_bayes.features.readers import Words
from streamnb.naive_bayes.model.view import View

HAM = ["deadline for the draft", "the deadline moved", "reviews of the draft are in", "lunch at noon today"]
SPAM = ["free money", "free prize today"]


def _taught(model: MultinomialNB) -> MultinomialNB:
    for text in HAM:
        model.learn_one(text, "ham")
    for text in SPAM:
        model.learn_one(text, "spam")
    return model


PRIOR = {"ham": pytest.approx(2 / 3, rel=1e-14), "spam": pytest.approx(1 / 3, rel=1e-14)}


@pytest.mark.parametrize("text", ["neurips", "the neurips deadline", "free neurips prize"])
@pytest.mark.parametrize("times", [1, 2])
def test_maximum_likelihood_is_0_over_0(text: str, times: int) -> None:
    """Both joints are 0; the posterior is the prior, not an exception and not NaN."""
    model = _taught(MultinomialNB(alpha=0))
    for _ in range(times):  # scoring it did not teach it
        assert model.joint_log_likelihood(text) == {"ham": -math.inf, "spam": -math.inf}
        assert model.predict_proba_one(text) == PRIOR
        assert model.predict_one(text) == "ham"
        assert model.explain_one(text) is not None


def test_maximum_likelihood_is_0_over_0_where_each_class_lacks_a_word() -> None:
    """No unknown word is needed: "free" was never ham, "draft" was never spam."""
    model = _taught(MultinomialNB(alpha=0))
    assert model.joint_log_likelihood("free draft") == {"ham": -math.inf, "spam": -math.inf}
    assert model.predict_proba_one("free draft") == PRIOR
    assert model.predict_proba_one("free") == {"ham": 0.0, "spam": 1.0}


def test_maximum_likelihood_is_0_over_0_on_a_stream() -> None:
    """The driver publishes a score: posterior and log odds of the prior, and the word counted as unknown."""
    words = View("words", Words(), Multinomial(NoSmoothing(), "counts", "smooth"))
    model = NaiveBayes([words], head="product", explain=5)
    for texts, label in ((HAM, "ham"), (SPAM, "spam")):
        for text in texts:
            model.learn_one({"text": text}, label)
    scores = model.score_one({"text": "the neurips deadline"})
    assert scores.posterior[0].tolist() == pytest.approx([2 / 3, 1 / 3], rel=1e-14)
    assert scores.log_odds[0].tolist() == pytest.approx([math.log(2), -math.log(2)], rel=1e-12)
    assert (scores.known_tokens[0], scores.unknown_tokens[0]) == (2, 1)
    assert scores.explanations is not None


def test_laplace_makes_it_finite() -> None:
    """``1 / (N_c + |V|)`` in each class: never 0, and a vote for the class with fewer words."""
    model = _taught(MultinomialNB())
    vocabulary = len({word for text in HAM + SPAM for word in text.split()})
    n = {"ham": sum(len(text.split()) for text in HAM), "spam": sum(len(text.split()) for text in SPAM)}
    joint = model.joint_log_likelihood("neurips")
    for label, prior in (("ham", 2 / 3), ("spam", 1 / 3)):
        assert joint[label] == pytest.approx(math.log(prior / (n[label] + vocabulary)), rel=1e-12)
    assert model.predict_proba_one("neurips")["spam"] > 1 / 3
    assert model.predict_proba_one(" ".join(["neurips"] * 20))["spam"] > 0.99  # trap T1


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("copies", [1, 5, 100])
def test_skipped_it_has_no_vote(alpha: float, copies: int) -> None:
    """Exactly the posterior without the word, whatever the smoothing and however often it stands there."""
    model = _taught(MultinomialNB(alpha, unknown="skip"))
    assert model.predict_proba_one(" ".join(["neurips"] * copies)) == PRIOR
    with_it = model.predict_proba_one("the deadline " + "neurips " * copies)
    assert with_it == model.predict_proba_one("the deadline")


def test_learned_it_is_a_word_like_any_other() -> None:
    """One labelled mail, and it speaks for ham."""
    model = _taught(MultinomialNB(unknown="skip"))
    before = model.predict_proba_one("neurips")["ham"]
    model.learn_one("neurips submission", "ham")
    assert model.predict_proba_one("neurips")["ham"] > before
