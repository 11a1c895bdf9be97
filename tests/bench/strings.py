"""What a view of strings is worth beside words, what it costs, and what a bound on its rows takes away.

``python tests/bench/strings.py [STREAM ...] [--data DIR]``

Each stream is scored and learned message by message by words alone, by words with strings of order 5 and of
order 4, by words with strings in 2^18 rows of strings, and by `spam-accurate.toml` and `spam-best.toml`. In
brackets: the ratio of log loss to the same views without strings. The cost is processor time per message,
from the text to scored and learned, the least of two runs.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import NamedTuple

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.config import build_model, load_settings
from streamnb.evaluation import Evaluation
from streamnb.naive_bayes import NaiveBayes, Strings, View, Words
from tests.bench.common import DATA, ROOT, STREAMS, Stream, machine, markdown, progress, read_stream
from tests.bench.streams import batches, judged

ROWS_OF_STRINGS = 1 << 18
WORDS = View("words", Words())
BESIDE = {
    "order 5": "words",
    "order 4": "words",
    "2^18 rows": "words",
    "spam-best.toml": "spam-accurate.toml",
}
"""The models with strings, and what each is compared with."""


class Row(NamedTuple):
    """A model's figures over a stream, its microseconds per message and its rows."""

    figures: Evaluation
    cost_us: float
    rows: int


def model_of(name: str, rows: int) -> NaiveBayes:
    """Return an empty model; `rows` is how many rows the words need."""
    if name.endswith(".toml"):
        return build_model(load_settings(ROOT / "configs" / name))
    strings = View("strings", Strings(order=4 if name == "order 4" else 5))
    return NaiveBayes(
        [WORDS] if name == "words" else [WORDS, strings],
        max_tokens=ROWS_OF_STRINGS + rows if name == "2^18 rows" else None,
    )


def run(stream: Stream) -> dict[str, Row]:
    """Run all models over a stream."""
    found: dict[str, Row] = {}
    for name in ("words", "order 5", "order 4", "2^18 rows", "spam-accurate.toml", "spam-best.toml"):
        rows = found["words"].rows if found else 0
        costs = []
        for _ in range(2):
            model = model_of(name, rows)
            start = time.process_time()
            for batch in batches(stream):
                model.step(batch)
            costs.append(1e6 * (time.process_time() - start) / len(stream))
        figures = judged(stream, model_of(name, rows))
        found[name] = Row(figures, min(costs), len(model.state.counts))
        progress(f"{stream.name} {name} {figures.log_loss:.4f} {min(costs):.1f} us")
    return found


def cell(found: dict[str, Row], name: str) -> str:
    """A model's accuracy, log loss, 1-ROCA and cost."""
    figures, cost_us, _ = found[name]
    roca = "-" if figures.roca_loss_pct is None else f"{figures.roca_loss_pct:.3f}"
    text = f"{figures.accuracy:.4f} / {figures.log_loss:.4f} / {roca}"
    if name in BESIDE:
        text += f" ({figures.log_loss / found[BESIDE[name]].figures.log_loss:.3f})"
    return f"{text}, {cost_us:.1f} us"


def main() -> None:
    """Print a row a stream, and the geometric means of the ratios."""
    parser = argparse.ArgumentParser(description="What a view of strings is worth, and costs.")
    parser.add_argument("streams", nargs="*", metavar="STREAM", help=", ".join(STREAMS))
    parser.add_argument("--data", type=Path, default=DATA, help="folder of STREAM.jsonl.gz (%(default)s)")
    arguments = parser.parse_args()
    found = {name: run(read_stream(arguments.data, name)) for name in arguments.streams or STREAMS}
    models = list(next(iter(found.values())))
    rows = [[name, *(cell(each, model) for model in models)] for name, each in found.items()]
    means = []
    for model in models:
        ratios = [
            each[model].figures.log_loss / each[BESIDE.get(model, model)].figures.log_loss
            for each in found.values()
        ]
        means.append(f"{math.exp(math.fsum(map(math.log, ratios)) / len(ratios)):.3f}")
    rows.append(["mean ratio", *means])
    print(f"{machine()}\n\n{markdown(['accuracy / log loss / 1-ROCA %', *models], rows)}")
    counts = [[name, *(f"{each[model].rows:,}" for model in models)] for name, each in found.items()]
    print(f"\n{markdown(['rows', *models], counts)}")


if __name__ == "__main__":
    main()
