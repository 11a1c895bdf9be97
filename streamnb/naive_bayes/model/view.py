"""Views: a view is a reader and an event model with its smoothing, over a statistic of its own.

A view is a naive Bayes without a class prior. How much of each view's evidence to believe is learned by the
calibrated head.
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
else:  # a settings file names these; msgspec does not check an event model of the user's own
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
    """A reader of a message and an event model for what it reads.

    Parameters
    ----------
    name : str
        Unique in a model; the snapshot's statistics are stored under it.
    reader : AnyReader
    event_model : EventModel or OwnEventModel, optional
        By default chosen by the reader: for text, Lidstone 0.1 (0.03 for pairs) over log counts, unknown
        tokens skipped; for categories, Laplace 1; for flags, add one; for numbers, a normal per class.

    Raises
    ------
    ValueError
        The event model does not fit the reader.

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
        """Choose an event model that fits the reader."""
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
        """Whether the user brought the event model."""
        return not isinstance(self.event_model, EventModel)

    @property
    def keeps(self) -> Literal["counts", "moments", "block"]:
        """Where the view's statistic is kept: in the count store, as moments of one number, or as a block."""
        if isinstance(self.reader, Number):
            return "moments"
        return "block" if self.is_own or isinstance(self.reader, Numbers) else "counts"

    @property
    def multinomial(self) -> Multinomial:
        """The multinomial event model of the view."""
        assert isinstance(self.event_model, Multinomial)
        return self.event_model

    @property
    def gaussian(self) -> Gaussian:
        """The Gaussian event model of the view."""
        assert isinstance(self.event_model, Gaussian)
        return self.event_model

    @property
    def own(self) -> OwnEventModel[Any]:
        """The event model of a view whose statistic is a block."""
        assert not isinstance(self.event_model, Multinomial | Bernoulli | Categorical | None)
        return self.event_model

    @property
    def state_settings(self) -> dict[str, object]:
        """The settings that the view's statistic depends on, as a snapshot stores them.

        `prefix` is stored only where it is set, so that snapshots older than the option load.
        """
        reader = {k: v for k, v in msgspec.to_builtins(self.reader).items() if k != "prefix" or v}
        return {"name": self.name, "reader": reader, "weight": self.weight} | self.statistic_settings

    @property
    def statistic_settings(self) -> dict[str, object]:
        """The settings of the event model that the statistic depends on, as a snapshot stores them."""
        if isinstance(self.event_model, Multivariate):
            return {"covariance": self.event_model.covariance}
        if isinstance(self.event_model, Binned):
            edges, bins, warm_up = self.event_model.edges, self.event_model.bins, self.event_model.warm_up
            return {"edges": list(edges)} if edges else {"bins": bins, "warm_up": warm_up}
        return {"statistic": type(self.event_model).__name__} if self.is_own else {}

    @property
    def weight(self) -> str:
        """How a token's occurrences in a message are weighted: ``counts``, ``log`` or ``boolean``; "" for
        numbers.
        """
        if isinstance(self.event_model, Multinomial):
            return self.event_model.weight
        return "boolean" if isinstance(self.event_model, Bernoulli | Categorical) else ""

    def weighed(self, counts: Mapping[str, float]) -> dict[str, float]:
        """Return the weight of each distinct token of a message, given how often it occurs."""
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
"""One view, the words of the field ``text``: for a model of text alone."""

EVERY_FIELD = (
    View("words", Words(), Multinomial(Laplace(1.0), weight="counts")),
    View("categories", Categories()),
    View("flags", Flags()),
    View("numbers", Numbers()),
)
"""Views of every field: the words of ``text``; all others as categories, flags or numbers, by their values'
type.
"""
