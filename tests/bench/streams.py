"""Accuracy, log loss, ranking and speed over real streams, beside river and vowpalwabbit, in one run.

``python tests/bench/streams.py [STREAM ...] [--data DIR] [--json]``

Every model sees the messages of a file in order, scores each, then learns its label. One judge,
`streamnb.evaluation.Prequential`, computes every figure of every model: a message whose class had never
been learned counts in none; p is not taken below 1e-15; 1-ROCA is the area above the ROC curve in per cent.

The peers are those of `streamnb evaluate --compare`. river reads its own words, as `configs/textbook.toml`
does. vowpalwabbit gets the words of `configs/spam.toml`, each once a message, and is told the classes
beforehand, which it needs; the others meet them in the stream.

Messages per second count from text in memory to scored and learned: reading words is part of it for every
model.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.base.batch import Batch, Label
from streamnb.cli.peers import peer
from streamnb.config import build_model, load_settings
from streamnb.errors import DataError
from streamnb.evaluation import Evaluation, OnlineModel, evaluate
from tests.bench.common import (
    DATA,
    ROOT,
    STREAMS,
    Stream,
    machine,
    markdown,
    progress,
    ratio,
    read_stream,
    stream_path,
    versions,
)

PACKAGES = ("river", "vowpalwabbit", "numpy")
PEERS = {"river": "river", "vw-l5-tokens": "vowpalwabbit -l 5"}
CONFIGS = ("textbook", "spam", "spam-accurate")
BATCH = 2_000  # messages, as the engine polls them


def models(stream: Stream) -> Iterator[tuple[str, OnlineModel]]:
    """What is compared, by the name of its column; each is new."""
    words = load_settings(ROOT / "configs" / "spam.toml")
    for name, title in PEERS.items():
        yield title, peer(name, words, stream.classes)
    for name in CONFIGS:
        yield f"{name}.toml", build_model(load_settings(ROOT / "configs" / f"{name}.toml"))


def judged(stream: Stream, model: OnlineModel) -> Evaluation:
    """A model's figures over a stream."""
    judgements = [judgement for judgement, _ in evaluate(model, batches(stream))]
    return judgements[-1].figures(model.classes_)


def batches(stream: Stream) -> Iterator[Batch]:
    """The messages, as the engine would give them."""
    for i in range(0, len(stream), BATCH):
        labels: list[Label | None] = [*stream.labels[i : i + BATCH]]
        yield Batch({"text": stream.texts[i : i + BATCH]}, labels)


def figures_table(results: dict[str, dict[str, Evaluation]]) -> str:
    """Accuracy, log loss and 1-ROCA, a row a stream and a column a model."""
    names = list(next(iter(results.values())))
    header = ["accuracy / log loss / 1-ROCA %", *names]
    return markdown(
        header, [[stream, *(_cell(row[name]) for name in names)] for stream, row in results.items()]
    )


def _cell(figures: Evaluation) -> str:
    roca = "-" if figures.roca_loss_pct is None else f"{figures.roca_loss_pct:.3f}"
    return f"{figures.accuracy:.4f} / {figures.log_loss:.4f} / {roca}"


def speed_table(results: dict[str, dict[str, Evaluation]]) -> str:
    """Messages per second, and in brackets how many times river's."""
    names = list(next(iter(results.values())))
    rows = []
    for stream, row in results.items():
        base = row["river"].messages_per_s
        speeds = [figures.messages_per_s for figures in row.values()]
        rows.append([stream, *(f"{speed:,.0f} ({ratio(speed / base)})" for speed in speeds)])
    return markdown(["messages/s (times river's)", *names], rows)


def main() -> int:
    """Run, print, return the exit code: 0, also where there is no stream to run over."""
    parser = argparse.ArgumentParser(description="Figures over real streams, beside river and vowpalwabbit.")
    parser.add_argument("streams", nargs="*", metavar="STREAM", help=f"by default {', '.join(STREAMS)}")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of STREAM.jsonl.gz (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of Markdown")
    options = parser.parse_args()
    wanted = options.streams or list(STREAMS)
    found = [name for name in wanted if stream_path(options.data, name).is_file()]
    for name in wanted:
        if name not in found:
            progress(f"There is no stream {name}: looked for {stream_path(options.data, name)}.")
    if not found:
        print(f"No stream to run over: looked in {options.data} for {', '.join(wanted)}.")
        return 0
    on, with_versions = machine(), versions(PACKAGES)
    results: dict[str, dict[str, Evaluation]] = {}
    for name in found:
        try:
            stream = read_stream(options.data, name)
        except DataError as error:
            print(error, file=sys.stderr)
            return error.exit_code
        row = results[name] = {}
        for title, model in models(stream):
            row[title] = judged(stream, model)
            progress(f"{name}, {title}: {_cell(row[title])}")
    if options.json:
        plain = {name: {title: asdict(one) for title, one in row.items()} for name, row in results.items()}
        print(orjson.dumps({"machine": on, "versions": with_versions, "streams": plain}).decode())
        return 0
    print(on)
    print(", ".join(f"{package} {number}" for package, number in with_versions.items()))
    print(f"\n{figures_table(results)}\n\n{speed_table(results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
