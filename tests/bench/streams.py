r"""Accuracy, log loss, ranking and speed over real streams, beside river and vowpalwabbit, in one run.

``python tests/bench/streams.py [STREAM ...] [--data DIR] [--json]``

Every model sees the messages of a file in order, scores each, then learns its label. One judge,
`streamnb.evaluation.Prequential`, computes every figure of every model: a message whose class had never
been learned counts in none; p is not taken below 1e-15; 1-ROCA is the area above the ROC curve in per cent.

river is written as its users would write it, a pipeline of `BagOfWords` and `MultinomialNB`, on the tokens
of `configs/textbook.toml` (lower case, ``\w\w+``). vowpalwabbit gets the words of `configs/spam.toml`, each
once a message, and is told the classes beforehand, which it needs; the others meet them in the stream.

Messages per second count from text in memory to scored and learned: reading words is part of it for every
model, so a second figure for vowpalwabbit leaves the making of its input lines out.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb import assembly
from streamnb.columns import Batch, Label, Scores
from streamnb.config import Settings, load
from streamnb.errors import DataError
from streamnb.evaluation import LOG_LOSS_FLOOR, Evaluation, Prequential, evaluate
from streamnb.view import reads_text
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
CONFIGS = ("textbook", "spam", "spam-accurate")
VW = "--quiet --loss_function logistic --link logistic -b 24 -l 5"
UNDERFLOW = 1e-300  # below it a posterior no longer ranks


@dataclass(slots=True)
class Measured:
    """One model over one stream.

    Parameters
    ----------
    figures : Evaluation
        With `messages_per_s` from text in memory to learned.
    bare_messages_per_s : float or None
        Without the making of the model's own input format, where it has one.
    """

    figures: Evaluation
    bare_messages_per_s: float | None = None


def judge(stream: Stream, posterior: list[list[float]], u: list[list[float]], seconds: float) -> Evaluation:
    """A peer's figures, by the judge that also judges our own models.

    Parameters
    ----------
    stream : Stream
    posterior, u : n lists of C floats
        By class in order of appearance; u ranks, NaN for a class never learned.
    seconds : float
        That scoring and learning took.
    """
    none = np.zeros(len(stream), np.int64)
    scores = Scores(
        classes=tuple(stream.classes),
        n_classes=none + len(stream.classes),
        posterior=np.array(posterior, np.float64),
        log_odds=np.zeros((len(stream), len(stream.classes))),
        u=np.array(u, np.float64),
        raw_posterior=None,
        known_tokens=none,
        unknown_tokens=none,
        learned=np.arange(len(stream)),
        flags=none,
    )
    judgement = Prequential()
    judgement.seconds = seconds
    judgement.add(scores, stream.labels)
    return judgement.figures(stream.classes)


def run_river(stream: Stream) -> Measured:
    """Measure river's multinomial naive Bayes behind its bag of words."""
    from river.compose import Pipeline
    from river.feature_extraction import BagOfWords
    from river.naive_bayes import MultinomialNB

    model: Any = Pipeline(  # its annotations know mappings only, and a bag of words takes text
        BagOfWords(lowercase=True, strip_accents=False, tokenizer_pattern=r"\w\w+"),
        MultinomialNB(alpha=1.0),  # type: ignore[no-untyped-call]
    )
    classes = stream.classes
    posterior, u = [], []
    seconds = 0.0
    for text, label in zip(stream.texts, stream.labels, strict=True):
        began = time.perf_counter()
        p = model.predict_proba_one(text)
        seconds += time.perf_counter() - began
        posterior.append([p.get(c, 0.0) for c in classes])
        u.append([math.log(p[c]) if p.get(c, 0.0) > UNDERFLOW else math.nan for c in classes])
        if len(p) == len(classes) and min(p.values()) <= UNDERFLOW:
            bag, bayes = model.steps.values()
            joint = bayes.joint_log_likelihood(bag.transform_one(text))
            u[-1] = [joint[c] for c in classes]
        began = time.perf_counter()
        model.learn_one(text, label)
        seconds += time.perf_counter() - began
    return Measured(judge(stream, posterior, u, seconds))


