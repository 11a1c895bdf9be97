"""The answers about a batch: posteriors, labels, log odds and joints, as a frame of the kind given."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

from river import base

from streamnb.base import Batch, Label, Scores, likeliest
from streamnb.naive_bayes.estimators.frames import Frame, Row, frame_like, rows_of, series_like
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.posterior.odds import log_sigmoid


class BatchAnswers(base.MiniBatchClassifier):
    """The methods that score many messages; what they need of a model is abstract here."""

    state: State
    _zeros = True  # whether a 0 in a sparse frame is a value rather than a missing name

    @abstractmethod
    def step(self, batch: Batch, *, score: bool = True, learn: bool = True) -> Scores:
        """Score each message, then learn it if it has a label, in order."""

    @abstractmethod
    def joint_log_likelihood(self, x: Row) -> dict[Label, float]:
        """Return ``log P(c) + log P(x | c)`` of one message."""

    @abstractmethod
    def _columns(self, rows: Sequence[Row]) -> dict[str, list[object]]:
        """Return messages as the columns of a batch."""

    def predict_proba_many(self, X: Any) -> Any:  # noqa: ANN401 - a frame in, that kind of frame out
        """Return the posteriors of a batch.

        Returns
        -------
        frame of the kind of `X`, or list of dict
            One column per class, in the order of the labels and named by them (by their text where column
            names must be text); no columns before anything was learned. A list of dicts for a sequence.
        """
        rows, frame = rows_of(X, zeros=self._zeros)
        return self._answer(self._scored(rows, "posterior"), rows, frame)

    def predict_many(self, X: Any) -> Any:  # noqa: ANN401 - as above
        """Return the likeliest classes of a batch, as a series of the kind of `X`, or a list.

        Before anything was learned, return a frame without columns, as river does.
        """
        rows, frame = rows_of(X, zeros=self._zeros)
        posterior = self._scored(rows, "posterior")
        if frame is not None and not posterior:
            return frame_like({}, frame)
        labels = [
            likeliest(dict(zip(posterior, row, strict=True))) for row in zip(*posterior.values(), strict=True)
        ] or [None for _ in rows]
        return labels if frame is None else series_like(labels, frame)

    def joint_log_likelihood_many(self, X: Any) -> Any:  # noqa: ANN401 - as above
        """Return ``log P(c) + log P(x | c)`` of a batch, in the form of `predict_proba_many`."""
        rows, frame = rows_of(X, zeros=self._zeros)
        joints = [self.joint_log_likelihood(row) for row in rows]
        labels = sorted(self.state.classes[c] for c in self.state.active())
        return self._answer({label: [joint[label] for joint in joints] for label in labels}, rows, frame)

    def log_odds_many(self, X: Any) -> Any:  # noqa: ANN401 - as above
        """Return `log_odds_one` of a batch, in the form of `predict_proba_many`."""
        rows, frame = rows_of(X, zeros=self._zeros)
        return self._answer(self._scored(rows, "log_odds"), rows, frame)

    def predict_log_proba_many(self, X: Any) -> Any:  # noqa: ANN401 - as above
        """Return `predict_log_proba_one` of a batch, in the form of `predict_proba_many`."""
        rows, frame = rows_of(X, zeros=self._zeros)
        odds = self._scored(rows, "log_odds")
        logs = {label: [log_sigmoid(value) for value in column] for label, column in odds.items()}
        return self._answer(logs, rows, frame)

    def _answer(self, columns: dict[Label, list[float]], rows: Sequence[Row], frame: Frame | None) -> object:
        """Return columns of numbers as a frame of the kind of `frame`, or as a list of dicts without one."""
        if frame is not None:
            return frame_like(columns, frame)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)] or [
            {} for _ in rows
        ]

    def _scored(
        self, rows: Sequence[Row], what: Literal["posterior", "log_odds"]
    ) -> dict[Label, list[float]]:
        """Return one array of the rows' scores per label, in the order of the labels."""
        scores = self.step(Batch(self._columns(rows), [None] * len(rows)), learn=False)
        columns = self.state.without_unlearned(
            dict(zip(scores.classes, getattr(scores, what).T.tolist(), strict=True))
        )
        return {label: columns[label] for label in sorted(columns)}
