"""Views: a view is a reader and an event model with its smoothing, over a statistic of its own.

A view is a naive Bayes without a class prior. How much of each view's evidence to believe is learned by the
calibrated head.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from streamnb.naive_bayes.event_models import (
    AnyEventModel,
    Bernoulli,
    Binned,
    Brought,
    Categorical,
    EventModel,
    Gaussian,
    Markov,
    Multinomial,
    Multivariate,
    OwnEventModel,
    Statistic,
)
from streamnb.naive_bayes.event_models.base import Shelf
from streamnb.naive_bayes.event_models.smoothing import Laplace, LaplacePerToken
from streamnb.naive_bayes.features.arguments import check_fields
from streamnb.naive_bayes.features.message import Message
from streamnb.naive_bayes.features.readers import (
    AnyReader,
    Categories,
    CharacterGrams,
    Drawn,
    Ends,
    Flags,
    Numbers,
    OwnReader,
    Reader,
    Shorthand,
    Terms,
    WordPairs,
    Words,
)
from streamnb.naive_bayes.features.shapes import Shapes
from streamnb.naive_bayes.features.strings import Strings
from streamnb.naive_bayes.statistics.counts import CountStore
from streamnb.naive_bayes.statistics.token_counts import Twins

if TYPE_CHECKING:
    ViewReader = Reader | OwnReader
    ViewEventModel = EventModel | OwnEventModel[Any]
else:  # a settings file names these; msgspec does not check a user's own
    ViewReader = AnyReader | Shapes | Strings
    ViewEventModel = AnyEventModel

_SUITS: Mapping[type, tuple[EventModel, tuple[type, ...]]] = {
    Words: (Multinomial(Laplace(0.1)), (Multinomial, Bernoulli)),
    WordPairs: (Multinomial(Laplace(0.03)), (Multinomial, Bernoulli)),
    CharacterGrams: (Multinomial(Laplace(0.1)), (Multinomial, Bernoulli)),
    Ends: (Multinomial(Laplace(0.1)), (Multinomial, Bernoulli)),
    Shapes: (Multinomial(Laplace(0.1)), (Multinomial, Bernoulli)),
    Strings: (Markov(), (Markov,)),
    Terms: (Multinomial(Laplace(1.0), weight="counts", unknown="smooth"), (Multinomial, Bernoulli)),
    Categories: (Categorical(), (Categorical,)),
    Flags: (Bernoulli(), (Bernoulli,)),
    Numbers: (Gaussian(), (Gaussian, Multivariate, Binned)),
}
"""For each reader, the event model it has by default, and those that suit it."""

_LATER = {"norm", "vocabulary_min", "values_min"}  # settings that older snapshots do not have


class View(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reader of a message and an event model for what it reads.

    Parameters
    ----------
    name : str
        Unique in a model; the snapshot's statistics are stored under it.
    reader : Reader or OwnReader
        `Category` and `Number` are replaced by the block reader that they are shorthand for.
    event_model : EventModel or OwnEventModel, optional
        By default chosen by the reader: for text, Lidstone 0.1 (0.03 for pairs) over log counts, unknown
        tokens skipped; for strings, Markov; for categories, Laplace 1; for flags, add one; for numbers, a
        normal per class.

    Raises
    ------
    ValueError
        The event model does not fit the reader, or a reader of your own comes without one.

    Examples
    --------
    >>> View("words", Words()).event_model.smoothing
    Laplace(alpha=0.1)
    """

    name: str
    reader: ViewReader
    event_model: ViewEventModel | None = None

    def __post_init__(self) -> None:
        """Choose an event model that fits the reader."""
        if isinstance(self.reader, Shorthand):
            self._replace(reader=self.reader.block, event_model=_of_one_field(self.name, self.event_model))
        for name, part, method in (
            ("reader", self.reader, "features"),
            ("event_model", self.event_model, "parts"),
        ):
            if part is not None and (isinstance(part, type) or not hasattr(part, method)):
                raise ValueError(f"view `{self.name}`: `{name}` must be an instance, not {part!r}")
        self._replace(reader=self._typed(self.reader), event_model=self._typed(self.event_model))
        default, fitting = _SUITS.get(type(self.reader), (None, (EventModel,)))
        if self.event_model is None:
            if default is None:
                raise ValueError(f"view `{self.name}`: a reader of your own needs an `event_model`")
            self._replace(event_model=default)
        self._size_vocabulary()
        if not (self.is_own or isinstance(self.event_model, fitting)):
            allowed = " or ".join(kind.__name__ for kind in fitting)
            raise ValueError(
                f"view `{self.name}`: the reader {type(self.reader).__name__} needs the event model "
                f"{allowed}, not {type(self.event_model).__name__}"
            )

    def _size_vocabulary(self) -> None:
        """Give the event model the size of the vocabulary that the reader is given.

        Raises
        ------
        ValueError
            The event model counts flags, which are no words.
        """
        event_model = self.event_model
        if not isinstance(event_model, Multinomial | Bernoulli):
            return
        if self.reads == "flag" and event_model.vocabulary_min:
            raise ValueError(f"view `{self.name}`: flags have no vocabulary; leave out `vocabulary_min`")
        size = max(event_model.vocabulary_min, len(getattr(self.reader, "vocabulary", ())))
        self._replace(event_model=msgspec.structs.replace(event_model, vocabulary_min=size))

    def _typed(self, part: object) -> object:
        """Return one of our readers or event models with its numbers as declared, 400 as 400.0.

        The settings of two models that count the same are then the same text in their snapshots.
        """
        if not isinstance(part, Reader | EventModel):
            return part
        try:
            check_fields(part)
            return msgspec.convert(msgspec.to_builtins(part, enc_hook=np.generic.item), type(part))
        except ValueError as error:
            raise ValueError(f"view `{self.name}`: {type(part).__name__}: {error}") from error

    def _replace(self, **settings: object) -> None:
        for name, value in settings.items():
            msgspec.structs.force_setattr(self, name, value)

    @property
    def is_own(self) -> bool:
        """Whether the user brought the event model."""
        return not isinstance(self.event_model, EventModel)

    @property
    def formulas(self) -> EventModel:
        """The event model; a user's own one with what it lacks added."""
        event_model = self.event_model
        if isinstance(event_model, EventModel):
            return event_model
        assert event_model is not None  # `__post_init__` has chosen one
        return Brought(event_model)

    @property
    def has_twin(self) -> bool:
        """Whether the compiled driver knows the reader and the event model."""
        return isinstance(self.reader, Reader) and self.reader.has_twin and self.formulas.has_twin

    @property
    def reads_absence(self) -> bool:
        """Whether words that a message lacks are evidence, so that every message counts."""
        return isinstance(self.event_model, Bernoulli) and self.reads not in {"flag", "category"}

    @property
    def reads(self) -> str:
        """What its fields hold: "text", "terms", "category", "flag" or "number"; "" for an own reader."""
        return self.reader.reads if isinstance(self.reader, Reader) else ""

    @property
    def reads_shapes(self) -> bool:
        """Whether it reads shapes, which the calibrated head believes less than words at the start."""
        return isinstance(self.reader, Shapes)

    @property
    def reads_strings(self) -> bool:
        """Whether it reads the strings of a text, which are no tokens."""
        return isinstance(self.reader, Strings)

    def features(self, message: Message) -> Mapping[str, float]:
        """Return the features of a message, as they are learned.

        Raises
        ------
        ValueError
            A field holds a value that the reader cannot read.
        """
        return self.formulas.features(self.reader.features(message))

    def written(self, drawn: Drawn) -> Mapping[str, object]:
        """Return the fields of a message that has these features.

        Raises
        ------
        ValueError
            The features do not determine the fields.
        """
        if not isinstance(self.reader, Reader):
            raise ValueError(
                "messages cannot be drawn: a reader of your own cannot turn features back into fields"
            )
        return self.reader.written(drawn)

    def statistic(self, counts: CountStore, twins: Twins, *, rounded: bool) -> Statistic:
        """Return an empty statistic; that of tokens counts in the shared store."""
        shelf = Shelf(counts, self.name, rounded, self.reads in {"flag", "category"})
        statistic: Statistic = self.formulas.statistic(twins, shelf)
        return statistic

    @property
    def state_settings(self) -> dict[str, object]:
        """The settings that the view's statistic depends on, as a snapshot stores them.

        `prefix` and `vocabulary` are stored only where they are set, so that snapshots older than the
        options load.
        """
        settings = msgspec.to_builtins(self.reader, order="deterministic")
        reader = {k: v for k, v in settings.items() if k not in {"prefix", "vocabulary"} or v}
        if not self.reads:
            reader["kind"] = type(self.reader).__name__
        weight = self.formulas.token_weight
        return {"name": self.name, "reader": reader, "weight": weight} | self.formulas.state_settings

    @property
    def reading_settings(self) -> dict[str, object]:
        """The event model's settings; those of a later version only where they are set, as above."""
        settings: dict[str, object] = msgspec.to_builtins(self.event_model)
        later = set() if self.is_own else _LATER
        return {name: value for name, value in settings.items() if name not in later or value}


@contextmanager
def named(view: View) -> Iterator[None]:
    """Put the view's name before the message of a ``ValueError``."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"view `{view.name}`: {error}") from error


def _of_one_field(name: str, event_model: object) -> object:
    """Return the event model of a shorthand's block, given that of the shorthand.

    One draw from a multinomial is a draw from a categorical distribution.

    Raises
    ------
    ValueError
        The multinomial does not count one draw as one.
    """
    if not isinstance(event_model, Multinomial):
        return event_model
    smoothing = event_model.smoothing
    if event_model.weight == "log" or event_model.complement or isinstance(smoothing, LaplacePerToken):
        raise ValueError(
            f'view `{name}`: a category is counted once, so `Multinomial` with weight="log" (its default), '
            "`complement` or `LaplacePerToken` does not fit it; use the event model Categorical"
        )
    return Categorical(smoothing, event_model.unknown, event_model.vocabulary_min)


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
