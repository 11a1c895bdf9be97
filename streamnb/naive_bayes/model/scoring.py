"""Evidence, joint log likelihood and explanation of one message, from the state; nothing is learned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from streamnb.base import Label
from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.bernoulli import ABSENT
from streamnb.naive_bayes.event_models.multinomial import VIEW_FEATURES, TokenOdds, against_rest
from streamnb.naive_bayes.event_models.priors import FallbackPrior
from streamnb.naive_bayes.model.message_features import Features, MessageFeatures, read_message
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.posterior.calibrated_head import Opinion
from streamnb.naive_bayes.posterior.explanation import (
    Explanation,
    calibrated_parts,
    ordered,
    pair_differences,
    product_part,
)
from streamnb.naive_bayes.statistics.steady_normal import centred_and_clipped


class Evidence(NamedTuple):
    """The calibrated head's features of one message, and its result.

    Parameters
    ----------
    phi : list of F lists of S floats
        Feature i of active class c.
    odds : list of list of TokenOdds
        Per text view, the token odds that the features were computed from.
    unknown_share : float
        ``sqrt((U + 1/2) / (L + 1))``, U of the L distinct tokens unknown.
    opinion : Opinion
    """

    phi: list[list[float]]
    odds: list[list[TokenOdds]]
    unknown_share: float
    opinion: Opinion


class Scorer(State):
    """The formulas of a naive Bayes over its state; see `NaiveBayes` for the parameters."""

    def evidence(self, message: MessageFeatures, active: Sequence[int]) -> Evidence:
        """Return the calibrated head's features of one message, and its result, from the present state.

        Parameters
        ----------
        active : sequence of int
            The classes labelled so far; at least one.
        """
        assert self.head is not None
        phi: list[list[float]] = []
        odds = []
        for i in self.text_views:
            view, features = self.views[i], message.features[i]
            multinomial = cast("Multinomial", view.formulas)  # see `EventModel.check_for_head`
            view_odds = multinomial.token_odds(features, self.counts[view.name], active, message.scale)
            odds.append(view_odds)
            phi.extend(against_rest(view_odds, len(active)))
        known, unknown = self.token_counts(message)
        unknown_share = share_of_unknown(unknown, known + unknown)
        phi.append(self.head.length.evidence(message.length, active, message.scale))
        phi.append(self.head.unknown_share.evidence(unknown_share, active, message.scale))
        others = [
            self._log_likelihood(i, message.features[i], active, message.scale) for i in self.other_views
        ]
        phi.extend(centred_and_clipped(values) for values in others)
        return Evidence(phi, odds, unknown_share, self.head.opinion(phi, active))

    def log_joint(self, message: MessageFeatures, active: Sequence[int]) -> list[float]:
        """Return ``log P(c) + log P(x | c)`` per active class; all minus infinity is maximum likelihood's
        0/0.
        """
        likelihoods = [
            self._log_likelihood(i, features, active, message.scale)
            for i, features in enumerate(message.features)
        ]
        silent = not any(value for z in likelihoods for value in z)
        u = self.log_prior(active, message.scale, silent=silent)
        for z in likelihoods:
            for c, value in enumerate(z):
                u[c] += value
        return u

    def log_prior(self, active: Sequence[int], scale: float = 1.0, *, silent: bool = True) -> list[float]:
        """Return the log prior of the active classes; `silent`: the message has no evidence at all."""
        if isinstance(self.prior, FallbackPrior) and not silent:
            return [0.0] * len(active)  # a `FallbackPrior` is used only without evidence
        counts = [self.class_counts[c] for c in active]
        return self.prior.log_p([self.classes[c] for c in active], counts, scale)

    def _log_likelihood(self, i: int, features: Features, active: Sequence[int], scale: float) -> list[float]:
        view = self.views[i]
        return view.formulas.log_likelihood(features, self.statistics[view.name], active, scale)

    def read_now(self, x: Mapping[str, object]) -> MessageFeatures:
        """Return the features of a message that is as new as the newest one learned."""
        message = read_message(self.views, self.tokenizer, columns_of(x), 0)
        return message if self.decay is None else message._replace(scale=self.decay.scale(self.decay.now()))

    def token_counts(self, message: MessageFeatures) -> tuple[int, int]:
        """Return the numbers of known and unknown distinct tokens in the first view that has tokens."""
        if self.token_view is None:
            return 0, 0
        features = message.features[self.token_view]
        rows = self.counts[self.views[self.token_view].name].rows
        known = sum(token in rows for token in features)
        return known, len(features) - known

    # ---- explanations

    def explain_one(
        self,
        x: Mapping[str, object],
        classes: tuple[Label, Label] | None = None,
        top: int | None = None,
    ) -> Explanation | None:
        """Explain the difference between two classes, token by token.

        Parameters
        ----------
        x : mapping of str to value
        classes : (Label, Label), optional
            For and against; by default the likeliest and the second likeliest.
        top : int, optional
            How many tokens to list; the rest are summed as ``other tokens``.

        Returns
        -------
        Explanation or None
            ``None`` while fewer than two classes were labelled.

        Raises
        ------
        ValueError
            A class was never labelled.
        """
        with self.lock:
            explanation = self._explained(x, classes)
        return explanation if explanation is None or top is None else explanation.top(top)

    def _explained(self, x: Mapping[str, object], classes: tuple[Label, Label] | None) -> Explanation | None:
        message = self.read_now(x)
        active = self.active()
        if len(active) < 2:
            return None
        evidence = self.evidence(message, active) if self.head is not None else None
        labels = [self.classes[c] for c in active]
        if classes is None:
            u = evidence.opinion.u if evidence is not None else self.log_joint(message, active)
            a, b = self.first_two(u, active)
        elif all(label in labels for label in classes):
            a, b = (labels.index(label) for label in classes)
        else:
            raise ValueError(
                f"messages of both classes {classes!r} must have been learned; learned so far: {labels!r}"
            )
        return self.explanation_of(message, active, evidence, a, b)

    def first_two(self, u: Sequence[float], active: Sequence[int]) -> tuple[int, int]:
        """Return the indices in `active` of the two classes with the highest u; ties go to the smallest
        label.
        """
        first, second = sorted(range(len(active)), key=lambda i: (-u[i], self.classes[active[i]]))[:2]
        return first, second

    def explanation_of(
        self, message: MessageFeatures, active: list[int], evidence: Evidence | None, a: int, b: int
    ) -> Explanation:
        """Return the explanation of one message for the classes at the indices a and b of `active`."""
        pair = (self.classes[active[a]], self.classes[active[b]])
        if self.head is not None and evidence is not None:
            names = [self.views[i].name for i in self.text_views]
            parts = calibrated_parts(names, evidence.odds, self.head.weights, a, b)
            first = VIEW_FEATURES * len(names)
            titles = ["length", "unknown_share", *(self.views[i].name for i in self.other_views)]
            weighed = {
                title: [weight * value for value in feature]
                for title, weight, feature in zip(
                    titles, self.head.weights[first:], evidence.phi[first:], strict=True
                )
            }
            start = self.head.offsets[active[a]] - self.head.offsets[active[b]]
            return Explanation(pair, start, ordered(parts), pair_differences(weighed, a, b))
        parts = []
        numbers: dict[str, list[float]] = {}
        silent = True
        for view, features in zip(self.views, message.features, strict=True):
            statistic = self.statistics[view.name]
            for token, values in view.formulas.parts(features, statistic, active, message.scale):
                silent = silent and not any(values)
                if token is ABSENT:
                    numbers[f"{view.name}: {token}"] = list(values)
                else:
                    parts.append(product_part(view.name, token, values, a, b))
        prior = self.log_prior(active, message.scale, silent=silent)
        return Explanation(pair, prior[a] - prior[b], ordered(parts), pair_differences(numbers, a, b))


def columns_of(x: Mapping[str, object]) -> dict[str, list[object]]:
    """Return a message as the columns of a batch of one."""
    return {field: [value] for field, value in x.items()}


def share_of_unknown(unknown: int, tokens: int) -> float:
    """Return ``sqrt((U + 1/2) / (L + 1))``: the share of unknown tokens, with a spread that hardly depends on
    L.
    """
    return math.sqrt((unknown + 0.5) / (tokens + 1.0))
