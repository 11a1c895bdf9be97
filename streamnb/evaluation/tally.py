"""Running sums over outcomes: of all messages so far (`Tally`), and of the newest (`Window`)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamnb.base import Floats, Label
from streamnb.evaluation.outcomes import Outcomes
from streamnb.evaluation.ranking import lam_pct, roca_loss_pct

BINS = 15
"""Number of bins of the reliability curve: equal widths from 0 to 1, by the predicted class's posterior."""


OTHER = "other"
"""The name of the classes that are summed; a class of this name is among them."""


@dataclass(slots=True)
class Bin:
    """One bin of the reliability curve.

    Parameters
    ----------
    n : int
        Judged messages in the bin.
    p : float
        Their mean posterior of the predicted class.
    accuracy : float
        The share of them that was predicted correctly; equal to `p` if the model is calibrated.
    """

    n: int
    p: float
    accuracy: float


@dataclass(slots=True)
class Figures:
    """The figures of an evaluation; the averages are NaN if no message was judged.

    Parameters
    ----------
    n : int
        Judged messages.
    accuracy : float
        The share that was predicted correctly.
    log_loss : float
        Mean log loss, in nats.
    brier : float
        Mean Brier score, summed over the classes: 0 to 2.
    ece : float
        Expected calibration error over 15 bins of the predicted class's posterior.
    lam_pct : float or None
        The two classes' error rates, averaged as log odds, in per cent; with two classes only.
    recall, precision : dict of str to float
        Per class. Recall is NaN if the class never was a label, precision if it was never predicted.
    confusion : dict of str to dict of str to int
        Number of messages, by label, then by predicted class; empty with more classes than the tally allows.
    reliability : list of Bin
        The non-empty ones of the 15 bins.
    """

    n: int
    accuracy: float
    log_loss: float
    brier: float
    ece: float
    lam_pct: float | None
    recall: dict[str, float]
    precision: dict[str, float]
    confusion: dict[str, dict[str, int]]
    reliability: list[Bin]


