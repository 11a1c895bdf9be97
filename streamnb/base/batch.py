"""`Batch` and `Scores`: the columns that a model takes and returns.

Row i of every column belongs to message i, so one message is simply a batch of length 1.
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
"""The answer given for a message. All labels of a model have one type; ``None`` means no answer is known."""

L = TypeVar("L", bound=Label)

Floats = NDArray[np.float64]

WEIGHT_MIN, WEIGHT_MAX = 1e-9, 1e9  # so that no sum, and no quotient of sums, under- or overflows
TIME_MAX_S = 1e12  # 30,000 years before and after 1970
NUMBER_MAX = 1e100  # so that sums of squares over a whole stream stay finite


class Flag(IntFlag):
    """Remarks on one message's score or label; several can be combined."""

    EMPTY = 1  # the text holds no token
    TRUNCATED = 2  # a token or the list of tokens was cut at its limit
    CLASS_LIMIT = 4  # the label was refused: the model already has `classes_max` classes
    QUOTA = 8  # the label was not learned: its source has used up its quota
    CERTAIN = 16  # the label was not learned: the model already gave it a high enough probability
    CUT = 32  # the score was too large to publish: it lists only the likeliest class

    @property
    def names(self) -> list[str]:
        """The remarks as published scores write them.

        Examples
        --------
        >>> Flag(3).names
        ['empty', 'truncated']
        """
        return [str(flag.name).lower() for flag in self]


@dataclass(slots=True)
class Batch:
    """A batch of messages as columns.

    Parameters
    ----------
    fields : mapping of str to sequence
        One column per field; ``None`` where a message lacks the field.
    labels : sequence of Label or None
        ``None``: the message is only scored.
    weights : sequence of float or None
        One number from 1e-9 to 1e9 per message; ``None`` means 1 for all.
    times : sequence of (float or None), or None
        The time of each message in seconds since 1970. Only a model that forgets by time reads it. A message
        without a time counts as made at the newest time of its partition.
    partition : str
        The partition that the messages come from; a model keeps one newest time per partition.
    """

    fields: Mapping[str, Sequence[object]]
    labels: Sequence[Label | None]
    weights: Sequence[float] | None = None
    times: Sequence[float | None] | None = None
    partition: str = ""

    def __len__(self) -> int:
        return len(self.labels)

    def check_lengths(self) -> None:
        """Raise ``ValueError`` if a column is not as long as the labels: drivers trust the lengths."""
        columns: list[tuple[str, Sequence[object] | None]] = [
            ("weights", self.weights),
            ("times", self.times),
            *((f"values of field `{name}`", column) for name, column in self.fields.items()),
        ]
        for what, column in columns:
            if column is not None and len(column) != len(self.labels):
                raise ValueError(f"{len(column)} {what} were given for {len(self.labels)} messages")

    def rows(self, where: slice) -> Batch:
        """Return a batch of the messages in a slice."""
        return Batch(
            {name: column[where] for name, column in self.fields.items()},
            self.labels[where],
            None if self.weights is None else self.weights[where],
            None if self.times is None else self.times[where],
            self.partition,
        )


