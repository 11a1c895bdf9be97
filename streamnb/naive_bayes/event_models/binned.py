"""The binned event model: a number is one of a few ranges, so no normal distribution has to fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from streamnb.naive_bayes.event_models.base import Draw, EventModel, Shelf, combinations
from streamnb.naive_bayes.event_models.smoothing import Laplace, Smoothing
from streamnb.naive_bayes.features.arguments import check_fields
from streamnb.naive_bayes.statistics.bin_counts import BinCounts
from streamnb.naive_bayes.statistics.bin_edges import BINS_MAX, WARM_UP_MAX, FixedEdges
from streamnb.naive_bayes.statistics.token_counts import PLAIN, Twins


class Binned(EventModel, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="binned"):
    """A categorical distribution over ranges: ``phi = (n_vc + alpha) / (N_c + alpha k)`` with k ranges.

    Parameters
    ----------
    edges : tuple of float
        The edges for every number of the view; a range contains its lower edge but not its upper one. Without
        edges, each name learns its own from the quantiles of its first numbers.
    bins, warm_up : int
        Settings of learned edges: the largest number of ranges, and how many numbers to collect before the
        edges settle. Until then a number adds no evidence; it is counted when the edges settle, so none is
        lost.
    smoothing : Smoothing

    Raises
    ------
    ValueError
        The edges do not increase, or `bins` or `warm_up` is out of its range.

    Examples
    --------
    The lectures' living areas: a house of 890 square feet is in the third range.

    >>> areas = Binned(edges=(400.0, 800.0, 1200.0, 1600.0))
    >>> houses = areas.statistic()
    >>> houses.add_class()
    >>> for area in (890.0, 1000.0, 1700.0):
    ...     houses.add({"area": area}, class_index=0)
    >>> parts = areas.parts({"area": 890.0}, houses, [0])
    >>> [(name, round(math.exp(z[0]), 4)) for name, z in parts]  # (2 + 1)/(3 + 5)
    [('area 800-1200', 0.375)]
    """

    edges: tuple[float, ...] = ()
    bins: int = 10
    warm_up: int = 200  # not a file's to set: enough for ten bins, and a stream soon has as many
    smoothing: Smoothing = Laplace(1.0)

    def __post_init__(self) -> None:
        """Check `edges`, `bins` and `warm_up`."""
        check_fields(self)
        if self.edges:
            FixedEdges(self.edges)
        if not (2 <= self.bins <= BINS_MAX and 1 <= self.warm_up <= WARM_UP_MAX):
            raise ValueError(
                f"`bins` must be from 2 to {BINS_MAX} and `warm_up` from 1 to {WARM_UP_MAX}, "
                f"not {self.bins} and {self.warm_up}"
            )

    @property
    def state_settings(self) -> dict[str, object]:
        """The given edges, or how they are learned."""
        return {"edges": list(self.edges)} if self.edges else {"bins": self.bins, "warm_up": self.warm_up}

    def statistic(self, twins: Twins = PLAIN, shelf: Shelf | None = None) -> BinCounts:  # noqa: ARG002 - plain
        """Return empty counts."""
        return BinCounts(FixedEdges(self.edges) if self.edges else None, self.bins, self.warm_up)

    def parts(
        self, features: Mapping[str, float], statistic: BinCounts, active: Sequence[int], scale: float = 1.0
    ) -> Iterator[tuple[str, list[float]]]:
        """Yield what each number's range adds to each active class; a name without ranges adds nothing."""
        for key, x in features.items():
            ranges = statistic.ranges(key)
            if ranges is None:
                continue
            value = ranges.edges.value(x)
            assert value is not None
            row, totals = ranges.counts[value - 1].tolist(), ranges.counts.sum(axis=0).tolist()
            k = len(ranges.counts)
            n, n_v = math.fsum(totals[c] for c in active), math.fsum(row[c] for c in active)
            p = self.smoothing.pseudo_count(n_v, n, k, scale)
            pseudo_total = self.smoothing.pseudo_total(k, scale)
            yield (
                f"{key} {ranges.edges.label(x)}",
                [
                    math.log(row[c] + p) - math.log(totals[c] + pseudo_total) if row[c] + p > 0 else -math.inf
                    for c in active
                ],
            )

    def n_parameters(self, statistic: BinCounts, n_classes: int, *, naive: bool) -> int:
        """Return the number of ranges less one, per class and name or per class and combination."""
        sizes = [len(counts) for counts in statistic.counts.values()]
        return n_classes * combinations(sizes, naive=naive)

    def drawing(
        self,
        statistic: BinCounts,
        active: Sequence[int],
        i: int,
        messages: float,  # noqa: ARG002 - one draw per name
    ) -> Draw:
        """Return a function that draws every number uniformly from a range, which is drawn by its share.

        The first and the last range have no outer edge and are taken to be as wide as their neighbours.
        """
        urns = []
        for key, counts in statistic.counts.items():
            ranges = statistic.ranges(key)
            assert ranges is not None
            edges = ranges.edges.edges
            width = edges[1] - edges[0] if len(edges) > 1 else 1.0
            last = edges[-1] - edges[-2] if len(edges) > 1 else 1.0
            bounds = [edges[0] - width, *edges, edges[-1] + last]
            n, n_all, k = counts[:, active[i]], counts.sum(axis=1), len(counts)
            shares = np.array(
                [c + self.smoothing.pseudo_count(a, n_all.sum(), k) for c, a in zip(n, n_all, strict=True)]
            )
            if shares.sum() > 0:
                urns.append((key, bounds, shares / shares.sum()))

        def draw(random: np.random.Generator) -> list[tuple[str, float]]:
            drawn = []
            for key, bounds, shares in urns:
                j = int(random.choice(len(shares), p=shares))
                drawn.append((key, float(random.uniform(bounds[j], bounds[j + 1]))))
            return drawn

        return draw
