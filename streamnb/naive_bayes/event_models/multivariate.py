"""The multivariate normal event model (Gaussian discriminant analysis): numbers that are drawn together.

One covariance for all classes makes a linear boundary (LDA), one per class a curved boundary (QDA).
Covariances are divided by the number of messages, as in maximum likelihood (Ng, CS229 notes, part IV).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamnb.base import Floats
from streamnb.naive_bayes.event_models.base import Draw, EventModel, Line, Parts, Shelf
from streamnb.naive_bayes.event_models.gaussian import LOG_ROOT_2_PI
from streamnb.naive_bayes.features.arguments import check_fields
from streamnb.naive_bayes.features.readers import Drawn
from streamnb.naive_bayes.statistics.inverse_scatter import VARIANCE_MIN, inverted
from streamnb.naive_bayes.statistics.scatter import Scatter, present
from streamnb.naive_bayes.statistics.token_counts import PLAIN, Twins

SPREADS_MAX = 1e100  # standard deviations; further out every density is 0, and squares would overflow


class Normal(NamedTuple):
    """The normal distribution of one class over some coordinates.

    Parameters
    ----------
    mean : ndarray of float64, shape (k,)
    spread : ndarray of float64, shape (k,)
        Standard deviations.
    precision : ndarray of float64, shape (k, k)
        The inverse of the covariance, divided by `scale`.
    scale : float
    log_det : float
        Log determinant of the covariance.
    """

    mean: Floats
    spread: Floats
    precision: Floats
    scale: float
    log_det: float

    def deviation(self, x: Floats) -> Floats:
        """Return ``x - mean``, clipped to 1e100 standard deviations."""
        limit = SPREADS_MAX * self.spread
        return np.clip(x - self.mean, -limit, limit)

    def log_density(self, x: Floats) -> float:
        """Return ``-ln|Sigma|/2 - (x - mean)^T Sigma^-1 (x - mean)/2``."""
        off = self.deviation(x)
        return -0.5 * self.log_det - 0.5 * self.scale * float(off @ (self.precision @ off))


class Multivariate(EventModel, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="multivariate"):
    """A normal distribution per class over a block of d numbers, with a shared covariance or one per class.

    ``Sigma_ij = cross_ij / n_ij``, summed over the messages that have both coordinates. Without gaps this is
    ``1/m`` times the scatter matrix, as in the lectures. Early on, and whenever the sums give no safe
    covariance (a constant coordinate, a coordinate that is a sum of others), it is steadied by one
    pseudo-observation of the pooled variance v of each coordinate, taken about the mean of all classes:
    ``Sigma_ij = (cross_ij + [i = j] v_i) / sqrt((n_ii + 1) (n_jj + 1))``. This is positive definite whatever
    is missing: cross is a sum of outer products in which a missing number has the deviation 0. (So a pair
    that few messages have gets a smaller covariance.)

    A missing coordinate is marginalised: its rows are left out of mean and covariance. A class that never had
    a coordinate gets the pooled mean and the pooled variance for it.

    Scoring and learning cost O(d^2) per message as long as no number is missing, because the sums keep the
    inverse up to date. With a missing number or the pseudo-observation, scoring inverts a matrix: O(d^3).

    Parameters
    ----------
    covariance : {"shared", "class"}
    messages_per_coordinate : float
        The pseudo-observation is used until every pair of coordinates was in more than
        `messages_per_coordinate` d messages. With a shared covariance each class beyond the first counts as
        one message less, because it estimates a mean of its own. At 1 there are just enough messages for a
        covariance, but not for a good one: on Iris, each flower scored before it is learned, a covariance per
        class has a log loss of 0.80 with 1 and of 0.16 with 5.

    Raises
    ------
    ValueError
        `messages_per_coordinate` is below 1, infinite or not a number.

    References
    ----------
    Ng and Jordan 2002, On discriminative vs. generative classifiers.

    Examples
    --------
    >>> flowers = Scatter(n_classes=2)
    >>> for x, c in [((1.0, 1.0), 0), ((3.0, 1.0), 0), ((2.0, 4.0), 0), ((6.0, 6.0), 1), ((8.0, 9.0), 1)]:
    ...     flowers.add({"length": x[0], "width": x[1]}, c)
    >>> near, far = Multivariate().log_density({"length": 2.0, "width": 2.0}, flowers, [0, 1])
    >>> near > far
    True
    """

    covariance: Literal["shared", "class"] = "shared"
    messages_per_coordinate: float = 1.0  # not a file's to set: a stream soon has messages enough

    def __post_init__(self) -> None:
        """Check `messages_per_coordinate`."""
        check_fields(self)
        if not 1.0 <= self.messages_per_coordinate < math.inf:
            found = self.messages_per_coordinate
            raise ValueError(f"`messages_per_coordinate` must be at least 1 and finite, not {found!r}")

    @property
    def state_settings(self) -> dict[str, object]:
        """The covariance: its inverse is kept with the sums."""
        return {"covariance": self.covariance}

    def statistic(self, twins: Twins = PLAIN, shelf: Shelf | None = None) -> Scatter:  # noqa: ARG002 - plain
        """Return an empty scatter, which keeps the inverse that this covariance needs."""
        return Scatter(shared=self.covariance == "shared")

    def log_density(
        self, x: Mapping[str, float | None], scatter: Scatter, active: Sequence[int], scale: float = 1.0
    ) -> list[float]:
        """Return ``-ln|Sigma_c|/2 - (x - mean_c)^T Sigma_c^-1 (x - mean_c)/2`` for each active class.

        Left out are missing numbers, names that were never learned and coordinates whose numbers were all
        equal. If no coordinate remains, the result is 0 for every class.

        Raises
        ------
        ValueError
            A number is infinite or beyond 1e100.
        """
        _, v, normals = self._seen(x, scatter, active, scale)
        return [normal.log_density(v) for normal in normals] if len(v) else [0.0] * len(active)

    def parts(
        self,
        features: Mapping[str, float | None],
        statistic: Scatter,
        active: Sequence[int],
        scale: float = 1.0,
    ) -> Parts:
        """Return what each coordinate adds to `log_density`, per active class.

        The quadratic form is split into ``-d_j (Sigma^-1 d)_j / 2`` per coordinate, where d are the
        deviations: a coordinate gets its own square and half of each cross term. Of the log determinant it
        gets the log of its own variance, and an equal share of the rest, which is due to the correlations.
        Without correlations the parts equal those of `Gaussian`.
        """
        names, v, normals = self._seen(features, statistic, active, scale)
        parts: dict[str, list[float]] = {name: [] for name in names}
        for normal in normals if names else ():
            off = normal.deviation(v)
            logs = 2.0 * np.log(normal.spread)
            logs += (normal.log_det - float(logs.sum())) / len(names)
            row = -0.5 * logs - 0.5 * normal.scale * off * (normal.precision @ off)
            for name, part in zip(names, row.tolist(), strict=True):
                parts[name].append(part)
        return parts.items()

    def log_constant(self, features: Mapping[str, float | None], statistic: Scatter) -> float:
        """Return ``-ln(2 pi)/2`` for each coordinate that takes part."""
        live = np.flatnonzero(statistic.pooled()[2] >= VARIANCE_MIN)
        known = present(features)
        return -LOG_ROOT_2_PI * sum(statistic.names[i] in known for i in live)

    def lines(self, scatter: Scatter, active: Sequence[int]) -> list[Line]:
        """Return the log density of each active class as a linear function, without the terms common to all.

        The functions have the weights ``Sigma^-1 mean_c`` and the intercepts ``-mean_c^T Sigma^-1 mean_c/2``.
        Means are taken relative to the pooled mean, so that a common offset loses as few digits as possible.
        If no number is missing, the difference of two functions is the difference of their `log_density`.

        Raises
        ------
        ValueError
            Each class has its own covariance, so the boundary is curved.
        """
        if self.covariance != "shared":
            raise ValueError(
                "a covariance per class makes a curved boundary, which has no linear weights; "
                'use covariance="shared"'
            )
        block = self._block(scatter, active)
        if not block.names:  # no coordinate varies, so there is no evidence
            return [Line(0.0, {}) for _ in active]
        centre = scatter.pooled()[1][block.live]
        lines = []
        for normal in block.normals:
            off = normal.mean - centre
            w = normal.scale * (normal.precision @ off)
            intercept = -0.5 * float(off @ w) - float(centre @ w)
            lines.append(Line(intercept, dict(zip(block.names, w.tolist(), strict=True))))
        return lines

    def theta(self, scatter: Scatter, a: int, b: int, log_prior_odds: float = 0.0) -> Line:
        """Return the logistic form of two classes: ``P(a | x) = 1 / (1 + exp(-theta.x))`` with ``x_0 = 1``.

        Parameters
        ----------
        scatter : Scatter
        a, b : int
            Indices of the two classes.
        log_prior_odds : float
            ``ln P(a) - ln P(b)``.

        Raises
        ------
        ValueError
            Each class has its own covariance.
        """
        for_a, for_b = self.lines(scatter, [a, b])
        weights = {name: w - for_b.weights[name] for name, w in for_a.weights.items()}
        return Line(for_a.intercept - for_b.intercept + log_prior_odds, weights)

    def linear(self, statistic: Scatter, active: Sequence[int], a: int, b: int) -> Line:
        """Return theta of two classes, without the prior."""
        return self.theta(statistic, active[a], active[b])

    def covariances(self, scatter: Scatter, active: Sequence[int]) -> Floats:
        """Return the covariance that scoring uses, over all coordinates: of all classes, or of each.

        Returns
        -------
        ndarray of float64, shape (d, d), or (classes, d, d) with a covariance per class
            Rows and columns of a coordinate whose numbers were all equal are 0.
        """
        live = np.flatnonzero(scatter.pooled()[2] >= VARIANCE_MIN)
        groups = [None] if self.covariance == "shared" else list(active)
        found = np.zeros((len(groups), len(scatter.names), len(scatter.names)))
        for sigma, group in zip(found, groups, strict=True):
            if len(live):
                sigma[np.ix_(live, live)] = self._covariance(scatter, group, live).sigma
        return found[0] if self.covariance == "shared" else found

    def n_parameters(self, statistic: Scatter, n_classes: int, *, naive: bool) -> int:  # noqa: ARG002 - never naive
        """Return the number of means and covariances."""
        names = len(statistic.names)
        matrices = 1 if self.covariance == "shared" else n_classes
        return n_classes * names + matrices * (names * (names + 1) // 2)

    def drawing(
        self,
        statistic: Scatter,
        active: Sequence[int],
        i: int,
        messages: float,  # noqa: ARG002 - one draw per message
    ) -> Draw:
        """Return a function that draws all numbers together; constant coordinates stay constant."""
        block = self._block(statistic, [active[i]])
        constant = dict(zip(statistic.names, statistic.pooled()[1].tolist(), strict=True))
        if not block.names:
            return lambda _: constant.items()
        covariance = self._covariance(statistic, self._group(active[i]), block.live).sigma
        spread = np.sqrt(covariance.diagonal())
        factor = np.linalg.cholesky(covariance / spread / spread[:, None])
        mean = block.normals[0].mean

        def draw(random: np.random.Generator) -> Drawn:
            values = mean + spread * (factor @ random.standard_normal(len(block.names)))
            return (constant | dict(zip(block.names, values.tolist(), strict=True))).items()

        return draw

    def _seen(
        self, x: Mapping[str, float | None], scatter: Scatter, active: Sequence[int], scale: float
    ) -> tuple[list[str], Floats, list[Normal]]:
        """Return the coordinates that take part, the message's numbers and each class's normal over them."""
        values = present(x)
        block = self._block(scatter, active, scale)
        at = [i for i, name in enumerate(block.names) if name in values]
        names = [block.names[i] for i in at]
        v = np.array([values[name] for name in names], np.float64)
        if len(at) == len(block.names):
            return names, v, block.normals
        if not at:
            return names, v, []
        here = np.ix_(at, at)
        shapes = {
            group: _inverted(self._covariance(scatter, group, block.live, scale).sigma[here]).shape()
            for group in map(self._group, active)
        }
        means = [normal.mean[at] for normal in block.normals]
        return names, v, [Normal(m, *shapes[self._group(c)]) for c, m in zip(active, means, strict=True)]

    def _block(self, scatter: Scatter, active: Sequence[int], scale: float = 1.0) -> _Block:
        """Return each active class's normal over all coordinates that vary, cached until the sums change."""
        key = (self, tuple(active))
        found = scatter.derived.get(key)
        if isinstance(found, _Block) and found.scale == scale:
            return found
        _, common, variance = scatter.pooled()
        live = np.flatnonzero(variance >= VARIANCE_MIN)
        n, mean = scatter.means()
        means = np.where(n > 0, mean, common)[:, live]
        names = [scatter.names[i] for i in live]
        groups = {self._group(c) for c in active} if names else set()
        shapes = {group: self._shape(scatter, group, live, scale) for group in groups}
        normals = [Normal(means[c], *shapes[self._group(c)]) for c in active] if names else []
        block = scatter.derived[key] = _Block(names, live, normals, scale)
        return block

    def _shape(self, scatter: Scatter, group: int | None, live: Where, scale: float) -> _Shape:
        """Return a covariance's shape, from the inverse that the sums keep if there is one, else computed."""
        kept = scatter.inverse_of(group, scale)
        if kept is not None and len(live) == len(scatter.names) and self._enough(kept.free, live, scale):
            log_det = kept.log_det - len(live) * math.log(kept.n)
            return np.sqrt(kept.diagonal / kept.n), kept.matrix, kept.n, log_det
        return self._covariance(scatter, group, live, scale).shape()

    def _covariance(
        self, scatter: Scatter, group: int | None, live: Where, scale: float = 1.0
    ) -> _Covariance:
        """Return a covariance and its inverse, computed from the sums and steadied as the class describes."""
        key = (self, group)
        found = scatter.derived.get(key)
        if isinstance(found, _Covariance) and found.scale == scale:
            return found
        sums = scatter.sums(group, scale)
        n, free, cross = (matrix[np.ix_(live, live)] for matrix in sums)
        made = None
        if self._enough(float(free.min()), live, scale):
            made = _try(cross / n)
        if made is None:
            root = np.sqrt(n.diagonal() + scale)
            steadied = cross + np.diag(scatter.pooled()[2][live] * scale)
            made = _inverted(steadied / root / root[:, None])
        made = scatter.derived[key] = made._replace(scale=scale)
        return made

    def _enough(self, messages: float, live: Where, scale: float) -> bool:
        """Return whether there are enough messages to do without the pseudo-observation."""
        return messages > self.messages_per_coordinate * len(live) * scale

    def _group(self, c: int) -> int | None:
        """Return the class whose sums make the covariance of class c; ``None`` means all classes."""
        return None if self.covariance == "shared" else c


Where = NDArray[np.intp]
_Shape = tuple[Floats, Floats, float, float]


class _Block(NamedTuple):
    """The coordinates that vary, their indices among all names, and a normal per active class."""

    names: list[str]
    live: Where
    normals: list[Normal]
    scale: float


class _Covariance(NamedTuple):
    """A covariance, its inverse and the log of its determinant."""

    sigma: Floats
    precision: Floats
    log_det: float
    scale: float = 1.0

    def shape(self) -> _Shape:
        """Return everything that a `Normal` has except its mean."""
        return np.sqrt(self.sigma.diagonal()), self.precision, 1.0, self.log_det


def _try(sigma: Floats) -> _Covariance | None:
    """Return the covariance with its inverse; ``None`` if it has no reliable inverse."""
    found = inverted(sigma)
    return None if found is None else _Covariance(sigma, *found)


def _inverted(sigma: Floats) -> _Covariance:
    """Return the covariance with its inverse; without its correlations if it has no reliable inverse."""
    made = _try(sigma)
    if made is not None:
        return made
    variances = np.maximum(sigma.diagonal(), VARIANCE_MIN)
    return _Covariance(np.diag(variances), np.diag(1.0 / variances), float(np.log(variances).sum()))
