"""The categorical event model: given the class, each field is one draw from the field's own values.

A field with many values is one feature. It must not be read as many flags: given the class, they would depend
on each other, because exactly one of them is true.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from streamnb.naive_bayes.event_models.smoothing import Laplace, Smoothing
from streamnb.naive_bayes.features.readers import field_of
from streamnb.naive_bayes.statistics.counts import Counted
from streamnb.naive_bayes.statistics.field_totals import FieldTotals


class Categorical(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="categorical"
):
    """The multinomial with one draw per field: ``phi = (n_vc + alpha) / (N_c + alpha k)``.

    `N_c` messages of class c had the field, `n_vc` of them with value v, and `k` different values have been
    seen. A field that is missing, or that was never learned, adds nothing.

    Parameters
    ----------
    smoothing : Smoothing
    unknown : {"skip", "smooth"}
        Whether a value that no class has seen is left out, or counts with n_vc = 0.

    Examples
    --------
    Age in three groups is one field with three values.

    >>> from streamnb.naive_bayes.statistics.counts import ViewCounts
    >>> counts, fields = ViewCounts(2), FieldTotals(2)
    >>> for age, c in [("young", 0), ("young", 0), ("old", 0), ("middle", 1)]:
    ...     token = {f'age="{age}"': 1.0}
    ...     fields.add(counts.rows, token, c)
    ...     counts.add(token, c)
    >>> parts = dict(Categorical().parts({'age="young"': 1.0}, counts, fields, [0, 1]))
    >>> [round(math.exp(z), 4) for z in parts['age="young"']]  # 3/6 and 1/4
    [0.5, 0.25]
    """

    smoothing: Smoothing = Laplace(1.0)
    unknown: Literal["skip", "smooth"] = "skip"

    def parts(
        self,
        features: Mapping[str, float],
        counts: Counted,
        fields: FieldTotals,
        active: Sequence[int],
        scale: float = 1.0,
    ) -> Iterator[tuple[str, list[float]]]:
        """Yield what the value of each field adds to each active class."""
        for token in features:
            field = fields.fields.get(field_of(token))
            row: Sequence[float] | None = counts.rows.get(token)
            if field is None or (row is None and self.unknown == "skip"):
                continue
            totals, states = field.totals, field.states
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
