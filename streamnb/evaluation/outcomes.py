"""Outcomes: each judged message's prediction, label and loss, as numpy columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamnb.base import Floats, Label, Scores

LOG_LOSS_FLOOR = 1e-15
UNLABELLED, ABSENT = -1, -2

Columns = NDArray[np.int64]


@dataclass(slots=True)
class Outcomes:
    """The outcomes of a batch's judged messages: those with a label whose class had been learned before.

    A message whose class had never been learned is counted in `new_class` and is not judged, because no model
    could have predicted its class.

    Parameters
    ----------
    labelled, new_class : int
        Messages with a label, and those of them whose class had never been learned.
    truth, predicted : ndarray of int64
        The label and the predicted class, as column numbers of the scores. The class with the highest
        posterior is predicted; if several are equal, the smallest label.
    loss : ndarray of float64
        Log loss: ``-log p`` of the label in nats, with p at least 1e-15.
    brier : ndarray of float64
        Brier score: ``sum_c (p_c - [c is the label])^2``, from 0 to 2.
    top : ndarray of float64
        The posterior of the predicted class.
    margin : ndarray of float64
        The second class's u minus the first's, which ranks messages; NaN with more than two classes.
    """

    labelled: int
    new_class: int
    truth: Columns
    predicted: Columns
    loss: Floats
    brier: Floats
    top: Floats
    margin: Floats

    def __len__(self) -> int:
        return len(self.truth)

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Return, for each judged message, whether its label was predicted."""
        return np.equal(self.truth, self.predicted)


class _Columns(dict[Label | None, int]):
    """Maps a label to its column: `UNLABELLED` for no label, `ABSENT` for a class the scores do not have."""

    def __missing__(self, label: Label | None) -> int:
        return UNLABELLED if label is None else ABSENT


def outcomes_of(scores: Scores, labels: Sequence[Label | None]) -> Outcomes:
    """Return the outcomes of a batch's scores, given its labels.

    Parameters
    ----------
    scores : Scores
    labels : sequence of Label or None
        One per row; a message without a label is not judged.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> from streamnb.base.batch import Batch
    >>> batch = Batch({"text": ["win money", "lunch", "win", "lunch"]}, ["spam", "ham", "spam", None])
    >>> outcomes = outcomes_of(NaiveBayes().step(batch), batch.labels)
    >>> outcomes.labelled, outcomes.new_class, outcomes.correct.tolist()
    (3, 2, [True])
    """
    truth = _truth(scores, labels)
    labelled = int(np.count_nonzero(truth != UNLABELLED))
    judged = _judged(scores, truth)
    if not judged.all():
        rows = np.flatnonzero(judged)
        truth, scores = truth[rows], scores.take(rows.tolist())
    posterior = scores.posterior
    predicted, p = _likeliest(scores.classes, posterior), _picked(posterior, truth)
    return Outcomes(
        labelled=labelled,
        new_class=labelled - len(truth),
        truth=truth,
        predicted=predicted,
        loss=-np.log(np.maximum(p, LOG_LOSS_FLOOR)),
        brier=np.einsum("ij,ij->i", posterior, posterior) - 2.0 * p + 1.0,
        top=_picked(posterior, predicted),
        margin=_margins(scores.u),
    )


def judged_rows(scores: Scores, labels: Sequence[Label | None]) -> Columns:
    """Return the batch rows that `outcomes_of` judges, in order."""
    return np.flatnonzero(_judged(scores, _truth(scores, labels)))


def joined(parts: Sequence[Outcomes]) -> Outcomes:
    """Return the outcomes of several batches as one, in order."""
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    return Outcomes(
        labelled=sum(part.labelled for part in parts),
        new_class=sum(part.new_class for part in parts),
        truth=np.concatenate([whole, *(part.truth for part in parts)]),
        predicted=np.concatenate([whole, *(part.predicted for part in parts)]),
        loss=np.concatenate([real, *(part.loss for part in parts)]),
        brier=np.concatenate([real, *(part.brier for part in parts)]),
        top=np.concatenate([real, *(part.top for part in parts)]),
        margin=np.concatenate([real, *(part.margin for part in parts)]),
    )


def predictions(scores: Scores) -> list[Label | None]:
    """Return the class with the highest posterior of each row.

    If several are equal, the smallest label is returned; if no class was known yet, ``None``.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> from streamnb.base.batch import Batch
    >>> predictions(NaiveBayes().step(Batch({"text": ["lunch", "lunch"]}, ["ham", "ham"])))
    [None, 'ham']
    """
    if not scores.classes:
        return [None] * len(scores)
    columns = _likeliest(scores.classes, scores.posterior)
    return [
        scores.classes[c] if n else None
        for c, n in zip(columns.tolist(), scores.n_classes.tolist(), strict=True)
    ]


def _truth(scores: Scores, labels: Sequence[Label | None]) -> Columns:
    columns = _Columns({label: c for c, label in enumerate(scores.classes)})
    return np.fromiter(map(columns.__getitem__, labels), np.int64, len(labels))


def _judged(scores: Scores, truth: Columns) -> NDArray[np.bool_]:
    judged = (truth >= 0) & (truth < scores.n_classes)
    if scores.classes:
        judged &= ~np.isnan(_picked(scores.u, np.maximum(truth, 0)))  # NaN: declared, but never learned
    return judged


def _picked(matrix: Floats, columns: Columns) -> Floats:
    """Return ``matrix[i, columns[i]]`` of each row i; a flat `take` costs a third of fancy indexing."""
    n, width = matrix.shape
    return matrix.take(np.arange(0, n * width, width or 1)[:n] + columns)


def _likeliest(classes: Sequence[Label], posterior: Floats) -> Columns:
    """Return the column of each row's highest posterior; if several are equal, that of the smallest label.

    The column of a class that was unknown when the row was scored holds 0, so it is never chosen.
    """
    first, *others = sorted(range(len(classes)), key=classes.__getitem__) or [0]
    best = np.full(len(posterior), first, np.int64)
    if others:
        top = posterior[:, first].copy()
        for c in others:  # argmax over rows this short takes several times as long
            ahead = posterior[:, c] > top
            best[ahead] = c
            np.copyto(top, posterior[:, c], where=ahead)
    return best


def _margins(u: Floats) -> Floats:
    """Return the second class's u minus the first's; a class that was never learned ranks last."""
    n, width = u.shape
    if width > 2:
        return np.full(n, np.nan)
    u = u if width == 2 else np.column_stack([u, np.full((n, 2 - width), np.nan)])
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        margins: Floats = u[:, 1] - u[:, 0]
        odd = np.isnan(margins)
        if odd.any():
            first, second = np.where(np.isnan(u[odd]), -np.inf, u[odd]).T
            margins[odd] = np.where(first == second, 0.0, second - first)
    return margins
