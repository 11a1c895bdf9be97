"""`EventModel`: what every built-in event model offers, and how a user's own one offers the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec
import numpy as np

from streamnb.base import Floats
from streamnb.naive_bayes.event_models.contract import Generative, OwnEventModel
from streamnb.naive_bayes.features.readers import Drawn
from streamnb.naive_bayes.statistics.counts import CountStore
from streamnb.naive_bayes.statistics.token_counts import PLAIN, Tally, TokenCounts, Twins

AnyStatistic = Any
"""The statistic that the event model made itself; each knows its own type."""

Parts = Iterable[tuple[str, Sequence[float]]]
"""Each feature with what it adds to the log likelihood of each active class, in order."""

T = TypeVar("T", bound=Tally)

Draw = Callable[[np.random.Generator], Drawn]
"""Draws the features of one message."""


class Line(NamedTuple):
    """A linear function ``intercept + sum_j weights[j] x_j``: theta in the lectures, with ``x_0 = 1``."""

    intercept: float
    weights: dict[str, float]

    def at(self, x: Mapping[str, float]) -> float:
        """Return the function's value for a message that has every coordinate."""
        return math.fsum([self.intercept, *(w * x[name] for name, w in self.weights.items())])


class Shelf(NamedTuple):
    """Where the tokens of one view are counted.

    Parameters
    ----------
    store : CountStore
    view : str
    rounded : bool
        Whether the sums are rounded, because they decay.
    names_fields : bool
        Whether a token is the value of a field, made by `token_of`.
    """

    store: CountStore
    view: str
    rounded: bool
    names_fields: bool


class EventModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A frozen value of settings, with the formulas that turn a statistic into evidence."""

    counts_tokens: ClassVar[bool] = False
    """Whether its statistic counts tokens in the store that all such views share."""

    worth: ClassVar[float] = 1.0
    """By how much its counts are multiplied when the rarest tokens of all views are evicted."""

    @property
    def token_weight(self) -> str:
        """How a token's occurrences are weighted: "counts", "log" or "boolean"; "" for numbers."""
        return ""

    @property
    def has_twin(self) -> bool:
        """Whether the compiled driver knows the event model."""
        return False

    @property
    def state_settings(self) -> dict[str, object]:
        """The settings that the statistic depends on, as a snapshot stores them."""
        return {}

    @property
    def feeds_head(self) -> bool:
        """Whether the calibrated head can use a text view with this event model."""
        return False

    def check_for_head(self) -> None:
        """Raise ``ValueError`` if the calibrated head cannot use a text view with this event model."""
        raise ValueError(
            "the calibrated head needs the event model Multinomial without `complement` for every text view; "
            'change the view or use head="product"'
        )

    def features(self, found: Mapping[str, float]) -> Mapping[str, float]:
        """Return the features of a message as they are learned, from those that the reader found."""
        return found

    def statistic(self, twins: Twins = PLAIN, shelf: Shelf | None = None) -> AnyStatistic:
        """Return an empty statistic."""
        raise NotImplementedError

    def parts(
        self,
        features: Mapping[str, float],
        statistic: AnyStatistic,
        active: Sequence[int],
        scale: float = 1.0,
    ) -> Parts:
        """Return what each feature adds to the log likelihood of each active class."""
        raise NotImplementedError

    def log_likelihood(
        self,
        features: Mapping[str, float],
        statistic: AnyStatistic,
        active: Sequence[int],
        scale: float = 1.0,
    ) -> list[float]:
        """Return the sum of the parts, for each active class.

        If a feature is infinite evidence for a class, that class gets 0 and the others minus infinity.
        """
        z = [0.0] * len(active)
        for _, part in self.parts(features, statistic, active, scale):
            for c, value in enumerate(part):
                z[c] += value
        if math.inf in z:
            return [0.0 if value == math.inf else -math.inf for value in z]
        return z

    def log_constant(self, features: Mapping[str, float], statistic: AnyStatistic) -> float:  # noqa: ARG002
        """Return what the parts leave out of the log likelihood of every class, because it is the same."""
        return 0.0

    def linear(self, statistic: AnyStatistic, active: Sequence[int], a: int, b: int) -> Line:  # noqa: ARG002
        """Return the log likelihood of class ``active[a]`` minus that of ``active[b]`` as a linear function.

        Raises
        ------
        ValueError
            It is not linear.
        """
        raise ValueError("its event model has no linear boundary")

    def n_parameters(self, statistic: AnyStatistic, n_classes: int, *, naive: bool) -> int:  # noqa: ARG002
        """Return how many numbers are estimated, or would be estimated without the naive assumption.

        Raises
        ------
        ValueError
            There is no such number.
        """
        raise ValueError("your own event model has no known number of parameters")

    def drawing(self, statistic: AnyStatistic, active: Sequence[int], i: int, messages: float) -> Draw:  # noqa: ARG002
        """Return a function that draws the features of one message of class ``active[i]``.

        Parameters
        ----------
        statistic : Statistic
        active : sequence of int
        i : int
        messages : float
            The weight of the messages of that class.

        Raises
        ------
        ValueError
            The event model cannot draw.
        """
        raise ValueError("its event model has no `draw`")


