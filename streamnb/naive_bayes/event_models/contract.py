"""What an event model of one's own must do: bring a statistic, and turn it and a message into evidence.

The lectures' invitation: choose the distribution that fits.
`tests/naive_bayes/event_models/test_contract.py` has a Poisson, worked from the formula to the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from streamnb.base import Section, Sections
from streamnb.naive_bayes.statistics.digest import Digest


class Statistic(Protocol):
    """Sufficient statistics of a block of named values, additive over messages.

    A class is known by its index; classes are only ever appended.
    `streamnb.naive_bayes.statistics.number_block.NumberBlock` is one: count, mean and
    centred squares of each name, which is all that many distributions need.
    """

    def add_class(self) -> None:
        """Append a class that has learned nothing."""

    def add(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Learn a message's features."""

    def check_removable(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Raise ``ValueError`` if less than that was learned."""

    def remove(self, features: Mapping[str, float], class_index: int, weight: float = 1.0) -> None:
        """Take a message's features back; `check_removable` let it pass."""

    def check_mergeable(self, other: Self) -> None:
        """Raise ``ValueError`` if another's sums are not of the same kind."""

    def merge(self, other: Self, classes: Sequence[int]) -> None:
        """Add another's; ``classes[j]`` is this one's index of the other's class j."""

    def check_subtractable(self, other: Self, classes: Sequence[int]) -> None:
        """Raise ``ValueError`` if more is to be taken away than there is."""

    def subtract(self, other: Self, classes: Sequence[int]) -> None:
        """Take another's away; `check_subtractable` let it pass."""

    def fade(self, factor: float) -> None:
        """Multiply all sums; only a model that forgets asks for it."""

    def digest(self, view: str, classes: Sequence[str]) -> Digest:
        """The digest of all there is, by the classes' names."""

    def freeze(self, prefix: str) -> dict[str, Section]:
        """The statistics as arrays that no later learning changes.

        Their names begin with `prefix` and an underscore, and have at most 16 letters more.
        """

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:
        """Take the place of what `freeze` gave.

        Raises
        ------
        SnapshotError
            The arrays cannot be that; nothing was changed.
        """


S = TypeVar("S", bound=Statistic)


class OwnEventModel(Protocol[S]):
    """An event model with statistics of its own: a frozen value that holds settings only.

    A dataclass or a msgspec struct serves, as a snapshot names its settings.
    """

    def statistic(self) -> S:
        """An empty statistic."""

    def parts(
        self, features: Mapping[str, float], statistic: S, active: Sequence[int]
    ) -> Mapping[str, Sequence[float]]:
        """What each feature adds to the log likelihood of each active class.

        Parameters
        ----------
        features : mapping of str to float
            What the view's reader found: numbers by name, or tokens with their counts.
        statistic : Statistic
        active : sequence of S ints
            The classes labelled so far.

        Returns
        -------
        mapping of str to sequence of S floats
            Natural logarithms, up to a constant that is the same for every class. What a class has never
            seen must not be NaN: let the pooled distribution stand in, or say 0.
        """


@runtime_checkable
class Generative(Protocol):
    """An event model that can also draw: then `sample` works."""

    def draw(self, statistic: object, class_index: int, random: np.random.Generator) -> dict[str, float]:
        """The features of one message of a class."""
