"""Scores of one batch from those of its pieces."""

from __future__ import annotations

from streamnb.base import Batch, Scores
from streamnb.naive_bayes import NaiveBayes


def test_joined_scores_keep_the_explanation_of_each_message() -> None:
    """Also if all messages of the first piece came before there was anything to explain."""
    model = NaiveBayes(explain=1)
    batches = [Batch({"text": ["win"] * 2}, labels) for labels in (["spam", "ham"], [None, None])]
    parts = [model.step(batch) for batch in batches]
    assert parts[0].explanations is None
    why = Scores.joined(parts).explanations
    assert why is not None
    assert why == [None, None, *(parts[1].explanations or [])]
    assert None not in why[2:]
    last_first = Scores.joined(parts[::-1]).explanations
    assert last_first == [*why[2:], None, None]
