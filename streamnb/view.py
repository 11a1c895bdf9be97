"""A view: a reader, an event model and its smoothing, over a slice of a statistic.

It is a naive Bayes without its prior. Several views of one message are believed to different degrees, which
is the head's to learn.
"""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from streamnb.event_models import EventModel, Gaussian, Multinomial
from streamnb.smoothing import Laplace
from streamnb.tokens import Category, Number, Reader, Terms, TextReader, WordPairs

_READERS_OF_TEXT = TextReader.__args__


class View(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way of looking at a message.

    Parameters
    ----------
    name : str
        Unique in a model; a snapshot's statistics carry it.
    reader : Reader
    event_model : EventModel, optional
        By default what suits the reader: for text, Lidstone 0.1 (0.03 for pairs) over log counts, unknown
        tokens skipped; for a category, Laplace 1; for a number, a normal per class.

    Raises
    ------
    ValueError
        A number is not read by a Gaussian, or something else is.

    Examples
    --------
    >>> from streamnb.tokens import Words
    >>> View("words", Words()).event_model.smoothing
    Laplace(alpha=0.1)
    """

    name: str
    reader: Reader
    event_model: EventModel | None = None

    def __post_init__(self) -> None:
        """Choose the event model that suits the reader."""
        if self.event_model is None:
            msgspec.structs.force_setattr(self, "event_model", _event_model_for(self.reader))
        if isinstance(self.reader, Number) != isinstance(self.event_model, Gaussian):
            raise ValueError(
                f"view `{self.name}`: a number goes with a gaussian, all else with a multinomial"
            )

    @property
    def multinomial(self) -> Multinomial:
        """The event model of a view that counts."""
        assert isinstance(self.event_model, Multinomial)
        return self.event_model

    @property
    def gaussian(self) -> Gaussian:
        """The event model of a view of a number."""
        assert isinstance(self.event_model, Gaussian)
        return self.event_model


def reads_text(reader: Reader) -> TypeGuard[TextReader]:
    """Whether a reader wants tokens."""
    return isinstance(reader, _READERS_OF_TEXT)


def fields_of(reader: Reader) -> tuple[str, ...]:
    """The fields a reader looks at."""
    return reader.fields if reads_text(reader) else (reader.field,)  # type: ignore[union-attr]


def _event_model_for(reader: Reader) -> EventModel:
    if isinstance(reader, Number):
        return Gaussian()
    if isinstance(reader, Category):
        return Multinomial(Laplace(1.0), weight="counts")
    if isinstance(reader, Terms):
        return Multinomial(Laplace(1.0), weight="counts", unknown="smooth")
    return Multinomial(Laplace(0.03 if isinstance(reader, WordPairs) else 0.1))
