"""What trust costs: the speed of a model that learns it beside the same one that does not, in one run.

``python tests/bench/trust_speed.py [STREAM ...] [--rounds N] [--data DIR] [--json]``

Each model passes over each stream, from texts in memory to scored and learned, in batches of 1,000, without
trust and with it in turn. Time is the processor's. A ratio is the median over the rounds of the ratio within
each round, so that a neighbour who comes and goes does not decide it. `spam-accurate.toml` is measured as it
was when the aim was set: without the view of shapes.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.base.batch import Batch
from streamnb.naive_bayes import NaiveBayes, Shapes
from tests.bench.common import DATA, STREAMS, Stream, machine, markdown, progress, read_stream
from tests.bench.kernel_contenders import processor_seconds, shipped

BATCH = 1_000
AIMS = {"spam.toml": 0.8, "spam-accurate.toml": 0.75}
"""Configurations, and the speed with trust over that without which is aimed at."""


class Cost(NamedTuple):
    """Microseconds a message without and with trust, and the speed with it over that without."""

    without_us: float
    trusting_us: float
    speed: float


def seconds(stream: Stream, name: str, *, trust: bool) -> float:
    """Return the time of one pass by a new model."""
    settings = shipped(name)
    views = [view for view in settings.views if not isinstance(view.reader, Shapes)]
    model = NaiveBayes(views, head=settings.model.head, tokenizer=settings.tokens, trust=trust)
    gc.collect()
    began = processor_seconds()
    for i in range(0, len(stream), BATCH):
        model.step(Batch({"text": stream.texts[i : i + BATCH]}, [*stream.labels[i : i + BATCH]]))
    return processor_seconds() - began


def cost(stream: Stream, name: str, rounds: int) -> Cost:
    """Return what trust costs a configuration over a stream."""
    found = [[seconds(stream, name, trust=trust) for trust in (False, True)] for _ in range(rounds)]
    without, trusting = (median(column) * 1e6 / len(stream) for column in zip(*found, strict=True))
    return Cost(without, trusting, median(a / b for a, b in found))


def cells(costs: Sequence[Cost], aim: float) -> list[str]:
    """A stream's cells of one configuration; of the last row its mean, which is compared with the aim."""
    if len(costs) == 1:
        (one,) = costs
        return [f"{one.without_us:.2f} -> {one.trusting_us:.2f}", f"{one.speed:.2f}"]
    mean = math.exp(math.fsum(math.log(one.speed) for one in costs) / len(costs))
    least = min(one.speed for one in costs)
    return [f"least {least:.2f}, aimed at {aim:.2f}", f"{mean:.2f}"]


def main() -> None:
    """Print a row a stream."""
    parser = argparse.ArgumentParser(description="What trust costs.")
    parser.add_argument("streams", nargs="*", metavar="STREAM", help=f"by default {', '.join(STREAMS)}")
    parser.add_argument("--rounds", type=int, default=9, help="the median counts (%(default)s)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of STREAM.jsonl.gz (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of Markdown")
    options = parser.parse_args()
    found: dict[str, dict[str, Cost]] = {}
    for stream_name in options.streams or STREAMS:
        stream = read_stream(options.data, stream_name)
        found[stream_name] = {name: cost(stream, name, options.rounds) for name in AIMS}
        progress(f"{stream_name}: {found[stream_name]}")
    if options.json:
        plain = {
            stream: {name: each._asdict() for name, each in row.items()} for stream, row in found.items()
        }
        print(orjson.dumps({"machine": machine(), "aims": AIMS, "streams": plain}).decode())
        return
    header = ["a message without and with trust, us"]
    for name in AIMS:
        without_shapes = ", no shapes" if name == "spam-accurate.toml" else ""
        header += [f"{name}{without_shapes}", "speed, with / without"]
    rows = [
        [stream, *(cell for name, aim in AIMS.items() for cell in cells([row[name]], aim))]
        for stream, row in found.items()
    ]
    if len(found) > 1:
        of_all = {name: [row[name] for row in found.values()] for name in AIMS}
        rows.append(["all", *(cell for name, aim in AIMS.items() for cell in cells(of_all[name], aim))])
    print(f"{machine()}\n\n{markdown(header, rows)}")


if __name__ == "__main__":
    main()
