"""What might make the calibrated head better still: variants of two configurations over the streams, one run.

``python tests/bench/study.py [VARIANT ...] [--streams STREAM ...] [--data DIR]``

Each variant is `spam.toml` or `spam-accurate.toml` with one thing added. Cells: its log loss over the
configuration's, and after the slash its 1-ROCA over the configuration's; below 1 is better. The last columns
are the geometric means over the streams and the mean calibration error before and after. `--streams` knows
the streams of `stress.py` too.

A view of derived text (subjects, sparse pairs) counts in the length that the head sees. The character model
is of order 4 with escape (PPM-C's shares, no exclusion), a model a class, over the first 1,000 characters;
what the head gets of it is a number a class, its nats against the classes' mean, per character^0.7.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.base.batch import Batch, Floats, Label, Scores
from streamnb.config import load_settings
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.features.readers import Number, Words
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.message_features import read_message
from streamnb.naive_bayes.model.view import View
from streamnb.naive_bayes.posterior.odds import softmax
from tests.bench.character_model import CharacterModels
from tests.bench.common import DATA, ROOT, STREAMS, Stream, machine, markdown, progress, read_stream
from tests.bench.stress import Figures, Said, figures
from tests.bench.stress_streams import HARD, Hard, hard_streams

CONFIGS = ("spam.toml", "spam-accurate.toml")
WINDOW = 5  # tokens that a sparse pair spans
Fields = dict[str, list[object]]


class Variant(NamedTuple):
    """What is added to a configuration.

    Parameters
    ----------
    fields : callable
        The columns that its views read, of a stream.
    views : tuple of View
    learned : callable, optional
        How much the tokens of a message count whose class had that posterior; by default 1.
    is_mapped : bool
        A second map follows, from the evidence to the posterior.
    """

    fields: Callable[[Stream], Fields] = lambda _: {}
    views: tuple[View, ...] = ()
    learned: Callable[[float], float] | None = None
    is_mapped: bool = False


def shares(stream: Stream) -> Fields:
    """Shares of digits, capitals and of what is neither letter, digit nor space."""
    kinds: dict[str, Callable[[str], bool]] = {
        "digits": str.isdigit,
        "capitals": str.isupper,
        "punctuation": lambda c: not (c.isalnum() or c.isspace()),
    }
    return {
        name: [math.sqrt((sum(map(kind, text)) + 0.5) / (len(text) + 1)) for text in stream.texts]
        for name, kind in kinds.items()
    }


def subjects(stream: Stream) -> Fields:
    """A mail's first line; nothing of what is no mail."""
    firsts = [text.partition("\n") for text in stream.texts]
    return {"subject": [first if first.startswith("Subject:") else None for first, _, _ in firsts]}


def sparse_pairs(stream: Stream) -> Fields:
    """Orthogonal sparse bigrams (Siefkes et al. 2004): a token, how far back, and the token there."""
    tokenizer = Tokenizer()
    column: list[object] = []
    for text in stream.texts:
        tokens = [t if t.isalnum() else f"x{ord(t[0]):x}" for t in tokenizer.split(text.lower())[0]]
        pairs = [
            f"{tokens[i - gap]}_{gap}_{tokens[i]}"
            for i in range(len(tokens))
            for gap in range(1, min(WINDOW, i + 1))
        ]
        column.append(" ".join(pairs))
    return {"sparse": column}


def character_evidence(stream: Stream) -> Fields:
    """Each class's nats by a character model that learned the messages before."""
    models = CharacterModels(len(stream.classes))
    columns: Fields = {f"nats{c}": [] for c in range(len(stream.classes))}
    for text, label in zip(stream.texts, stream.labels, strict=True):
        for c, value in enumerate(models.evidence(text)):
            columns[f"nats{c}"].append(value)
        models.learn(text, stream.classes.index(label))
    return columns


SHARES = tuple(View(name, Number(name)) for name in ("digits", "capitals", "punctuation"))
NATS = tuple(View(f"nats{c}", Number(f"nats{c}")) for c in range(4))
VARIANTS = {
    "shares": Variant(shares, SHARES),
    "subject": Variant(subjects, (View("subject", Words(fields=("subject",))),)),
    "sparse": Variant(sparse_pairs, (View("sparse", Words(fields=("sparse",))),)),
    "characters": Variant(character_evidence, NATS),
    "map": Variant(is_mapped=True),
    "less": Variant(learned=lambda p: (2.0 * (1.0 - p) + 0.05) ** 0.25),
    "known-less": Variant(learned=lambda p: min(1.0, (16.0 * (1.0 - p) + 0.02) ** 0.35)),
}


_made: dict[tuple[str, Variant], Fields] = {}


def fields_of(stream: Stream, variant: Variant) -> Fields:
    """The stream's columns, made once for both configurations."""
    if (stream.name, variant) not in _made:
        _made[stream.name, variant] = {"text": [*stream.texts], **variant.fields(stream)}
    return _made[stream.name, variant]


