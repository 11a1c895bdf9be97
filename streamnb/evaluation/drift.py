"""Whether a model goes wrong more or less often than before: river's drift detectors over its mistakes.

A detector is told of each judged message whether its prediction was wrong. What it sees is reported, and
changes nothing: no model is reset. What it has gathered belongs to the run. No snapshot holds it, so after a
restart it begins anew, and a change may be reported again from records that are read again.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from streamnb.base import Label, Scores
from streamnb.errors import SettingsError
from streamnb.evaluation.outcomes import Outcomes, judged_rows

Parameter = bool | int | float | str

RECENT = 100
"""Messages of which a change says how many were wrong."""

WHOLE_MAX = 1_000_000
"""Of a parameter that is a whole number: most are the length of a window that is held."""

TRIAL = 150
"""Values that a detector must take before it is believed; most wait for 30 to 100 before they compute."""


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

_NOT_SET = ("window",)  # KSWIN's: values to begin with


class DriftSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What watches the model's mistakes.

    Parameters
    ----------
    detector : str
        One of river's, by its name there; "" for none.
    parameters : dict
        The detector's own, by river's names; what is left out is river's default, and a seed 0.
    """

    detector: str = ""
    parameters: dict[str, Parameter] = {}


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
    settings : DriftSettings
        With a detector.

    Raises
    ------
    SettingsError
        There is no such detector, or it has no such parameters.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> from streamnb.base.batch import Batch
    >>> from streamnb.evaluation.outcomes import outcomes_of
    >>> model, watch = NaiveBayes(), DriftWatch(DriftSettings("ADWIN"))
    >>> for labels in (["spam", "ham"], ["ham", "spam"]):  # half-way they change places
    ...     batch = Batch({"text": ["win", "lunch"] * 50}, labels * 50)
    ...     scores = model.step(batch)
    ...     for _, change in watch.add(scores, batch.labels, outcomes_of(scores, batch.labels)):
    ...         print(change)
    Change(detector='ADWIN', message=130, labelled=130, before=0.234375, recent=0.3)
    """

    def __init__(self, settings: DriftSettings) -> None:
        self.name = settings.detector
        self._detector = _tried(settings)
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
            if _updated(self.name, self._detector, right if self._of_hits else not right):
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


def _tried(settings: DriftSettings) -> _Detector:
    """The detector, once a first one like it has taken some values."""
    kind = DETECTORS.get(settings.detector)
    if kind is None:
        raise SettingsError(
            f"`drift.detector`: there is no detector `{settings.detector}`.",
            f"There are {', '.join(DETECTORS)}.",
        )
    made: Any = getattr(import_module(kind.module), settings.detector)
    parameters = _checked(settings, inspect.signature(made).parameters)
    first = _made(settings.detector, made, parameters)
    for i in range(TRIAL):
        _updated(settings.detector, first, i % 2 == 0)
    return _made(settings.detector, made, parameters)


def _checked(settings: DriftSettings, known: Mapping[str, inspect.Parameter]) -> dict[str, Parameter]:
    """The parameters, each one of the detector's and of its default's type."""
    names = [name for name in known if name not in _NOT_SET]
    found: dict[str, Parameter] = {"seed": 0} if "seed" in names else {}
    for name, value in settings.parameters.items():
        if name not in names:
            has = ", ".join(f"{one} = {known[one].default}" for one in names)
            raise SettingsError(
                f"`drift.parameters`: {settings.detector} has no parameter `{name}`.", f"It has {has}."
            )
        default = known[name].default
        wanted = int if default is None else type(default)
        takes = (int, float) if wanted is float else (wanted,)
        if not isinstance(value, takes) or isinstance(value, bool) != (wanted is bool):
            raise SettingsError(
                f"`drift.parameters.{name}` is {value!r}, which is no `{wanted.__name__}`.",
                f"The default is {default}.",
            )
        if wanted is int and name != "seed" and not 1 <= value <= WHOLE_MAX:
            raise SettingsError(
                f"`drift.parameters.{name}` is {value}.",
                f"Set it from 1 to {WHOLE_MAX:,}; the default is {default}.",
            )
        found[name] = value
    return found


def _made(name: str, made: Any, parameters: Mapping[str, Parameter]) -> _Detector:  # noqa: ANN401
    try:
        return cast("_Detector", made(**parameters))
    except (ValueError, TypeError, ArithmeticError) as error:
        raise _failed(name, error) from error


def _updated(name: str, detector: _Detector, value: bool) -> bool:
    try:
        detector.update(value)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise _failed(name, error) from error
    return detector.drift_detected


def _failed(name: str, error: Exception) -> SettingsError:
    return SettingsError(
        f"{name} cannot go by these `drift.parameters`: {error}.", "Leave one out to have river's default."
    )
