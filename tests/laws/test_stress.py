"""The calibrated head cannot be pushed out of its bounds, and overcomes what is hard about a stream."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb.base.batch import Batch, Label, Scores
from streamnb.cli.demo.mailbox import mailbox
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.model.view import TEXT_ONLY
from streamnb.naive_bayes.posterior.calibrated_head import (
    EVIDENCE_RATE,
    EVIDENCE_START,
    META_RATE,
    META_START,
    NOISE_BOUNDS,
    OFFSET_RATE,
    TRUST_RATE,
    TRUST_START,
)

WORDS = ["win", "money", "lunch", "noon", "prize", "rare", "neurips", "!"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
LAST = 300
Mail = list[tuple[str, str]]


def spiteful(model: NaiveBayes, text: str, classes: list[str]) -> str:
    """The label that surprises most: a class that is not known yet, or else the least likely."""
    posterior = model.predict_proba_one({"text": text})
    return min(classes, key=lambda label: posterior.get(label, -1.0))


@given(
    messages=st.lists(st.tuples(TEXTS, st.sampled_from([1.0, 0.1, 1e9])), min_size=1, max_size=150),
    n_classes=st.integers(2, 4),
)
@settings(max_examples=60, deadline=None)
def test_no_labels_push_the_head_out_of_its_bounds(messages: list[tuple[str, float]], n_classes: int) -> None:
    """After T labels a weight has moved by at most rate * sqrt(T ln G), G its sum of squared gradients.

    For a step is rate * h / sqrt(G), and the sum of h^2 / G over all steps is at most ln G, but for what
    rounding loses of G. The labels are the worst there are: each the one the model held least likely.
    """
    model = NaiveBayes(TEXT_ONLY)
    head = model.state.head
    assert head is not None
    classes = [f"class {c}" for c in range(n_classes)]
    for text, weight in messages:
        model.learn_one({"text": text}, spiteful(model, text, classes), weight)
        assert NOISE_BOUNDS[0] <= head.eta <= NOISE_BOUNDS[1]
        posterior = model.predict_proba_one({"text": text})
        assert math.fsum(posterior.values()) == pytest.approx(1.0, abs=1e-9)
        assert all(0.0 < p <= 1.0 for p in posterior.values())  # eps keeps every learned class possible
    starts = [EVIDENCE_START, 0.0, 0.0, 0.0, META_START, META_START, TRUST_START]
    steps = len(messages)

    def bound(rate: float, squares: float) -> float:
        return rate * math.sqrt(steps * (math.log(squares) + steps * 2.0**-52)) + 1e-12

    rates = [EVIDENCE_RATE] * 4 + [META_RATE] * 2 + [TRUST_RATE]
    for weight, start, rate, squares in zip(head.weights, starts, rates, head.weight_squares, strict=True):
        assert abs(weight - start) <= bound(rate, squares)
    assert min(*head.weights[:4], head.weights[6]) >= 0.0  # or 500 wrong labels in a row turn the words round
    for offset, squares in zip(head.offsets, head.offset_squares, strict=True):
        assert squares <= 1.0 + steps  # the gradient of an offset is at most 1
        assert abs(offset) <= bound(OFFSET_RATE, squares)


def mails(n: int) -> Mail:
    """What is labelled in the demo's mailbox."""
    return [(str(mail["text"]), str(mail["label"])) for mail in mailbox(0, n) if mail["label"] is not None]


def step(model: NaiveBayes, stream: Mail) -> Scores:
    """Scores of a stream that is learned on the way."""
    labels: list[Label | None] = [label for _, label in stream]
    return model.step(Batch({"text": [text for text, _ in stream]}, labels))


def losses(scores: Scores, stream: Mail) -> list[float]:
    """The log loss of each of the last messages."""
    index = {str(label): c for c, label in enumerate(scores.classes)}
    rows = range(len(stream) - LAST, len(stream))
    return [-math.log(scores.posterior[i, index[stream[i][1]]]) for i in rows]


def test_wrong_labels_in_a_row_are_overcome() -> None:
    """After 200 labels the wrong way round, the last messages are told apart as if there had been none."""
    right = mails(3000)
    other = {"ham": "spam", "spam": "ham"}
    wrong = [(text, other[label] if 1000 <= i < 1200 else label) for i, (text, label) in enumerate(right)]
    clean, misled = (losses(step(NaiveBayes(TEXT_ONLY), stream), right) for stream in (right, wrong))
    assert np.mean(misled) < np.mean(clean) + 0.02


def test_labels_that_are_wrong_at_random_become_the_share_that_is_believed_wrong() -> None:
    """With a tenth of the labels wrong: eps / 2 of the posterior goes to the other of two classes."""
    random, other = Random(0), {"ham": "spam", "spam": "ham"}
    noisy = [(text, other[label] if random.random() < 0.1 else label) for text, label in mails(5000)]
    model = NaiveBayes(TEXT_ONLY)
    scores = step(model, noisy)
    assert model.state.head is not None
    eps = 1.0 / (1.0 + math.exp(-model.state.head.eta))
    assert eps / 2 == pytest.approx(0.1, abs=0.02)
    settled = scores.posterior[2000:]
    labels = np.array([scores.classes.index(label) for _, label in noisy])[2000:]
    right = labels == settled.argmax(axis=1)
    assert settled.max(axis=1).mean() == pytest.approx(right.mean(), abs=0.02)


@given(order=st.permutations(range(4)))
@settings(max_examples=5, deadline=None)
def test_merged_parts_score_as_one_that_learned_all(order: list[int]) -> None:
    """Of two models that learned every other message: the counts are the whole's, the head near to it."""
    stream = mails(2400)
    first, rest = stream[:2000], stream[2000:]
    whole, parts = NaiveBayes(TEXT_ONLY), [NaiveBayes(TEXT_ONLY) for _ in range(4)]
    step(whole, first)
    for i, part in enumerate(parts):
        step(part, first[i::4])
    merged = parts[order[0]]
    for i in order[1:]:
        merged.merge(parts[i])
    assert merged.learned_ == whole.learned_
    assert merged.digest()["order_free"] == whole.digest()["order_free"]
    assert np.mean(losses(step(merged, rest), rest)) < np.mean(losses(step(whole, rest), rest)) + 0.02


@pytest.mark.parametrize("delay", [1, 100])
def test_late_labels_are_learned_as_those_in_time_are(delay: int) -> None:
    """Scored when they come and learned later: the sums are those of any order."""
    stream = mails(800)
    late, prompt = NaiveBayes(TEXT_ONLY), NaiveBayes(TEXT_ONLY)
    step(prompt, stream)
    for i in range(len(stream) + delay):
        if i < len(stream):
            late.score_one({"text": stream[i][0]})
        if i >= delay:
            text, label = stream[i - delay]
            late.learn_one({"text": text}, label)
    assert late.digest() == prompt.digest()
