"""What a posterior is worth beside the peers' on the same tokens, with what was aimed at, in one run.

``python tests/bench/posterior.py [STREAM ...] [--data DIR] [--json]``

On each stream `configs/spam.toml` and `configs/spam-accurate.toml` stand beside plain multinomial naive
Bayes (Laplace 1) and vowpalwabbit at ``-l 5``, both on the words of `spam.toml`, and beside vowpalwabbit on
all four views of `spam-accurate.toml`. The first message of a class counts in `new_class` alone; the
calibration error (15 bins of the predicted class, after 500 messages) is in thousandths. p is McNemar's
against each of ours; where it is above .05 the accuracies cannot be told apart.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.cli.peers import peer
from streamnb.config import build_model, load_settings
from streamnb.errors import DataError
from streamnb.evaluation import Contender, Difference, Evaluation, Prequential, compare, paired_difference
from tests.bench.common import DATA, ROOT, STREAMS, Stream, machine, markdown, progress, read_stream, versions
from tests.bench.streams import PACKAGES, batches

FAST, ACCURATE = "spam.toml", "spam-accurate.toml"
MNB, VW, VW_ACCURATE = "mnb", "vw -l 5", "vw -l 5, four views"
BESIDE = {FAST: (MNB, VW), ACCURATE: (MNB, VW, VW_ACCURATE)}
"""Peers that read no more than ours do."""


class Ceiling(NamedTuple):
    """What was aimed at on a stream: log loss and 1-ROCA % at most, accuracy at least."""

    log_loss: float
    roca_loss_pct: float | None
    accuracy: float | None = None


CEILINGS = {
    "sms": (Ceiling(0.0365, 0.39), Ceiling(0.0312, 0.30)),
    "agnews": (Ceiling(0.398, None, 0.870), Ceiling(0.387, None, 0.877)),
    "tweets": (Ceiling(0.550, None, 0.724), Ceiling(0.533, None, 0.732)),
    "enron1": (Ceiling(0.0480, 0.205), Ceiling(0.0358, 0.11)),
    "enron2": (Ceiling(0.0253, 0.052), Ceiling(0.0194, 0.030)),
    "enron4": (Ceiling(0.0174, 0.029), Ceiling(0.0142, 0.017)),
    "enron6": (Ceiling(0.0353, 0.13), Ceiling(0.0235, 0.054)),
}
ECE_MAX = {"agnews": 0.02, "tweets": 0.02}
ECE_MAX_OF_MAIL = 0.005


class Judged(NamedTuple):
    """A stream's figures by model, and each of ours against each peer."""

    figures: dict[str, Evaluation]
    against: dict[tuple[str, str], Difference]


def judge(stream: Stream) -> Judged:
    """Run all models over a stream."""
    fast, accurate = (load_settings(ROOT / "configs" / name) for name in (FAST, ACCURATE))
    models = {
        FAST: build_model(fast),
        ACCURATE: build_model(accurate),
        MNB: peer("mnb", fast, stream.classes),
        VW: peer("vw-l5-tokens", fast, stream.classes),
        VW_ACCURATE: peer("vw-l5-tokens", accurate, stream.classes),
    }
    contenders = [Contender(name, model, Prequential()) for name, model in models.items()]
    for _ in compare(contenders, batches(stream)):
        pass
    outcomes = {one.name: one.judgement.outcomes() for one in contenders}
    return Judged(
        {one.name: one.judgement.figures(one.model.classes_) for one in contenders},
        {
            (ours, theirs): paired_difference(outcomes[ours], outcomes[theirs])
            for ours, peers in BESIDE.items()
            for theirs in peers
        },
    )


def figures_table(results: dict[str, Judged]) -> str:
    """A row a stream and a column a model."""
    names = list(next(iter(results.values())).figures)
    rows = [[stream, *(_cell(judged.figures[name]) for name in names)] for stream, judged in results.items()]
    return markdown(["accuracy / log loss / 1-ROCA % / ECE x 1,000", *names], rows)


