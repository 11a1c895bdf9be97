"""Two models that learned half a stream each, merged, beside one that learned both halves.

``python tests/bench/halves.py [STREAM ...] [--config NAME] [--data DIR] [--json]``

The first 30, 40, 50, 60 and 70 % of a stream are learned, and the rest is scored and learned message by
message; the losses of the five rests are added, because a single one hangs on a handful of messages. The
part to learn is halved in three ways: at its middle, every other message, and by drawing each message's half
(four draws). A ratio is the loss after merging two models over that of one model that learned the same halves
one after the other; where the halves are mixed in time, over the mean of both orders.

The last columns show what is no fault of the merge: the loss of the first half's model alone, and how far one
model's loss moves if it learns every other message first instead of in order.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.base.batch import Batch
from streamnb.config import Settings, build_model, load_settings
from streamnb.naive_bayes import NaiveBayes
from tests.bench.common import DATA, ROOT, STREAMS, Stream, machine, markdown, progress, read_stream

BATCH = 1_000  # messages
LEARNED = (0.3, 0.4, 0.5, 0.6, 0.7)  # of the stream
DRAWS = 4
AIM = 1.03
P_MIN = 1e-15


class Halves(NamedTuple):
    """A stream's figures: one model's log loss, and ratios to the loss of one model."""

    log_loss: float
    at_the_middle: float
    every_other: float
    drawn: float
    first_half_alone: float
    other_order: float


def losses(model: NaiveBayes, texts: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    """Score and learn messages; return each one's loss, NaN where its class was not known."""
    found = np.full(len(labels), np.nan)
    for begin in range(0, len(labels), BATCH):
        part = labels[begin : begin + BATCH]
        scores = model.step(Batch({"text": texts[begin : begin + BATCH]}, [*part]))
        place = {label: c for c, label in enumerate(scores.classes)}
        for i, label in enumerate(part):
            c = place[label]
            if c < scores.n_classes[i]:
                found[begin + i] = -math.log(max(scores.posterior[i][c], P_MIN))
    return found


def learned(stream: Stream, rows: Sequence[int], settings: Settings) -> NaiveBayes:
    """Return a new model that learned these messages in this order."""
    model = build_model(settings)
    for begin in range(0, len(rows), BATCH):
        part = rows[begin : begin + BATCH]
        batch = Batch({"text": [stream.texts[i] for i in part]}, [stream.labels[i] for i in part])
        model.step(batch, score=False)
    return model


def merged(stream: Stream, halves: Sequence[Sequence[int]], settings: Settings) -> NaiveBayes:
    """Return the first half's model with the second half's merged into it."""
    first, second = (learned(stream, half, settings) for half in halves)
    first.merge(second)
    return first


def splits(n: int) -> Iterator[tuple[str, list[list[int]]]]:
    """Each way to halve the first n messages, by the name of its column."""
    yield "at_the_middle", [[*range(n // 2)], [*range(n // 2, n)]]
    yield "every_other", [[*range(0, n, 2)], [*range(1, n, 2)]]
    for seed in range(DRAWS):
        draw = Random(seed)
        first = {i for i in range(n) if draw.random() < 0.5}
        yield "drawn", [sorted(first), [i for i in range(n) if i not in first]]


def measure(stream: Stream, settings: Settings) -> Halves:
    """Return a stream's figures, summed over what is learned first."""
    ours: dict[str, list[float]] = {}
    theirs: dict[str, list[float]] = {}
    rests = 0
    for share in LEARNED:
        n = int(len(stream) * share)
        texts, labels = stream.texts[n:], stream.labels[n:]

        def of(model: NaiveBayes, texts: list[str] = texts, labels: list[str] = labels) -> float:
            return float(np.nansum(losses(model, texts, labels)))

        rests += len(labels)
        one = of(learned(stream, range(n), settings))
        theirs.setdefault("log_loss", []).append(one)
        ours.setdefault("first_half_alone", []).append(of(learned(stream, range(n // 2), settings)))
        for name, halves in splits(n):
            ours.setdefault(name, []).append(of(merged(stream, halves, settings)))
            orders = [halves] if name == "at_the_middle" else [halves, halves[::-1]]
            both = [of(learned(stream, [*a, *b], settings)) for a, b in orders]
            theirs.setdefault(name, []).append(math.fsum(both) / len(both))
    total = {name: math.fsum(values) for name, values in ours.items()}
    base = {name: math.fsum(values) for name, values in theirs.items()}
    return Halves(
        log_loss=base["log_loss"] / rests,
        at_the_middle=total["at_the_middle"] / base["at_the_middle"],
        every_other=total["every_other"] / base["every_other"],
        drawn=total["drawn"] / base["drawn"],
        first_half_alone=total["first_half_alone"] / base["log_loss"],
        other_order=base["every_other"] / base["log_loss"],
    )


def main() -> None:
    """Print a row a stream."""
    parser = argparse.ArgumentParser(description="Two halves merged, beside one stream.")
    parser.add_argument("streams", nargs="*", metavar="STREAM", help=f"by default {', '.join(STREAMS)}")
    parser.add_argument("--config", default="spam", help="of the folder configs (%(default)s)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of STREAM.jsonl.gz (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of Markdown")
    options = parser.parse_args()
    settings = load_settings(ROOT / "configs" / f"{options.config}.toml")
    found: dict[str, Halves] = {}
    for name in options.streams or STREAMS:
        found[name] = measure(read_stream(options.data, name), settings)
        progress(f"{name}: {found[name]}")
    if options.json:
        plain = {name: each._asdict() for name, each in found.items()}
        print(orjson.dumps({"machine": machine(), "config": options.config, "streams": plain}).decode())
        return
    header = [
        f"log loss, {options.config}.toml",
        "one model",
        "merged: at the middle",
        "every other",
        "drawn",
        "within 3 %",
        "first half alone",
        "every other, not merged",
    ]
    rows = [
        [
            name,
            f"{each.log_loss:.4f}",
            *(f"{ratio:.3f}" for ratio in each[1:4]),
            "yes" if max(each[1:4]) <= AIM else "no",
            *(f"{ratio:.3f}" for ratio in each[4:]),
        ]
        for name, each in found.items()
    ]
    print(f"{machine()}\n\n{markdown(header, rows)}")


if __name__ == "__main__":
    main()