class Tally:
    """Sums over all outcomes; their memory does not grow with the stream.

    Parameters
    ----------
    warm_up : int
        Number of first messages that the calibration error and the reliability curve leave out, because a
        model that has learned almost nothing says little about calibration.
    classes_max : float
        With more classes there is no confusion matrix, all else takes time linear in the classes, and recall
        and precision list this many classes and sum the others as `OTHER`.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> from streamnb.base.batch import Batch
    >>> from streamnb.evaluation.outcomes import outcomes_of
    >>> batch = Batch({"text": ["win", "lunch", "win", "lunch"]}, ["spam", "ham", "spam", "spam"])
    >>> tally = Tally()
    >>> tally.add(outcomes_of(NaiveBayes().step(batch), batch.labels))
    >>> figures = tally.figures(["spam", "ham"])
    >>> figures.accuracy, figures.recall["spam"], figures.confusion["spam"]
    (0.5, 0.5, {'spam': 1, 'ham': 1})
    """

    def __init__(self, warm_up: int = 0, classes_max: float = math.inf) -> None:
        self.warm_up = warm_up
        self.n = 0
        self._loss = 0.0
        self._brier = 0.0
        self._sums = {name: np.zeros(0, np.int64) for name in ("right", "truth", "predicted")}
        self._confusion: Counter[tuple[int, int]] = Counter()
        self._classes_max = self._confusion_max = classes_max
        self._bin_p = np.zeros(BINS)
        self._bin_n = np.zeros((BINS, 2), np.int64)  # wrong, right

    def add(self, outcomes: Outcomes) -> None:
        """Add a batch's outcomes."""
        n = len(outcomes)
        if not n:
            return
        self._loss += float(outcomes.loss.sum())
        self._brier += float(outcomes.brier.sum())
        self._count_classes(outcomes.truth, outcomes.predicted)
        after = max(0, self.warm_up - self.n)
        self.n += n
        top, correct = outcomes.top[after:], outcomes.correct[after:]
        bins = np.maximum(np.ceil(top * BINS).astype(np.int64) - 1, 0)  # (0, 1/15], (1/15, 2/15], ...
        self._bin_p += np.bincount(bins, top, BINS)
        self._bin_n += np.bincount(2 * bins + correct, minlength=2 * BINS).reshape(BINS, 2)

    def _count_classes(self, truth: NDArray[np.int64], predicted: NDArray[np.int64]) -> None:
        """Count the pairs that there are: a matrix would take the square of the classes with each batch."""
        width = 1 + int(max(truth.max(), predicted.max()))
        for name, column in (
            ("right", truth[truth == predicted]),
            ("truth", truth),
            ("predicted", predicted),
        ):
            counts = np.bincount(column, minlength=max(width, len(self._sums[name])))
            counts[: len(self._sums[name])] += self._sums[name]
            self._sums[name] = counts
        if width > self._confusion_max:
            self._confusion_max = -1
            self._confusion.clear()
            return
        pairs, counts = np.unique(truth * width + predicted, return_counts=True)
        for pair, n in zip(pairs.tolist(), counts.tolist(), strict=True):
            self._confusion[divmod(pair, width)] += n

    def bins(self) -> list[tuple[int, float, int]]:
        """Return, for each of the 15 bins, the messages, the sum of their posteriors and how many were right.

        The posterior is that of the predicted class.
        """
        sizes = self._bin_n.sum(axis=1)
        return list(zip(sizes.tolist(), self._bin_p.tolist(), self._bin_n[:, 1].tolist(), strict=True))

    def figures(self, classes: Sequence[Label]) -> Figures:
        """Return the figures of all outcomes; `classes` are in the order of the scores' columns."""
        n, size, names = self.n, len(classes), [str(label) for label in classes]
        right, truth, predicted = (
            np.pad(self._sums[name], (0, size - len(self._sums[name])))
            for name in ("right", "truth", "predicted")
        )
        names, right, truth, predicted = self._shown(names, right, truth, predicted)
        recall, precision = _shares(right, truth), _shares(right, predicted)
        sizes = self._bin_n.sum(axis=1)
        filled = np.flatnonzero(sizes)
        counts, p, correct = sizes[filled], self._bin_p[filled], self._bin_n[filled, 1]
        return Figures(
            n=n,
            accuracy=float(right.sum()) / n if n else math.nan,
            log_loss=self._loss / n if n else math.nan,
            brier=self._brier / n if n else math.nan,
            ece=float(np.abs(p - correct).sum() / counts.sum()) if len(filled) else math.nan,
            lam_pct=lam_pct((1.0 - recall[0], 1.0 - recall[1])) if len(classes) == 2 else None,
            recall=dict(zip(names, recall, strict=True)),
            precision=dict(zip(names, precision, strict=True)),
            confusion={
                name: {other: self._confusion[t, p] for p, other in enumerate(names)}
                for t, name in enumerate(names if size <= self._confusion_max else ())
            },
            reliability=[
                Bin(k, said / k, true / k)
                for k, said, true in zip(counts.tolist(), p.tolist(), correct.tolist(), strict=True)
            ],
        )

    def _shown(
        self,
        names: list[str],
        right: NDArray[np.int64],
        truth: NDArray[np.int64],
        predicted: NDArray[np.int64],
    ) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return names and counts of the first classes, and `OTHER` with the sums of all others."""
        if len(names) <= self._classes_max:
            return names, right, truth, predicted
        first = [i for i, name in enumerate(names[: int(self._classes_max)]) if name != OTHER]

        def pooled(n: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.append(n[first], n.sum() - n[first].sum())

        return [*(names[i] for i in first), OTHER], pooled(right), pooled(truth), pooled(predicted)


class Window:
    """The newest outcomes, in ring buffers of a fixed size.

    Parameters
    ----------
    size : int
        Number of judged messages it holds; each takes 48 bytes.
    classes_max : float
        As for `Tally`.
    """

    def __init__(self, size: int, classes_max: float = math.inf) -> None:
        self.size = size
        self._classes_max = classes_max
        self._n = 0
        whole, real = ("truth", "predicted"), ("loss", "brier", "top", "margin")
        self._columns: dict[str, NDArray[np.int64] | Floats] = {
            **{name: np.zeros(size, np.int64) for name in whole},
            **{name: np.zeros(size) for name in real},
        }

    def add(self, outcomes: Outcomes) -> None:
        """Add a batch's outcomes in place of the oldest ones."""
        n = min(len(outcomes), self.size)
        begin = (self._n + len(outcomes) - n) % self.size
        fit = min(n, self.size - begin)
        for name, column in self._columns.items():
            newest = getattr(outcomes, name)[len(outcomes) - n :]
            column[begin : begin + fit] = newest[:fit]
            column[: n - fit] = newest[fit:]
        self._n += len(outcomes)

    def figures(self, classes: Sequence[Label]) -> tuple[Figures, float | None]:
        """Return the window's figures and its 1-ROCA %, which is ``None`` unless there are two classes."""
        held = self.outcomes()
        tally = Tally(classes_max=self._classes_max)
        tally.add(held)
        ranking = roca_loss_pct(held.margin, held.truth == 1) if len(classes) == 2 else None
        return tally.figures(classes), ranking

    def outcomes(self) -> Outcomes:
        """Return the outcomes in the window, in no particular order."""
        n = min(self._n, self.size)
        held = {name: column[:n].copy() for name, column in self._columns.items()}
        return Outcomes(labelled=n, new_class=0, **held)  # type: ignore[arg-type]


def _shares(part: NDArray[np.int64], whole: NDArray[np.int64]) -> list[float]:
    return [a / b if b else math.nan for a, b in zip(part.tolist(), whole.tolist(), strict=True)]
