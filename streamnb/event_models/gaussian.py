"""The Gaussian event model: a number is drawn from a normal distribution of its class."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from streamnb.moments import Moments

VARIANCE_MIN = 1e-300  # a spread below 1e-150 is rounding, and the logarithm of its square may not exist


class Gaussian(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="gaussian"):
    """A normal per class, its variance steadied by pseudo-observations of the pooled variance.

    ``var_c = (squares_c + k v) / (n_c + k)``, v the variance of all classes' numbers about their common
    mean: a class seen once, or always at one value, has a variance in the number's own units.

    Parameters
    ----------
    pseudo_observations : float
        k, above 0 and finite.

    Raises
    ------
    ValueError
        `pseudo_observations` is not above 0 and finite.

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

    def __post_init__(self) -> None:
        """Validate `pseudo_observations`."""
        if not (math.isfinite(self.pseudo_observations) and self.pseudo_observations > 0):
            raise ValueError(
                f"`pseudo_observations` must be above 0 and finite, not {self.pseudo_observations!r}"
            )

    def log_density(self, x: float, moments: Moments, active: Sequence[int]) -> list[float]:
        """``-ln(var)/2 - (x - mean)^2 / (2 var)`` for each active class.

        A missing number (NaN) says 0. So does every number while all numbers learned were equal, and for a
        class that has learned none the pooled density stands in.
        """
        n, pooled = moments.pooled()
        if math.isnan(x) or n == 0 or pooled < VARIANCE_MIN:
            return [0.0] * len(active)
        pooled_mean = 0.0
        for c in active:
            pooled_mean += moments.mean[c] * (moments.n[c] / n)
        z = []
        k = self.pseudo_observations
        for c in active:
            n_c = moments.n[c]
            mean = moments.mean[c] if n_c else pooled_mean
            variance = max((moments.squares[c] + k * pooled) / (n_c + k), VARIANCE_MIN)
            z.append(-0.5 * math.log(variance) - (x - mean) * (x - mean) / (2.0 * variance))
        return z
