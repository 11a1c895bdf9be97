"""Streams of many classes: intents that are generated, beside vowpalwabbit, scikit-learn and multinomial NB.

``python tests/bench/many_classes.py [--classes 77 500] [--messages N] [--seed S]``

An intent has a few words of its own, shares others with its neighbours, and takes most from a vocabulary that
all share. Some intents are fifty times as frequent as others. Every model sees the messages in order, scores
each, then learns its label; `streamnb.evaluation.Prequential` computes the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from random import Random

import msgspec

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.cli.peers import peer
from streamnb.config import build_model, load_settings
from streamnb.evaluation import OnlineModel
from tests.bench.common import ROOT, Stream, machine, markdown, progress, versions
from tests.bench.streams import judged

PACKAGES = ("scikit-learn", "vowpalwabbit", "numpy")
PEERS = {"mnb": "mnb", "sklearn": "scikit-learn", "vw-l5-tokens": "vowpalwabbit -l 5 (oaa)"}
CONFIGS = ("spam.toml", "spam-plus.toml", "spam-accurate.toml")
COMMON_WORDS, OWN_WORDS, SHARED_WORDS = 2_000, 6, 10
NEIGHBOURS = 5  # intents that share words
SKLEARN_CLASSES_MAX = 100  # its arrays are dense: 15,000 messages of 500 classes take over five minutes


def intents(n_classes: int, n: int, seed: int) -> Stream:
    """Return a stream of messages of that many intents.

    Parameters
    ----------
    n_classes, n : int
    seed : int
    """
    random = Random(seed)
    common = [f"w{i}" for i in range(COMMON_WORDS)]
    common_shares = [*accumulate(1.0 / (i + 1) for i in range(COMMON_WORDS))]
    shared = [[f"s{group}_{i}" for i in range(SHARED_WORDS)] for group in range(1 + n_classes // NEIGHBOURS)]
    own = [
        [random.choice(common[50:]) if random.random() < 0.5 else f"o{c}_{i}" for i in range(OWN_WORDS)]
        for c in range(n_classes)
    ]
    class_shares = [*accumulate(random.uniform(0.02, 1.0) ** 1.5 for _ in range(n_classes))]
    texts, labels = [], []
    for _ in range(n):
        (c,) = random.choices(range(n_classes), cum_weights=class_shares)
        words = random.choices(common, cum_weights=common_shares, k=random.randint(4, 12))
        words += random.choices(own[c], k=random.randint(0, 2))
        words += random.choices(shared[c // NEIGHBOURS], k=random.randint(0, 2))
        random.shuffle(words)
        texts.append(" ".join(words))
        labels.append(f"intent {c if random.random() > 0.03 else random.randrange(n_classes)}")
    return Stream(f"{n_classes} classes", texts, labels)


def models(stream: Stream) -> Iterator[tuple[str, OnlineModel]]:
    """What is compared, by the name of its column; each is new."""
    words = load_settings(ROOT / "configs" / "spam.toml")
    for name, title in PEERS.items():
        yield title, peer(name, words, stream.classes)
    for name in CONFIGS:
        settings = load_settings(ROOT / "configs" / name)
        limits = msgspec.structs.replace(settings.model, classes_max=len(stream.classes))
        yield name, build_model(msgspec.structs.replace(settings, model=limits))


def main() -> int:
    """Run, print, return 0."""
    parser = argparse.ArgumentParser(description="Figures over generated intents, beside other libraries.")
    parser.add_argument("--classes", type=int, nargs="+", default=[77, 500])
    parser.add_argument("--messages", type=int, default=20_000, help="of each stream (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    header = ["accuracy / log loss / messages per second"]
    rows: list[list[str]] = []
    for n_classes in options.classes:
        stream = intents(n_classes, options.messages, options.seed)
        row = [stream.name]
        for title, model in models(stream):
            header += [title] * (not rows)
            if title == PEERS["sklearn"] and n_classes > SKLEARN_CLASSES_MAX:
                row.append("too slow")
                continue
            found = judged(stream, model)
            row.append(f"{found.accuracy:.4f} / {found.log_loss:.4f} / {found.messages_per_s:,.0f}")
            progress(f"{stream.name}, {title}: {row[-1]}")
        rows.append(row)
    print(machine())
    print(", ".join(f"{package} {number}" for package, number in versions(PACKAGES).items()))
    print(f"\n{markdown(header, rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
