"""The calibrated head under stress, beside plain naive Bayes and vowpalwabbit, in one run.

``python tests/bench/stress.py [STREAM ...] [--data DIR]``

Thirteen streams derived from the real ones (`stress_streams.py`), and models merged of two halves. Naive
Bayes is `configs/textbook.toml`, Laplace 1; vowpalwabbit is logistic with ``-l 5`` on the words of
`configs/spam.toml`, each once a message, and is told the classes beforehand. Cells: accuracy / log loss /
1-ROCA in per cent / expected calibration error (15 bins of the top class's posterior, after 500 messages).
Where a peer is not behind `spam.toml` or `spam-accurate.toml`, the last column says in what.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.base.batch import Batch, Floats, Scores
from streamnb.cli.peers import peer
from streamnb.config import Settings, build_model, load_settings
from streamnb.evaluation import OnlineModel, Prequential
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from tests.bench.common import DATA, ROOT, Stream, machine, markdown, progress, read_stream
from tests.bench.stress_streams import HARD, Hard, hard_streams

BATCH = 1_000  # messages
SETTLED = 500  # messages before the calibration is judged
PEERS = ("textbook.toml", "vowpalwabbit -l 5")
OURS = ("spam.toml", "spam-accurate.toml")


class Said(NamedTuple):
    """What a model said of each message before its label: shapes (n, C), classes in order of appearance."""

    posterior: Floats
    u: Floats


class Figures(NamedTuple):
    """Of one model over one stream; what is not defined is NaN."""

    accuracy: float
    log_loss: float
    roca_pct: float
    ece: float

    def __str__(self) -> str:
        """As a cell of the table."""
        roca = "-" if math.isnan(self.roca_pct) else f"{self.roca_pct:.3f}"
        return f"{self.accuracy:.4f} / {self.log_loss:.4f} / {roca} / {self.ece:.4f}"


def said_of(hard: Hard, model: OnlineModel) -> Said:
    """What a model says; a late label comes with its message again, as it does on a topic."""
    stream = hard.stream
    n, width = len(stream), len(stream.classes)
    posterior, u = np.zeros((n, width)), np.full((n, width), np.nan)
    for begin in range(0, n, BATCH):
        scored = range(begin, min(begin + BATCH, n))
        learned = [i - hard.delay for i in scored]
        if hard.delay:
            pairs = [row for i, j in zip(scored, learned, strict=True) for row in ((i, None), (j, j))]
            rows = [(i, y) for i, y in pairs if i >= 0]
        else:
            rows = [(i, i) for i in scored]
        labels = [None if y is None else stream.labels[y] for _, y in rows]
        scores = model.step(Batch({"text": [stream.texts[i] for i, _ in rows]}, labels))
        firsts = [k for k, (_, y) in enumerate(rows) if y is None or not hard.delay]
        # Classes are learned in the order in which they appear in the stream, late or not.
        posterior[begin : scored.stop, : len(scores.classes)] = scores.posterior[firsts]
        u[begin : scored.stop, : len(scores.classes)] = scores.u[firsts]
    return Said(posterior, u)


def figures(hard: Hard, said: Said) -> Figures:
    """What was said, judged by the labels that came, but those that are wrong in a row.

    Of each class the messages before its first label was learned are left out, of every model.
    """
    first = {label: hard.stream.labels.index(label) + hard.delay for label in hard.stream.classes}
    rows = [i for i, y in enumerate(hard.stream.labels) if i not in hard.wrong and i >= first[y]]
    stream = Stream("", [hard.stream.texts[i] for i in rows], [hard.stream.labels[i] for i in rows])
    order = [hard.stream.classes.index(label) for label in stream.classes]
    posterior = said.posterior[rows][:, order]
    none, known = np.zeros(len(rows), np.int64), np.full(len(rows), len(order), np.int64)
    judgement = Prequential(warm_up=SETTLED)
    judgement.add(
        Scores(
            classes=tuple(stream.classes),
            n_classes=known,
            posterior=posterior,
            log_odds=np.zeros(posterior.shape),
            u=said.u[rows][:, order],
            raw_posterior=None,
            known_tokens=none,
            unknown_tokens=none,
            learned=none,
            learned_by_class=np.zeros(posterior.shape),
            flags=none,
        ),
        stream.labels,
    )
    found = judgement.figures(stream.classes)
    roca = math.nan if found.roca_loss_pct is None else found.roca_loss_pct
    return Figures(found.accuracy, found.log_loss, roca, found.ece)


def behind(row: dict[str, Figures]) -> str:
    """In which figures a peer is not behind ours, by configuration."""
    said = []
    for name in OURS:
        for figure, higher in (("accuracy", True), ("log_loss", False), ("roca_pct", False), ("ece", False)):
            own = getattr(row[name], figure)
            for theirs in PEERS:
                other = getattr(row[theirs], figure)
                if (other >= own if higher else other <= own) and not math.isnan(own):
                    said.append(f"{name}, {figure} of {theirs}")
    return "; ".join(said) or "ahead"


def merged(data: Path, settings: dict[str, Settings]) -> list[list[str]]:
    """The second half of each stream, begun by one model of the first half, a merge of two, and a quarter."""
    rows = []
    for name in ("sms", "agnews", "enron1", "enron6"):
        stream = read_stream(data, name)
        half = len(stream) // 2
        hard = Hard(Stream(name, stream.texts[half:], stream.labels[half:]), "")
        for title, one in settings.items():
            cells = []
            for parts in ([slice(0, half)], [slice(0, half, 2), slice(1, half, 2)], [slice(0, half, 2)]):
                models = [_learned(stream, part, one) for part in parts]
                for other in models[1:]:
                    models[0].merge(other)
                cells.append(str(figures(hard, _said_on(models[0], hard.stream))))
            rows.append([name, title, *cells])
    return rows


def _learned(stream: Stream, part: slice, settings: Settings) -> NaiveBayes:
    model = build_model(settings)
    model.step(Batch({"text": stream.texts[part]}, [*stream.labels[part]]), score=False)
    return model


def _said_on(model: NaiveBayes, stream: Stream) -> Said:
    scores = model.step(Batch({"text": stream.texts}, [*stream.labels]))
    order = [scores.classes.index(label) for label in stream.classes]
    return Said(scores.posterior[:, order], scores.u[:, order])


def main() -> None:
    """Print a row a stream."""
    parser = argparse.ArgumentParser(description="The calibrated head under stress.")
    parser.add_argument("streams", nargs="*", metavar="STREAM", help=f"of {', '.join(HARD)}; or merge")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of STREAM.jsonl.gz (%(default)s)")
    options = parser.parse_args()
    settings = {name: load_settings(ROOT / "configs" / name) for name in ("textbook.toml", *OURS)}
    results: list[tuple[Hard, dict[str, Figures]]] = []
    for hard in hard_streams(options.data, options.streams):
        row = {}
        for name in (*PEERS, *OURS):
            model: OnlineModel
            if name in settings:
                model = build_model(settings[name])
            else:
                model = peer("vw-l5-tokens", settings["spam.toml"], hard.stream.classes)
            row[name] = figures(hard, said_of(hard, model))
            progress(f"{hard.stream.name}, {name}: {row[name]}")
        results.append((hard, row))
    print(machine())
    if results:
        header = ["accuracy / log loss / 1-ROCA % / ECE", "what is hard", *PEERS, *OURS, "where not ahead"]
        rows = [
            [hard.stream.name, hard.what, *(str(row[name]) for name in (*PEERS, *OURS)), behind(row)]
            for hard, row in results
        ]
        print(f"\n{markdown(header, rows, texts=2)}")
    if not options.streams or "merge" in options.streams:
        header = [
            "the second half, after",
            "model",
            "learning the first",
            "a merge of two halves",
            "one half",
        ]
        print(f"\n{markdown(header, merged(options.data, settings), texts=2)}")


if __name__ == "__main__":
    main()
