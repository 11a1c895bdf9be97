"""What a flood of new words does to a model with a bound on tokens: to its memory, and to what it knew."""

from __future__ import annotations

import gc
import time

import numpy as np

from streamnb.base.batch import Batch, Label
from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from tests.bench.common import Stream, progress
from tests.bench.kernel_contenders import SPAM, built, shipped
from tests.bench.kernel_growth import BATCH, PER_MESSAGE, Row, memory_of_process, texts_of

MAX_TOKENS = 1_000_000


def by_flood(stream: Stream, largest: int) -> list[Row]:
    """Half of a stream is learned, then `largest` words that come once; the other half is the probe.

    The flood's messages have a hundred words each and labels drawn from the stream's, at random. The budget
    is what the arrays take when the store is full for the first time.
    """
    rng = np.random.default_rng(5)
    model = built(shipped(SPAM), compiled=True, max_tokens=MAX_TOKENS)
    half = len(stream) // 2
    labels: list[Label | None] = [*stream.labels]
    model.step(Batch({"text": stream.texts[:half]}, labels[:half]), score=False)
    before = accuracy(model, stream, half)
    texts_of(np.arange(PER_MESSAGE * BATCH))  # what making texts takes is not the model's
    gc.collect()
    resident, budget = memory_of_process()[0], 0
    most = most_resident = longest_s = 0.0
    for first in range(0, largest, PER_MESSAGE * BATCH):
        texts = texts_of(np.arange(first, min(first + PER_MESSAGE * BATCH, largest)))
        drawn: list[Label | None] = [labels[i] for i in rng.integers(0, half, len(texts))]
        began = time.perf_counter()
        model.step(Batch({"text": texts}, drawn))
        longest_s = max(longest_s, time.perf_counter() - began)
        if not budget and model.state.counts.evicted_tokens:
            budget = bytes_of(model)
        most = max(most, bytes_of(model))
        most_resident = max(most_resident, memory_of_process()[0] - resident)
    progress(f"a flood of {largest:,} words: {model.state.counts.evicted_tokens:,} were evicted")
    return [
        {
            "model": SPAM,
            "vocabulary": largest,
            "max_tokens": MAX_TOKENS,
            "budget, MB": budget / 1e6,
            "arrays / budget": most / budget,
            "resident / budget": most_resident / budget,
            "longest batch, ms": longest_s * 1e3,
            "accuracy before, %": 100 * before,
            "lost, points": 100 * (before - accuracy(model, stream, half)),
        }
    ]


def bytes_of(model: NaiveBayes) -> int:
    """What the arrays of the model's counts take."""
    assert isinstance(model.state.counts, _kernel.CountStore)
    return model.state.counts.nbytes


def accuracy(model: NaiveBayes, stream: Stream, first: int) -> float:
    """The share of messages from `first` on that are judged right, nothing learned."""
    scores = model.step(Batch({"text": stream.texts[first:]}, [None] * (len(stream) - first)), learn=False)
    found = [scores.classes[c] for c in scores.posterior.argmax(axis=1).tolist()]
    right = sum(bool(a == b) for a, b in zip(found, stream.labels[first:], strict=True))
    return right / len(found)
