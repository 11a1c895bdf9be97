"""The explanation of one message: what each token contributes for one class and against another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from streamnb.base import Label
from streamnb.naive_bayes.event_models.base import difference
from streamnb.naive_bayes.event_models.bernoulli import ABSENT
from streamnb.naive_bayes.features.strings import shown
from streamnb.naive_bayes.model.message_features import MessageFeatures
from streamnb.naive_bayes.model.scoring import (
    Evidence,
    evidence_of,
    left_of_classes,
    log_joint,
    log_prior,
    read_now,
)
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.posterior.against_rest import VIEW_FEATURES
from streamnb.naive_bayes.posterior.calibrated_head import CalibratedHead
from streamnb.naive_bayes.posterior.explanation import (
    Explanation,
    Part,
    calibrated_parts,
    ordered,
    pair_differences,
    product_part,
)
from streamnb.naive_bayes.posterior.string_evidence import STRING_FEATURES, contributions


def explanation(
    state: State, x: Mapping[str, object], classes: tuple[Label, Label] | None
) -> Explanation | None:
    """Return the explanation of a message; see `NaiveBayes.explain_one`."""
    message = read_now(state, x)
    active = state.active()
    if len(active) < 2:
        return None
    evidence = evidence_of(state, message, active) if state.head is not None else None
    labels = [state.classes[c] for c in active]
    if classes is None:
        u = evidence.opinion.u if evidence is not None else log_joint(state, message, active)
        if max(u) == -math.inf:  # maximum likelihood's 0/0: the posterior is the prior
            u = log_prior(state, active, message.scale)
        a, b = first_two(state, u, active)
    elif all(label in labels for label in classes):
        a, b = (labels.index(label) for label in classes)
    else:
        raise ValueError(
            f"messages of both classes {classes!r} must have been learned; learned so far: {labels!r}"
        )
    return explanation_of(state, message, active, evidence, a, b)


def first_two(state: State, u: Sequence[float], active: Sequence[int]) -> tuple[int, int]:
    """Return the indices in `active` of the two classes with the highest u; ties go to the smallest
    label.
    """
    first, second = sorted(range(len(active)), key=lambda i: (-u[i], state.classes[active[i]]))[:2]
    return first, second


def explanation_of(
    state: State, message: MessageFeatures, active: list[int], evidence: Evidence | None, a: int, b: int
) -> Explanation:
    """Return the explanation of one message for the classes at the indices a and b of `active`."""
    pair = (state.classes[active[a]], state.classes[active[b]])
    if state.head is not None and evidence is not None:
        names = [state.views[i].name for i in state.text_views]
        trusted = state.head.weights[-1] * evidence.damped if state.head.trusts else 0.0
        parts = calibrated_parts(names, evidence.odds, state.head.weights, trusted, a, b)
        parts += _string_parts(state, state.head, evidence, a, b)
        # The features of strings and that of trust, which follow the titled ones, are in the tokens' parts.
        titled = slice(VIEW_FEATURES * len(names), state.head.first_of_strings)
        titles = ["length", "unknown_share", *(state.views[i].name for i in state.other_views)]
        weighed = {
            title: [weight * value for value in feature]
            for title, weight, feature in zip(
                titles, state.head.weights[titled], evidence.phi[titled], strict=True
            )
        }
        starts = state.head.starts(active, left_of_classes(state, message.scale))
        start = starts[a] - starts[b]
        return Explanation(pair, start, ordered(parts), pair_differences(weighed, a, b))
    parts = []
    numbers: dict[str, list[float]] = {}
    silent, impossible = True, [False] * len(active)
    for view, features in zip(state.views, message.features, strict=True):
        statistic = state.statistics[view.name]
        for token, values in view.formulas.parts(features, statistic, active, message.scale):
            silent = silent and not any(values)
            impossible = [was or value == -math.inf for was, value in zip(impossible, values, strict=True)]
            if token is ABSENT:
                numbers[f"{view.name}: {token}"] = list(values)
            else:
                name = shown(token) if view.reads_strings else token
                parts.append(product_part(view.name, name, values, a, b))
    prior = log_prior(state, active, message.scale, silent=silent)
    found = Explanation(pair, difference(prior[a], prior[b]), ordered(parts), pair_differences(numbers, a, b))
    return _without_evidence(found) if (impossible[a] and impossible[b]) or math.isnan(found.total) else found


def _string_parts(state: State, head: CalibratedHead, evidence: Evidence, a: int, b: int) -> Iterator[Part]:
    """Yield what each of the longest strings of a message contributes under the calibrated head."""
    first = head.first_of_strings
    for i, odds in zip(state.string_views, evidence.string_odds, strict=True):
        for string, value in contributions(odds, head.weights[first : first + STRING_FEATURES], a, b):
            yield Part(state.views[i].name, shown(string), value)
        first += STRING_FEATURES


def _without_evidence(explanation: Explanation) -> Explanation:
    """Return the explanation of a likelihood ratio of 0/0: every part is 0."""
    return explanation._replace(
        tokens=[part._replace(value=0.0) for part in explanation.tokens],
        others=dict.fromkeys(explanation.others, 0.0),
    )