@dataclass(slots=True)
class Scores:
    """A model's scores for the messages of a batch, each from the state before that message's own label.

    Classes are columns in order of appearance. A new class may appear in the middle of a batch: row i uses
    its first ``n_classes[i]`` columns, and the columns after them hold 0 (`posterior`, `learned_by_class`)
    or NaN (the other tables).

    Parameters
    ----------
    classes : tuple of Label
        The classes at the end of the batch.
    n_classes : ndarray of int64, shape (n,)
        How many classes the model knew at each row; 0 before any class was learned or declared.
    posterior : ndarray of float64, shape (n, C)
        Sums to 1 over the row's classes.
    log_odds : ndarray of float64, shape (n, C)
        ``log p - log(1 - p)``, computed by log-sum-exp: finite even where p rounds to 1; infinite if there
        is only one class.
    u : ndarray of float64, shape (n, C)
        The joint log likelihood up to a constant; it ranks messages. NaN for a class without labels so far.
    raw_posterior : ndarray of float64, shape (n, C), or None
        The product head's posterior over the same counts, if it was requested.
    known_tokens, unknown_tokens : ndarray of int64, shape (n,)
        How many distinct tokens of the first text view occur in learned messages, and how many do not.
    learned : ndarray of int64, shape (n,)
        How many messages the model had learned when it computed this score.
    learned_by_class : ndarray of float64, shape (n, C)
        The total weight of the messages learned for each class before this score.
    flags : ndarray of int64, shape (n,)
        `Flag` values.
    explanations : list of dict, or None
        Why each score is what it is, if explanations were requested.
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
        """Return the class names as published scores write them."""
        return [str(label) for label in self.classes]

    def to_dicts(self) -> list[dict[str, object]]:
        """Return one dict per message, with the fields that a published score takes from the model.

        The address, the id and the model's name of a published score are not known here. All values are plain
        Python's, so that `json.dumps` writes them. A number that JSON cannot represent, such as the log odds
        of an only class, is ``None``.

        Returns
        -------
        list of dict of str to object
            ``prediction``, ``posterior``, ``log_odds``, ``known_tokens``, ``unknown_tokens``, ``learned`` and
            ``learned_by_class``; ``flags``, ``raw_posterior`` and ``explanation`` where there is one.

        Examples
        --------
        >>> from streamnb import NaiveBayes
        >>> model = NaiveBayes()
        >>> model.learn_one({"text": "win money"}, "spam")
        >>> model.learn_one({"text": "lunch at noon"}, "ham")
        >>> (score,) = model.score_one({"text": "lunch money"}).to_dicts()
        >>> score["prediction"], score["known_tokens"], score["learned_by_class"]
        ('spam', 2, {'spam': 1, 'ham': 1})
        """
        names = self.classes_as_text()
        posterior, log_odds, counts = (
            table.tolist() for table in (self.posterior, self.log_odds, self.learned_by_class)
        )
        raw = None if self.raw_posterior is None else self.raw_posterior.tolist()
        columns = (self.n_classes, self.known_tokens, self.unknown_tokens, self.learned, self.flags)
        dicts = []
        for i, (n, known, unknown, learned, flags) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            classes = names[:n]
            by_class = dict(zip(classes, posterior[i], strict=False))
            row: dict[str, object] = {
                "prediction": likeliest(by_class),
                "posterior": by_class,
                "log_odds": _finite(classes, log_odds[i]),
                "known_tokens": known,
                "unknown_tokens": unknown,
                "learned": learned,
                "learned_by_class": {
                    name: _whole(count) for name, count in zip(classes, counts[i], strict=False)
                },
            }
            if flags:
                row["flags"] = Flag(flags).names
            if raw is not None:
                row["raw_posterior"] = _finite(classes, raw[i])
            if self.explanations is not None and self.explanations[i] is not None:
                row["explanation"] = self.explanations[i]
            dicts.append(row)
        return dicts

    @classmethod
    def joined(cls, parts: Sequence[Scores]) -> Scores:
        """Return the scores of one batch from the scores of its consecutive pieces."""
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
            explanations=None
            if all(some is None for some in why)
            else [one for part, some in zip(parts, why, strict=True) for one in some or [None] * len(part)],
        )

    def take(self, rows: Sequence[int]) -> Scores:
        """Return the scores of the given rows, in the given order."""
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


def _finite(names: Sequence[str], row: Sequence[float]) -> dict[str, float | None]:
    """Return the numbers of a row by class, ``None`` for those that JSON cannot represent."""
    return {name: x if math.isfinite(x) else None for name, x in zip(names, row, strict=False)}


def _whole(count: float) -> float:
    """Return a count that is a whole number as an ``int``, as published scores write it."""
    return int(count) if count.is_integer() and count < 2.0**53 else count


def likeliest(posterior: Mapping[L, float]) -> L | None:
    """Return the class with the highest posterior, ``None`` if there is no class.

    Of several classes with the same posterior it is the smallest, so the result does not depend on the order
    in which classes appeared.

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


def _plain(label: object) -> object:
    """Return a label of numpy, of an enumeration or of another subclass as Python's own, which files keep."""
    if isinstance(label, np.generic):
        return label.item()
    if isinstance(label, str) and type(label) is not str:
        return str.__str__(label)
    if isinstance(label, int) and type(label) not in {int, bool}:
        return int.__int__(label)
    return label


def checked_labels(batch: Batch, classes: Sequence[Label]) -> tuple[list[Label | None], list[float] | None]:
    """Check a batch's labels and weights, and return them as Python's own types.

    Parameters
    ----------
    batch : Batch
    classes : sequence of Label
        The classes known so far; labels must have their type.

    Raises
    ------
    ValueError
        A label is not a string, integer or truth value that JSON can hold, or differs in type from the
        others. A weight is not from 1e-9 to 1e9. The numbers of weights and messages differ.
    """
    given_labels: Sequence[object] = batch.labels
    labels = [cast("Label | None", _plain(y)) for y in given_labels]
    kind: type[Label] | None = type(classes[0]) if classes else None
    for label in labels:
        if label is None:
            continue
        if not isinstance(label, str | bool | int):
            raise ValueError(f"{label!r} cannot be a label")
        kind = type(label) if kind is None else kind
        if type(label) is not kind:
            raise ValueError(f"a label of this model must be {kind.__name__}, not {label!r}")
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
    given_weights: Sequence[object] = batch.weights
    weights = [w.item() if isinstance(w, np.generic) else w for w in given_weights]
    for weight in weights:
        if not isinstance(weight, int | float) or not WEIGHT_MIN <= weight <= WEIGHT_MAX:
            raise ValueError(f"a message's weight must be from 1e-9 to 1e9, not {weight!r}")
    return labels, cast("list[float]", weights)
