"""Feedback: in batches of any size, the same labels are learned at the same time as message by message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.batch import Batch, Label
from streamnb.evaluation import Feedback, Mode, evaluate
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.model.view import TEXT_ONLY

TEXTS = ["free cash", "lunch noon", "free lunch", "cash", "noon", "free noon cash", "lunch"] * 6
LABELS: list[Label | None] = ["spam", "ham", None, "spam", "ham", "spam", "ham"] * 6
WEIGHTS = [1.0, 2.0, 0.5] * 14


def batches(size: int) -> list[Batch]:
    """Return the stream in batches of `size` messages."""
    parts = [slice(i, i + size) for i in range(0, len(TEXTS), size)]
    return [Batch({"text": TEXTS[part]}, LABELS[part], WEIGHTS[part]) for part in parts]


@given(st.integers(0, 50), st.integers(1, 50))
def test_a_late_label_is_learned_after_delay_further_messages(delay: int, size: int) -> None:
    """Scores and state equal, to the bit, a loop over single messages; the last labels never arrive."""
    plain, expected = NaiveBayes(TEXT_ONLY), []
    for i, text in enumerate(TEXTS):
        expected.append(plain.predict_proba_one({"text": text}))
        if i >= delay:
            plain.learn_one({"text": TEXTS[i - delay]}, LABELS[i - delay], WEIGHTS[i - delay])
    model = NaiveBayes(TEXT_ONLY)
    found = [
        dict(zip(scores.classes[:n], p, strict=False))
        for _, scores in evaluate(model, batches(size), Feedback(delay=delay))
        for n, p in zip(scores.n_classes.tolist(), scores.posterior.tolist(), strict=True)
    ]
    assert found == expected
    assert model.digest() == plain.digest()


def test_a_class_is_new_until_its_label_has_arrived() -> None:
    """A class whose first label is still under way has not been learned."""
    model = NaiveBayes(TEXT_ONLY)
    (*_, (judgement, _)) = evaluate(model, batches(5), Feedback(delay=10))
    labelled = [(i, label) for i, label in enumerate(LABELS) if label is not None]
    known_from = {label: 11 + LABELS.index(label) for label in ("spam", "ham")}
    assert judgement.n == len(labelled)
    assert judgement.new_class == sum(i < known_from[str(label)] for i, label in labelled)


def test_delayed_feedback_teaches_the_first_and_judges_by_all() -> None:
    """The model ends in the state of one that learned the first messages only; all are judged."""
    model, first = NaiveBayes(TEXT_ONLY), NaiveBayes(TEXT_ONLY)
    (*_, (judgement, _)) = evaluate(model, batches(4), Feedback("delayed", taught=9))
    for text, label, weight in zip(TEXTS[:9], LABELS, WEIGHTS, strict=False):
        first.learn_one({"text": text}, label, weight)
    assert model.digest() == first.digest()
    assert judgement.n == sum(label is not None for label in LABELS)


@pytest.mark.parametrize("size", [1, 6, 100])
def test_partial_feedback_is_the_same_messages_whatever_the_batches(size: int) -> None:
    """The same seed selects the same messages in batches of any size, about the share that was set."""

    def taught(seed: int, size: int) -> list[bool]:
        feedback = Feedback("partial", share=0.3, seed=seed)
        many = [Batch({"text": ["x"] * size}, ["y"] * size) for _ in range(600 // size)]
        return [label is not None for batch in many for label in feedback.arranged(batch)[0].labels]

    whole, part = taught(5, 600), taught(5, size)
    assert part == whole[: len(part)]
    assert taught(6, 600) != whole
    assert 0.25 < sum(whole) / 600 < 0.35


@pytest.mark.parametrize("mode", ["immediate", "delayed", "partial"])
def test_feedback_of_everything_is_no_feedback_at_all(mode: Mode) -> None:
    """A feedback that passes every label gives the figures and the state of an evaluation without one."""
    plain, model = NaiveBayes(TEXT_ONLY), NaiveBayes(TEXT_ONLY)
    (*_, (expected, _)) = evaluate(plain, batches(7))
    (*_, (found, _)) = evaluate(model, batches(7), Feedback(mode, share=1.0))
    # Compared as text, because the calibration error of too few messages is NaN, which equals nothing.
    assert repr(found.tally.figures(model.classes_)) == repr(expected.tally.figures(plain.classes_))
    assert model.digest() == plain.digest()
