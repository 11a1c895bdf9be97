"""Merge, subtract, unlearn and fade: statistics are sums, so they add up and can be taken apart.

Each operation checks everything before it changes anything. A count may be smaller than the amount to
subtract: by rounding, within `WEIGHT_ROUNDING`, if weights were not multiples of 1/256; or by any amount
after an eviction. In both cases the count stops at 0, and in the second `State.fell_short` counts the token.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import cast

from streamnb.base import Label
from streamnb.naive_bayes.model.message_features import MessageFeatures
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.statistics.counts import CountStore
from streamnb.naive_bayes.statistics.decay import FORGOTTEN, fade_sums
from streamnb.naive_bayes.statistics.moments import WEIGHT_ROUNDING


def fade(state: State, factor: float) -> None:
    """Multiply all sums by a factor, which moves the landmark of a model that forgets; head weights stay.

    Sums below `decay.FORGOTTEN` become 0: their tokens leave the vocabulary, and a class without any weight
    left counts as declared and never labelled.
    """
    state.counts.fade(factor)
    for moments in state.moments.values():
        moments.fade(factor)
    for block in state.blocks.values():
        block.fade(factor)
    fade_sums((state.class_counts,), factor)
    if state.head is not None:
        state.head.length.fade(factor)
        state.head.unknown_share.fade(factor)
    state.recount()


def unlearn(
    state: State, message: MessageFeatures, label: Label, weight: float, at: float | None = None
) -> None:
    """Unlearn one message; the head's weights stay as they are.

    Parameters
    ----------
    at : float, optional
        When it was learned, for a model that forgets: seconds since 1970, or the number of messages that
        had been learned before it. By default it was the newest.

    Raises
    ------
    ValueError
        It was not learned that often; nothing was changed.
    """
    c = state.index.get(label)
    if state.decay is not None:
        if at is None and not state.decay.by_time:
            at = max(0, state.decay.position - 1)
        weight *= state.decay.scale(state.decay.instant(at))
        if c is not None and weight < FORGOTTEN:  # already forgotten
            state.learned = max(0, state.learned - 1)
            return
    if c is None or state.class_counts[c] < weight * (1 - WEIGHT_ROUNDING):
        raise ValueError(f"less was learned of {label!r} than this message's weight; nothing was unlearned")
    amounts: dict[str, dict[str, float]] = {}
    short = 0
    for view, features in zip(state.views, message.features, strict=True):
        if isinstance(features, float):
            if not math.isnan(features) and state.moments[view.name].n[c] < weight * (1 - WEIGHT_ROUNDING):
                raise ValueError(
                    f"view `{view.name}` has learned less than this number's weight; nothing was unlearned"
                )
        elif view.keeps == "block":
            state.blocks[view.name].check_removable(features, c, weight)
        else:
            wanted = {token: f * weight for token, f in features.items()}
            amounts[view.name], missing = _amounts(state, view.name, wanted, c)
            short += missing
    _take_views(state, message, c, weight, amounts)
    weight = _taken(state, state.class_counts[c], weight)
    state.class_counts[c] -= weight
    if state.head is not None:
        state.head.length.remove(message.length, c, weight)
    state.learned = max(0, state.learned - 1)
    state.fell_short += short


def _take_views(
    state: State, message: MessageFeatures, c: int, weight: float, amounts: Mapping[str, Mapping[str, float]]
) -> None:
    """Subtract a message from each view's statistic; `amounts` holds what to subtract from each token's
    count.
    """
    for view, features in zip(state.views, message.features, strict=True):
        if isinstance(features, float):
            if not math.isnan(features):
                moments = state.moments[view.name]
                moments.remove(features, c, _taken(state, moments.n[c], weight))
        elif view.keeps == "block":
            state.blocks[view.name].remove(features, c, weight)
        else:
            _remove(state, view.name, amounts[view.name], c, weight)


def merge(state: State, other: State) -> None:
    """Add what another model has learned; rare tokens are evicted if both together exceed `max_tokens`.

    The head's weights become the mean of both, weighted by the labels learned. Models that forget are first
    brought to one landmark; see `Decay.meet`.

    Raises
    ------
    ValueError
        The other reads or counts otherwise, or brings more classes than allowed; nothing was changed.
    """
    with _both(state, other):
        _check_alike(state, other)
        new = [label for label in other.classes if label not in state.index]
        if len(state.classes) + len(new) > state.classes_max:
            raise ValueError(f"together they have more than {state.classes_max} classes; nothing was merged")
        kinds = {type(label) for label in (*state.classes, *other.classes)}
        if len(kinds) > 1:
            raise ValueError("their labels are of two types; nothing was merged")
        for view, block in state.blocks.items():
            block.check_mergeable(other.blocks[view])
        if state.decay is not None and other.decay is not None:
            if (factor := state.decay.meet(other.decay)) != 1.0:
                fade(state, factor)
            other = _faded(other, state.decay.factor_of(other.decay))
        mine, others = sum(state.class_counts), sum(other.class_counts)
        classes = [state.class_index(label) for label in other.classes]
        state.counts.merge(cast("CountStore", other.counts), classes)  # the twins merge with each other
        state.counts.evicted_tokens += other.counts.evicted_tokens
        state.counts.evicted_mass += other.counts.evicted_mass
        for view, moments in state.moments.items():
            moments.merge(other.moments[view], classes)
        for view, block in state.blocks.items():
            block.merge(other.blocks[view], classes)
        if state.head is not None and other.head is not None:
            state.head.merge(other.head, classes, mine, others)
        for j, c in enumerate(classes):
            state.class_counts[c] += other.class_counts[j]
        state.learned += other.learned
        state.fell_short += other.fell_short
        if state.max_tokens is not None and len(state.counts) > state.max_tokens:
            state.counts.evict(len(state.counts) - state.max_tokens)
        state.recount()


def subtract(state: State, other: State) -> None:
    """Subtract what another model has learned and this one has learned too; head weights stay.

    Raises
    ------
    ValueError
        The other reads or counts otherwise, or has learned what this one has not; nothing was changed.
    """
    with _both(state, other):
        _check_alike(state, other)
        if state.decay is not None and other.decay is not None:
            other = _faded(other, state.decay.factor_of(other.decay))
        for label, n in zip(other.classes, other.class_counts, strict=True):
            known = state.class_counts[state.index[label]] if label in state.index else 0.0
            if known < n * (1 - WEIGHT_ROUNDING):
                raise ValueError(
                    f"cannot subtract more messages of {label!r} than were learned; nothing was subtracted"
                )
        pairs = [(j, state.index[label]) for j, label in enumerate(other.classes) if label in state.index]
        amounts = []
        short = 0
        for view in state.counts:
            for j, c in pairs:
                wanted = {token: row[j] for token, row in other.counts[view].rows.items() if row[j]}
                found, missing = _amounts(state, view, wanted, c)
                amounts.append((view, c, found))
                short += missing
        classes = [state.class_index(label) for label in other.classes]
        for view, moments in state.moments.items():
            moments.check_subtractable(other.moments[view], classes)
        for view, block in state.blocks.items():
            block.check_subtractable(other.blocks[view], classes)
        for view, c, found in amounts:
            state.counts[view].remove(found, c)
        for view, moments in state.moments.items():
            moments.subtract(other.moments[view], classes)
        for view, block in state.blocks.items():
            block.subtract(other.blocks[view], classes)
        for j, c in enumerate(classes):
            taken = _taken(state, state.class_counts[c], other.class_counts[j])
            state.class_counts[c] -= taken
            if state.head is not None and other.head is not None:
                theirs = other.head.length
                state.head.length.take(c, taken, theirs.s[j], theirs.ss[j])
        state.learned = max(0, state.learned - other.learned)
        state.fell_short += short
        state.recount()


def _amounts(state: State, view: str, wanted: Mapping[str, float], c: int) -> tuple[dict[str, float], int]:
    """Return how much to subtract from each token's count, and how many tokens have less than was wanted."""
    rows = state.counts[view].rows
    amounts = {}
    short = 0
    for token, amount in wanted.items():
        row: Sequence[float] | None = rows.get(token)
        held = row[c] if row is not None else 0.0
        if held < amount * (1 - WEIGHT_ROUNDING) and not (state.decay is not None and amount < FORGOTTEN):
            if not state.counts.evicted_tokens:
                raise ValueError(f"{token!r} was not learned that often; nothing was changed")
            short += 1
        if held > 0:
            amounts[token] = _taken(state, held, amount)
    return amounts, short


