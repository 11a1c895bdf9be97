"""Grow a model: carry what was learned over to a model with other views.

Each view has a statistic of its own, so the statistics of views that stay do not change by a bit. A new view
starts empty, as if all earlier messages had lacked what it reads. That is only right where a missing value
adds nothing: a new view of absent words is refused, because to it the earlier messages would be messages
without any of its words.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from streamnb.base import differences
from streamnb.naive_bayes.model.merging import both
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.model.state_arrays import state_settings
from streamnb.naive_bayes.posterior.against_rest import VIEW_FEATURES
from streamnb.naive_bayes.posterior.string_evidence import STRING_FEATURES
from streamnb.naive_bayes.statistics.token_trust import add_trust


class Growth(NamedTuple):
    """The names of the views that were kept, that are new and empty, and that were dropped."""

    kept: list[str]
    new: list[str]
    dropped: list[str]


def grow(state: State, other: State) -> Growth:
    """Give an empty state what another has learned in the views that both have.

    The calibrated head keeps the weights of the features that remain; those of a new view start as in a new
    model, and so do weight and sums of the unknown share if another view's tokens are counted now.

    Parameters
    ----------
    state : State
        Has learned nothing.
    other : State
        Stays as it is.

    Returns
    -------
    Growth

    Raises
    ------
    ValueError
        A view that both have counts otherwise, another setting of the statistics differs, no view would be
        kept, or a new one cannot start late. `state` must not be used afterwards.
    """
    with both(state, other):
        growth = _checked(state, other)
        for label in other.classes:
            state.class_index(label)
        if state.classes != other.classes:
            raise ValueError(
                f"its classes {other.classes} do not begin with the declared {list(state.declared)}"
            )
        classes = range(len(state.classes))
        for view in set(growth.kept) & set(state.counts):
            state.counts[view].merge(other.counts[view], classes)
            if state.trust:
                add_trust(state.counts[view].trust, other.counts[view].trust)
        state.counts.evicted_tokens = other.counts.evicted_tokens
        state.counts.evicted_mass = other.counts.evicted_mass
        state.counts.fell_short = other.counts.fell_short
        state.class_counts, state.learned = list(other.class_counts), other.learned
        state.recount()
        for view in growth.kept:
            sections = other.statistics[view].freeze("block0")
            state.statistics[view].restore(sections, len(classes), "block0")
        if state.head is not None and other.head is not None:
            held = {feature: i for i, feature in enumerate(_features(other))}
            state.head.adopt(other.head, [held.get(feature) for feature in _features(state)])
        if state.decay is not None and other.decay is not None:
            state.decay.restore(other.decay.freeze())
        return growth


def setting_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return one line per setting of the statistics that differs, for views that both models have.

    Parameters
    ----------
    before, now : mapping
        As `NaiveBayes.state_settings` returns them.
    """
    old, new = ({view["name"]: view for view in settings.get("views", ())} for settings in (before, now))
    common = old.keys() & new.keys()
    return differences(
        {**before, "views": {name: old[name] for name in common}},
        {**now, "views": {name: new[name] for name in common}},
    )


def _checked(state: State, other: State) -> Growth:
    if state.learned:
        raise ValueError(f"the new model has already learned {state.learned} messages")
    if changes := setting_differences(state_settings(other), state_settings(state)):
        raise ValueError("; ".join(changes))
    growth = Growth(
        [name for name in state.statistics if name in other.statistics],
        [name for name in state.statistics if name not in other.statistics],
        [name for name in other.statistics if name not in state.statistics],
    )
    if not growth.kept:
        raise ValueError(f"none of its views would be kept: {', '.join(growth.dropped)}")
    for view in state.views:
        if view.name in growth.new and view.reads_absence and other.learned:
            raise ValueError(
                f"view `{view.name}` is new and takes absent words as evidence, so all messages learned "
                "before would count as messages without its words"
            )
    if state.head is not None and (texts := _texts(other)) != _texts(state):
        raise ValueError(
            f"the calibrated head learned the length of the fields {', '.join(sorted(texts))}, and now the "
            f"views read the text of {', '.join(sorted(_texts(state)))}"
        )
    return growth


def _texts(state: State) -> set[str]:
    """Return the fields whose text is read; their length is a feature of the calibrated head."""
    return {field for view in state.views if view.reads == "text" for field in view.reader.named_fields}


def _features(state: State) -> list[Hashable]:
    """Return names for the features of the calibrated head, in the order of its weights."""
    counted = None if state.token_view is None else state.views[state.token_view].name
    return [
        *((state.views[i].name, k) for i in state.text_views for k in range(VIEW_FEATURES)),
        "length",
        ("unknown share", counted),
        *((state.views[i].name,) for i in state.other_views),
        *((state.views[i].name, k) for i in state.string_views for k in range(STRING_FEATURES)),
        *["trust"] * (state.head is not None and state.head.trusts),
    ]
