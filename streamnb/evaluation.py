"""Prequential evaluation: every message is scored, then learned, in order (Dawid 1984).

A message whose class had never been learned before counts in `new_class` and in no other figure: no model
could have named it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from streamnb.columns import Batch, Label, Scores
from streamnb.protocols import Classifier

LOG_LOSS_FLOOR = 1e-15


@dataclass(slots=True)
class Evaluation:
    """Figures of one pass over a stream.

    Parameters
    ----------
    n : int
        Labelled messages, those of `new_class` included.
    accuracy, log_loss : float
        Over the `n` - `new_class` messages; the log loss in nats, p not below 1e-15. NaN over none.
    roca_loss_pct : float or None
        The area above the ROC curve in per cent, ranked by u; with two classes only.
    new_class : int
        Messages whose class had never been learned.
    messages_per_s : float
        Of the steps alone: texts were decoded and in memory.
    classes : list of str
    """

    n: int
    accuracy: float
    log_loss: float
    roca_loss_pct: float | None
    new_class: int
    messages_per_s: float
    classes: list[str]


class Prequential:
    """Adds up what scores are worth against the labels that came with them."""

    def __init__(self) -> None:
        self.n = 0
        self.new_class = 0
        self.correct = 0
        self.loss = 0.0
        self.seconds = 0.0
        self._known: set[Label] = set()
        self._ranked: list[tuple[Label, float]] = []

    def add(self, scores: Scores, labels: Iterable[Label | None], predicted: Iterable[Label | None]) -> None:
        """Judge a batch; messages without a label are not judged."""
        index = {label: c for c, label in enumerate(scores.classes)}
        for i, (label, prediction) in enumerate(zip(labels, predicted, strict=True)):
            if label is None:
                continue
            self.n += 1
            if label not in self._known:
                if label in index:  # not one that the model refused as one class too many
                    self._known.add(label)
                self.new_class += 1
                continue
            self.correct += prediction == label
            self.loss -= math.log(max(float(scores.posterior[i, index[label]]), LOG_LOSS_FLOOR))
            if len(scores.classes) <= 2:
                u = [value if value == value else -math.inf for value in scores.u[i].tolist()]  # noqa: PLR0124 - NaN
                self._ranked.append((label, _margin(u)))

    def figures(self, classes: Iterable[Label]) -> Evaluation:
        """The figures so far."""
        names = list(classes)
        judged = self.n - self.new_class
        return Evaluation(
            n=self.n,
            accuracy=self.correct / judged if judged else math.nan,
            log_loss=self.loss / judged if judged else math.nan,
            roca_loss_pct=_roca_loss_pct(self._ranked, names) if len(names) == 2 else None,
            new_class=self.new_class,
            messages_per_s=self.n / self.seconds if self.seconds else math.nan,
            classes=[str(name) for name in names],
        )


def evaluate(classifier: Classifier, batches: Iterable[Batch]) -> Iterator[tuple[Prequential, Scores]]:
    """Score and learn batch by batch; yields the running judgement after each.

    Parameters
    ----------
    classifier : Classifier
    batches : iterable of Batch

    Yields
    ------
    (Prequential, Scores)
    """
    judgement = Prequential()
    for batch in batches:
        began = time.perf_counter()
        scores = classifier.step(batch)
        judgement.seconds += time.perf_counter() - began
        judgement.add(scores, batch.labels, predictions(scores))
        yield judgement, scores


def predictions(scores: Scores) -> list[Label | None]:
    """The likeliest class of each row; of equals the smallest."""
    order = sorted(range(len(scores.classes)), key=scores.classes.__getitem__)
    found: list[Label | None] = []
    for n, row in zip(scores.n_classes.tolist(), scores.posterior.tolist(), strict=True):
        candidates = [c for c in order if c < n]
        best = max(candidates, key=row.__getitem__, default=None)
        found.append(None if best is None else scores.classes[best])
    return found


def _margin(u: list[float]) -> float:
    """How far the second class is ahead of the first; an absent or unlabelled one is behind by all."""
    first, second = u[0], u[1] if len(u) > 1 else -math.inf
    if first == second:
        return 0.0
    return second - first


def _roca_loss_pct(ranked: list[tuple[Label, float]], classes: list[Label]) -> float | None:
    """100 times the share of pairs (one of each class) that are ranked the wrong way; equals count half."""
    is_second = np.array([label == classes[1] for label, _ in ranked], np.bool_)
    margins = np.array([margin for _, margin in ranked], np.float64)
    n_second = int(is_second.sum())
    n_first = len(ranked) - n_second
    if not n_first or not n_second:
        return None
    _, inverse, counts = np.unique(margins, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2.0
    above = float(ranks[inverse][is_second].sum()) - n_second * (n_second + 1) / 2.0
    return 100.0 * (1.0 - above / (n_first * n_second))
