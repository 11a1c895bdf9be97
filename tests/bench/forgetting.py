"""What a half-life costs and what it is worth, beside none: figures and time a message, and the way back.

    python tests/bench/forgetting.py [stream ...]

One pass, scored then learned, one process; the processor's time of the steps alone, the least of three passes
in turn. The second table is of streams whose two classes change places at half-way: how many messages until
the accuracy over two hundred is above .9 and stays there, and the accuracy of the last five hundred.
It prints and asserts nothing.
"""

from __future__ import annotations

import math
import random
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import orjson

sys.path.insert(0, str(Path(__file__).parents[2]))

from streamnb.base.batch import Batch
from streamnb.config import build_model, load_settings
from streamnb.evaluation import Evaluation, Outcomes, Prequential
from tests.bench.common import STREAMS, machine, markdown
from tests.support.streams import lines_of, streams_at_hand

CONFIGS = Path(__file__).parents[2] / "configs"
HALF_LIVES = (None, 2000, 1000)
OF_CHANGING = (None, 2000, 1000, 500)
CHANGING = ("sms", "enron1")
PASSES = 3
WINDOW, BACK = 200, 0.9

Rows = list[tuple[str, str]]


def title(half_life: int | None) -> str:
    """Of a column."""
    return "none" if half_life is None else f"{half_life:,} messages"


def batches(rows: Rows) -> list[Batch]:
    """A stream as an engine polls it."""
    bounds = pairwise([*range(0, len(rows), 1000), len(rows)])
    return [Batch({"text": [x for x, _ in rows[a:b]]}, [y for _, y in rows[a:b]]) for a, b in bounds]


def judged(rows: Rows, half_life: int | None, config: str = "spam") -> tuple[Evaluation, Outcomes, float]:
    """Figures and outcomes, and the seconds of the steps."""
    changes = [] if half_life is None else [f"forgetting.half_life_messages={half_life}"]
    model, judgement, spent = (
        build_model(load_settings(CONFIGS / f"{config}.toml", changes)),
        Prequential(),
        0.0,
    )
    for batch in batches(rows):
        began = time.process_time()
        scores = model.step(batch)
        spent += time.process_time() - began
        judgement.add(scores, batch.labels)
    return judgement.figures(model.classes_), judgement.outcomes(), spent


def costs(name: str, rows: Rows) -> list[str]:
    """A stream's row: log loss and microseconds by half-life."""
    least = dict.fromkeys(HALF_LIVES, math.inf)
    losses = {}
    for _ in range(PASSES):
        for half_life in HALF_LIVES:
            figures, _, spent = judged(rows, half_life)
            least[half_life] = min(least[half_life], 1e6 * spent / len(rows))
            losses[half_life] = figures.log_loss
    cells = [f"{losses[one]:.4f}, {least[one]:.2f}" for one in HALF_LIVES]
    return [name, *cells, f"{least[1000] / least[None]:.2f}"]


def exchanged(rows: Rows) -> Rows:
    """The two classes change places at half-way."""
    first, second = sorted({label for _, label in rows})
    other, half = {first: second, second: first}, len(rows) // 2
    return [*rows[:half], *((text, other[label]) for text, label in rows[half:])]


def two_words(n: int = 8000) -> Rows:
    """A word for each of two classes."""
    draw = random.Random(7)
    said = {"ham": "lunch", "spam": "money"}
    return [(said[label], label) for label in draw.choices(sorted(said), k=n)]


def way_back(rows: Rows, half_life: int | None, config: str) -> str:
    """Messages until it is back for good, and the accuracy at the end."""
    _, outcomes, _ = judged(exchanged(rows), half_life, config)
    hits = outcomes.correct.astype(float)
    after = hits[len(rows) // 2 - outcomes.new_class :]
    over = np.convolve(after, np.full(WINDOW, 1 / WINDOW), "valid")
    lost = int(np.flatnonzero(over <= BACK)[-1])
    said = f"{lost + WINDOW:,}" if lost + 1 < len(over) else "not"
    return f"{said}, {hits[-500:].mean():.3f}"


def main() -> None:
    """Print the tables."""
    print(machine())
    found = {
        name: [(row["text"], row["label"]) for row in map(orjson.loads, lines_of(name))]
        for name in streams_at_hand(*(sys.argv[1:] or STREAMS))
    }
    header = ["log loss, us a message", *map(title, HALF_LIVES), "time, 1,000 / none"]
    print("\n" + markdown(header, [costs(name, rows) for name, rows in found.items()]))
    changing = {"two words": two_words(), **{name: found[name] for name in CHANGING if name in found}}
    header = ["back after, accuracy at the end", "model", *map(title, OF_CHANGING)]
    rows = [
        [name, f"{config}.toml", *(way_back(stream, one, config) for one in OF_CHANGING)]
        for name, stream in changing.items()
        for config in ("textbook", "spam")
    ]
    print("\n" + markdown(header, rows, texts=2))


if __name__ == "__main__":
    main()
