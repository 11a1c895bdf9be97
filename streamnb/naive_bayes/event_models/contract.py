"""The Protocols that a user's own event model and its statistic must follow.

The lectures invite the reader to choose the distribution that fits. An own event model brings a statistic,
and computes evidence from it and a message. `tests/naive_bayes/event_models/test_contract.py` works out a
Poisson model, from the formula to the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from streamnb.base import Digest, Section, Sections


class Statistic(Protocol):
    """Sufficient statistics of a block of named values, additive over messages.

    A class is known by its index, and classes are only ever appended.
    `streamnb.naive_bayes.statistics.number_block.NumberBlock` is one: it has count, mean and centred squares
    of each name, which many distributions need and no more.
    """

    def add_class(self) -> None:
        """Append a class that has learned nothing."""

    def add(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Learn a message's features."""

    def check_removable(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Raise ``ValueError`` if less was learned than `remove` would subtract."""

    def remove(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Unlearn a message's features. The model has called `check_removable` before."""

    def check_mergeable(self, other: Self) -> None:
        """Raise ``ValueError`` if the sums of another statistic cannot be added to these."""

    def merge(self, other: Self, classes: Sequence[int]) -> None:
        """Add another statistic; ``classes[j]`` is the index here of its class j.

        Several of its classes may have one index: they were merged into one class.
        """

    def check_subtractable(self, other: Self, classes: Sequence[int]) -> None:
        """Raise ``ValueError`` if another statistic has learned more than this one."""

    def subtract(self, other: Self, classes: Sequence[int]) -> None:
        """Subtract another statistic. The model has called `check_subtractable` before."""

    def fade(self, factor: float) -> None:
        """Multiply all sums by `factor`. Only a model with a half-life calls this."""

    def digest(self, view: str, classes: Sequence[str]) -> Digest:
        """Return the digest of everything learned, with classes by their names."""

    def freeze(self, prefix: str) -> dict[str, Section]:
        """Return the statistic as arrays, which later learning does not change.

        Their keys begin with `prefix` and an underscore, followed by at most 16 letters.
        """

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:
        """Restore the statistic from the arrays of `freeze`.

        Raises
        ------
        SnapshotError
            The arrays cannot come from `freeze`; nothing was changed.
        """


S = TypeVar("S", bound=Statistic)


class OwnEventModel(Protocol[S]):
    """A user's own event model with statistics of its own: a frozen value that holds only settings.

    Use a dataclass or a msgspec struct: a snapshot records the settings by name.
    """

    def statistic(self) -> S:
        """Return an empty statistic."""

    def parts(
        self, features: Mapping[str, float], statistic: S, active: Sequence[int]
    ) -> Mapping[str, Sequence[float]]:
        """Return what each feature adds to the log likelihood of each active class.

        Parameters
        ----------
        features : mapping of str to float
            The features that the view's reader found: numbers by name, or tokens with their counts.
        statistic : Statistic
        active : sequence of S ints
            The classes learned so far.

        Returns
        -------
        mapping of str to sequence of S floats
            Natural logarithms, up to a constant that is the same for every class. NaN is not allowed. For a
            class that has never learned the feature, use the pooled distribution, or return 0.
        """


@runtime_checkable
class Generative(Protocol):
    """An event model that can also draw features; `NaiveBayes.sample` needs it."""

    def draw(self, statistic: object, class_index: int, random: np.random.Generator) -> dict[str, float]:
        """Return the features of one message, drawn from a class."""