def _taken(state: State, held: float, amount: float) -> float:
    """Return the amount to subtract: at most `held`; exactly `held` if only rounding error would remain."""
    if state.decay is not None and held <= amount * (1 + WEIGHT_ROUNDING):
        return held
    return min(held, amount)


def _faded(other: State, factor: float) -> State:
    """Return the other model, or a copy of it whose sums are multiplied by a factor."""
    if factor == 1.0:
        return other
    copied = copy.deepcopy(other)
    fade(copied, factor)
    return copied


def _remove(state: State, view: str, amounts: Mapping[str, float], c: int, weight: float) -> None:
    tally = state.tallies.get(view)
    if tally is not None:
        tally.remove(state.counts[view].rows, amounts, c, weight)
    state.counts[view].remove(amounts, c)


def _check_alike(state: State, other: State) -> None:
    """Raise ``ValueError`` if the settings that the statistics depend on differ."""
    mine, theirs = state.state_settings(), other.state_settings()
    different = [
        f"{key}: {mine.get(key)!r} here, {theirs.get(key)!r} there"
        for key in sorted(mine.keys() | theirs.keys())
        if mine.get(key) != theirs.get(key)
    ]
    if different:
        raise ValueError(f"the models do not count the same: {'; '.join(different)}")


@contextmanager
def _both(state: State, other: State) -> Iterator[None]:
    """Lock both models, always in the same order, so that two threads cannot deadlock."""
    if state is other:
        raise ValueError("a model cannot be merged with or subtracted from itself")
    with ExitStack() as stack:
        for model in sorted((state, other), key=id):
            stack.enter_context(model.lock)
        yield
