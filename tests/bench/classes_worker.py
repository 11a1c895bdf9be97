"""A process of `classes.py`: one model of many classes, which scores and learns a batch when it is told to.

It imports nothing of the benches: the model may be that of another checkout, whose benches are others.
Each line on standard input makes it run one round; it answers with one JSON object on a line.
"""

from __future__ import annotations

import json
import math
import sys
import time
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import msgspec

BATCH = 500  # messages
WORDS = 100  # of a group of classes
LABELS_PER_CLASS = 10  # before the first round, so that every class and every word is known


class Intents:
    """A stream in which groups of classes share their words, each class with shares of its own.

    Parameters
    ----------
    n_classes : int
    tokens : int
        Words of a message.
    known : int
        Classes of a group, which all know its words.
    new : float
        The share of words that no message had before.
    seed : int
    """

    def __init__(self, n_classes: int, tokens: int, known: int, new: float, seed: int) -> None:
        self.random = Random(seed)
        self.tokens, self.known, self.new, self.n_new = tokens, known, new, 0
        self.shares = [[*accumulate(self._drawn_shares())] for _ in range(n_classes)]

    def _drawn_shares(self) -> list[float]:
        """Return the shares of a group's words in one class, up to a factor."""
        shares = [1.0 / (i + 1) for i in range(WORDS)]
        self.random.shuffle(shares)
        return shares

    def text(self, c: int) -> str:
        """Return a message of class c."""
        words = self.random.choices(range(WORDS), cum_weights=self.shares[c], k=self.tokens)
        return " ".join(self._name(c // self.known, word) for word in words)

    def _name(self, group: int, word: int) -> str:
        if self.random.random() < self.new:
            self.n_new += 1
            return f"new{self.n_new}"
        return f"word{group}of{word}"

    def batch(self, n: int) -> tuple[list[str], list[str]]:
        """Return the texts and the labels of n messages, of classes drawn at random."""
        classes = [self.random.randrange(len(self.shares)) for _ in range(n)]
        return [self.text(c) for c in classes], [f"class {c}" for c in classes]

    def first(self) -> tuple[list[str], list[str]]:
        """Return `LABELS_PER_CLASS` messages of every class, in turn."""
        classes = [*range(len(self.shares))] * LABELS_PER_CLASS
        return [self.text(c) for c in classes], [f"class {c}" for c in classes]


def model_of(config: str, n_classes: int) -> Any:  # noqa: ANN401 - of whichever checkout this process imports
    """Build a configuration's model with room for the classes; `-trust` after its name leaves trust out."""
    import streamnb
    from streamnb.config import build_model, load_settings

    name, _, without = config.partition(" -")
    settings = load_settings(Path(streamnb.__file__).parents[1] / "configs" / name)
    changes = {"classes_max": n_classes} | (
        {"trust": False} if without and hasattr(settings.model, "trust") else {}
    )
    return build_model(
        msgspec.structs.replace(settings, model=msgspec.structs.replace(settings.model, **changes))
    )


def main() -> int:
    """Learn the classes, then run a round per line of standard input."""
    wanted = json.loads(sys.argv[1])
    from streamnb.base.batch import Batch

    stream = Intents(*(wanted[name] for name in ("classes", "tokens", "known", "new", "seed")))
    model = model_of(wanted["config"], wanted["classes"])
    texts, labels = stream.first()
    for i in range(0, len(texts), BATCH):
        model.step(Batch({"text": texts[i : i + BATCH]}, labels[i : i + BATCH]), score=False)
    for _ in sys.stdin:
        texts, labels = stream.batch(BATCH)
        batch = Batch({"text": texts}, list(labels))
        began = time.process_time()
        scores = model.step(batch)
        seconds = (time.process_time() - began) / BATCH
        index = {label: c for c, label in enumerate(scores.classes)}
        loss = -sum(
            math.log(max(1e-15, row[index[label]]))
            for row, label in zip(scores.posterior, labels, strict=True)
        )
        counts = model.state.counts
        answer = {"seconds": seconds, "log_loss": loss / BATCH, "bytes": counts.nbytes / len(counts)}
        print(json.dumps(answer), flush=True)
        del scores, batch
    return 0


if __name__ == "__main__":
    sys.exit(main())