def run_vowpalwabbit(stream: Stream, settings: Settings) -> Measured:
    """Measure vowpalwabbit's logistic regression on the words of `settings`' first view, each once."""
    from vowpalwabbit import Workspace

    classes = stream.classes
    two = len(classes) == 2
    # With two classes the second to appear is 1 and the first is -1; otherwise they count from 1.
    answers = {label: 2 * c - 1 if two else c + 1 for c, label in enumerate(classes)}
    model = Workspace(VW if two else f"{VW} --oaa {len(classes)} --probabilities")
    posterior, u = [], []
    reading = stepping = 0.0
    for text, label in zip(stream.texts, stream.labels, strict=True):
        began = time.perf_counter()
        line = vw_line(text, settings)
        read = time.perf_counter()
        answer = model.predict(line)
        model.learn(f"{answers[label]} {line}")
        stepping += time.perf_counter() - read
        reading += read - began
        posterior.append([1.0 - answer, answer] if two else list(answer))
        u.append([math.log(max(p, LOG_LOSS_FLOOR)) for p in posterior[-1]])
    model.finish()
    return Measured(judge(stream, posterior, u, reading + stepping), len(stream) / stepping)


def vw_line(text: str, settings: Settings) -> str:
    """An unlabelled line of vowpalwabbit's input.

    Bar, colon and white space have a meaning there. No token of two characters and more holds a ``%``, so
    the escaped ones stay tokens of their own.
    """
    reader = settings.views[0].reader
    assert reads_text(reader), settings.views
    tokens = reader.read(settings.tokens.read(text), settings.tokens)
    escaped = ("%20".join(t.replace("|", "%7c").replace(":", "%3a").split()) for t in tokens)
    return f"| {' '.join(escaped)}"


def run_ours(stream: Stream, settings: Settings) -> Measured:
    """Measure a configuration's model, in the batches the engine would give it."""
    model = assembly.model(settings)
    judgements = [judgement for judgement, _ in evaluate(model, _batches(stream, settings))]
    return Measured(judgements[-1].figures(model.classes))


def _batches(stream: Stream, settings: Settings) -> Iterator[Batch]:
    size = settings.engine.batch_records_max
    for i in range(0, len(stream), size):
        labels: list[Label | None] = [*stream.labels[i : i + size]]
        yield Batch({"text": stream.texts[i : i + size]}, labels)


def models() -> dict[str, Callable[[Stream], Measured]]:
    """What is compared, by the name of its column."""
    settings = {name: load(ROOT / "configs" / f"{name}.toml") for name in CONFIGS}
    compared: dict[str, Callable[[Stream], Measured]] = {
        "river": run_river,
        "vowpalwabbit -l 5": lambda stream: run_vowpalwabbit(stream, settings["spam"]),
    }
    for name in CONFIGS:
        compared[f"{name}.toml"] = lambda stream, name=name: run_ours(stream, settings[name])  # type: ignore[misc]
    return compared


def figures_table(results: dict[str, dict[str, Measured]]) -> str:
    """Accuracy, log loss and 1-ROCA, a row a stream and a column a model."""
    names = list(next(iter(results.values())))
    header = ["accuracy / log loss / 1-ROCA %", *names]
    return markdown(
        header, [[stream, *(_cell(row[name].figures) for name in names)] for stream, row in results.items()]
    )


def _cell(figures: Evaluation) -> str:
    roca = "-" if figures.roca_loss_pct is None else f"{figures.roca_loss_pct:.3f}"
    return f"{figures.accuracy:.4f} / {figures.log_loss:.4f} / {roca}"


def speed_table(results: dict[str, dict[str, Measured]]) -> str:
    """Messages per second, and in brackets how many times river's."""
    names = list(next(iter(results.values())))
    header = ["messages/s (times river's)"]
    for name in names:
        header += [name, f"{name}, input lines ready"] if name.startswith("vowpalwabbit") else [name]
    rows = []
    for stream, row in results.items():
        base = row["river"].figures.messages_per_s
        cells = [stream]
        for measured in row.values():
            speeds = [measured.figures.messages_per_s]
            if measured.bare_messages_per_s is not None:
                speeds.append(measured.bare_messages_per_s)
            cells += [f"{speed:,.0f} ({ratio(speed / base)})" for speed in speeds]
        rows.append(cells)
    return markdown(header, rows)


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
    results: dict[str, dict[str, Measured]] = {}
    for name in found:
        try:
            stream = read_stream(options.data, name)
        except DataError as error:
            print(error, file=sys.stderr)
            return error.exit_code
        row = results[name] = {}
        for title, run in models().items():
            row[title] = run(stream)
            progress(f"{name}, {title}: {_cell(row[title].figures)}")
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
