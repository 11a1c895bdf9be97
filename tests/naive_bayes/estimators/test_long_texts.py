"""Texts of any length: the estimators read them whole, and a model of views flags what it cuts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from streamnb import TEXT_ONLY, BernoulliNB, ComplementNB, MultinomialNB, NaiveBayes
from streamnb.base import Batch, Flag
from streamnb.naive_bayes.model.message_features import read_message

TEXTS = (" ".join(f"w{i}" for i in range(70_000)) + " last", "x" * 100_000 + " short")


@pytest.mark.parametrize("estimator", [MultinomialNB, ComplementNB, BernoulliNB])
def test_N6_an_estimator_reads_a_text_whole(estimator: Any) -> None:  # noqa: ANN401
    """It cut texts at 65,536 tokens and words at 64 characters, where river and scikit-learn do not."""
    model = estimator()
    for text, label in zip(TEXTS, "ab", strict=True):
        model.learn_one(text, label)
    words = {word for text in TEXTS for word in re.findall(r"\w\w+", text)}
    assert model.n_terms == len(words)
    counts = estimator()
    for text, label in zip(TEXTS, "ab", strict=True):
        counts.learn_one(dict.fromkeys(re.findall(r"\w\w+", text), 1), label)
    assert model.predict_proba_one("last x") == counts.predict_proba_one({"last": 1})
    assert model.digest() == counts.digest()


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("compiled", [None, False])
def test_N6_a_model_of_views_flags_a_text_that_it_cuts(text: str, *, compiled: bool | None) -> None:
    """Learned or only scored; the docstring names the limits and the flag."""
    model = NaiveBayes(TEXT_ONLY, compiled=compiled)
    for labels in (["a"], [None]):
        flags = model.step(Batch({"text": [text]}, labels)).flags
        assert flags.tolist() == [Flag.TRUNCATED]
    assert read_message(model.state.views, model.state.tokenizer, {"text": [text]}, 0).flags == Flag.TRUNCATED
    assert all(word in str(NaiveBayes.__doc__) for word in ("65,536", "64 characters", "`TRUNCATED`"))