def _cell(figures: Evaluation) -> str:
    roca = "-" if figures.roca_loss_pct is None else f"{figures.roca_loss_pct:.3f}"
    return f"{figures.accuracy:.4f} / {figures.log_loss:.4f} / {roca} / {1000 * figures.ece:.1f}"


def targets(name: str, judged: Judged) -> Iterator[tuple[str, str, str, str, str]]:
    """Stream, what, measured, aimed at, reached: the ceilings, then each peer."""
    for ours, ceiling in zip((FAST, ACCURATE), CEILINGS.get(name, ()), strict=False):
        mine = judged.figures[ours]
        yield _row(name, ours, "log loss", mine.log_loss, ceiling.log_loss)
        if ceiling.roca_loss_pct is not None:
            yield _row(name, ours, "1-ROCA %", mine.roca_loss_pct or 0.0, ceiling.roca_loss_pct)
        if ceiling.accuracy is not None:
            reached = "yes" if mine.accuracy >= ceiling.accuracy else "no"
            what = f"{ours}, accuracy"
            yield name, what, f"{mine.accuracy:.4f}", f"at least {ceiling.accuracy}", reached
        yield _row(name, ours, "ECE", mine.ece, ECE_MAX.get(name, ECE_MAX_OF_MAIL))
    for (ours, theirs), apart in judged.against.items():
        mine, other = judged.figures[ours], judged.figures[theirs]
        for what in ("log_loss", "roca_loss_pct", "ece"):
            a, b = getattr(mine, what), getattr(other, what)
            if a is not None:
                reached = "yes" if a < b else "no"
                yield name, f"{ours}, {what}", f"{a:.4f}", f"below {theirs}: {b:.4f}", reached
        level = mine.accuracy > other.accuracy or apart.mcnemar_p > 0.05
        yield (
            name,
            f"{ours}, accuracy",
            f"{mine.accuracy:.4f}",
            f"above {theirs}: {other.accuracy:.4f}, or p > .05: {apart.mcnemar_p:.2g}",
            "yes" if level else "no",
        )


def _row(name: str, ours: str, what: str, found: float, at_most: float) -> tuple[str, str, str, str, str]:
    reached = "yes" if found <= at_most else "no"
    return name, f"{ours}, {what}", f"{found:.4f}", f"at most {at_most}", reached


def summary(rows: list[tuple[str, str, str, str, str]]) -> str:
    """How many were reached, and a table of those that were not."""
    missed = [row for row in rows if row[-1] == "no"]
    said = f"Of {len(rows)} figures aimed at {len(rows) - len(missed)} are reached."
    if not missed:
        return said
    table = markdown(["stream", "what", "measured", "aimed at", "reached"], missed, texts=5)
    return f"{said} These are not:\n\n{table}"


def main() -> int:
    """Run, print, return the exit code: 0, also where there is no stream to run over."""
    parser = argparse.ArgumentParser(description="What a posterior is worth, beside the peers.")
    parser.add_argument("streams", nargs="*", metavar="STREAM", help=f"by default {', '.join(STREAMS)}")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of STREAM.jsonl.gz (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of Markdown")
    options = parser.parse_args()
    on, with_versions = machine(), versions(PACKAGES)
    results: dict[str, Judged] = {}
    for name in options.streams or STREAMS:
        try:
            results[name] = judge(read_stream(options.data, name))
        except DataError as error:
            progress(str(error))
            continue
        progress(f"{name}: {_cell(results[name].figures[FAST])}")
    if not results:
        print(f"No stream to run over in {options.data}.")
        return 0
    rows = [row for name, judged in results.items() for row in targets(name, judged)]
    if options.json:
        plain = {
            name: {
                "figures": judged.figures,
                "against": {" / ".join(pair): apart._asdict() for pair, apart in judged.against.items()},
            }
            for name, judged in results.items()
        }
        answer = {"machine": on, "versions": with_versions, "streams": plain, "targets": rows}
        print(orjson.dumps(answer, default=list).decode())
        return 0
    print(on)
    print(", ".join(f"{package} {number}" for package, number in with_versions.items()))
    print(f"\n{figures_table(results)}\n\n{summary(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
