"""Whether a model goes wrong more or less often than before: river's drift detectors over its mistakes.

A detector is told of each judged message whether its prediction was wrong. What it sees is reported, and
changes nothing: no model is reset. What it has gathered belongs to the run. No snapshot holds it, so after a
restart it begins anew, and a change may be reported again from records that are read again.
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
"""Messages of which a change says how many were wrong."""


class Kind(NamedTuple):
    """A detector of river's: where it is, and whether it is told of hits in place of mistakes."""

    module: str
    of_hits: bool = False


DETECTORS = {
    "ADWIN": Kind("river.drift"),
    "KSWIN": Kind("river.drift"),
    "PageHinkley": Kind("river.drift"),
    "DDM": Kind("river.drift.binary"),
    "EDDM": Kind("river.drift.binary"),
    # It looks for fewer ones, as its authors' does, who count what was right; river's page says mistakes.
    "FHDDM": Kind("river.drift.binary", of_hits=True),
    "HDDMA": Kind("river.drift.binary"),
    "HDDMW": Kind("river.drift.binary"),
}
"""By river's names, but for its two that do not look at the values: those are there to be compared with."""


class DriftSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What watches the model's mistakes.

    Parameters
    ----------
    detector : str
        One of river's, by its name there; "" for none.
        Its parameters are river's defaults, which its authors chose for every stream, and a seed 0.
    """

    detector: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """Where a detector saw a change.

    Parameters
    ----------
    detector : str
    message : int
        By which message it was seen, counted from 1.
    labelled : int
        How many of the messages up to it had a label.
    before, recent : float
        The share that was wrong: since the change before, and of the newest 100 judged messages.
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
    """Tells a detector of each mistake, and says where it saw a change.

    Parameters
    ----------
    detector : str
        One of `DETECTORS`, with river's default parameters.

    Raises
    ------
    SettingsError
        There is no such detector.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> from streamnb.base.batch import Batch
    >>> from streamnb.evaluation.outcomes import outcomes_of
    >>> model, watch = NaiveBayes(), DriftWatch("ADWIN")
    >>> for labels in (["spam", "ham"], ["ham", "spam"]):  # half-way they change places
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
        self._messages = self._labelled = 0  # before the batch in hand
        self._judged = self._wrong = 0  # since the last change

    def add(
        self, scores: Scores, labels: Sequence[Label | None], outcomes: Outcomes
    ) -> list[tuple[int, Change]]:
        """Take in a batch's outcomes; returns each change with the row of the batch by which it was seen.

        Parameters
        ----------
        scores : Scores
        labels : sequence of Label or None
        outcomes : Outcomes
            Of those scores by those labels.
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
    """Return a new detector of river's."""
    kind = DETECTORS.get(name)
    if kind is None:
        raise SettingsError(
            f"`drift.detector`: there is no detector `{name}`.", f"There are {', '.join(DETECTORS)}."
        )
    made: Any = getattr(import_module(kind.module), name)
    seeded = "seed" in inspect.signature(made).parameters
    return cast("_Detector", made(seed=0) if seeded else made())


def _updated(detector: _Detector, value: bool) -> bool:
    detector.update(value)
    return detector.drift_detected
