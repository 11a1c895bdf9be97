"""Why a score is what it is: a sum of contributions that adds up.

An explanation is of a pair of classes (a, b): ``u_a - u_b`` is the prior's or the offset's part, a part for
each token, and a part for everything else the model looked at. It adds up to 1e-9, whichever tokens are
listed: the others are summed under ``other_tokens``.
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
    """What one token, seen by one view, adds to ``u_a - u_b``."""

    view: str
    token: str
    value: float


class Explanation(NamedTuple):
    """A pair of classes, and what made the difference.

    Parameters
    ----------
    classes : (Label, Label)
        For and against: by default the likeliest and the second.
    start : float
        The difference of the log priors, or of the calibrated head's offsets.
    tokens : list of Part
        The largest first.
    others : dict of str to float
        ``length``, ``unknown_share``, every view of a number, and the absent words of a view of coins.
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
        """The same sum with the `k` largest tokens by name, and the rest together as ``other tokens``."""
        others = 0.0
        for part in self.tokens[k:]:
            others += part.value
        return self._replace(tokens=self.tokens[:k], others={**self.others, "other tokens": others})

    def published(self, top: int) -> dict[str, object]:
        """As a score carries it: the `top` largest tokens by name, the rest as one sum.

        A part that maximum likelihood makes infinite is null.
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
    """The largest contributions first, equals in alphabetical order."""
    return sorted(parts, key=lambda part: (-abs(part.value), part.view, part.token))


def calibrated_parts(
    views: Sequence[str], odds: Sequence[Sequence[TokenOdds]], weights: Sequence[float], a: int, b: int
) -> list[Part]:
    """Each token's part under the calibrated head, its view's four weights applied.

    Parameters
    ----------
    views : sequence of str
        The text views' names.
    odds : sequence of sequence of TokenOdds
        One sequence a view.
    weights : sequence of float
        The head's, four a view first.
    a, b : int
        Where the two classes stand among the active ones.
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
    """The difference of named numbers between two classes; equal infinities differ by 0."""
    return {name: _minus(row[a], row[b]) for name, row in values.items()}


def product_part(view: str, token: str, values: Sequence[float], a: int, b: int) -> Part:
    """One token's part under the product head."""
    return Part(view, token, _minus(values[a], values[b]))


def _minus(x: float, y: float) -> float:
    return 0.0 if x == y else x - y


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
