"""The base class of all estimators: one message or many, learned and scored, under river's names.

River's base class declares that any keyword may follow `x`. These methods take none, so that a misspelt
keyword is an error; the type checker is told to accept the narrower signatures.
"""

from __future__ import annotations

from abc import ABC
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from river import base

from streamnb.base import Batch, Label, likeliest
from streamnb.naive_bayes.estimators.frames import Row, frame_like, labels_of, rows_of, series_like
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.naive_bayes import NaiveBayes
from streamnb.naive_bayes.posterior.explanation import Explanation

FIELD = "x"
_TOKENIZER = Tokenizer(rule="words")


class Estimator(base.MiniBatchClassifier, ABC):
    """A naive Bayes of one view under the product head, with river's API.

    Everything goes through `NaiveBayes.step`, so many messages give the same bits as one after another.
    """

    _model: NaiveBayes
    _zeros = True  # whether a 0 in a sparse frame is a value rather than a missing name

    @property
    def _multiclass(self) -> bool:
        return True

    def _fields(self, x: Row) -> dict[str, object]:
        """Return a message as the model's fields."""
        return {FIELD: x}

    def _batch(
        self, rows: Sequence[Row], labels: Sequence[Label | None], weights: Sequence[float] | None
    ) -> Batch:
        return Batch({FIELD: [self._fields(row)[FIELD] for row in rows]}, labels, weights)

    def __setattr__(self, name: str, value: object) -> None:
        """Set a parameter, also of a model that has learned: its sums stay and are used under the new value.

        Raises
        ------
        ValueError
            The sums depend on the parameter; nothing was changed.
        """
        if "_model" not in self.__dict__ or name not in self._get_params():
            super().__setattr__(name, value)
            return
        other = self.clone({name: value})
        other.merge(self)
        self.__dict__.update(other.__dict__)

    # ---- one message

    def learn_one(self, x: Row, y: Label | None, weight: float = 1.0) -> None:  # type: ignore[override]
        """Learn one message; a label of ``None`` is not learned.

        Parameters
        ----------
        x : mapping of name to value
            Names that are no strings are known by ``str(name)``.
        y : str, int or bool
            One type a model; numpy's scalars are Python's.
        weight : float
            Above 0 and at most 1e9: that many messages.

        Raises
        ------
        ValueError
            A value, the label or the weight cannot be used; nothing was learned.
        """
        self._model.learn_one(self._fields(x), y, weight)

    def unlearn_one(self, x: Row, y: Label, weight: float = 1.0) -> None:
        """Unlearn a message that was learned; estimators have no half-life, so its time does not matter.

        Raises
        ------
        ValueError
            The message was not learned that often; nothing was changed.
        """
        self._model.unlearn_one(self._fields(x), y, weight)

    def predict_one(self, x: Row) -> Label | None:  # type: ignore[override]
        """Return the likeliest class, ties going to the smallest; ``None`` before anything was learned."""
        return self._model.predict_one(self._fields(x))

    def predict_proba_one(self, x: Row) -> dict[Label, float]:  # type: ignore[override]
        """Return the posterior per class; empty before anything was learned."""
        return self._model.predict_proba_one(self._fields(x))

    def predict_log_proba_one(self, x: Row) -> dict[Label, float]:
        """Return the natural logarithm of the posterior, finite where the posterior rounds to 0."""
        return self._model.predict_log_proba_one(self._fields(x))

    def log_odds_one(self, x: Row) -> dict[Label, float]:
        """Return ``log p - log(1 - p)`` per class, finite where p rounds to 1; infinite for an only class."""
        return self._model.log_odds_one(self._fields(x))

    def joint_log_likelihood(self, x: Row) -> dict[Label, float]:
        """Return ``log P(c) + log P(x | c)`` per class; all minus infinity is maximum likelihood's 0/0."""
        return self._model.joint_log_likelihood(self._fields(x))

    def explain_one(
        self, x: Row, classes: tuple[Label, Label] | None = None, top: int | None = None
    ) -> Explanation | None:
        """Explain the difference between two classes; see `NaiveBayes.explain_one`."""
        return self._model.explain_one(self._fields(x), classes, top)

    # ---- many

    def learn_many(self, X: object, y: object, weights: Iterable[float] | None = None) -> None:
        """Learn a batch completely, or not at all.

        Parameters
        ----------
        X : frame of pandas, polars or pyarrow, or sequence of mappings
            One row per message; a null or NaN cell is a name that the message lacks.
        y : series, or sequence of labels
        weights : sequence, array or series of float, optional

        Raises
        ------
        ValueError
            A value, label or weight cannot be used; nothing was learned.
        """
        rows, _ = rows_of(X, zeros=self._zeros)
        self._model.step(
            self._batch(rows, labels_of(y), None if weights is None else list(weights)), score=False
        )

    def predict_proba_many(self, X: Any) -> Any:  # noqa: ANN401 - a frame in, that kind of frame out
        """Return the posteriors of a batch.

        Returns
        -------
        frame of the kind of `X`, or list of dict
            One column per class, in the order of the labels and named by them (by their text where column
            names must be text); no columns before anything was learned. A list of dicts for a sequence.
        """
        rows, frame = rows_of(X, zeros=self._zeros)
        posterior = self._posterior(rows)
        if frame is None:
            return [
                dict(zip(posterior, row, strict=True)) for row in zip(*posterior.values(), strict=True)
            ] or [{} for _ in rows]
        return frame_like(posterior, frame)

    def predict_many(self, X: Any) -> Any:  # noqa: ANN401 - as above
        """Return the likeliest classes of a batch, as a series of the kind of `X`, or a list.

        Before anything was learned, return a frame without columns, as river does.
        """
        rows, frame = rows_of(X, zeros=self._zeros)
        posterior = self._posterior(rows)
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
        if frame is None:
            return joints
        return frame_like({label: [joint[label] for joint in joints] for label in self._labels()}, frame)

    def _posterior(self, rows: Sequence[Row]) -> dict[Label, list[float]]:
        """Return the posteriors of all rows per label, in the order of the labels."""
        scores = self._model.step(self._batch(rows, [None] * len(rows), None), learn=False)
        columns = dict(zip(scores.classes, scores.posterior.T.tolist(), strict=True))
        return {label: columns[label] for label in self._labels()}

    def _labels(self) -> list[Label]:
        return sorted(self._model.classes, key=lambda label: (type(label).__name__, label))

    # ---- what was learned

    @property
    def class_counts(self) -> Counter[Label]:
        """The weight of the messages learned, per class."""
        return Counter(dict(zip(self._model.classes, self._model.class_counts, strict=True)))

    def p_class(self, c: Label) -> float:
        """Return the share of class c among the messages learned; 0 before any."""
        counts = self.class_counts
        total = sum(counts.values())
        return counts[c] / total if total else 0.0

    def p_class_many(self) -> Any:  # noqa: ANN401 - pandas', which need not be installed
        """Return `p_class` of every class as river does: a pandas frame of one row, one column per class."""
        from river.utils import pandas  # brings scipy, which nothing else here needs

        return pandas.import_pandas().DataFrame({c: [self.p_class(c)] for c in self._model.classes})

    # ---- models as sums

    def merge(self, other: Self) -> None:
        """Add what another estimator has learned; see `NaiveBayes.merge`."""
        self._model.merge(other._model)

    def subtract(self, other: Self) -> None:
        """Subtract what another estimator has learned; see `NaiveBayes.subtract`."""
        self._model.subtract(other._model)

    def n_parameters(self, *, naive: bool = True) -> int:
        """Return how many numbers the model estimates; see `NaiveBayes.n_parameters`."""
        return self._model.n_parameters(naive=naive)

    def sample(self, n: int, seed: int = 0) -> Iterator[tuple[Any, Label]]:
        """Draw labelled messages from the model; see `NaiveBayes.sample`."""
        for x, y in self._model.sample(n, seed):
            yield x[FIELD], y

    def linear_weights(self, classes: tuple[Label, Label] | None = None) -> tuple[float, dict[str, float]]:
        """Return the linear boundary between two classes; see `NaiveBayes.linear_weights`."""
        intercept, weights = self._model.linear_weights(classes)
        return intercept, {name: w for (_, name), w in weights.items()}


def counts_of(x: Row) -> Mapping[str, object]:
    """Return a message as term counts; a text is tokenized by the rule ``words`` first."""
    if not isinstance(x, str):
        return x
    counts: dict[str, object] = dict(Counter(_TOKENIZER.read(x).tokens))
    return counts
