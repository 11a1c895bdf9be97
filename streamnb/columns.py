"""The columns that enter a model and those that leave it.

Both are indexed by message, so that a batch of one and a batch of many are the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Label = str | bool | int
"""The answer given for a message. One type a model; ``None`` means no answer and is not learned."""

L = TypeVar("L", bound=Label)

Floats = NDArray[np.float64]


class Flag(IntFlag):
    """What there is to say of one score."""

    EMPTY = 1  # the text holds no token
    TRUNCATED = 2  # a token or the list of tokens was cut at its limit
    CLASS_LIMIT = 4  # the label was refused: it would have been one class too many


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
    """

    fields: Mapping[str, Sequence[object]]
    labels: Sequence[Label | None]
    weights: Sequence[float] | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(slots=True)
class Scores:
    """What a model says of each message of a batch, as it stood before that message's label.

    Row i uses its first ``n_classes[i]`` columns; classes may appear in the middle of a batch and are
    columns in order of appearance. The columns past that hold 0 (`posterior`) and NaN (the others).

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
    flags: NDArray[np.int64]
    explanations: list[dict[str, object] | None] | None = None

    def __len__(self) -> int:
        return len(self.n_classes)


def likeliest(posterior: Mapping[L, float]) -> L | None:
    """The class of the highest posterior; of equals the smallest, whichever was met first.

    Examples
    --------
    >>> likeliest({"spam": 0.5, "ham": 0.5})
    'ham'
    """
    top = max(posterior.values(), default=0.0)
    equals = [label for label, p in posterior.items() if p == top]
    return min(equals, key=lambda label: (type(label).__name__, label), default=None)
