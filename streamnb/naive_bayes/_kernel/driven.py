"""The part of a model that the compiled driver uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from streamnb.base import Label
from streamnb.naive_bayes.event_models.priors import Prior
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.posterior.calibrated_head import CalibratedHead
from streamnb.naive_bayes.statistics.forgetting import Decay


class DrivenView(Protocol):
    """A view as the driver describes it to C; `streamnb.naive_bayes.View` is one."""

    @property
    def name(self) -> str:
        """The view's name."""

    @property
    def reader(self) -> Any:  # noqa: ANN401 - the driver asks which of its twins it is
        """The reader: what it takes from a message."""

    @property
    def event_model(self) -> Any:  # noqa: ANN401 - the driver asks which of its twins it is
        """One of the event models that have a twin."""


class DrivenModel(Protocol):
    """A model whose batches the driver steps through; `streamnb.naive_bayes.NaiveBayes` is one.

    The settings are read once, when the driver is made. Of the state, the class counts, the head, the decay
    and the number of messages learned are copied in at the start of a batch and back at its end. The counts
    and the statistics of each view are compiled themselves, and are written in place.
    """

    class_counts: list[float]
    learned: int
    decay: Decay | None

    @property
    def views(self) -> Sequence[DrivenView]:
        """The views, in order."""

    @property
    def text_views(self) -> Sequence[int]:
        """The indices of the views that read text."""

    @property
    def other_views(self) -> Sequence[int]:
        """The indices of all other views."""

    @property
    def string_views(self) -> Sequence[int]:
        """The indices of the views that read strings."""

    @property
    def tokenizer(self) -> Tokenizer:
        """How texts are split into tokens."""

    @property
    def prior(self) -> Prior:
        """A learned or uniform class prior."""

    @property
    def raw(self) -> bool:
        """Whether the product head's posterior is wanted beside the calibrated one."""

    @property
    def classes(self) -> Sequence[Label]:
        """The classes, in order of appearance."""

    @property
    def declared(self) -> Sequence[Label]:
        """The classes that were declared; all are in `classes`."""

    @property
    def index(self) -> Mapping[Label, int]:
        """The index of each class."""

    @property
    def classes_max(self) -> int | None:
        """The largest number of classes; ``None`` is no limit."""

    @property
    def max_tokens(self) -> int | None:
        """The largest number of tokens that the counts hold; ``None`` is no limit."""

    @property
    def bytes_max(self) -> int | None:
        """The most memory that the counts may be charged for, in bytes; ``None`` is no limit."""

    @property
    def counts(self) -> Any:  # noqa: ANN401 - the compiled count store, which no plain module names
        """The compiled `CountStore` of all views that count."""

    @property
    def statistics(self) -> Mapping[str, Any]:
        """The statistic of each view, made of compiled parts."""

    @property
    def token_view(self) -> int | None:
        """The index of the view whose known and unknown tokens are counted."""

    @property
    def head(self) -> CalibratedHead | None:
        """The calibrated head, where the model has one."""

    def adopt(self, classes: Sequence[Label]) -> None:
        """Add classes for which the counts have made room."""
