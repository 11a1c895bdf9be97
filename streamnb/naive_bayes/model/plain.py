"""A model as plain settings, and back: what settings files, snapshots and `streamnb.load` have in common.

Plain settings are tables of strings, numbers and lists, with the names that a settings file uses. They name
no class of Python and hold no state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from streamnb.base import Label
from streamnb.naive_bayes.event_models.priors import Prior
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.state import HeadKind, State
from streamnb.naive_bayes.model.view import View
from streamnb.naive_bayes.statistics.forgetting import Forgetting


class ModelTable(Protocol):
    """The table ``[model]``."""

    @property
    def head(self) -> HeadKind | None:
        """The head, or ``None`` for the one that suits the views."""

    @property
    def trust(self) -> bool:
        """Whether a calibrated head learns how far to trust each token."""

    @property
    def classes(self) -> Sequence[Label]:
        """The declared classes."""

    @property
    def classes_max(self) -> int | None:
        """The largest number of classes, or ``None`` for no limit."""

    @property
    def max_tokens(self) -> int | None:
        """The largest number of tokens, or ``None`` for no limit."""

    @property
    def bytes_max(self) -> int | None:
        """The most memory of the counts in bytes, or ``None`` for no limit."""


class OutputTable(Protocol):
    """The part of the table ``[output]`` that the model itself knows."""

    @property
    def raw_posterior(self) -> bool:
        """Whether scores carry the product head's posterior too."""

    @property
    def explanation(self) -> int:
        """How many tokens the explanation of a score lists."""


class ModelTables(Protocol):
    """Typed settings from which a model can be built; `streamnb.config.Settings` is one."""

    @property
    def model(self) -> ModelTable:
        """Head, classes and limits."""

    @property
    def tokens(self) -> Tokenizer:
        """How texts are split."""

    @property
    def views(self) -> Sequence[View]:
        """The views."""

    @property
    def prior(self) -> Prior | None:
        """The class prior of the product head."""

    @property
    def forgetting(self) -> Forgetting:
        """The half-life."""

    @property
    def output(self) -> OutputTable:
        """What scores contain."""


class _Model(msgspec.Struct, frozen=True):
    head: HeadKind | None = None
    trust: bool = True
    classes: tuple[Label, ...] = ()
    classes_max: int | None = None
    max_tokens: int | None = None
    bytes_max: int | None = None


class _Output(msgspec.Struct, frozen=True):
    raw_posterior: bool = False
    explanation: int = 0


class _Tables(msgspec.Struct, frozen=True):
    """The tables of a snapshot that describe its model; other tables and keys are left to their readers."""

    views: tuple[View, ...]
    model: _Model = _Model()
    tokens: Tokenizer = Tokenizer()
    prior: Prior | None = None
    forgetting: Forgetting = Forgetting()
    output: _Output = _Output()


def parameters(tables: ModelTables) -> dict[str, Any]:
    """Return the arguments of `NaiveBayes` for typed settings."""
    return {
        "views": tables.views,
        "prior": tables.prior,
        "head": tables.model.head,
        "trust": tables.model.trust,
        "classes": tables.model.classes or None,
        "classes_max": tables.model.classes_max,
        "max_tokens": tables.model.max_tokens,
        "bytes_max": tables.model.bytes_max,
        "tokenizer": None if tables.tokens == Tokenizer() else tables.tokens,
        "raw": tables.output.raw_posterior,
        "explain": tables.output.explanation,
        "half_life_s": tables.forgetting.half_life_s,
        "half_life_messages": tables.forgetting.half_life_messages,
        "time_skew_max_s": tables.forgetting.time_skew_max_s,
    }


def typed(tables: object) -> ModelTables:
    """Return the plain settings of a snapshot as typed settings.

    Raises
    ------
    ValueError
        They do not describe a model.
    """
    try:
        return msgspec.convert(tables, _Tables)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def described(state: State) -> dict[str, object]:
    """Return the plain settings of a model: those of its values that differ from the defaults.

    Raises
    ------
    ValueError
        A reader or an event model is the user's own, and no setting can name it.
    """
    for view in state.views:
        if view.is_own or not view.reads:
            raise ValueError(
                f"view `{view.name}`: an event model or a reader of your own cannot be saved; keep the code "
                "that builds the model, and store what `freeze` returns"
            )
    model: dict[str, object] = {"head": state.head_kind, "classes_max": state.classes_max}
    if state.head is not None and not state.trust:
        model["trust"] = False
    if state.max_tokens is not None:
        model["max_tokens"] = state.max_tokens
    if state.bytes_max is not None:
        model["bytes_max"] = state.bytes_max
    if all(isinstance(label, str) for label in state.declared):  # a settings file has no others
        model["classes"] = list(state.declared)
    tables = {
        "model": model,
        "tokens": plain(state.tokenizer),
        "views": plain(state.views),
        "message": _fields(state.views),
        "output": {"raw_posterior": state.raw, "explanation": state.explain},
    }
    if state.head is None:
        tables["prior"] = plain(state.prior)
    if state.decay is not None:
        tables["forgetting"] = plain(state.decay.settings)
    return tables


def _fields(views: Sequence[View]) -> dict[str, list[str]]:
    """Return the fields that the views name, by the kind of value they hold."""
    fields: dict[str, list[str]] = {}
    for view in views:
        if view.reads != "terms":
            named = fields.setdefault(view.reads, [])
            named += [field for field in view.reader.named_fields if field not in named]
    return fields


def plain(value: object) -> Any:  # noqa: ANN401 - strings, numbers, lists and tables
    """Return a setting as plain values; of a struct, those of its fields that differ from their defaults.

    Examples
    --------
    >>> from streamnb import Laplace, Multinomial
    >>> plain(Multinomial(Laplace(0.5)))
    {'kind': 'multinomial', 'smoothing': {'kind': 'laplace', 'alpha': 0.5}}
    """
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if not isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value, order="deterministic")
    config = value.__struct_config__
    table: dict[str, object] = {str(config.tag_field): config.tag} if config.tag_field else {}
    for field in msgspec.structs.fields(value):
        found = getattr(value, field.name)
        if field.required or found != field.default:
            table[field.name] = plain(found)
    return table
