"""The plain driver: score a message from the present state, then learn it.

It is the specification: the compiled driver must give the same bits.
"""

from __future__ import annotations

import copy
import math

from streamnb.base import Batch, Flag, Label, ScoreRows, Scores, checked_labels
from streamnb.naive_bayes.model import merging
from streamnb.naive_bayes.model.explaining import explanation_of, first_two
from streamnb.naive_bayes.model.message_features import MessageFeatures, read_message
from streamnb.naive_bayes.model.scoring import (
    Evidence,
    evidence_of,
    log_joint,
    log_prior,
    share_of_unknown,
    token_counts,
)
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.posterior.odds import log_odds, log_odds_of, never_labelled, softmax
from streamnb.naive_bayes.posterior.trust import gradient, stepped, teaches


def step(state: State, batch: Batch, *, score: bool, learn: bool) -> Scores:
    """Score and learn a batch; the specification of `_kernel.Driver.step`."""
    labels, weights = checked_labels(batch, state.classes) if learn else ([None] * len(batch), None)
    messages = [read_message(state.views, state.tokenizer, batch.fields, i) for i in range(len(batch))]
    times = state.decay.times_of(batch.times, labels) if state.decay is not None else None
    rows = ScoreRows(raw=state.raw and score)
    for i, message in enumerate(messages):
        instant = 0.0
        if state.decay is not None and times is not None:
            instant = state.decay.instant(times[i], batch.partition)
            message = message._replace(scale=state.decay.scale(instant))  # noqa: PLW2901
            if learn:
                state.decay.saw(times[i], batch.partition)
        weight = 1.0 if weights is None else weights[i]
        step_message(state, rows, message, labels[i], weight, instant, score=score)
    return rows.scores(tuple(state.classes))


def step_message(
    state: State,
    rows: ScoreRows,
    message: MessageFeatures,
    label: Label | None,
    weight: float,
    instant: float = 0.0,
    *,
    score: bool,
) -> None:
    """Score a message, then learn it if it has a label."""
    flags = message.flags
    if label is not None and not state.has_room_for(label):
        label, flags = None, flags | Flag.CLASS_LIMIT
    active = state.active()
    evidence = None
    if state.head is not None and active and (score or label is not None):
        evidence = evidence_of(state, message, active)
    if score:
        _score(state, rows, message, active, evidence, flags)
    else:
        rows.append_unscored(state.learned, int(flags))
    if label is not None:
        _learn(state, message, label, weight, instant, active, evidence)


def _score(
    state: State,
    rows: ScoreRows,
    message: MessageFeatures,
    active: list[int],
    evidence: Evidence | None,
    flags: Flag,
) -> None:
    n_classes, declared = len(state.classes), state.never_labelled()
    weight = 0.0
    for count in state.class_counts:
        weight += count
    weight /= message.scale
    joint: list[float] = []
    raw: list[float] = []
    if evidence is None or state.raw:
        joint = log_joint(state, message, active) if active else []
        if max(joint, default=0.0) == -math.inf:  # maximum likelihood's 0/0: no evidence
            joint = log_prior(state, active, message.scale)
        raw = never_labelled(softmax(joint), active, declared, n_classes, weight)
    posterior, over_active = raw, joint
    if evidence is not None:
        posterior = never_labelled(evidence.opinion.posterior, active, declared, n_classes, weight)
        over_active = evidence.opinion.u
    u = [math.nan] * n_classes
    for c, value in zip(active, over_active, strict=True):
        u[c] = value
    exact = evidence is None and len(active) == n_classes
    explanation = None
    if state.explain and len(active) > 1:
        a, b = first_two(state, over_active, active)
        explanation = explanation_of(state, message, active, evidence, a, b).published(state.explain)
    known, unknown = token_counts(state, message)
    rows.append(
        posterior=posterior,
        log_odds=log_odds(joint) if exact else log_odds_of(posterior),
        u=u,
        raw=raw if state.raw else None,
        known=known,
        unknown=unknown,
        learned=state.learned,
        learned_by_class=[count / message.scale for count in state.class_counts],
        flags=int(flags),
        explanation=explanation,
    )


def _learn(
    state: State,
    message: MessageFeatures,
    label: Label,
    weight: float,
    instant: float,
    active: list[int],
    evidence: Evidence | None,
) -> None:
    c = state.class_index(label)
    errors: list[float] | None = None
    known, unknown = token_counts(state, message) if state.head is not None else (0, 0)
    if state.head is not None and evidence is not None and len(active) > 1 and c in active:
        if state.decay is not None:
            state.head.fade(state.decay.fade_of_head(instant))
        y = active.index(c)
        errors = state.head.errors(evidence.opinion, y, weight)
        state.head.learn(evidence.opinion, errors, evidence.phi, active, y, weight)
        if not (state.head.trusts and teaches(errors, weight)):
            errors = None
    if state.decay is not None:  # the head's steps are not decayed: their weight is the message's own
        weight *= _grown(state, instant)
    if state.head is not None:
        state.head.length.add(message.length, c, weight)
        state.head.unknown_share.add(share_of_unknown(unknown, known + unknown), c, weight)
    _make_room(state, message)
    if errors is not None and evidence is not None:
        _learn_trust(state, evidence, errors, instant)
    for statistic, features in zip(state.statistics.values(), message.features, strict=True):
        statistic.add(features, c, weight)
    state.class_counts[c] += weight
    state.learned += 1


def _learn_trust(state: State, evidence: Evidence, errors: list[float], instant: float) -> None:
    """Step the trust of the message's known tokens; one that was evicted for this message has none."""
    scale = 1.0 if state.decay is None else state.decay.scale(instant)
    for i, odds in zip(state.text_views, evidence.odds, strict=True):
        trust = state.counts[state.views[i].name].trust
        for odd in odds:
            h = gradient(odd, evidence.damped, errors)
            trust.set(odd.token, *stepped(trust.get(odd.token), h, scale))


def _grown(state: State, instant: float) -> float:
    """Return the weight of a message at an instant, after moving the landmark if the weight would be too
    large.
    """
    assert state.decay is not None
    shift = state.decay.shift_for(instant)
    if shift:
        merging.fade(state, math.ldexp(1.0, -shift))
    state.decay.position += 1
    return state.decay.scale(instant)


def _make_room(state: State, message: MessageFeatures) -> None:
    """Evict rare tokens if the message's new tokens would not fit into `max_tokens` and `bytes_max`."""
    if state.max_tokens is None and state.bytes_max is None:
        return
    features = dict(zip(state.statistics, message.features, strict=True))
    before = state.counts.evicted_tokens
    state.counts.make_room({name: features[name] for name in state.counts})
    if state.counts.evicted_tokens > before:
        state.recount()


def at_rest(state: State) -> State:
    """Return the model or, if it forgets, a copy without decay whose sums are rescaled to the present."""
    if state.decay is None:
        return state
    still = copy.deepcopy(state)
    merging.fade(still, 1.0 / state.decay.scale(state.decay.now()))
    still.decay = None
    return still
