"""Explanations: what each part of a message contributes for one class and against another.

An explanation is of a pair of classes (a, b) and of their ``u``, whose softmax is the posterior (before the
calibrated head corrects it for wrong labels). ``u_a - u_b``, the log ratio of the posteriors, is the sum of
the prior's (or the offset's) part, one part per token, and one part for everything else the model looked at.
The parts add up to the difference within 1e-9; tokens that are not listed are summed under
``other_tokens``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from streamnb.base import Label
from streamnb.naive_bayes.event_models.base import difference
from streamnb.naive_bayes.posterior import markup
from streamnb.naive_bayes.posterior.against_rest import (
    RARE_SQUARE_LAW_SCALE,
    SQUARE_LAW_SCALE,
    VIEW_FEATURES,
    TokenOdds,
    length_norm,
)

OTHER_TOKENS = "other tokens"
SHOWN_MAX = 100  # words in a notebook; the rest are summed


class Part(NamedTuple):
    """The contribution of one token of one view to ``u_a - u_b``."""

    view: str
    token: str
    value: float


class Explanation(NamedTuple):
    """A pair of classes and the contributions to ``u_a - u_b``.

    Parameters
    ----------
    classes : (Label, Label)
        For and against; by default the likeliest and the second likeliest.
    start : float
        The difference of the log priors, or of the calibrated head's offsets.
    tokens : list of Part
        In descending order of size. If maximum likelihood makes the message impossible in both classes, the
        ratio of the two likelihoods is 0/0, and every part is 0.
    others : dict of str to float
        ``length``, ``unknown_share``, each view of a number, and the absent words of each Bernoulli view.
    """

    classes: tuple[Label, Label]
    start: float
    tokens: list[Part]
    others: dict[str, float]

    @property
    def total(self) -> float:
        """``u_a - u_b``."""
        total = self.start
        for part in self.tokens:
            total += part.value
        for value in self.others.values():
            total += value
        return total

    def top(self, k: int) -> Explanation:
        """Return the explanation with its `k` largest tokens; the rest are summed as ``other tokens``."""
        return self._replace(tokens=self.tokens[:k], others={**self.others, OTHER_TOKENS: self._rest(k)})

    def _rest(self, k: int) -> float:
        """Return the sum of the tokens after the `k` largest, with those that an earlier `top` summed."""
        rest = self.others.get(OTHER_TOKENS, 0.0)
        for part in self.tokens[k:]:
            rest += part.value
        return rest

    def published(self, top: int) -> dict[str, object]:
        """Return the JSON object that a score carries: the `top` largest tokens, and the rest as one sum.

        A contribution that maximum likelihood makes infinite is null.
        """
        return {
            "for": self.classes[0],
            "against": self.classes[1],
            "difference": _finite(self.total),
            "start": _finite(self.start),
            "tokens": [[view, token, _finite(value)] for view, token, value in self.tokens[:top]],
            "other_tokens": _finite(self._rest(top)),
            "others": {name: _finite(value) for name, value in self.others.items() if name != OTHER_TOKENS},
        }

    def to_dict(self) -> dict[str, object]:
        """Return the explanation with all its tokens as plain values, in the form that a score carries.

        Examples
        --------
        >>> why = Explanation(("spam", "ham"), 0.5, [Part("words", "win", 2.0)], {"length": -1.0})
        >>> why.to_dict()["tokens"], why.to_dict()["difference"]
        ([['words', 'win', 2.0]], 1.5)
        """
        return self.published(len(self.tokens))

    def _repr_html_(self) -> str:
        """Return the words by size, each tinted by its contribution, and the other parts, for a notebook."""
        shown = self if len(self.tokens) <= SHOWN_MAX else self.top(SHOWN_MAX)
        first, second = (markup.escaped(label) for label in self.classes)
        largest = max((abs(part.value) for part in shown.tokens), default=0.0)
        words = [
            markup.tinted(token, value, largest, f"{view}: {markup.signed(value)}")
            for view, token, value in shown.tokens
        ]
        parts = {"start": self.start, **shown.others, "total": self.total}
        return markup.block(
            f"<b>{first}</b> against <b>{second}</b>: {markup.signed(self.total)}",
            f'<p style="line-height: 2">{" ".join(words)}</p>' if words else "",
            markup.table(["part", "contribution"], [[name, markup.signed(x)] for name, x in parts.items()]),
        )


def ordered(parts: Sequence[Part]) -> list[Part]:
    """Sort contributions by size, equal ones alphabetically."""
    return sorted(parts, key=lambda part: (-abs(part.value), part.view, part.token))


def calibrated_parts(
    views: Sequence[str],
    odds: Sequence[Sequence[TokenOdds]],
    weights: Sequence[float],
    trusted: float,
    a: int,
    b: int,
) -> list[Part]:
    """Return each token's contribution under the calibrated head: by its view's weights, and by its trust.

    Parameters
    ----------
    views : sequence of str
        The text views' names.
    odds : sequence of sequence of TokenOdds
        One sequence per view.
    weights : sequence of float
        The head's; the first `VIEW_FEATURES` are the first view's, and so on.
    trusted : float
        The head's weight of trust times the message's `damping`; 0 for a head without trust.
    a, b : int
        The two classes' indices among the active ones.
    """
    parts = []
    for i, (view, tokens) in enumerate(zip(views, odds, strict=True)):
        x, q, rare_x, rare_q = weights[VIEW_FEATURES * i : VIEW_FEATURES * (i + 1)]
        k = 0.0
        for odd in tokens:
            k += odd.f
        z = length_norm(k)
        for token, f, rare, trust, d in tokens:
            linear = d[a] - d[b]
            square = d[a] * abs(d[a]) - d[b] * abs(d[b])
            common = x * f * linear + q * SQUARE_LAW_SCALE * f * square
            shrunk = rare_x * rare * linear + rare_q * RARE_SQUARE_LAW_SCALE * rare * square
            parts.append(Part(view, token, (common + shrunk) / z + trusted * trust * rare * linear))
    return parts


def pair_differences(values: Mapping[str, Sequence[float]], a: int, b: int) -> dict[str, float]:
    """Return ``row[a] - row[b]`` for each name; equal infinities differ by 0."""
    return {name: difference(row[a], row[b]) for name, row in values.items()}


def product_part(view: str, token: str, values: Sequence[float], a: int, b: int) -> Part:
    """Return one token's contribution under the product head."""
    return Part(view, token, difference(values[a], values[b]))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