def said_by(stream: Stream, config: str, variant: Variant) -> Said:
    """The posteriors and the evidence of a stream, learned on the way."""
    settings = load_settings(ROOT / "configs" / config)
    fields = fields_of(stream, variant)
    views = [*settings.views, *(v for v in variant.views if not _lacks(v, fields))]
    model = NaiveBayes(views, tokenizer=Tokenizer(token_length_max=200), head="calibrated")
    labels: list[Label | None] = [*stream.labels]
    if variant.learned is not None:
        scores = _learned_less(model, fields, stream, variant.learned)
    else:
        found = model.step(Batch(fields, labels))
        scores = Said(found.posterior, found.u)
    return mapped(scores, stream) if variant.is_mapped else scores


def _lacks(view: View, fields: Fields) -> bool:
    return isinstance(view.reader, Number) and view.reader.field not in fields


def _learned_less(
    model: NaiveBayes, fields: Fields, stream: Stream, learned: Callable[[float], float]
) -> Said:
    """The tokens of each message count `learned`, to 1/256; for the head it is a message like any other."""
    n, width = len(stream), len(stream.classes)
    posterior, u = np.zeros((n, width)), np.full((n, width), np.nan)
    for i, label in enumerate(stream.labels):
        one = {name: [column[i]] for name, column in fields.items()}
        scores: Scores = model.step(Batch(one, [label]))
        k = len(scores.classes)
        posterior[i, :k], u[i, :k] = scores.posterior[0], scores.u[0]
        c = model.state.index[label]
        more = round(256.0 * learned(posterior[i, c])) / 256.0 - 1.0
        reading = read_message(model.state.views, model.state.tokenizer, one, 0)
        for view, features in zip(model.state.views, reading.features, strict=True):
            change = model.state.counts[view.name].add if more > 0 else model.state.counts[view.name].remove
            if isinstance(features, dict) and more:
                change(features, c, abs(more))
    return Said(posterior, u)


def mapped(said: Said, stream: Stream) -> Said:
    """A matrix and an offset over the log posterior, learned by AdaGrad from the identity."""
    width = len(stream.classes)
    W, b = np.eye(width), np.zeros(width)
    G, g = np.ones((width, width)), np.ones(width)
    posterior: Floats = said.posterior.copy()
    for i, label in enumerate(stream.labels):
        if not said.posterior[i].all():
            continue
        x = np.log(said.posterior[i])
        x -= x.mean()
        p = np.array(softmax((W @ x + b).tolist()))
        posterior[i] = p
        p[stream.classes.index(label)] -= 1.0
        step = np.outer(p, x)
        G, g = G + step**2, g + p**2
        W, b = W - 0.02 * step / np.sqrt(G), b - 0.02 * p / np.sqrt(g)
    return Said(posterior, np.log(np.maximum(posterior, 1e-15)))


def compared(streams: Sequence[Hard], config: str, names: Sequence[str]) -> list[list[str]]:
    """A row a variant of a configuration."""
    base = [figures(hard, said_by(hard.stream, config, Variant())) for hard in streams]
    rows = []
    for name in names:
        cells, pairs = [], []
        for hard, before in zip(streams, base, strict=True):
            found = figures(hard, said_by(hard.stream, config, VARIANTS[name]))
            pairs.append((before, found))
            cells.append(_ratios(*pairs[-1]))
            progress(f"{config}, {name}, {hard.stream.name}: {found}, {cells[-1]}")
        losses = [math.log(after.log_loss / before.log_loss) for before, after in pairs]
        ranks = [math.log(after.roca_pct / before.roca_pct) for before, after in pairs]
        ranks = [value for value in ranks if not math.isnan(value)]
        mean = f"{math.exp(np.mean(losses)):.3f} / {math.exp(np.mean(ranks)):.3f}" if ranks else "-"
        ece = " -> ".join(f"{np.mean([pair[k].ece for pair in pairs]):.4f}" for k in (0, 1))
        rows.append([config, name, *cells, mean, ece])
    return rows


def _ratios(before: Figures, after: Figures) -> str:
    loss = f"{after.log_loss / before.log_loss:.3f}"
    rank = after.roca_pct / before.roca_pct
    return loss if math.isnan(rank) else f"{loss} / {rank:.3f}"


def main() -> None:
    """Print a row a variant and configuration."""
    parser = argparse.ArgumentParser(description="What might make the calibrated head better still.")
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--streams", nargs="*", default=[*STREAMS])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of STREAM.jsonl.gz (%(default)s)")
    options = parser.parse_args()
    streams = [
        next(hard_streams(options.data, [name]))
        if name in HARD
        else Hard(read_stream(options.data, name), "")
        for name in options.streams
    ]
    rows = [row for config in CONFIGS for row in compared(streams, config, options.variants or [*VARIANTS])]
    header = ["log loss / 1-ROCA, times", "with", *options.streams, "geometric mean", "ECE"]
    print(f"{machine()}\n\n{markdown(header, rows, texts=2)}")


if __name__ == "__main__":
    main()
