"""Prequential evaluation: every message is scored, then learned, in order (Dawid 1984).

A message whose class had never been learned before counts in `new_class` and in no other figure: no model
could have named it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamnb.base import Batch, Label, Scores
from streamnb.evaluation.drift import Change, DriftWatch
from streamnb.evaluation.feedback import Feedback
from streamnb.evaluation.intervals import Interval, bootstrap
from streamnb.evaluation.outcomes import Outcomes, joined, outcomes_of
from streamnb.evaluation.ranking import roca_loss_pct
from streamnb.evaluation.tally import Bin, Figures, Tally, Window

WINDOW = 1_000
WARM_UP = 500


class OnlineModel(Protocol):
    """What can be judged: a model that scores messages and learns their labels, in order."""

    @property
    def classes(self) -> Sequence[Label]:
        """The columns of its scores, so far."""

    def step(self, batch: Batch) -> Scores:
        """Score each message, then learn it if it has a label."""


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
        Of the steps alone: texts were decoded and in memory. Late labels are messages read twice.
    classes : list of str
    brier, ece, lam_pct, recall, precision, confusion, reliability
        See `streamnb.evaluation.Figures`. `ece` and `reliability` leave the first `warm_up` messages out.
    warm_up : int
    intervals : dict of str to Interval
        95 %, by bootstrap; empty where they were not asked for.
    window : Figures
        Of the newest messages alone.
    window_roca_loss_pct : float or None
    changes : list of Change or None
        Where the share of mistakes was seen to change; ``None`` if nothing watched it.
    """

    n: int
    accuracy: float
    log_loss: float
    roca_loss_pct: float | None
    new_class: int
    messages_per_s: float
    classes: list[str]
    brier: float
    ece: float
    lam_pct: float | None
    recall: dict[str, float]
    precision: dict[str, float]
    confusion: dict[str, dict[str, int]]
    reliability: list[Bin]
    warm_up: int
    intervals: dict[str, Interval]
    window: Figures
    window_roca_loss_pct: float | None
    changes: list[Change] | None


class Prequential:
    """Adds up what scores are worth against the labels that came with them.

    Every outcome is kept, 48 bytes a message: the ranking and the intervals need them all.

    Parameters
    ----------
    window : int
        How many messages the window holds.
    warm_up : int
        Messages that the calibration error leaves out.
    drift : DriftWatch, optional
        Told of every mistake.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> model, batch = NaiveBayes(), Batch({"text": ["win", "lunch", "win"]}, ["spam", "ham", "spam"])
    >>> judgement = Prequential()
    >>> judgement.add(model.step(batch), batch.labels)
    >>> figures = judgement.figures(model.classes)
    >>> figures.n, figures.new_class, figures.accuracy
    (3, 2, 1.0)
    """

    def __init__(self, window: int = WINDOW, warm_up: int = WARM_UP, drift: DriftWatch | None = None) -> None:
        self.n = 0
        self.new_class = 0
        self.seconds = 0.0
        self.tally = Tally(warm_up)
        self.window = Window(window)
        self.drift = drift
        self.changes: list[Change] = []
        self._kept: list[Outcomes] = []

    def add(self, scores: Scores, labels: Sequence[Label | None]) -> None:
        """Judge a batch; messages without a label are not judged."""
        outcomes = outcomes_of(scores, labels)
        self.n += outcomes.labelled
        self.new_class += outcomes.new_class
        self.tally.add(outcomes)
        self.window.add(outcomes)
        self._kept.append(outcomes)
        if self.drift is not None:
            self.changes += [change for _, change in self.drift.add(scores, labels, outcomes)]

    def outcomes(self) -> Outcomes:
        """All of them, in order."""
        self._kept = [joined(self._kept)]
        return self._kept[0]

    def figures(self, classes: Sequence[Label], *, intervals: bool = False, seed: int = 0) -> Evaluation:
        """The figures so far.

        Parameters
        ----------
        classes : sequence of Label
            As the scores have them.
        intervals : bool
            Whether to bootstrap; it takes a quarter of a second or two.
        seed : int
            Of the bootstrap.
        """
        outcomes, two = self.outcomes(), len(classes) == 2
        sums = self.tally.figures(classes)
        window, window_roca = self.window.figures(classes)
        return Evaluation(
            n=self.n,
            accuracy=sums.accuracy,
            log_loss=sums.log_loss,
            roca_loss_pct=roca_loss_pct(outcomes.margin, outcomes.truth == 1) if two else None,
            new_class=self.new_class,
            messages_per_s=self.n / self.seconds if self.seconds else math.nan,
            classes=[str(name) for name in classes],
            brier=sums.brier,
            ece=sums.ece,
            lam_pct=sums.lam_pct,
            recall=sums.recall,
            precision=sums.precision,
            confusion=sums.confusion,
            reliability=sums.reliability,
            warm_up=self.tally.warm_up,
            intervals=bootstrap(outcomes, two_classes=two, seed=seed) if intervals else {},
            window=window,
            window_roca_loss_pct=window_roca,
            changes=None if self.drift is None else list(self.changes),
        )


def evaluate(
    model: OnlineModel,
    batches: Iterable[Batch],
    feedback: Feedback | None = None,
    judgement: Prequential | None = None,
) -> Iterator[tuple[Prequential, Scores]]:
    """Score and learn batch by batch; yields the running judgement after each.

    Parameters
    ----------
    model : OnlineModel
    batches : iterable of Batch
    feedback : Feedback, optional
        Which labels the model learns, and when; all are judged by. By default every label, at once.
    judgement : Prequential, optional
        A fresh one by default.

    Yields
    ------
    (Prequential, Scores)

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> model, batch = NaiveBayes(), Batch({"text": ["win", "lunch", "win"]}, ["spam", "ham", "spam"])
    >>> for judgement, scores in evaluate(model, [batch]):
    ...     print(judgement.n, scores.posterior[2].round(2).tolist())
    3 [0.67, 0.33]
    """
    judged = judgement or Prequential()
    for batch in batches:
        asked, rows = (batch, None) if feedback is None else feedback.arranged(batch)
        began = time.perf_counter()
        scores = model.step(asked)
        judged.seconds += time.perf_counter() - began
        if rows is not None:
            scores = scores.take(rows)
        judged.add(scores, batch.labels)
        yield judged, scores
