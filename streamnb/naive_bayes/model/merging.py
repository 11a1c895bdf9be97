"""Merge, subtract, unlearn and fade: statistics are sums, so they add up and can be taken apart.

Each operation checks everything before it changes anything. A count may be smaller than the amount to
subtract: by rounding, within `WEIGHT_ROUNDING`, if weights were not multiples of 1/256; or by any amount
after an eviction. In both cases the count stops at 0, and in the second `State.fell_short` counts the token.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from streamnb.base import Label
from streamnb.naive_bayes.model.message_features import MessageFeatures
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.model.state_arrays import state_settings
from streamnb.naive_bayes.model.view import named
from streamnb.naive_bayes.posterior.trust import SQUARES_START
from streamnb.naive_bayes.statistics.decay import FORGOTTEN, WEIGHT_ROUNDING, fade_classes, to_subtract
from streamnb.naive_bayes.statistics.token_trust import take_trust


def fade(state: State, factor: float) -> None:
    """Multiply all sums by a factor, which moves the landmark of a model that forgets; head weights stay.

    Counts below `decay.FORGOTTEN` become 0, and their tokens leave the vocabulary. A class that was labelled
    keeps a weight, however small.
    """
    state.counts.fade(factor)
    for statistic in state.statistics.values():
        statistic.fade(factor)
    fade_classes((state.class_counts,), factor)
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
        The learned weight is smaller than the weight to remove; nothing was changed.
    """
    c = state.index.get(label)
    if state.decay is not None:
        if at is None and not state.decay.by_time:
            at = max(0, state.decay.position - 1)
        weight *= state.decay.scale(state.decay.instant(at))
        if c is not None and weight < FORGOTTEN:  # already forgotten
            state.learned = max(0, state.learned - 1)
            return
    if c is None:
        raise ValueError(f"no message of {label!r} was ever learned; nothing was unlearned")
    if state.class_counts[c] < weight * (1 - WEIGHT_ROUNDING):
        raise ValueError(f"the learned weight of {label!r} is below this message's; nothing was unlearned")
    for view, features in zip(state.views, message.features, strict=True):
        with named(view):
            state.statistics[view.name].check_removable(features, c, weight)
    for statistic, features in zip(state.statistics.values(), message.features, strict=True):
        statistic.remove(features, c, weight)
    weight = to_subtract(state.class_counts[c], weight, rounded=state.decay is not None)
    _settle(state, c, state.class_counts[c] - weight)
    if state.head is not None:
        state.head.length.remove(message.length, c, weight, state.class_counts[c])
    state.learned = max(0, state.learned - 1)


def merge(state: State, other: State, base: State | None = None) -> None:
    """Add what another model has learned; rare tokens are evicted if both together exceed the limits.

    The head's weights become the mean of both, weighted by the labels learned; for the trust of tokens see
    `add_trust`. Models that forget are first brought to one landmark; see `Decay.meet`.

    Parameters
    ----------
    base : State, optional
        A model that both began from: what it had learned counts once, and the head's weights are weighted by
        the labels learned since.

    Raises
    ------
    ValueError
        The other reads or counts otherwise, or brings more classes than allowed, or one does not hold what
        `base` has learned; nothing was changed.
    """
    with both(state, other):
        check_alike(state, other)
        if base is not None:
            _check_holds(state, base)
            _check_holds(other, base)
        _check_room(state, other, "merged")
        kinds = {type(label) for label in (*state.classes, *other.classes)}
        if len(kinds) > 1:
            raise ValueError("the labels of the two models differ in type; nothing was merged")
        for view, statistic in state.statistics.items():
            statistic.check_mergeable(other.statistics[view])
        if state.decay is not None and other.decay is not None:
            if (factor := state.decay.meet(other.decay)) != 1.0:
                fade(state, factor)
            other = _faded(other, state.decay.factor_of(other.decay))
        mine, others = _labels_learned(state, other, base)
        classes = [state.class_index(label) for label in other.classes]
        for view, statistic in state.statistics.items():
            statistic.merge(other.statistics[view], classes)
        now = 1.0 if state.decay is None else state.decay.scale(state.decay.now())
        state.counts.merge_trust(other.counts, SQUARES_START * now)
        state.counts.evicted_tokens += other.counts.evicted_tokens
        state.counts.evicted_mass += other.counts.evicted_mass
        state.counts.fell_short += other.counts.fell_short
        if state.head is not None and other.head is not None:
            state.head.merge(other.head, classes, mine, others)
        for j, c in enumerate(classes):
            state.class_counts[c] += other.class_counts[j]
        state.learned += other.learned
        if base is not None:
            _take_base(state, base, SQUARES_START * now)
        while n := state.counts.surplus({}):
            state.counts.evict(n)
        state.recount()


def _labels_learned(state: State, other: State, base: State | None) -> tuple[float, float]:
    """Return the weight of the labels that each model has learned, if there is a base and any since then."""
    mine, others = sum(state.class_counts), sum(other.class_counts)
    if base is None:
        return mine, others
    held = sum(base.class_counts) * _factor(state, base)
    since = max(0.0, mine - held), max(0.0, others - held)
    return since if sum(since) else (mine, others)


def _factor(state: State, other: State) -> float:
    """Return the factor that brings another model's sums to this one's landmark."""
    return 1.0 if state.decay is None or other.decay is None else state.decay.factor_of(other.decay)


