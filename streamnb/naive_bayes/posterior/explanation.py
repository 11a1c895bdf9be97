"""Explanations: the difference between two classes' scores as a sum of contributions.

An explanation is of a pair of classes (a, b). ``u_a - u_b`` is the sum of the prior's (or the offset's)
part, one part per token, and one part for everything else the model looked at. The parts add up to the
difference within 1e-9; tokens that are not listed are summed under ``other_tokens``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from streamnb.base import Label
from streamnb.naive_bayes.event_models.multinomial import (
    RARE_SQUARE_LAW_SCALE,
    SQUARE_LAW_SCALE,
    VIEW_FEATURES,
    TokenOdds,
    length_norm,
)


class Part(NamedTuple):
    """The contribution of one token of one view to ``u_a - u_b``."""

    view: str
    token: str
    value: float


class Explanation(NamedTuple):
    """A pair of classes and the contributions to their difference.

    Parameters
    ----------
    classes : (Label, Label)
        For and against; by default the likeliest and the second likeliest.
    start : float
        The difference of the log priors, or of the calibrated head's offsets.
    tokens : list of Part
        In descending order of size.
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
        others = 0.0
        for part in self.tokens[k:]:
            others += part.value
        return self._replace(tokens=self.tokens[:k], others={**self.others, "other tokens": others})

    def published(self, top: int) -> dict[str, object]:
        """Return the JSON object that a score carries: the `top` largest tokens, and the rest as one sum.

        A contribution that maximum likelihood makes infinite is null.
        """
        others = 0.0
        for part in self.tokens[top:]:
            others += part.value
        return {
            "for": self.classes[0],
            "against": self.classes[1],
            "difference": _finite(self.total),
            "start": self.start,
            "tokens": [[view, token, _finite(value)] for view, token, value in self.tokens[:top]],
            "other_tokens": _finite(others),
            "others": {name: _finite(value) for name, value in self.others.items()},
        }


def ordered(parts: Sequence[Part]) -> list[Part]:
    """Sort contributions by size, equal ones alphabetically."""
    return sorted(parts, key=lambda part: (-abs(part.value), part.view, part.token))


def calibrated_parts(
    views: Sequence[str], odds: Sequence[Sequence[TokenOdds]], weights: Sequence[float], a: int, b: int
) -> list[Part]:
    """Return each token's contribution under the calibrated head, weighted by its view's four weights.

    Parameters
    ----------
    views : sequence of str
        The text views' names.
    odds : sequence of sequence of TokenOdds
        One sequence per view.
    weights : sequence of float
        The head's; the first `VIEW_FEATURES` are the first view's, and so on.
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
        for token, f, rare, d in tokens:
            linear = d[a] - d[b]
            square = d[a] * abs(d[a]) - d[b] * abs(d[b])
            common = x * f * linear + q * SQUARE_LAW_SCALE * f * square
            shrunk = rare_x * rare * linear + rare_q * RARE_SQUARE_LAW_SCALE * rare * square
            parts.append(Part(view, token, (common + shrunk) / z))
    return parts


def pair_differences(values: Mapping[str, Sequence[float]], a: int, b: int) -> dict[str, float]:
    """Return ``row[a] - row[b]`` for each name; equal infinities differ by 0."""
    return {name: _minus(row[a], row[b]) for name, row in values.items()}


def product_part(view: str, token: str, values: Sequence[float], a: int, b: int) -> Part:
    """Return one token's contribution under the product head."""
    return Part(view, token, _minus(values[a], values[b]))


def _minus(x: float, y: float) -> float:
    return 0.0 if x == y else x - y


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
