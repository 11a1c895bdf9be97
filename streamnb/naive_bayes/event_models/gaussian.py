"""The Gaussian event model: a number is drawn from a normal distribution of its class."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from streamnb.naive_bayes.event_models.base import Draw, EventModel, Line, Shelf
from streamnb.naive_bayes.features.arguments import check_fields
from streamnb.naive_bayes.statistics.moments import Moments
from streamnb.naive_bayes.statistics.number_block import NumberBlock
from streamnb.naive_bayes.statistics.token_counts import PLAIN, Twins

# A standard deviation below 1e-150 is rounding error. Its square may underflow to 0, which has no logarithm.
VARIANCE_MIN = 1e-300
LOG_ROOT_2_PI = 0.5 * math.log(2.0 * math.pi)  # what every log density leaves out
BROAD = 4.0  # times the pooled variance: the variance of the distribution that `robust` mixes in


class Gaussian(EventModel, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="gaussian"):
    """A normal distribution per class, its variance steadied by pseudo-observations of the pooled variance.

    ``var_c = (squares_c + k v) / (n_c + k)``, where v is the variance of all classes' numbers about their
    common mean. So a class that was seen once, or always with the same number, has a variance in the number's
    own units.

    Parameters
    ----------
    pseudo_observations : float
        k, 0 or above and finite. 0 is maximum likelihood.
    variance : {"class", "shared"} or float
        "class": a variance per class, which makes the boundary curved. "shared": one variance for all,
        ``(sum squares_c + k v) / (n + k)``, which makes it straight. A number above 0: the variance itself,
        in the number's units squared.
    robust : float
        The share of numbers, at least 0 and below 1, that come from a broad normal distribution instead of
        the class's own. It limits the evidence of one number to about ``log(1 / robust)``.

    Raises
    ------
    ValueError
        A parameter is out of its range.

    Notes
    -----
    Under maximum likelihood a class whose numbers are all equal has a density that is all at that number: the
    class wins there and loses everywhere else.

    Examples
    --------
    >>> heights = Moments(n_classes=2)
    >>> for x in (1.0, 3.0):
    ...     heights.add(x, class_index=0)
    >>> for x in (11.0, 13.0):
    ...     heights.add(x, class_index=1)
    >>> near, far = Gaussian().log_density(2.0, heights, [0, 1])
    >>> near > far
    True
    """

    pseudo_observations: float = 1.0
    variance: Literal["class", "shared"] | float = "class"
    robust: float = 0.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_fields(self)
        if not (math.isfinite(self.pseudo_observations) and self.pseudo_observations >= 0):
            raise ValueError(
                f"`pseudo_observations` must be 0 or above and finite, not {self.pseudo_observations!r}"
            )
        if not 0 <= self.robust < 1:
            raise ValueError(f"`robust` must be at least 0 and below 1, not {self.robust!r}")
        if isinstance(self.variance, str):
            if self.variance not in {"class", "shared"}:
                raise ValueError(f'`variance` must be "class", "shared" or a number, not {self.variance!r}')
        elif not (math.isfinite(self.variance) and self.variance >= VARIANCE_MIN):
            raise ValueError(f"`variance` must be above 0 and finite, not {self.variance!r}")

    @property
    def has_twin(self) -> bool:
        """The compiled driver knows it."""
        return True

    def statistic(self, twins: Twins = PLAIN, shelf: Shelf | None = None) -> NumberBlock:  # noqa: ARG002
        """Return empty moments of named numbers."""
        return NumberBlock(kind=twins.moments)

    def parts(
        self, features: Mapping[str, float], statistic: NumberBlock, active: Sequence[int], scale: float = 1.0
    ) -> Iterator[tuple[str, list[float]]]:
        """Yield what each number adds to each active class; a name never learned adds nothing."""
        for key, x in features.items():
            if key in statistic.numbers:
                yield key, self.log_density(x, statistic.numbers[key], active, scale)

    def log_constant(self, features: Mapping[str, float], statistic: NumberBlock) -> float:
        """Return ``-ln(2 pi)/2`` for each number that has a density."""
        known = [
            x for key, x in features.items() if key in statistic.numbers and _varies(statistic.numbers[key])
        ]
        return -LOG_ROOT_2_PI * sum(not math.isnan(x) for x in known)

    def linear(self, statistic: NumberBlock, active: Sequence[int], a: int, b: int) -> Line:
        """Return a weight per number, if the classes share one variance.

        Raises
        ------
        ValueError
            The boundary is curved.
        """
        if self.variance == "class" or self.robust:
            raise ValueError("a variance per class, or `robust`, makes the boundary curved")
        intercept, weights = 0.0, {}
        for key, moments in statistic.numbers.items():
            z = [self.log_density(x, moments, active) for x in (0.0, 1.0)]
            at_0, at_1 = (row[a] - row[b] for row in z)
            weights[key] = at_1 - at_0
            intercept += at_0
        return Line(intercept, weights)

    def n_parameters(self, statistic: NumberBlock, n_classes: int, *, naive: bool) -> int:
        """Return the number of means and variances, or of means and covariances."""
        names = len(statistic.numbers)
        spreads = names if naive else names * (names + 1) // 2
        variances = {"class": n_classes * spreads, "shared": spreads}
        return n_classes * names + variances.get(str(self.variance), 0)

    def drawing(
        self,
        statistic: NumberBlock,
        active: Sequence[int],
        i: int,
        messages: float,  # noqa: ARG002 - one draw per name
    ) -> Draw:
        """Return a function that draws every number; without numbers of the class, from the common mean."""
        numbers = sorted(statistic.numbers.items())  # in an order that a restored model has too
        normals = [(key, *self._normal(moments, active, i)) for key, moments in numbers]
        return lambda random: [(key, float(random.normal(mean, spread))) for key, mean, spread in normals]

    def _normal(self, moments: Moments, active: Sequence[int], i: int) -> tuple[float, float]:
        """Return mean and standard deviation of class ``active[i]``."""
        _, pooled = moments.pooled()
        variance = self.variances(moments, active, pooled)[i]
        k, n = active[i], sum(moments.n)
        if moments.n[k]:
            return moments.mean[k], math.sqrt(variance)
        return sum(m * w / n for m, w in zip(moments.mean, moments.n, strict=True)), math.sqrt(variance)

    def log_density(
        self, x: float, moments: Moments, active: Sequence[int], scale: float = 1.0
    ) -> list[float]:
        """Return ``-ln(var)/2 - (x - mean)^2 / (2 var)`` for each active class.

        It is 0 for every class if the number is missing (NaN), or as long as all numbers learned are equal. A
        class that has learned no number gets the pooled density.
        """
        if math.isnan(x) or not _varies(moments):
            return [0.0] * len(active)
        n, pooled = moments.pooled()
        pooled_mean = 0.0
        for c in active:
            pooled_mean += moments.mean[c] * (moments.n[c] / n)
        z = [
            _log_normal(x, moments.mean[c] if moments.n[c] else pooled_mean, variance)
            for c, variance in zip(active, self.variances(moments, active, pooled, scale), strict=True)
        ]
        if self.robust:
            broad = math.log(self.robust) + _log_normal(x, pooled_mean, BROAD * pooled)
            z = [_log_sum(math.log1p(-self.robust) + value, broad) for value in z]
        return z

    def variances(
        self, moments: Moments, active: Sequence[int], pooled: float, scale: float = 1.0
    ) -> list[float]:
        """Return the variance of each active class; `pooled` is that of all numbers about their mean."""
        k = self.pseudo_observations * scale
        if isinstance(self.variance, float | int):
            return [float(self.variance)] * len(active)
        if self.variance == "shared":
            n, squares = 0.0, 0.0
            for c in active:
                n += moments.n[c]
                squares += moments.squares[c]
            return [max((squares + k * pooled) / (n + k), VARIANCE_MIN)] * len(active)
        return [
            max((moments.squares[c] + k * pooled) / (moments.n[c] + k), VARIANCE_MIN)
            if moments.n[c] + k > 0
            else pooled
            for c in active
        ]


def _varies(moments: Moments) -> bool:
    """Return whether the numbers learned are not all equal, so that there is a density."""
    n, pooled = moments.pooled()
    return n > 0 and pooled >= VARIANCE_MIN


def _log_normal(x: float, mean: float, variance: float) -> float:
    """Return the log density of a normal distribution, without the constant that all classes share."""
    return -0.5 * math.log(variance) - (x - mean) * (x - mean) / (2.0 * variance)


def _log_sum(a: float, b: float) -> float:
    """Return ``log(exp(a) + exp(b))``; both may be minus infinity, far from a narrow distribution."""
    top = max(a, b)
    return top if top == -math.inf else top + math.log1p(math.exp(min(a, b) - top))
