"""Live evaluation: the engine's own accuracy, log loss and calibration, published as Prometheus metrics.

The figures belong to the run: they are in no snapshot and in no digest, and a record that is read again after
a crash is counted again. Their memory does not grow with the stream.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from streamnb.base import Label, Scores
from streamnb.evaluation.drift import Change, DriftWatch
from streamnb.evaluation.outcomes import outcomes_of
from streamnb.evaluation.tally import BINS, Figures, Tally, Window

CLASSES_MAX = 20
"""With more classes the metrics page omits the confusion matrix, which has one line per pair of classes, and
has lines for the first 20 classes that were learned and one for all others together: labels are input, so
without a bound a stream could make the page as large as it likes."""

WINDOW_MESSAGES = 1_000
"""Size of the sliding window in labelled messages, 48 bytes each: enough for two digits of the accuracy."""


class LiveEvaluation(Collector):
    """Evaluates scores batch by batch, and publishes the figures as a Prometheus collector.

    The metrics server calls `collect` in its own thread; a lock keeps the figures consistent.

    Parameters
    ----------
    window_messages : int
        Size of the sliding window in labelled messages; 0 switches the evaluation off.
    drift : DriftWatch, optional
        Receives every outcome, even with a window of 0.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> from streamnb.base.batch import Batch
    >>> live, batch = LiveEvaluation(), Batch({"text": ["win", "lunch", "win"]}, ["spam", "ham", "spam"])
    >>> live.add(NaiveBayes().step(batch), batch.labels)
    []
    >>> live.sentence()
    '1 labelled message judged: accuracy 1.0000, log loss 0.4055; the last 1: 1.0000, 0.4055'
    """

    def __init__(self, window_messages: int = WINDOW_MESSAGES, drift: DriftWatch | None = None) -> None:
        self._size = window_messages
        self.drift = drift
        self._changes = 0
        self._tally = Tally(classes_max=CLASSES_MAX)
        self._window = Window(self._size, CLASSES_MAX)
        self._new_class = 0
        self._classes: Sequence[Label] = ()
        self._lock = threading.Lock()

    def add(self, scores: Scores, labels: Sequence[Label | None]) -> list[tuple[int, Change]]:
        """Evaluate a batch, and return each detected change with the batch row that revealed it."""
        if self.drift is None and (not self._size or all(label is None for label in labels)):
            return []
        outcomes = outcomes_of(scores, labels)
        seen = [] if self.drift is None else self.drift.add(scores, labels, outcomes)
        with self._lock:
            self._changes += len(seen)
            if self._size:
                self._tally.add(outcomes)
                self._window.add(outcomes)
                self._new_class += outcomes.new_class
                self._classes = scores.classes
        return seen

    def sentence(self) -> str:
        """Return the figures as one line for the log; empty while no message was judged."""
        (whole, window, _), *_ = self._figures()
        if not whole.n:
            return ""
        return (
            f"{whole.n} labelled message{'s' if whole.n > 1 else ''} judged: "
            f"accuracy {whole.accuracy:.4f}, log loss {whole.log_loss:.4f}; "
            f"the last {window.n}: {window.accuracy:.4f}, {window.log_loss:.4f}"
        )

    def collect(self) -> Iterator[Metric]:
        """Yield the current figures as metrics, for a registry of `prometheus_client`."""
        (whole, window, ranking), new_class, changes, bins = self._figures()
        both = {"all": whole, "window": window}
        judged = CounterMetricFamily(
            "streamnb_judged",
            "Labelled messages: judged, or new_class if their class had not been learned before",
            labels=["outcome"],
        )
        judged.add_metric(["judged"], whole.n)
        judged.add_metric(["new_class"], new_class)
        yield judged
        if self.drift is not None:
            drift = CounterMetricFamily(
                "streamnb_drift", "Changes of the error rate that the detector reported", labels=["detector"]
            )
            drift.add_metric([self.drift.name], changes)
            yield drift
        for name, what in (
            ("accuracy", "Share of judged messages whose label was predicted"),
            ("log_loss", "Mean log loss: -log of the label's posterior, in nats"),
            ("brier", "Brier score, summed over the classes: 0 to 2"),
            ("ece", "Expected calibration error, over 15 bins of the predicted class's posterior"),
        ):
            gauge = GaugeMetricFamily(f"streamnb_{name}", what, labels=["over"])
            for over, figures in both.items():
                gauge.add_metric([over], getattr(figures, name))
            yield gauge
        if whole.lam_pct is not None or window.lam_pct is not None:
            gauge = GaugeMetricFamily(
                "streamnb_lam_pct",
                "Error rates of the two classes, averaged as log odds (TREC's lam), in per cent",
                labels=["over"],
            )
            for over, figures in both.items():
                gauge.add_metric([over], math.nan if figures.lam_pct is None else figures.lam_pct)
            yield gauge
        if ranking is not None:
            yield GaugeMetricFamily(
                "streamnb_roca_loss_pct", "Area above the window's ROC curve, in per cent", value=ranking
            )
        for name, what in (
            ("recall", "Share of a class's messages that were predicted correctly"),
            ("precision", "Share of a class's predictions that were right"),
        ):
            gauge = GaugeMetricFamily(f"streamnb_{name}", what, labels=["class", "over"])
            for over, figures in both.items():
                for label, value in getattr(figures, name).items():
                    if not math.isnan(value):
                        gauge.add_metric([label, over], value)
            yield gauge
        yield _confusion(whole)
        yield from _reliability(bins)

    def _figures(
        self,
    ) -> tuple[tuple[Figures, Figures, float | None], int, int, list[tuple[int, float, int]]]:
        with self._lock:
            window, ranking = self._window.figures(self._classes)
            whole = self._tally.figures(self._classes)
            return (whole, window, ranking), self._new_class, self._changes, self._tally.bins()


def _confusion(figures: Figures) -> Metric:
    """Return the confusion matrix, empty with more than `CLASSES_MAX` classes: it would swamp the page."""
    taken = CounterMetricFamily(
        "streamnb_confusion", "Judged messages, by class and prediction", labels=["class", "predicted"]
    )
    if len(figures.confusion) <= CLASSES_MAX:
        for label, row in figures.confusion.items():
            for predicted, n in row.items():
                taken.add_metric([label, predicted], n)
    return taken


def _reliability(bins: Sequence[tuple[int, float, int]]) -> Iterator[Metric]:
    """Yield the reliability curve's sums by bin: as counters, they can be plotted for any period."""
    whats = {
        "messages": "Judged messages, by bin of the predicted class's posterior",
        "said": "Sum of the predicted class's posterior over the judged messages of the bin",
        "right": "Judged messages of the bin whose label was predicted",
    }
    for column, (name, what) in enumerate(whats.items()):
        family = CounterMetricFamily(f"streamnb_reliability_{name}", what, labels=["le"])
        for number, sums in enumerate(bins, 1):
            family.add_metric([f"{number / BINS:.3f}"], sums[column])
        yield family
