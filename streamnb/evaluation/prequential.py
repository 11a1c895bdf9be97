"""Prequential evaluation: every message is scored, then learned, in order (Dawid 1984).

A message whose class had never been learned before counts in `new_class` and in no other figure, because no
model could have predicted its class.
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
    """A model that can be evaluated: it scores messages and learns their labels, in order."""

    @property
    def classes_(self) -> Sequence[Label]:
        """Return the classes so far, in the order of the scores' columns."""

    def step(self, batch: Batch) -> Scores:
        """Score each message, then learn it if it has a label."""


@dataclass(slots=True)
class Evaluation:
    """Figures of one pass over a stream.

    Parameters
    ----------
    n : int
        Labelled messages, including those of `new_class`.
    accuracy, log_loss : float
        Over the `n` - `new_class` judged messages; NaN if there are none. The log loss is in nats, with p at
        least 1e-15.
    roca_loss_pct : float or None
        The area above the ROC curve in per cent, with messages ranked by u; ``None`` unless there are two
        classes.
    new_class : int
        Messages whose class had never been learned.
    messages_per_s : float
        Labelled messages per second of the model's steps; reading and decoding are not included. With
        delayed labels the model reads each message twice.
    classes : list of str
    brier, ece, lam_pct, recall, precision, confusion, reliability
        See `streamnb.evaluation.Figures`. `ece` and `reliability` leave the first `warm_up` messages out.
    warm_up : int
    intervals : dict of str to Interval
        95 % intervals, by bootstrap; empty if they were not requested.
    window : Figures
        The figures of the sliding window: the newest judged messages.
    window_roca_loss_pct : float or None
        `roca_loss_pct` of the sliding window.
    changes : list of Change or None
        The detected changes of the error rate; ``None`` without a drift detector.
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
    """Collects the outcomes of scores against their labels, and computes the figures.

    Every outcome is kept, at 48 bytes per message: the ROC curve and the intervals need all of them.

    Parameters
    ----------
    window : int
        Size of the sliding window, in judged messages.
    warm_up : int
        Number of first messages that the calibration error leaves out.
    drift : DriftWatch, optional
        Receives every outcome.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> model, batch = NaiveBayes(), Batch({"text": ["win", "lunch", "win"]}, ["spam", "ham", "spam"])
    >>> judgement = Prequential()
    >>> judgement.add(model.step(batch), batch.labels)
    >>> figures = judgement.figures(model.classes_)
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
        """Add a batch's outcomes; messages without a label are ignored."""
        outcomes = outcomes_of(scores, labels)
        self.n += outcomes.labelled
        self.new_class += outcomes.new_class
        self.tally.add(outcomes)
        self.window.add(outcomes)
        self._kept.append(outcomes)
        if self.drift is not None:
            self.changes += [change for _, change in self.drift.add(scores, labels, outcomes)]

    def outcomes(self) -> Outcomes:
        """Return all outcomes, in order."""
        self._kept = [joined(self._kept)]
        return self._kept[0]

    def figures(self, classes: Sequence[Label], *, intervals: bool = False, seed: int = 0) -> Evaluation:
        """Return the figures of everything added so far.

        Parameters
        ----------
        classes : sequence of Label
            In the order of the scores' columns.
        intervals : bool
            Whether to compute bootstrap intervals, which takes 0.25 to 2 seconds.
        seed : int
            Random seed of the bootstrap.
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
    """Score, then learn, batch by batch; yield the judgement so far and the batch's scores after each batch.

    Parameters
    ----------
    model : OnlineModel
    batches : iterable of Batch
    feedback : Feedback, optional
        Decides which labels the model learns, and when; by default every label, at once. The scores are
        judged by all labels in either case.
    judgement : Prequential, optional
        Collects the outcomes; by default a new one.

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
