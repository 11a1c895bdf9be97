"""The categorical event model: given the class, each field is one draw from the field's own values.

A field with many values is one feature. It must not be read as many flags: given the class, they would depend
on each other, because exactly one of them is true.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from streamnb.naive_bayes.event_models.base import (
    Draw,
    Line,
    OncePerMessage,
    Shelf,
    combinations,
    counts_on,
    shares_of,
    token_weights,
)
from streamnb.naive_bayes.event_models.smoothing import Laplace, Smoothing
from streamnb.naive_bayes.features.arguments import check_fields
from streamnb.naive_bayes.features.field_tokens import field_of
from streamnb.naive_bayes.statistics.field_totals import FieldTotals
from streamnb.naive_bayes.statistics.token_counts import PLAIN, TokenCounts, Twins


class Categorical(
    OncePerMessage, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="categorical"
):
    """The multinomial with one draw per field: ``phi = (n_vc + alpha) / (N_c + alpha k)``.

    `N_c` messages of class c had the field, `n_vc` of them with value v, and `k` different values have been
    seen. A field that is missing, or that was never learned, adds nothing.

    Parameters
    ----------
    smoothing : Smoothing
    unknown : {"skip", "smooth"}
        Whether a value that no class has seen is left out, or counts with n_vc = 0.
    values_min : int or mapping of str to int
        How many values a field has, if that is known: k is at least this, for every field or for those that
        are named. A model with it runs on the plain driver.

    Raises
    ------
    ValueError
        A number of values is negative.

    Examples
    --------
    Age in three groups is one field with three values.

    >>> counts = TokenCounts(FieldTotals(), n_classes=2)
    >>> for age, c in [("young", 0), ("young", 0), ("old", 0), ("middle", 1)]:
    ...     counts.add({f'age="{age}"': 1.0}, c)
    >>> parts = dict(Categorical().parts({'age="young"': 1.0}, counts, [0, 1]))
    >>> [round(math.exp(z), 4) for z in parts['age="young"']]  # 3/6 and 1/4
    [0.5, 0.25]
    """

    smoothing: Smoothing = Laplace(1.0)
    unknown: Literal["skip", "smooth"] = "skip"
    values_min: int | Mapping[str, int] = 0

    def __post_init__(self) -> None:
        """Check `values_min`."""
        check_fields(self)
        given = self.values_min
        if min(given.values(), default=0) < 0 if isinstance(given, Mapping) else given < 0:
            raise ValueError(f"`values_min` must be 0 or above, not {given!r}")

    @property
    def has_twin(self) -> bool:
        """Whether the compiled driver knows the event model: not with `values_min`."""
        return not self.values_min

    def values(self, field: str, seen: int) -> int:
        """Return how many values a field has of which `seen` different ones were learned."""
        least = self.values_min.get(field, 0) if isinstance(self.values_min, Mapping) else self.values_min
        return max(seen, least)

    def statistic(self, twins: Twins = PLAIN, shelf: Shelf | None = None) -> TokenCounts[FieldTotals]:
        """Return empty counts of fields and their values."""
        return counts_on(shelf, twins.field_totals())

    def parts(
        self,
        features: Mapping[str, float],
        statistic: TokenCounts[FieldTotals],
        active: Sequence[int],
        scale: float = 1.0,
    ) -> Iterator[tuple[str, list[float]]]:
        """Yield what the value of each field adds to each active class."""
        rows, fields = statistic.rows, statistic.tally.fields
        for token in features:
            name = field_of(token)
            field = fields.get(name)
            row: Sequence[float] | None = rows.get(token)
            if field is None or (row is None and self.unknown == "skip"):
                continue
            totals, states = field.totals, self.values(name, field.states)
            if row is None:
                row = [0.0] * len(totals)
            n, n_v = 0.0, 0.0
            for c in active:
                n += totals[c]
                n_v += row[c]
            p = self.smoothing.pseudo_count(n_v, n, states, scale)
            pseudo_total = self.smoothing.pseudo_total(states, scale)
            yield (
                token,
                [
                    math.log(row[c] + p) - math.log(totals[c] + pseudo_total) if row[c] + p > 0 else -math.inf
                    for c in active
                ],
            )

    def linear(self, statistic: TokenCounts[FieldTotals], active: Sequence[int], a: int, b: int) -> Line:
        """Return a weight per value; there is no intercept."""
        return Line(0.0, token_weights(self, statistic, active, a, b))

    def n_parameters(self, statistic: TokenCounts[FieldTotals], n_classes: int, *, naive: bool) -> int:
        """Return the number of values less one, per class and field or per class and combination."""
        sizes = [self.values(name, field.states) for name, field in statistic.tally.fields.items()]
        return n_classes * combinations(sizes, naive=naive)

    def drawing(
        self,
        statistic: TokenCounts[FieldTotals],
        active: Sequence[int],
        i: int,
        messages: float,  # noqa: ARG002 - one draw per field
    ) -> Draw:
        """Return a function that draws a value for each field, from the values it has had."""
        tokens, shares = shares_of(self, statistic, active, i)
        by_field: dict[str, list[int]] = {}
        for j, token in enumerate(tokens):
            by_field.setdefault(field_of(token), []).append(j)
        urns = [(places, shares[places]) for places in by_field.values() if shares[places].sum()]

        def draw(random: np.random.Generator) -> list[tuple[str, float]]:
            drawn = [places[random.choice(len(p), p=p / p.sum())] for places, p in urns]
            return [(tokens[j], 1.0) for j in drawn]

        return draw
