"""A view: a reader, an event model and its smoothing, over a slice of a statistic.

It is a naive Bayes without its prior. Several views of one message are believed to different degrees, which
is the head's to learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from streamnb.naive_bayes.event_models import (
    Bernoulli,
    Binned,
    Categorical,
    EventModel,
    Gaussian,
    Multinomial,
    Multivariate,
    OwnEventModel,
)
from streamnb.naive_bayes.event_models.smoothing import Laplace
from streamnb.naive_bayes.features.readers import (
    TEXT_READERS,
    AnyReader,
    Categories,
    Category,
    Flags,
    Number,
    Numbers,
    Terms,
    WordPairs,
    Words,
)

if TYPE_CHECKING:
    AnyEventModel = EventModel | OwnEventModel[Any]
else:  # what a settings file may name; one's own event model is an object, and passes unchecked
    AnyEventModel = EventModel

_READERS_OF_TERMS = (*TEXT_READERS, Terms)
_SUITS: tuple[tuple[tuple[type, ...], tuple[type, ...], str], ...] = (
    ((Number,), (Gaussian,), "a number goes with a gaussian"),
    ((Numbers,), (Gaussian, Multivariate, Binned), "numbers go with a gaussian, multivariate or binned"),
    ((Categories,), (Categorical,), "categories go with a categorical"),
    ((Flags,), (Bernoulli,), "flags go with a bernoulli"),
    (_READERS_OF_TERMS, (Multinomial, Bernoulli), "words go with a multinomial or a bernoulli"),
    ((Category,), (Multinomial,), "a category goes with a multinomial of one draw"),
)


class View(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way of looking at a message.

    Parameters
    ----------
    name : str
        Unique in a model; a snapshot's statistics carry it.
    reader : AnyReader
    event_model : EventModel or OwnEventModel, optional
        By default what suits the reader: for text, Lidstone 0.1 (0.03 for pairs) over log counts, unknown
        tokens skipped; for categories, Laplace 1; for flags, add one; for numbers, a normal per class.

    Raises
    ------
    ValueError
        The event model is not one of what the reader reads.

    Examples
    --------
    >>> from streamnb.naive_bayes.features.readers import Words
    >>> View("words", Words()).event_model.smoothing
    Laplace(alpha=0.1)
    """

    name: str
    reader: AnyReader
    event_model: AnyEventModel | None = None

    def __post_init__(self) -> None:
        """Choose the event model that suits the reader."""
        if self.event_model is None:
            msgspec.structs.force_setattr(self, "event_model", _event_model_for(self.reader))
        for readers, event_models, rule in _SUITS:
            if isinstance(self.reader, readers) and not (
                isinstance(self.event_model, event_models)
                or (self.is_own and not isinstance(self.reader, Number))
            ):
                raise ValueError(f"view `{self.name}`: {rule}")

    @property
    def is_own(self) -> bool:
        """Whether the event model is the user's own."""
        return not isinstance(self.event_model, EventModel)

    @property
    def keeps(self) -> Literal["counts", "moments", "block"]:
        """Where the view's statistics stand: in the count store, in moments of one number, or in a block."""
        if isinstance(self.reader, Number):
            return "moments"
        return "block" if self.is_own or isinstance(self.reader, Numbers) else "counts"

    @property
    def multinomial(self) -> Multinomial:
        """The event model of a view that counts draws."""
        assert isinstance(self.event_model, Multinomial)
        return self.event_model

    @property
    def gaussian(self) -> Gaussian:
        """The event model of a view of numbers."""
        assert isinstance(self.event_model, Gaussian)
        return self.event_model

    @property
    def own(self) -> OwnEventModel[Any]:
        """The event model of a view with statistics of its own."""
        assert not isinstance(self.event_model, Multinomial | Bernoulli | Categorical | None)
        return self.event_model

    @property
    def state_settings(self) -> dict[str, object]:
        """What the view's statistics depend on, as a snapshot names it.

        A prefix is named only where there is one, so that snapshots older than the option load.
        """
        reader = {k: v for k, v in msgspec.to_builtins(self.reader).items() if k != "prefix" or v}
        return {"name": self.name, "reader": reader, "weight": self.weight} | self.statistic_settings

    @property
    def statistic_settings(self) -> dict[str, object]:
        """What a block's statistics depend on beside their reader, as a snapshot names it."""
        if isinstance(self.event_model, Multivariate):
            return {"covariance": self.event_model.covariance}
        if isinstance(self.event_model, Binned):
            edges, bins, warm_up = self.event_model.edges, self.event_model.bins, self.event_model.warm_up
            return {"edges": list(edges)} if edges else {"bins": bins, "warm_up": warm_up}
        return {"statistic": type(self.event_model).__name__} if self.is_own else {}

    @property
    def weight(self) -> str:
        """What a token of a view that counts is worth, as a snapshot's statistics name it."""
        if isinstance(self.event_model, Multinomial):
            return self.event_model.weight
        return "boolean" if isinstance(self.event_model, Bernoulli | Categorical) else ""

    def weighed(self, counts: Mapping[str, float]) -> dict[str, float]:
        """The weight of each distinct token of a message, from how often it stands there."""
        if isinstance(self.event_model, Multinomial):
            return self.event_model.features(counts)
        return dict(counts) if self.is_own else dict.fromkeys(counts, 1.0)


def _event_model_for(reader: AnyReader) -> EventModel:
    if isinstance(reader, Number | Numbers):
        return Gaussian()
    if isinstance(reader, Categories):
        return Categorical()
    if isinstance(reader, Flags):
        return Bernoulli()
    if isinstance(reader, Category):
        return Multinomial(Laplace(1.0), weight="counts")
    if isinstance(reader, Terms):
        return Multinomial(Laplace(1.0), weight="counts", unknown="smooth")
    return Multinomial(Laplace(0.03 if isinstance(reader, WordPairs) else 0.1))


TEXT_ONLY = (View("words", Words()),)
"""The words of the field ``text``: the views of a model that reads text alone."""

EVERY_FIELD = (
    View("words", Words(), Multinomial(Laplace(1.0), weight="counts")),
    View("categories", Categories()),
    View("flags", Flags()),
    View("numbers", Numbers()),
)
"""Every field by what it holds: the words of ``text``, and else categories, flags and numbers by type."""
