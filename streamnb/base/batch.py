"""The columns that enter a model and those that leave it.

Both are indexed by message, so that a batch of one and a batch of many are the same thing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import TypeVar, cast

import numpy as np
import orjson
from numpy.typing import NDArray

Label = str | bool | int
"""The answer given for a message. One type a model; ``None`` means no answer and is not learned."""

L = TypeVar("L", bound=Label)

Floats = NDArray[np.float64]

WEIGHT_MAX = 1e9
NUMBER_MAX = 1e100  # its square, summed over a stream, stays finite


class Flag(IntFlag):
    """What there is to say of one score."""

    EMPTY = 1  # the text holds no token
    TRUNCATED = 2  # a token or the list of tokens was cut at its limit
    CLASS_LIMIT = 4  # the label was refused: it would have been one class too many
    QUOTA = 8  # the label was not learned: its source had taught enough
    CERTAIN = 16  # the label was not learned: the model was certain of it already


@dataclass(slots=True)
class Batch:
    """Messages as columns.

    Parameters
    ----------
    fields : mapping of str to sequence
        One column a field; ``None`` where a message lacks it.
    labels : sequence of Label or None
        ``None``: score only.
    weights : sequence of float or None
        One positive number a message; ``None`` means 1 for all.
    times : sequence of (float or None), or None
        When each message was made, in seconds since 1970, for a model that forgets by time; no other looks
        at them. A message without one counts as new as the newest of its partition.
    partition : str
        Where the messages come from: each partition has a newest time of its own.
    """

    fields: Mapping[str, Sequence[object]]
    labels: Sequence[Label | None]
    weights: Sequence[float] | None = None
    times: Sequence[float | None] | None = None
    partition: str = ""

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, where: slice) -> Batch:
        """Return the messages of a slice."""
        return Batch(
            {name: column[where] for name, column in self.fields.items()},
            self.labels[where],
            None if self.weights is None else self.weights[where],
            None if self.times is None else self.times[where],
            self.partition,
        )


@dataclass(slots=True)
class Scores:
    """What a model says of each message of a batch, as it stood before that message's label.

    Row i uses its first ``n_classes[i]`` columns; classes may appear in the middle of a batch and are
    columns in order of appearance. The columns past that hold 0 (`posterior`, `learned_by_class`) and NaN
    (the others).

    Parameters
    ----------
    classes : tuple of Label
        The classes at the end of the batch.
    n_classes : ndarray of int64, shape (n,)
        How many classes each row knows; 0 before anything was learned or declared.
    posterior : ndarray of float64, shape (n, C)
        Sums to 1 over the row's classes.
    log_odds : ndarray of float64, shape (n, C)
        ``log p - log(1 - p)``, by log-sum-exp: finite where p rounds to 1; infinite for an only class.
    u : ndarray of float64, shape (n, C)
        The joint log likelihood up to a constant: what ranks messages. NaN for a class never labelled.
    raw_posterior : ndarray of float64, shape (n, C), or None
        The product head's posterior over the same counts, where it was asked for.
    known_tokens, unknown_tokens : ndarray of int64, shape (n,)
        Distinct tokens of the first text view that some class has taught, and that none has.
    learned : ndarray of int64, shape (n,)
        Messages the model had learned when it gave this score.
    learned_by_class : ndarray of float64, shape (n, C)
        What the classes' evidence rests on: the weights of their messages learned by then, added up.
    flags : ndarray of int64, shape (n,)
        `Flag` values.
    explanations : list of dict, or None
        Why each score is what it is, where it was asked for.
    """

    classes: tuple[Label, ...]
    n_classes: NDArray[np.int64]
    posterior: Floats
    log_odds: Floats
    u: Floats
    raw_posterior: Floats | None
    known_tokens: NDArray[np.int64]
    unknown_tokens: NDArray[np.int64]
    learned: NDArray[np.int64]
    learned_by_class: Floats
    flags: NDArray[np.int64]
    explanations: list[dict[str, object] | None] | None = None

    def __len__(self) -> int:
        return len(self.n_classes)

    def classes_as_text(self) -> list[str]:
        """The classes as scores name them."""
        return [str(label) for label in self.classes]

    @classmethod
    def joined(cls, parts: Sequence[Scores]) -> Scores:
        """Return the scores of one batch that a model took in pieces, in order."""
        if len(parts) == 1:
            return parts[0]
        classes = max((part.classes for part in parts), key=len)

        def padded(tables: Sequence[Floats | None], missing: float) -> Floats:
            return np.concatenate(
                [
                    np.pad(table, ((0, 0), (0, len(classes) - table.shape[1])), constant_values=missing)
                    for table in tables
                    if table is not None
                ]
            )

        raw = [part.raw_posterior for part in parts]
        why = [part.explanations for part in parts]
        return cls(
            classes=classes,
            n_classes=np.concatenate([part.n_classes for part in parts]),
            posterior=padded([part.posterior for part in parts], 0.0),
            log_odds=padded([part.log_odds for part in parts], np.nan),
            u=padded([part.u for part in parts], np.nan),
            raw_posterior=None if raw[0] is None else padded(raw, 0.0),
            learned_by_class=padded([part.learned_by_class for part in parts], 0.0),
            known_tokens=np.concatenate([part.known_tokens for part in parts]),
            unknown_tokens=np.concatenate([part.unknown_tokens for part in parts]),
            learned=np.concatenate([part.learned for part in parts]),
            flags=np.concatenate([part.flags for part in parts]),
            explanations=None if why[0] is None else [one for some in why for one in some or []],
        )

    def take(self, rows: Sequence[int]) -> Scores:
        """Those rows, in that order."""
        raw, why = self.raw_posterior, self.explanations
        return Scores(
            classes=self.classes,
            n_classes=self.n_classes[rows],
            posterior=self.posterior[rows],
            log_odds=self.log_odds[rows],
            u=self.u[rows],
            raw_posterior=None if raw is None else raw[rows],
            known_tokens=self.known_tokens[rows],
            unknown_tokens=self.unknown_tokens[rows],
            learned=self.learned[rows],
            learned_by_class=self.learned_by_class[rows],
            flags=self.flags[rows],
            explanations=None if why is None else [why[row] for row in rows],
        )


class ScoreRows:
    """Collects one row a message; rows may be of different lengths, as classes appear.

    Parameters
    ----------
    raw : bool
        Whether the rows carry a raw posterior; an empty batch has to be told.
    """

    def __init__(self, *, raw: bool = False) -> None:
        self._has_raw = raw
        self._posterior: list[Sequence[float]] = []
        self._log_odds: list[Sequence[float]] = []
        self._u: list[Sequence[float]] = []
        self._raw: list[Sequence[float]] = []
        self._learned_by_class: list[Sequence[float]] = []
        self._explanations: list[dict[str, object] | None] = []
        self._numbers: list[tuple[int, int, int, int, int]] = []

    def append(
        self,
        *,
        posterior: Sequence[float],
        log_odds: Sequence[float],
        u: Sequence[float],
        raw: Sequence[float] | None,
        known: int,
        unknown: int,
        learned: int,
        learned_by_class: Sequence[float],
        flags: int,
        explanation: dict[str, object] | None = None,
    ) -> None:
        """Add the scores of the next message; `raw` for every row or for none."""
        self._posterior.append(posterior)
        self._log_odds.append(log_odds)
        self._u.append(u)
        if raw is not None:
            self._raw.append(raw)
        self._learned_by_class.append(tuple(learned_by_class))
        self._explanations.append(explanation)
        self._numbers.append((len(posterior), known, unknown, learned, flags))

    def append_unscored(self, learned: int, flags: int) -> None:
        """Add the row of a message that was only learned."""
        self.append(
            posterior=(),
            log_odds=(),
            u=(),
            raw=None,
            known=0,
            unknown=0,
            learned=learned,
            learned_by_class=(),
            flags=flags,
        )

    @property
    def last_posterior(self) -> Sequence[float]:
        """The posterior of the last message."""
        return self._posterior[-1]

    def scores(self, classes: tuple[Label, ...]) -> Scores:
        """The columns, as wide as there are classes."""
        width = len(classes)
        n_classes, known, unknown, learned, flags = (
            np.array(self._numbers, np.int64).reshape(len(self._numbers), 5).T
        )
        return Scores(
            classes=classes,
            n_classes=n_classes,
            posterior=_padded(self._posterior, width, 0.0),
            log_odds=_padded(self._log_odds, width, math.nan),
            u=_padded(self._u, width, math.nan),
            raw_posterior=_padded(self._raw, width, math.nan) if self._has_raw else None,
            known_tokens=known,
            unknown_tokens=unknown,
            learned=learned,
            learned_by_class=_padded(self._learned_by_class, width, 0.0),
            flags=flags,
            explanations=self._explanations if any(self._explanations) else None,
        )


def _padded(rows: Sequence[Sequence[float]], width: int, filler: float) -> Floats:
    full = [list(row) + [filler] * (width - len(row)) for row in rows]
    return np.array(full, np.float64).reshape(len(rows), width)


def likeliest(posterior: Mapping[L, float]) -> L | None:
    """The class of the highest posterior; of equals the smallest, whichever was met first.

    Examples
    --------
    >>> likeliest({"spam": 0.5, "ham": 0.5})
    'ham'
    """
    top = max(posterior.values(), default=0.0)
    equals = [label for label, p in posterior.items() if p == top]
    if len(equals) == 1:
        return equals[0]
    return min(equals, key=lambda label: (type(label).__name__, label), default=None)


def checked_labels(batch: Batch, classes: Sequence[Label]) -> tuple[list[Label | None], list[float] | None]:
    """A batch's labels and weights, numpy's scalars as Python's own.

    Parameters
    ----------
    batch : Batch
    classes : sequence of Label
        Those there are: of their type the labels must be.

    Raises
    ------
    ValueError
        A label is not a string, integer or truth value that JSON can hold, or not of the type of the
        others; a weight is not above 0 and at most 1e9, or there are more or fewer of them.
    """
    came: Sequence[object] = batch.labels
    labels = [cast("Label | None", y.item() if isinstance(y, np.generic) else y) for y in came]
    kind: type[Label] | None = type(classes[0]) if classes else None
    for label in labels:
        if label is None:
            continue
        if not isinstance(label, str | bool | int):
            raise ValueError(f"{label!r} cannot be a label")
        kind = type(label) if kind is None else kind
        if type(label) is not kind:
            raise ValueError(f"labels are {kind.__name__} in this model; {label!r} is not")
    known = {None, *classes}
    for label in (label for label in dict.fromkeys(labels) if label not in known):
        try:
            orjson.dumps(label)
        except orjson.JSONEncodeError as error:
            raise ValueError(f"{label!r} cannot be a label: {error}") from error
    if batch.weights is None:
        return labels, None
    if len(batch.weights) != len(labels):
        raise ValueError(f"{len(batch.weights)} weights were given for {len(labels)} messages")
    given: Sequence[object] = batch.weights
    weights = [w.item() if isinstance(w, np.generic) else w for w in given]
    for weight in weights:
        if not isinstance(weight, int | float) or not 0 < weight <= WEIGHT_MAX:
            raise ValueError(f"a message's weight must be above 0 and at most 1e9, not {weight!r}")
    return labels, cast("list[float]", weights)
