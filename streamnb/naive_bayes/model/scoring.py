"""Evidence and joint log likelihood of one message, from the state; nothing is learned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.priors import FallbackPrior
from streamnb.naive_bayes.model.message_features import Features, MessageFeatures, read_message
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.posterior.against_rest import TokenOdds, against_rest, token_odds
from streamnb.naive_bayes.posterior.calibrated_head import Opinion
from streamnb.naive_bayes.posterior.string_evidence import ByteOdds, byte_odds, string_features
from streamnb.naive_bayes.posterior.trust import damping, trust_feature
from streamnb.naive_bayes.statistics.steady_normal import centred_and_clipped


class Evidence(NamedTuple):
    """The calibrated head's features of one message, and its result.

    Parameters
    ----------
    phi : list of F lists of S floats
        Feature i of active class c.
    odds : list of list of TokenOdds
        Per text view, the token odds that the features were computed from.
    string_odds : list of list of ByteOdds
        The same per view of strings.
    damped : float
        `damping` of the message, if the head learns trust.
    unknown_share : float
        ``sqrt((U + 1/2) / (L + 1))``, U of the L distinct tokens unknown.
    opinion : Opinion
    """

    phi: list[list[float]]
    odds: list[list[TokenOdds]]
    string_odds: list[list[ByteOdds]]
    damped: float
    unknown_share: float
    opinion: Opinion


def evidence_of(state: State, message: MessageFeatures, active: Sequence[int]) -> Evidence:
    """Return the calibrated head's features of one message, and its result, from the present state.

    Parameters
    ----------
    active : sequence of int
        The classes learned so far; at least one.
    """
    assert state.head is not None
    phi: list[list[float]] = []
    odds = []
    for i in state.text_views:
        view, features = state.views[i], message.features[i]
        multinomial = cast("Multinomial", view.formulas)  # see `EventModel.check_for_head`
        view_odds = token_odds(multinomial, features, state.counts[view.name], active, message.scale)
        odds.append(view_odds)
        phi.extend(against_rest(view_odds, len(active)))
    known, unknown = token_counts(state, message)
    unknown_share = share_of_unknown(unknown, known + unknown)
    phi.append(state.head.length.evidence(message.length, active, message.scale))
    phi.append(state.head.unknown_share.evidence(unknown_share, active, message.scale))
    others = [
        log_likelihood_of(state, i, message.features[i], active, message.scale) for i in state.other_views
    ]
    phi.extend(centred_and_clipped(values) for values in others)
    string_odds = []
    for i in state.string_views:
        counts = state.counts[state.views[i].name]
        string_odds.append(byte_odds(message.features[i], counts, active, message.scale))
        phi.extend(string_features(string_odds[-1], len(active)))
    damped = damping(message.features[i] for i in state.text_views) if state.head.trusts else 0.0
    if state.head.trusts:
        phi.append(trust_feature(odds, damped, len(active)))
    opinion = state.head.opinion(phi, active, left_of_classes(state, message.scale))
    return Evidence(phi, odds, string_odds, damped, unknown_share, opinion)


def left_of_classes(state: State, scale: float) -> list[float] | None:
    """Return the present weight of each class's messages, if the model forgets."""
    return None if state.decay is None else [n / scale for n in state.class_counts]


def log_joint(state: State, message: MessageFeatures, active: Sequence[int]) -> list[float]:
    """Return ``log P(c) + log P(x | c)`` per active class; all minus infinity is maximum likelihood's
    0/0.
    """
    likelihoods = [
        log_likelihood_of(state, i, features, active, message.scale)
        for i, features in enumerate(message.features)
    ]
    silent = not any(value for z in likelihoods for value in z)
    u = log_prior(state, active, message.scale, silent=silent)
    for z in likelihoods:
        for c, value in enumerate(z):
            u[c] += value
    return u


def log_density(state: State, message: MessageFeatures, active: Sequence[int]) -> list[float]:
    """Return `log_joint` with the constants of the densities, which no posterior needs."""
    constant = 0.0
    for view, features in zip(state.views, message.features, strict=True):
        constant += view.formulas.log_constant(features, state.statistics[view.name])
    return [u + constant for u in log_joint(state, message, active)]


def log_prior(state: State, active: Sequence[int], scale: float = 1.0, *, silent: bool = True) -> list[float]:
    """Return the log prior of the active classes; `silent`: the message has no evidence at all."""
    if isinstance(state.prior, FallbackPrior) and not silent:
        return [0.0] * len(active)  # a `FallbackPrior` is used only without evidence
    counts = [state.class_counts[c] for c in active]
    return state.prior.log_p([state.classes[c] for c in active], counts, scale)


def log_likelihood_of(
    state: State, i: int, features: Features, active: Sequence[int], scale: float
) -> list[float]:
    """Return the log likelihood of what view i reads, per active class."""
    view = state.views[i]
    return view.formulas.log_likelihood(features, state.statistics[view.name], active, scale)


def read_now(state: State, x: Mapping[str, object]) -> MessageFeatures:
    """Return the features of a message that is as new as the newest one learned."""
    message = read_message(state.views, state.tokenizer, columns_of(x), 0)
    return message if state.decay is None else message._replace(scale=state.decay.scale(state.decay.now()))


def token_counts(state: State, message: MessageFeatures) -> tuple[int, int]:
    """Return the numbers of known and unknown distinct tokens in the first view that has tokens."""
    if state.token_view is None:
        return 0, 0
    features = message.features[state.token_view]
    rows = state.counts[state.views[state.token_view].name].rows
    known = sum(token in rows for token in features)
    return known, len(features) - known


def columns_of(x: Mapping[str, object]) -> dict[str, list[object]]:
    """Return a message as the columns of a batch of one."""
    return {field: [value] for field, value in x.items()}


def share_of_unknown(unknown: int, tokens: int) -> float:
    """Return ``sqrt((U + 1/2) / (L + 1))``: the share of unknown tokens, with a spread that hardly depends on
    L.
    """
    return math.sqrt((unknown + 0.5) / (tokens + 1.0))
