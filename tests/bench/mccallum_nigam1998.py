"""Accuracy against vocabulary size for the Bernoulli and the multinomial model (McCallum and Nigam 1998).

``python tests/bench/mccallum_nigam1998.py [STREAM ...] [--data DIR] [--draws N]``

What they found: the Bernoulli model does best with few words and falls off with many, where every absent word
counts; the multinomial is better still, and with all of them. Here: words of two letters and more, chosen by
their mutual information with the class among two thirds of the messages, which are learned; the rest are
judged. Mean accuracy of N random draws; both add one, and the class prior is learned.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

import numpy as np

from streamnb.base.batch import Batch
from streamnb.evaluation import predictions
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Bernoulli, Multinomial
from streamnb.naive_bayes.event_models.smoothing import Beta, Laplace
from streamnb.naive_bayes.features.readers import Terms, Words
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.view import View
from tests.bench.common import DATA, Stream, machine, markdown, progress, read_stream
from tests.bench.selection import Presence, information_gain

SIZES = (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
MODELS = {
    "Bernoulli": View("words", Terms("terms"), Bernoulli(Beta(1.0, 1.0))),
    "multinomial": View("words", Terms("terms"), Multinomial(Laplace(1.0), weight="counts")),
}


def accuracies(stream: Stream, seed: int) -> dict[str, list[float]]:
    """Of each model, at each size that there are words for and at all of them."""
    tokenizer = Tokenizer(rule="words")
    bags = [Words().read(tokenizer.read(text), tokenizer) for text in stream.texts]
    order = list(range(len(stream)))
    Random(seed).shuffle(order)
    learned, judged = order[: 2 * len(order) // 3], order[2 * len(order) // 3 :]
    presence = Presence.of(bags, stream.labels)
    counts, messages = presence.counts(learned)
    ranked = np.argsort(-information_gain(counts, messages), kind="stable")
    ranked = ranked[counts[:, ranked].sum(axis=0) > 0]
    found: dict[str, list[float]] = {name: [] for name in MODELS}
    for size in (*(size for size in SIZES if size < len(ranked)), len(ranked)):
        chosen = {presence.words[j] for j in ranked[:size]}
        terms = [{word: n for word, n in bag.items() if word in chosen} for bag in bags]
        for name, view in MODELS.items():
            model = NaiveBayes([view], head="product")
            model.step(
                Batch({"terms": [terms[i] for i in learned]}, [stream.labels[i] for i in learned]),
                score=False,
            )
            scores = model.step(Batch({"terms": [terms[i] for i in judged]}, [None] * len(judged)))
            right = [p == stream.labels[i] for p, i in zip(predictions(scores), judged, strict=True)]
            found[name].append(sum(right) / len(right))
    return found


def main() -> None:
    """Print two rows a stream, and the size at which each model is best."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("streams", nargs="*", metavar="STREAM", default=["agnews", "enron1", "enron6"])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of STREAM.jsonl.gz (%(default)s)")
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    titles = [*(f"{size:,}" for size in SIZES), "all"]
    rows = []
    for name in options.streams:
        stream = read_stream(options.data, name)
        draws = [accuracies(stream, seed) for seed in range(options.draws)]
        for model in MODELS:
            shortest = min(len(draw[model]) for draw in draws)
            curve = np.mean([[*draw[model][: shortest - 1], draw[model][-1]] for draw in draws], axis=0)
            at = [*titles[: shortest - 1], "all"]
            cells = dict(zip(at, (f"{accuracy:.4f}" for accuracy in curve), strict=True))
            best = at[int(curve.argmax())]
            rows.append([name, model, *(cells.get(title, "-") for title in titles), best])
            progress(f"{name}, {model}: best at {best}")
    print(f"{machine()}\n\n{markdown(['accuracy at', 'model', *titles, 'best at'], rows, texts=2)}")


if __name__ == "__main__":
    main()
