"""Base class of the peers: scores texts, then learns their labels, behind the Protocol `OnlineModel`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

import numpy as np

from streamnb.base import Batch, Floats, Label, Scores
from streamnb.errors import DataError, SettingsError
from streamnb.naive_bayes import softmax


class Peer(ABC):
    """Another project's model behind `streamnb.evaluation.OnlineModel`; it ignores the messages' weights.

    Parameters
    ----------
    fields : sequence of str
        The fields of a message that hold its text; they are joined to one text.
    classes : sequence of Label
        All classes of the stream, because most peers must know them in advance. A class still counts as not
        learned until its first label.
    """

    lag = 1
    """Number of messages that are scored together, then learned together; 1 for strictly one by one."""

    def __init__(self, fields: Sequence[str], classes: Sequence[Label]) -> None:
        self.fields = tuple(fields)
        self.classes_ = list(classes)
        self._learned = np.zeros(len(self.classes_))

    @abstractmethod
    def log_scores(self, texts: list[str]) -> list[list[float]]:
        """Return, for each text and class, the log of the posterior up to a constant per text."""

    @abstractmethod
    def learn(self, texts: list[str], columns: list[int]) -> None:
        """Learn texts, given the column number of each one's class."""

    def step(self, batch: Batch) -> Scores:
        """Score each message, then learn it if it has a label, `lag` messages at a time.

        A class counts as learned from the message after its first label, even if `lag` is more than 1, so
        that every peer is judged on the same messages.

        Raises
        ------
        DataError
            A label is not among the classes.
        """
        index = {label: c for c, label in enumerate(self.classes_)}
        texts = self._texts(batch)
        for label in batch.labels:
            if label is not None and label not in index:
                raise DataError(
                    f"The label {label!r} is not among the classes that the compared models were given.",
                    "List every class in `model.classes`, or leave it empty to find them in the file.",
                )
        columns = [None if label is None else index[label] for label in batch.labels]
        u = np.empty((len(texts), len(self.classes_)))
        for begin in range(0, len(texts), self.lag):
            part = slice(begin, begin + self.lag)
            u[part] = self.log_scores(texts[part])
            taught = [(text, c) for text, c in zip(texts[part], columns[part], strict=True) if c is not None]
            if taught:
                self.learn([text for text, _ in taught], [c for _, c in taught])
        return self._scores(u, columns)

    def _texts(self, batch: Batch) -> list[str]:
        rows = zip(*(batch.fields[field] for field in self.fields), strict=True)
        return [" ".join(str(text) for text in row if text is not None) for row in rows]

    def _scores(self, u: Floats, columns: list[int | None]) -> Scores:
        n, width = u.shape
        posterior = np.array([softmax(row) for row in u.tolist()]).reshape(n, width)
        by_class = np.zeros((n, width))
        for i, c in enumerate(columns):
            by_class[i] = self._learned
            u[i, self._learned == 0] = math.nan
            if c is not None:
                self._learned[c] += 1
        zeros = np.zeros(n, np.int64)
        return Scores(
            classes=tuple(self.classes_),
            n_classes=zeros + width,
            posterior=posterior,
            log_odds=np.full((n, width), math.nan),
            u=u,
            raw_posterior=None,
            known_tokens=zeros,
            unknown_tokens=zeros,
            learned=by_class.sum(axis=1).astype(np.int64),
            learned_by_class=by_class,
            flags=zeros,
        )


def package(name: str, module: str, extra: str = "compare") -> ModuleType:
    """Import a peer's package and return its module.

    Raises
    ------
    SettingsError
        The package is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise SettingsError(
            f"The comparison needs the package {name}, which is not installed.",
            f"Install it: pip install 'streamnb[{extra}]'",
        ) from error