class OncePerMessage(EventModel, frozen=True, forbid_unknown_fields=True):
    """An event model of tokens that count once in a message: words that occur, or values of fields."""

    counts_tokens: ClassVar[bool] = True

    @property
    def token_weight(self) -> str:
        """However often a token occurs, it counts once."""
        return "boolean"

    @property
    def has_twin(self) -> bool:
        """The compiled driver knows it."""
        return True

    def features(self, found: Mapping[str, float]) -> dict[str, float]:
        """Return 1 for each distinct token of a message."""
        return dict.fromkeys(found, 1.0)


class Brought(EventModel, frozen=True):
    """A user's own event model, with what it lacks added."""

    own: OwnEventModel[Any]

    @property
    def state_settings(self) -> dict[str, object]:
        """The name of its class."""
        return {"statistic": type(self.own).__name__}

    def statistic(self, twins: Twins = PLAIN, shelf: Shelf | None = None) -> AnyStatistic:  # noqa: ARG002
        """Return its empty statistic."""
        return self.own.statistic()

    def parts(
        self,
        features: Mapping[str, float],
        statistic: AnyStatistic,
        active: Sequence[int],
        scale: float = 1.0,  # noqa: ARG002 - a model with a half-life refuses it
    ) -> Parts:
        """Return its parts, checked; it has no half-life, so there is no scale."""
        parts = self.own.parts(features, statistic, active).items()
        for name, values in parts:
            if len(values) != len(active) or any(math.isnan(value) for value in values):
                raise ValueError(
                    f"{type(self.own).__name__} gave {values!r} for {name!r}; `parts` must give one number "
                    f"per active class, here {len(active)}, and no NaN"
                )
        return parts

    def drawing(self, statistic: AnyStatistic, active: Sequence[int], i: int, messages: float) -> Draw:
        """Return its `draw`, if it has one."""
        if not isinstance(self.own, Generative):
            return super().drawing(statistic, active, i, messages)
        own = self.own
        return lambda random: own.draw(statistic, active[i], random).items()


def counts_on(shelf: Shelf | None, tally: T) -> TokenCounts[T]:
    """Return the counts of a view in the shared store; without a shelf, in a store of their own."""
    if shelf is None:
        return TokenCounts(tally)
    return TokenCounts(tally, shelf.store, shelf.view, rounded=shelf.rounded)


def shares_of(
    event_model: EventModel,
    statistic: AnyStatistic,
    active: Sequence[int],
    i: int,
) -> tuple[list[str], Floats]:
    """Return all tokens, and the probability of each in class ``active[i]``; 0 where that is 0/0."""
    tokens = list(statistic.rows)
    found = _evidence(event_model, tokens, statistic, active)
    return tokens, np.array([math.exp(found[token][i]) if token in found else 0.0 for token in tokens])


def token_weights(
    event_model: EventModel,
    statistic: AnyStatistic,
    active: Sequence[int],
    a: int,
    b: int,
) -> dict[str, float]:
    """Return, for each token, its evidence for class ``active[a]`` minus that for ``active[b]``."""
    found = _evidence(event_model, list(statistic.rows), statistic, active)
    return {token: difference(z[a], z[b]) for token, z in found.items()}


def _evidence(
    event_model: EventModel, tokens: Sequence[str], statistic: AnyStatistic, active: Sequence[int]
) -> dict[str, Sequence[float]]:
    """Return what each token adds per active class; the parts of the tokens come before all others."""
    parts = event_model.parts(dict.fromkeys(tokens, 1.0), statistic, active)
    return {token: z for token, (_, z) in zip(tokens, parts, strict=False)}


def difference(x: float, y: float) -> float:
    """Return ``x - y``; equal infinities differ by 0, because 0/0 is no evidence."""
    return 0.0 if x == y else x - y


def combinations(sizes: Sequence[int], *, naive: bool) -> int:
    """Return the number of free probabilities of fields with that many values each, alone or together."""
    return sum(k - 1 for k in sizes) if naive else math.prod(sizes) - 1
