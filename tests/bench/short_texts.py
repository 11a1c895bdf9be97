"""Accuracy on short texts of classes about as frequent, beside plain naive Bayes.

``python tests/bench/short_texts.py [--data DIR]``

Each half of the tweets as a stream of its own, the headlines of pairs of agnews's four classes, and all four;
none of them chose a constant of the head. Naive Bayes stands twice: Laplace 1 on the words of `spam.toml`,
and `textbook.toml`. After ours the points ahead of the better of the two and McNemar's p; in the last row
the streams that share no message are taken together.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.cli.peers import peer
from streamnb.config import build_model, load_settings
from streamnb.evaluation import Contender, Prequential, compare
from streamnb.evaluation.intervals import mcnemar
from tests.bench.common import DATA, ROOT, Stream, machine, markdown, progress, read_stream
from tests.bench.posterior import ACCURATE, FAST, MNB
from tests.bench.streams import batches

TEXTBOOK = "textbook.toml"
PAIRS = (("business", "scitech"), ("sports", "world"), ("business", "world"), ("sports", "scitech"))
APART = ("tweets, first half", "tweets, second half", "business or scitech", "sports or world")


def short_streams(data: Path) -> Iterator[Stream]:
    """Halves of the tweets, then headlines."""
    tweets, news = read_stream(data, "tweets"), read_stream(data, "agnews")
    half = len(tweets) // 2
    yield Stream(APART[0], tweets.texts[:half], tweets.labels[:half])
    yield Stream(APART[1], tweets.texts[half:], tweets.labels[half:])
    headlines = [text.partition("\n")[0] for text in news.texts]
    for pair in (*PAIRS, tuple(news.classes)):
        rows = [i for i, label in enumerate(news.labels) if label in pair]
        name = " or ".join(pair) if len(pair) == 2 else "all four"
        yield Stream(name, [headlines[i] for i in rows], [news.labels[i] for i in rows])


Right = dict[str, NDArray[np.bool_]]


def right(stream: Stream) -> Right:
    """Which messages each model was right about; of each class all but the first."""
    fast = load_settings(ROOT / "configs" / FAST)
    models = {MNB: peer(MNB, fast, stream.classes)} | {
        name: build_model(load_settings(ROOT / "configs" / name)) for name in (TEXTBOOK, FAST, ACCURATE)
    }
    contenders = [Contender(name, model, Prequential()) for name, model in models.items()]
    for _ in compare(contenders, batches(stream)):
        pass
    return {one.name: one.judgement.outcomes().correct for one in contenders}


def row(name: str, found: Right) -> list[str]:
    """A stream's accuracies."""
    shares = {model: float(hits.mean()) for model, hits in found.items()}
    better = max((MNB, TEXTBOOK), key=shares.__getitem__)
    cells = [f"{shares[model]:.4f}" for model in (MNB, TEXTBOOK)]
    for model in (FAST, ACCURATE):
        ours, theirs = found[model], found[better]
        p = mcnemar(int((ours & ~theirs).sum()), int((theirs & ~ours).sum()))
        cells.append(f"{shares[model]:.4f} ({100 * (shares[model] - shares[better]):+.1f}, p {p:.2g})")
    return [name, *cells]


def main() -> None:
    """Print a row a stream, and one of four together."""
    parser = argparse.ArgumentParser(description="Accuracy on short texts, beside plain naive Bayes.")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of STREAM.jsonl.gz (%(default)s)")
    rows = []
    apart: list[Right] = []
    for stream in short_streams(parser.parse_args().data):
        found = right(stream)
        rows.append(row(stream.name, found))
        progress(" ".join(rows[-1]))
        if stream.name in APART:
            apart.append(found)
    together = {model: np.concatenate([found[model] for found in apart]) for model in apart[0]}
    rows.append(row("the first four together", together))
    print(f"{machine()}\n\n{markdown(['accuracy', MNB, TEXTBOOK, FAST, ACCURATE], rows)}")


if __name__ == "__main__":
    main()
