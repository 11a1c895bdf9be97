"""A bound on what the names of all classes together add to a score.

With a high `output.top_classes` every score lists every class, in several tables. `model.classes_max` bounds
their number and the decoder the length of each; where an operator allows many classes, the product could
still exceed what a broker takes. The bound does not depend on `top_classes`, which may change at any start.
A label that would exceed it is refused as one past `classes_max` is: by the classes alone, so that records
that are read again after a crash are decided in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import orjson

from streamnb.base import Batch, Classifier, Flag, Label, Scores

TABLES = 4  # posterior, log odds, learned by class, raw posterior
NUMBER_BYTES = 26  # the longest float with its colon and comma
CLASSES_BYTES_MAX = 800_000
"""Leaves 100,000 of `output.bytes_max` for key, id and the other fields. 3,000 classes of 40 letters fit."""

Step = Callable[[Batch, slice], Scores]
"""Scores and learns a part of a batch; the slice names its rows."""


class ClassBudget:
    """Steps batches, without the labels whose classes would make every later score too large.

    Parameters
    ----------
    bytes_max : int
        How many bytes of a score all classes together may take.

    Examples
    --------
    >>> from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
    >>> model, batch = NaiveBayes(), Batch({"text": ["win"] * 3}, ["spam", "ham", "spam"])
    >>> scores = ClassBudget(200).step(model, batch, lambda part, rows: model.step(part))
    >>> scores.classes, scores.flags.tolist() == [0, Flag.CLASS_LIMIT, 0]
    (('spam',), True)
    """

    def __init__(self, bytes_max: int = CLASSES_BYTES_MAX) -> None:
        self._left = bytes_max
        self._known: set[Label | None] = set()

    def step(self, classifier: Classifier, batch: Batch, step: Step) -> Scores:
        """Step a batch; the scores of refused labels have the flag `CLASS_LIMIT`."""
        if not self._known:  # the state may have been restored
            self._known.add(None)
            self._note(classifier.step(batch.rows(slice(0, 0)), learn=False))
        if sum(map(_bytes_of, set(batch.labels) - self._known)) <= self._left:
            return self._note(step(batch, slice(0, len(batch))))
        labels, refused, parts, begin = list(batch.labels), [], [], 0
        for i, label in enumerate(labels):
            if label in self._known:
                continue
            if _bytes_of(label) > self._left:
                labels[i] = None
                refused.append(i)
                continue
            rows = slice(
                begin, i + 1
            )  # up to here, because the guard may keep the label from becoming a class
            parts.append(self._note(step(replace(batch, labels=labels).rows(rows), rows)))
            begin = i + 1
        rows = slice(begin, len(labels))
        parts.append(step(replace(batch, labels=labels).rows(rows), rows))
        scores = Scores.joined(parts)
        scores.flags[refused] |= Flag.CLASS_LIMIT
        return scores

    def _note(self, scores: Scores) -> Scores:
        """Note the classes that the classifier has gained; it never loses one while an engine runs."""
        for label in scores.classes[len(self._known) - 1 :]:
            self._known.add(label)
            self._left -= _bytes_of(label)
        return scores


def _bytes_of(label: Label | None) -> int:
    """Return how many bytes a class adds to a score, at most."""
    return TABLES * (len(orjson.dumps(label)) + NUMBER_BYTES)
