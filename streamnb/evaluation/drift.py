"""Drift detection: detect changes of a model's error rate with one of river's drift detectors.

For each judged message, the detector receives whether the prediction was wrong. A detected change is only
reported: the model is not reset. The detector's state is not part of a snapshot. It starts empty after a
restart, so a change may be reported a second time from records that are read again.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from streamnb.base import Label, Scores
from streamnb.errors import SettingsError
from streamnb.evaluation.outcomes import Outcomes, judged_rows

RECENT = 100
"""Length of the window over which a drift report gives the error rate."""


class Kind(NamedTuple):
    """A detector of river: its module, and whether it expects 1 for a hit, instead of 1 for an error."""

    module: str
    of_hits: bool = False


DETECTORS = {
    "ADWIN": Kind("river.drift"),
    "KSWIN": Kind("river.drift"),
    "PageHinkley": Kind("river.drift"),
    "DDM": Kind("river.drift.binary"),
    "EDDM": Kind("river.drift.binary"),
    # FHDDM detects a falling share of ones. Its authors feed it 1 for a correct prediction, and so does
    # this module; river's documentation says 1 for an error.
    "FHDDM": Kind("river.drift.binary", of_hits=True),
    "HDDMA": Kind("river.drift.binary"),
    "HDDMW": Kind("river.drift.binary"),
}
"""The detectors by their names in river, except its two baselines, which ignore the values they are given."""


class DriftSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The drift detector that watches the model's error rate.

    Parameters
    ----------
    detector : str
        The detector's name in river, one of `DETECTORS`; "" switches drift detection off. Its parameters are
        river's defaults; a seed is 0.
    """

    detector: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the error rate that a detector reported.

    Parameters
    ----------
    detector : str
    message : int
        Number of the message at which the change was detected, counted from 1.
    labelled : int
        How many messages up to and including that one had a label.
    before, recent : float
        The error rate since the previous change, and over the newest 100 judged messages.
    """

    detector: str
    message: int
    labelled: int
    before: float
    recent: float


class _Detector(Protocol):
    @property
    def drift_detected(self) -> bool: ...

    def update(self, x: bool) -> object: ...


class DriftWatch:
    """Feeds a detector with the outcome of each judged message, and reports the changes it detects.

    Parameters
    ----------
    detector : str
        One of `DETECTORS`, with river's default parameters.

    Raises
    ------
    SettingsError
        The detector is unknown.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> from streamnb.base.batch import Batch
    >>> from streamnb.evaluation.outcomes import outcomes_of
    >>> model, watch = NaiveBayes(), DriftWatch("ADWIN")
    >>> for labels in (["spam", "ham"], ["ham", "spam"]):  # the labels are swapped half-way
    ...     batch = Batch({"text": ["win", "lunch"] * 50}, labels * 50)
    ...     scores = model.step(batch)
    ...     for _, change in watch.add(scores, batch.labels, outcomes_of(scores, batch.labels)):
    ...         print(change)
    Change(detector='ADWIN', message=130, labelled=130, before=0.234375, recent=0.3)
    """

    def __init__(self, detector: str) -> None:
        self.name = detector
        self._detector = _made(detector)
        self._of_hits = DETECTORS[self.name].of_hits
        self._recent: deque[bool] = deque(maxlen=RECENT)
        self._messages = self._labelled = 0  # before the current batch
        self._judged = self._wrong = 0  # since the last change

    def add(
        self, scores: Scores, labels: Sequence[Label | None], outcomes: Outcomes
    ) -> list[tuple[int, Change]]:
        """Add a batch's outcomes, and return each detected change with the batch row that revealed it.

        Parameters
        ----------
        scores : Scores
        labels : sequence of Label or None
        outcomes : Outcomes
            What `outcomes_of` returns for those scores and labels.
        """
        seen = []
        for i, right in enumerate(outcomes.correct.tolist()):
            self._judged += 1
            self._wrong += not right
            self._recent.append(not right)
            if _updated(self._detector, right if self._of_hits else not right):
                seen.append((i, self._wrong / self._judged, sum(self._recent) / len(self._recent)))
                self._judged = self._wrong = 0
        rows = judged_rows(scores, labels).tolist() if seen else []
        found = []
        for i, before, recent in seen:
            row = rows[i]
            labelled = sum(label is not None for label in labels[: row + 1])
            place = self._messages + row + 1, self._labelled + labelled
            found.append((row, Change(self.name, *place, before, recent)))
        self._messages += len(labels)
        self._labelled += outcomes.labelled
        return found


def _made(name: str) -> _Detector:
    """Return a new detector of river."""
    kind = DETECTORS.get(name)
    if kind is None:
        raise SettingsError(
            f"`drift.detector`: there is no detector `{name}`.", f"Choose one of {', '.join(DETECTORS)}."
        )
    made: Any = getattr(import_module(kind.module), name)
    seeded = "seed" in inspect.signature(made).parameters
    return cast("_Detector", made(seed=0) if seeded else made())


def _updated(detector: _Detector, value: bool) -> bool:
    detector.update(value)
    return detector.drift_detected
