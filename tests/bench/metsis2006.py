"""Multinomial naive Bayes with Boolean attributes on Enron-Spam, as Metsis et al. (CEAS 2006) judged it.

``python tests/bench/metsis2006.py [SET ...] [--data DIR]``

Their protocol: messages in order of arrival; after every 100 the 3,000 tokens that tell most of the class
(information gain) are chosen again among all messages so far, and the filter built of them judges the next
100; a message is spam above 1/2. Tokens are what spaces separate: the corpus comes so. Their figures are
recalled, not read again: a difference of some tenths says nothing. Beside them `spam.toml` and
`spam-accurate.toml`, which choose no attributes, retrained at the same pace.

Counts are sums: the filter of a choice is taught each class as one message that holds every chosen token as
often as messages of the class did.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

import numpy as np

from streamnb.base.batch import Batch, likeliest
from streamnb.config import build_model, load_settings
from streamnb.evaluation import predictions
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.priors import FixedPrior
from streamnb.naive_bayes.event_models.smoothing import Laplace
from streamnb.naive_bayes.features.readers import Terms
from streamnb.naive_bayes.model.view import View
from tests.bench.common import DATA, ROOT, Stream, machine, markdown, progress, read_stream
from tests.bench.selection import Presence, information_gain

PACE = 100  # messages
ATTRIBUTES = 3_000
CHOSEN = View("chosen", Terms("terms"), Multinomial(Laplace(1.0), weight="counts"))


class Recall(NamedTuple):
    """Shares of each class that were named so, in per cent."""

    spam: float
    ham: float

    def __str__(self) -> str:
        """As a cell of the table."""
        return f"{self.spam:.2f} / {self.ham:.2f}"


RECALLED = {
    "enron1": Recall(96.00, 95.25),
    "enron2": Recall(96.68, 97.83),
    "enron4": Recall(97.79, 99.05),
    "enron6": Recall(98.10, 96.88),
}


def recall(stream: Stream, predicted: list[object]) -> Recall:
    """Of the messages after the first 100, which no filter judged."""
    pairs = list(zip(stream.labels, predicted, strict=True))[PACE:]
    found = {}
    for name in ("spam", "ham"):
        named = [prediction == name for label, prediction in pairs if label == name]
        found[name] = 100.0 * sum(named) / len(named)
    return Recall(**found)


def their_filter(stream: Stream) -> list[object]:
    """What the protocol says of each message; of the first 100 nothing."""
    presence = Presence.of([text.split() for text in stream.texts], stream.labels)
    predicted: list[object] = [None] * min(PACE, len(stream))
    for now in range(PACE, len(stream), PACE):
        counts, messages = presence.counts(range(now))
        chosen = np.argsort(-information_gain(counts, messages), kind="stable")[:ATTRIBUTES]
        chosen = chosen[counts[:, chosen].sum(axis=0) > 0]
        classes = [c for c, n in enumerate(messages) if n]
        shares = {presence.classes[c]: float(messages[c] / messages.sum()) for c in classes}
        model = NaiveBayes([CHOSEN], prior=FixedPrior(shares), head="product")
        names = [presence.words[j] for j in chosen]
        for c in classes:
            terms = dict(zip(names, counts[c, chosen].tolist(), strict=True))
            model.learn_one({"terms": terms}, presence.classes[c])
        attributes = set(names)
        for text in stream.texts[now : now + PACE]:
            said = model.predict_proba_one({"terms": dict.fromkeys(attributes & set(text.split()), 1)})
            predicted.append(likeliest(said))
    return predicted


def ours(stream: Stream, config: str) -> list[object]:
    """A configuration's model, which learns every 100 messages."""
    model = build_model(load_settings(ROOT / "configs" / config))
    predicted: list[object] = []
    for now in range(0, len(stream), PACE):
        texts = {"text": stream.texts[now : now + PACE]}
        batch = Batch(texts, [*stream.labels[now : now + PACE]])
        predicted += predictions(model.step(batch, learn=False))
        model.step(batch, score=False)
    return predicted


def main() -> None:
    """Print a row a set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"by default {', '.join(RECALLED)}")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of SET.jsonl.gz (%(default)s)")
    options = parser.parse_args()
    rows = []
    for name in options.sets or RECALLED:
        stream = read_stream(options.data, name)
        found = recall(stream, their_filter(stream))
        progress(f"{name}: {found}")
        theirs = RECALLED[name]
        difference = f"{found.spam - theirs.spam:+.2f} / {found.ham - theirs.ham:+.2f}"
        both = [str(recall(stream, ours(stream, f"{config}.toml"))) for config in ("spam", "spam-accurate")]
        rows.append([name, str(theirs), str(found), difference, *both])
    header = ["spam recall / ham recall, %", "recalled", "measured", "difference", "spam.toml"]
    print(f"{machine()}\n\n{markdown([*header, 'spam-accurate.toml'], rows)}")


if __name__ == "__main__":
    main()
