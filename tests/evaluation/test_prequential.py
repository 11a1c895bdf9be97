"""Prequential figures: computed by hand on small streams, and compared with slow code on generated ones."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.batch import Batch, Label, Scores
from streamnb.evaluation import Evaluation, Prequential, evaluate, predictions
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.smoothing import Laplace
from streamnb.naive_bayes.features.readers import Words
from streamnb.naive_bayes.model.view import TEXT_ONLY, View

NAN = math.nan


def _scores(
    classes: Sequence[Label], posterior: list[list[float]], u: list[list[float]] | None = None
) -> Scores:
    n, width = len(posterior), len(classes)
    filled = np.zeros((n, width))
    for i, row in enumerate(posterior):
        filled[i, : len(row)] = row
    margins = np.full((n, width), NAN)
    for i, row in enumerate(posterior if u is None else u):
        margins[i, : len(row)] = row
    zeros = np.zeros(n, np.int64)
    n_classes = np.array([len(row) for row in posterior], np.int64)
    return Scores(
        tuple(classes), n_classes, filled, filled, margins, None, zeros, zeros, zeros, filled, zeros
    )


def _judged(scores: Scores, labels: Sequence[Label | None]) -> Evaluation:
    judgement = Prequential()
    judgement.add(scores, labels)
    return judgement.figures(scores.classes)


def test_figures_by_hand() -> None:
    """Two messages are the first of their class, three are judged, one has no label."""
    scores = _scores(
        ["ham", "spam"],
        [[], [1.0], [0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.5, 0.5]],
        [[], [0.0], [2, 0], [0, 1], [0, 0.5], [0, 0]],
    )
    found = _judged(scores, ["ham", "spam", "ham", "spam", "ham", None])
    assert (found.n, found.new_class, found.classes) == (5, 2, ["ham", "spam"])
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.log_loss == pytest.approx(-(math.log(0.9) + math.log(0.8) + math.log(0.4)) / 3)
    assert found.roca_loss_pct == 0.0  # spam's margin of 1 is above ham's of -2 and 0.5
    assert math.isnan(found.messages_per_s)


def test_figures_of_no_judged_message_are_nan() -> None:
    """0 would look like a measured figure."""
    found = _judged(_scores([], []), [])
    assert math.isnan(found.accuracy)
    assert math.isnan(found.log_loss)
    assert (found.n, found.new_class, found.roca_loss_pct) == (0, 0, None)


def test_the_first_of_a_class_counts_in_new_class_alone() -> None:
    """The same holds across batches, and for a declared class, which has a posterior before its label."""
    judgement = Prequential()
    for known in (NAN, 0.0):
        scores = _scores(
            ["ham", "never", "spam"],
            [[0.2, 0.4, 0.4], [0.9, 0.05, 0.05]],
            [[known, known, 0.0], [known, 0.0, 0.0]],
        )
        judgement.add(scores, ["never", "ham"])
    found = judgement.figures(scores.classes)
    assert (found.n, found.new_class, found.accuracy) == (4, 2, 1.0)
    assert found.log_loss == pytest.approx(-(math.log(0.4) + math.log(0.9)) / 2)


@pytest.mark.parametrize("p", [0.0, 1e-300, 1e-16, 1e-15])
def test_the_log_loss_has_a_floor(p: float) -> None:
    """One mistake made with certainty costs 34.5 nats, not infinity."""
    scores = _scores(["a", "b"], [[], [1.0], [1 - p, p]], [[], [0.0], [0.0, 0.0]])
    found = _judged(scores, ["a", "b", "b"])
    assert found.log_loss == pytest.approx(-math.log(1e-15))


def test_a_class_refused_at_the_limit_is_always_new() -> None:
    """It was never learned, so no model could have predicted it; the other figures are not affected."""
    model = NaiveBayes(TEXT_ONLY, classes_max=2)
    batches = [Batch({"text": ["x", "y", "z", "z", "x"]}, ["a", "b", "c", "c", "a"])] * 2
    (*_, (judgement, _)) = evaluate(model, batches)
    found = judgement.figures(model.classes_)
    assert (found.n, found.new_class, found.classes) == (10, 2 + 4, ["a", "b"])
    assert found.accuracy == 1.0


# ---- the area above the ROC curve

MARGINS = st.lists(
    st.tuples(
        st.sampled_from(["ham", "spam"]), st.sampled_from([-math.inf, -1e9, -1.5, 0.0, 0.25, 7.0, 1e300])
    ),
    max_size=30,
)


@given(MARGINS)
def test_the_area_is_the_share_of_pairs_out_of_order(ranked: list[tuple[str, float]]) -> None:
    """Each pair of a ham and a spam counts 1 if ham ranks above, and one half if they are equal."""
    scores = _scores(["ham", "spam"], [[0.5, 0.5]] * len(ranked), [[0.0, m] for _, m in ranked])
    found = _judged(scores, [label for label, _ in ranked]).roca_loss_pct
    ham = [m for label, m in ranked if label == "ham"]
    spam = [m for label, m in ranked if label == "spam"]
    if not ham or not spam:
        assert found is None
        return
    wrong = sum((h > s) + (h == s) / 2 for h in ham for s in spam)
    assert found == pytest.approx(100 * wrong / (len(ham) * len(spam)), abs=1e-9)


def test_a_class_never_labelled_ranks_last() -> None:
    """Its u is NaN, which ranks behind every number and equal to another NaN."""
    u = [[NAN, NAN], [NAN, 0.0], [0.0, 3.0], [0.0, NAN], [2.0, 0.0]]
    scores = _scores(["ham", "spam"], [[0.5, 0.5]] * 5, u)
    found = _judged(scores, ["spam", "ham", "spam", "ham", "ham"])
    assert found.roca_loss_pct == 0.0


def test_more_than_two_classes_have_no_area() -> None:
    """The figure is None with three classes, and with one."""
    assert _judged(_scores(["a", "b", "c"], [[0.2, 0.3, 0.5]] * 6), list("abcabc")).roca_loss_pct is None
    assert _judged(_scores(["a"], [[1.0]] * 2), ["a", "a"]).roca_loss_pct is None


# ---- predictions


@pytest.mark.parametrize(
    ("classes", "posterior", "expected"),
    [
        (["spam", "ham"], [0.5, 0.5], "ham"),
        (["b", "a", "c"], [0.3, 0.3, 0.4], "c"),
        (["c", "a", "b"], [0.4, 0.2, 0.4], "b"),
        ([10, 2], [0.5, 0.5], 2),
        ([True, False], [0.5, 0.5], False),
    ],
)
def test_ties_go_to_the_smallest_label(classes: list[Label], posterior: list[float], expected: Label) -> None:
    """Labels are compared as values, so 2 is before 10; their order of arrival does not matter."""
    assert predictions(_scores(classes, [posterior])) == [expected]


def test_predictions_know_only_the_rows_own_classes() -> None:
    """A class that came later in the batch cannot be predicted; before the first label nothing can."""
    assert predictions(_scores(["z", "a"], [[], [1.0], [0.5, 0.5]])) == [None, "z", "a"]


# ---- the loop


def test_evaluating_is_scoring_before_learning() -> None:
    """In batches of any size, the figures are those of a plain loop over the messages."""
    texts = ["free cash", "lunch noon", "free lunch", "cash", "noon", "free noon cash", "lunch"] * 5
    labels: list[Label | None] = ["spam", "ham", None, "spam", "ham", "spam", "ham"] * 5
    view = View("words", Words(), Multinomial(Laplace(1.0), "counts", "smooth"))
    plain, loss, hits, judged = NaiveBayes([view], head="product"), 0.0, 0, 0
    for text, label in zip(texts, labels, strict=True):
        if label is not None and label in plain.classes_:
            p = plain.predict_proba_one({"text": text})
            judged += 1
            loss -= math.log(p[label])
            hits += plain.predict_one({"text": text}) == label
        plain.learn_one({"text": text}, label)
    for size in (1, 4, 100):
        model = NaiveBayes([view], head="product")
        batches = [
            Batch({"text": texts[i : i + size]}, labels[i : i + size]) for i in range(0, len(texts), size)
        ]
        (*_, (judgement, scores)) = evaluate(model, batches)
        found = judgement.figures(model.classes_)
        assert (found.n, found.new_class) == (30, 2)
        assert found.accuracy == hits / judged
        assert found.log_loss == pytest.approx(loss / judged, rel=1e-12)
        assert found.messages_per_s > 0
        assert scores.classes == ("spam", "ham")
        assert model.digest() == plain.digest()
