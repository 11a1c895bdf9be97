"""What a half-life costs and what it is worth: log loss and time a message, beside none, on each stream.

    python tests/bench/forgetting.py [stream ...]

One pass, scored then learned, one process; the processor's time of the steps alone.
It prints and asserts nothing.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parents[2]))

from streamnb import assembly
from streamnb.columns import Batch
from streamnb.config import load
from streamnb.evaluation import evaluate
from tests.streams import lines_of, streams_at_hand

STREAMS = ("sms", "agnews", "tweets", "enron1", "enron2", "enron4", "enron6")
CONFIG = Path(__file__).parents[2] / "configs" / "spam.toml"
HALF_LIVES = (None, 2000, 1000)


def figures(batches: list[Batch], half_life: int | None) -> tuple[float, float]:
    """Log loss, and microseconds a message."""
    changes = [] if half_life is None else [f"forgetting.half_life_messages={half_life}"]
    model = assembly.model(load(CONFIG, changes))
    began = time.process_time()
    for batch in batches:
        model.step(batch)
    spent = time.process_time() - began
    model = assembly.model(load(CONFIG, changes))
    *_, (judgement, _) = evaluate(model, batches)
    return judgement.figures(model.classes).log_loss, 1e6 * spent / judgement.n


def main() -> None:
    """Print the table."""
    print("| log loss, us a message | none | 2000 messages | 1000 messages | time, 1000 / none |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for stream in streams_at_hand(*(sys.argv[1:] or STREAMS)):
        rows = [orjson.loads(line) for line in lines_of(stream)]
        parts = [rows[i : i + 1000] for i in range(0, len(rows), 1000)]
        batches = [Batch({"text": [r["text"] for r in part]}, [r["label"] for r in part]) for part in parts]
        found = [figures(batches, half_life) for half_life in HALF_LIVES]
        cells = [f"{loss:.4f}, {us:.1f}" for loss, us in found]
        print(f"| {stream} | {' | '.join(cells)} | {found[2][1] / found[0][1]:.2f} |")


if __name__ == "__main__":
    main()