def _check_holds(state: State, base: State) -> None:
    """Raise ``ValueError`` if a model does not hold what another one has learned."""
    check_alike(state, base)
    base = _faded(base, _factor(state, base))
    for label, n in zip(base.classes, base.class_counts, strict=True):
        if label not in state.index or state.class_counts[state.index[label]] < n * (1 - WEIGHT_ROUNDING):
            raise ValueError(
                f"a model does not hold the {label!r} that the base has learned; nothing was merged"
            )
    classes = [state.index[label] for label in base.classes]
    for view, statistic in state.statistics.items():
        statistic.check_subtractable(base.statistics[view], classes)


def _take_base(state: State, base: State, start: float) -> None:
    """Take once what two merged models had both begun from; the head's weights are means and stay."""
    state.recount()  # the merge has changed counts that `subtract` checks by their tallies
    subtract(state, base)
    state.counts.evicted_tokens = max(0, state.counts.evicted_tokens - base.counts.evicted_tokens)
    state.counts.evicted_mass = max(0, state.counts.evicted_mass - base.counts.evicted_mass)
    state.counts.fell_short = max(0, state.counts.fell_short - base.counts.fell_short)
    base = _faded(base, _factor(state, base))
    if state.counts.trusts:
        for view, counts in state.counts.views.items():
            take_trust(counts.trust, base.counts[view].trust, start)
    if state.head is not None and base.head is not None:
        mine, held = state.head.unknown_share, base.head.unknown_share
        for j, c in enumerate(state.index[label] for label in base.classes):
            mine.take(c, held.s[j], held.ss[j], max(0.0, mine.n[c] - held.n[j]))


def subtract(state: State, other: State) -> None:
    """Subtract what another model has learned and this one has learned too; head weights stay.

    Raises
    ------
    ValueError
        The other reads or counts otherwise, or has learned what this one has not; nothing was changed.
    """
    with both(state, other):
        check_alike(state, other)
        if state.decay is not None and other.decay is not None:
            other = _faded(other, state.decay.factor_of(other.decay))
        for label, n in zip(other.classes, other.class_counts, strict=True):
            known = state.class_counts[state.index[label]] if label in state.index else 0.0
            if known < n * (1 - WEIGHT_ROUNDING):
                raise ValueError(
                    f"cannot subtract more messages of {label!r} than were learned; nothing was subtracted"
                )
        _check_room(state, other, "subtracted")  # a class may be left of which all was unlearned
        is_new = any(label not in state.index for label in other.classes)
        trial = copy.deepcopy(state) if is_new else state  # a refusal must leave no classes behind
        classes = [trial.class_index(label) for label in other.classes]
        for view, statistic in trial.statistics.items():
            statistic.check_subtractable(other.statistics[view], classes)
        for label in other.classes:
            state.class_index(label)
        for view, statistic in state.statistics.items():
            statistic.subtract(other.statistics[view], classes)
        for j, c in enumerate(classes):
            taken = to_subtract(state.class_counts[c], other.class_counts[j], rounded=state.decay is not None)
            state.class_counts[c] -= taken
        state.recount()
        for j, c in enumerate(classes):
            _settle(state, c, state.class_counts[c])
            if state.head is not None and other.head is not None:
                theirs = other.head.length
                state.head.length.take(c, theirs.s[j], theirs.ss[j], state.class_counts[c])
        state.learned = max(0, state.learned - other.learned)


def _check_room(state: State, other: State, done: str) -> None:
    """Raise ``ValueError`` if both models together have more classes than the first one may have."""
    new = [label for label in other.classes if label not in state.index]
    if state.classes_max is not None and len(state.classes) + len(new) > state.classes_max:
        raise ValueError(
            f"the two models together have more than {state.classes_max} classes; nothing was {done}"
        )


def _settle(state: State, c: int, n: float) -> None:
    """Set the weight that a class has left: no less than its words hold, which rounding might leave."""
    tallies = [counts.tally for counts in state.token_statistics().values()]
    for tally in tallies * 2:  # the second time each gets what all of them need
        n = tally.settle(c, n)
    state.class_counts[c] = n


def _faded(other: State, factor: float) -> State:
    """Return the other model, or a copy of it whose sums are multiplied by a factor."""
    if factor == 1.0:
        return other
    copied = copy.deepcopy(other)
    fade(copied, factor)
    return copied


def check_alike(state: State, other: State) -> None:
    """Raise ``ValueError`` if the settings that the statistics depend on differ, or only one learns trust."""
    mine, theirs = state_settings(state), state_settings(other)
    different = [
        f"{key}: {mine.get(key)!r} here, {theirs.get(key)!r} there"
        for key in sorted(mine.keys() | theirs.keys())
        if mine.get(key) != theirs.get(key)
    ]
    if state.trust != other.trust:
        different.append(f"trust: {state.trust} here, {other.trust} there")
    if different:
        raise ValueError(f"the models differ in settings that their counts depend on: {'; '.join(different)}")


@contextmanager
def both(state: State, other: State) -> Iterator[None]:
    """Lock both models, always in the same order, so that two threads cannot deadlock."""
    if state is other:
        raise ValueError("a model cannot be merged with or subtracted from itself")
    with ExitStack() as stack:
        for model in sorted((state, other), key=id):
            stack.enter_context(model.lock)
        yield
