"""What trust does under wrong labels and rare classes: each figure without and with it, and the study's.

``python tests/bench/robustness.py [STREAM ...] [--config NAME] [--draws N] [--data DIR] [--json]``

The first table is of streams derived by drawing: enron1 with 10 % of its labels flipped, enron2 thinned to
1 % spam, enron6 shuffled. Each is drawn several times, because one draw decides little: of 44 spam messages,
or of 517 flips. Figures are means over the draws, and in brackets the least and the most of the ratio.

The second table is of 100 wrong labels in a row. Where the run begins decides more than anything else, so it
begins at every hundredth message; the messages after it are judged by their true labels. The mean is over all
beginnings, and the ratio of two means; the quartiles are of the ratios of the beginnings.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.config import build_model, load_settings
from streamnb.naive_bayes import NaiveBayes
from tests.bench.common import DATA, ROOT, Stream, machine, markdown, progress, read_stream
from tests.bench.halves import losses
from tests.bench.streams import judged

MAIL = ("sms", "enron1", "enron2", "enron4", "enron6")
WRONG, AFTER, LATER = 100, 100, 900  # messages
FIRST, EVERY = 500, 100


class Derived(NamedTuple):
    """A derived stream's log loss and 1-ROCA without and with trust: per draw."""

    without: list[tuple[float, float]]
    trusting: list[tuple[float, float]]


class Wrong(NamedTuple):
    """After 100 wrong labels: losses per beginning of the run, without and with trust."""

    begins: list[int]
    after: tuple[list[float], list[float]]
    later: tuple[list[float], list[float]]


def exchanged(labels: Sequence[str]) -> dict[str, str]:
    """Each of two labels by the other."""
    first, second = sorted(set(labels))
    return {first: second, second: first}


def flipped(data: Path, random: Random) -> Stream:
    """enron1 with 10 % of its labels wrong; they are judged by."""
    mail = read_stream(data, "enron1")
    other = exchanged(mail.labels)
    return Stream(mail.name, mail.texts, [other[y] if random.random() < 0.1 else y for y in mail.labels])


def rare(data: Path, random: Random) -> Stream:
    """enron2 with spam thinned to 1 % of ham."""
    mail = read_stream(data, "enron2")
    share = 0.01 * mail.labels.count("ham") / mail.labels.count("spam")
    rows = [i for i, y in enumerate(mail.labels) if y == "ham" or random.random() < share]
    return Stream(mail.name, [mail.texts[i] for i in rows], [mail.labels[i] for i in rows])


def shuffled(data: Path, random: Random) -> Stream:
    """enron6 in an order by chance."""
    mail = read_stream(data, "enron6")
    rows = [*range(len(mail))]
    random.shuffle(rows)
    return Stream(mail.name, [mail.texts[i] for i in rows], [mail.labels[i] for i in rows])


DERIVED: dict[str, tuple[Callable[[Path, Random], Stream], str]] = {
    "enron1, 10 % of the labels flipped": (flipped, "0.3640 / 13.59 -> 0.3605 / 13.68"),
    "enron2, 1 % spam": (rare, "0.0281 / 3.75 -> 0.0234 / 2.65"),
    "enron6, shuffled": (shuffled, "-"),
}
"""How each is made, and the study's figures for `spam.toml`."""


def model_of(config: str, *, trust: bool) -> NaiveBayes:
    """Return a new model of a settings file."""
    changes = [] if trust else ["model.trust=false"]
    return build_model(load_settings(ROOT / "configs" / f"{config}.toml", changes))


def derived(make: Callable[[Path, Random], Stream], config: str, draws: int, data: Path) -> Derived:
    """Run both models over each draw."""
    found = Derived([], [])
    for seed in range(draws):
        stream = make(data, Random(seed))
        for row, trust in zip(found, (False, True), strict=True):
            figures = judged(stream, model_of(config, trust=trust))
            row.append((figures.log_loss, figures.roca_loss_pct or math.nan))
    return found


def wrong_in_a_row(stream: Stream, config: str) -> Wrong:
    """Teach 100 wrong labels after each hundredth message, and judge those that follow."""
    other = exchanged(stream.labels)
    begins = [*range(FIRST, len(stream) - WRONG - AFTER - LATER, EVERY)]
    found = Wrong(begins, ([], []), ([], []))
    for which, trust in enumerate((False, True)):
        model, done = model_of(config, trust=trust), 0
        for begin in begins:
            losses(model, stream.texts[done:begin], stream.labels[done:begin])
            done, end = begin, begin + WRONG
            misled = copy.deepcopy(model)
            losses(misled, stream.texts[begin:end], [other[y] for y in stream.labels[begin:end]])
            judge = slice(end, end + AFTER + LATER)
            loss = losses(misled, stream.texts[judge], stream.labels[judge])
            found.after[which].append(float(np.nanmean(loss[:AFTER])))
            found.later[which].append(float(np.nanmean(loss[AFTER:])))
    return found


def derived_row(name: str, found: Derived, study: str) -> list[str]:
    """A row of the first table."""
    cells = [f"{np.mean([a for a, _ in row]):.4f} / {np.mean([b for _, b in row]):.2f}" for row in found[:2]]
    ratios = [b / a for (a, _), (b, _) in zip(*found, strict=True)]
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    return [name, *cells, f"{mean:.3f} ({min(ratios):.3f} to {max(ratios):.3f})", study]


def wrong_row(name: str, found: Wrong) -> list[str]:
    """A row of the second table."""
    cells = [name, str(len(found.begins))]
    for without, trusting in (found.after, found.later):
        a, b = np.array(without), np.array(trusting)
        low, middle, high = np.percentile(b / a, [25, 50, 75])
        cells.append(f"{a.mean():.4f} -> {b.mean():.4f}")
        cells.append(f"{b.mean() / a.mean():.2f} ({low:.2f}, {middle:.2f}, {high:.2f})")
    return cells


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="Trust under wrong labels and rare classes.")
    parser.add_argument(
        "streams", nargs="*", metavar="STREAM", help=f"of the second table: {', '.join(MAIL)}"
    )
    parser.add_argument("--config", default="spam", help="of the folder configs (%(default)s)")
    parser.add_argument("--draws", type=int, default=5, help="of each derived stream (%(default)s)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of STREAM.jsonl.gz (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of Markdown")
    options = parser.parse_args()
    first = {}
    for name, (make, _) in DERIVED.items():
        first[name] = derived(make, options.config, options.draws, options.data)
        progress(f"{name}: {first[name]}")
    second = {}
    for name in options.streams or MAIL:
        second[name] = wrong_in_a_row(read_stream(options.data, name), options.config)
        progress(f"{name}: {wrong_row(name, second[name])}")
    if options.json:
        derived_streams = {name: each._asdict() for name, each in first.items()}
        wrong = {name: each._asdict() for name, each in second.items()}
        plain = {"machine": machine(), "config": options.config, "derived": derived_streams, "wrong": wrong}
        print(orjson.dumps(plain).decode())
        return
    header = [
        f"log loss / 1-ROCA %, {options.config}.toml",
        "without trust",
        "with trust",
        "ratio",
        "the study's",
    ]
    rows = [derived_row(name, each, DERIVED[name][1]) for name, each in first.items()]
    print(f"{machine()}\n\n{markdown(header, rows)}")
    header = ["after 100 wrong labels", "begun", f"next {AFTER}", "ratio", f"{LATER} after them", "ratio"]
    print(f"\n{markdown(header, [wrong_row(name, each) for name, each in second.items()])}")


if __name__ == "__main__":
    main()
