"""Processor time of the estimators beside river's, one message scored and then learned; ratios of one run.

``python tests/bench/estimators.py [--messages N] [--runs R]``

Bernoulli over vocabularies from 1,000 to 1,000,000 words (river up to 50,000, where a message takes it tens
of milliseconds), messages of 50 words; Gaussian and categorical over fields. Times are medians of messages,
after the vocabulary was learned; the runs take the models in turn. River has no categorical model: the
nearest is its multinomial over fields made 1-of-k, which is one draw a field too.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from river import naive_bayes, preprocessing

from streamnb.naive_bayes.estimators import BernoulliNB, CategoricalNB, GaussianNB
from tests.bench.common import machine, markdown, progress

VOCABULARIES = (1_000, 10_000, 50_000, 1_000_000)
RIVER_WORDS_MAX = 50_000
Peers: Any = naive_bayes


def microseconds(model: Any, messages: list[dict[str, Any]]) -> float:  # noqa: ANN401 - ours or river's
    """Of the median message, scored and then learned."""
    times = []
    for i, x in enumerate(messages):
        begin = time.process_time_ns()
        model.predict_proba_one(x)
        model.learn_one(x, "ab"[i % 2])
        times.append((time.process_time_ns() - begin) / 1e3)
    return median(times)


def bernoulli(model: Any, words: int, messages: int) -> float:  # noqa: ANN401 - ours or river's
    """Two classes that between them have met all words."""
    random = Random(words)
    for first in range(0, words, 1000):
        model.learn_one({f"w{i}": 1 for i in range(first, min(words, first + 1000))}, "ab"[first // 1000 % 2])
    model.learn_one({"w0": 1}, "b")
    drawn = [{f"w{random.randrange(words)}": 1 for _ in range(50)} for _ in range(messages)]
    return microseconds(model, drawn)


def fields(model: Any, messages: int, *, categories: bool) -> float:  # noqa: ANN401 - ours or river's
    """Ten fields, two classes."""
    random = Random(0)
    drawn: list[dict[str, Any]] = [
        {f"f{k}": random.randrange(5) if categories else random.gauss(0.0, 1.0) for k in range(10)}
        for _ in range(messages)
    ]
    return microseconds(model, drawn)


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    n = arguments.messages
    times: dict[str, list[float]] = {}
    for run in range(arguments.runs):
        for words in VOCABULARIES:
            times.setdefault(f"ours {words}", []).append(bernoulli(BernoulliNB(), words, n))
            if words <= RIVER_WORDS_MAX:
                found = bernoulli(Peers.BernoulliNB(), words, max(3, n // (1 + words // 1000)))
                times.setdefault(f"river {words}", []).append(found)
            progress(f"run {run + 1} of {arguments.runs}: {words} words")
        times.setdefault("GaussianNB", []).append(fields(GaussianNB(), 10 * n, categories=False))
        times.setdefault("river GaussianNB", []).append(fields(Peers.GaussianNB(), 10 * n, categories=False))
        times.setdefault("CategoricalNB", []).append(fields(CategoricalNB(), 10 * n, categories=True))
        nearest: Any = preprocessing.OneHotEncoder() | Peers.MultinomialNB()
        times.setdefault("river CategoricalNB", []).append(fields(nearest, 10 * n, categories=True))
    us = {name: median(found) for name, found in times.items()}
    rows = []
    for words in VOCABULARIES:
        ours, theirs = us[f"ours {words}"], us.get(f"river {words}")
        figures = [f"{theirs:,.0f}", f"{theirs / ours:,.0f}"] if theirs is not None else ["-", "-"]
        rows.append([f"{words:,}", f"{ours:,.0f}", *figures, f"{ours / us['ours 1000']:.2f}"])
    header = ["BernoulliNB, words", "us", "river, us", "river / ours", "times 1,000 words"]
    print(f"{machine()}\n\n{markdown(header, rows, texts=0)}\n")
    rows = [
        [name, f"{us[name]:,.0f}", f"{us[f'river {name}']:,.0f}", f"{us[f'river {name}'] / us[name]:,.1f}"]
        for name in ("GaussianNB", "CategoricalNB")
    ]
    print(markdown(["ten fields", "us", "river, us", "river / ours"], rows))


if __name__ == "__main__":
    main()
