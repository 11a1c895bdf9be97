"""Estimators of named values: categorical, Gaussian, and Gaussian discriminant analysis."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, cast

import numpy as np

from streamnb.base import Floats, Label
from streamnb.naive_bayes.estimators.estimator import FIELD, Estimator
from streamnb.naive_bayes.event_models import Categorical, Gaussian, Multivariate
from streamnb.naive_bayes.event_models.priors import Prior
from streamnb.naive_bayes.event_models.smoothing import Laplace, NoSmoothing, Smoothing
from streamnb.naive_bayes.features.field_tokens import field_of, token_of, value_of
from streamnb.naive_bayes.features.readers import Categories, Numbers
from streamnb.naive_bayes.model.scoring import log_prior
from streamnb.naive_bayes.model.step import at_rest
from streamnb.naive_bayes.model.view import View
from streamnb.naive_bayes.posterior.odds import softmax
from streamnb.naive_bayes.statistics.number_block import NumberBlock
from streamnb.naive_bayes.statistics.scatter import Scatter

_VIEW = "fields"


class CategoricalNB(Estimator):
    """Categorical naive Bayes: each field takes one of its own values.

    Parameters
    ----------
    alpha : float
        Pseudo-count of each value of a field: 1 is Laplace's, 0 is maximum likelihood.
    smoothing : Smoothing, optional
        In place of `alpha`.
    prior : Prior, optional
        By default the stream's own shares.
    unknown : {"smooth", "skip"}
        Whether a value that no class has learned takes part, with a count of 0.
    values_min : int or mapping of str to int
        How many values a field has, if that is known beforehand: of every field, or of those that are named.
        `k_i` is at least this.
    classes_max, max_tokens, half_life_s, half_life_messages
        As for `NaiveBayes`.

    Raises
    ------
    ValueError
        `alpha` is negative, infinite or not a number.

    Notes
    -----
    ``P(x_i = v | c) = (n_vc + alpha) / (N_c + alpha k_i)``, with `N_c` the messages of class c that had the
    field and `k_i` the number of its values seen so far. Values are strings, numbers or truth values; 1, "1"
    and True are three values. A missing field (absent, ``None``, NaN) is neither learned nor scored.

    Examples
    --------
    Which of four stations the young and the old listen to is one field of four values, not four flags.

    >>> model = CategoricalNB(alpha=1)
    >>> for age, station in [("young", 1), ("young", 1), ("young", 4), ("old", 2), ("old", 4), ("old", 4)]:
    ...     model.learn_one({"radio": station}, age)
    >>> round(model.predict_proba_one({"radio": 1})["young"], 12)  # 3/6 against 1/6
    0.75

    A die that has shown 1, 1 and 2, and is known to have six sides: 3/9, 2/9 and four times 1/9.

    >>> model = CategoricalNB(values_min=6)
    >>> for side in (1, 1, 2):
    ...     model.learn_one({"die": side}, "fair")
    >>> [round(9 * model.p_feature_given_class("die", side, "fair"), 12) for side in range(1, 7)]
    [3.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        smoothing: Smoothing | None = None,
        prior: Prior | None = None,
        unknown: Literal["smooth", "skip"] = "smooth",
        values_min: int | Mapping[str, int] = 0,
        classes_max: int | None = None,
        max_tokens: int | None = None,
        half_life_s: float | None = None,
        half_life_messages: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.smoothing = smoothing
        self.prior = prior
        self.classes_max = classes_max
        self.max_tokens = max_tokens
        self.half_life_s = half_life_s
        self.half_life_messages = half_life_messages
        self.unknown = unknown
        self.values_min = values_min
        self._pseudo = smoothing or (NoSmoothing() if alpha == 0 else Laplace(alpha))
        self._categorical = Categorical(self._pseudo, unknown, values_min)
        self.state = self._built(View(_VIEW, Categories(FIELD), self._categorical))

    @property
    def feature_counts(self) -> dict[str, dict[str | float, Counter[Label]]]:
        """A copy of the counts: field to value to class to count."""
        found: dict[str, dict[str | float, Counter[Label]]] = {}
        for token, row in self.state.counts[_VIEW].rows.items():
            counts = {label: n for label, n in zip(self.state.classes, row, strict=True) if n}
            found.setdefault(field_of(token), {})[value_of(token)] = Counter(counts)
        return found

    def p_feature_given_class(self, f: object, v: str | float, c: Label) -> float:
        """Return ``(n_vc + alpha) / (N_c + alpha k)`` for value v of field f; 0 where that is 0/0."""
        fields = self.state.token_statistics()[_VIEW].tally
        i = self.state.index.get(c, -1)
        row = self.state.counts[_VIEW].rows.get(token_of(str(f), v), [])
        field = fields.fields.get(str(f))
        totals, seen = (field.totals, field.states) if field is not None else ([], 0)
        k = self._categorical.values(str(f), seen) or 1
        p = self._pseudo.pseudo_count(sum(row), sum(totals), k)
        total = (totals[i] if totals and i >= 0 else 0.0) + self._pseudo.pseudo_total(k)
        return ((row[i] if row and i >= 0 else 0.0) + p) / total if total else 0.0


class Gaussians(dict[object, Any]):
    """The normals of a class by name; a name that is not a string is looked up by its text."""

    def __missing__(self, name: object) -> Any:  # noqa: ANN401 - river's Gaussian, which has no types
        if isinstance(name, str):
            raise KeyError(name)
        return self[str(name)]


class GaussianNB(Estimator):
    """Gaussian naive Bayes: each number is drawn from a normal of its class.

    Parameters
    ----------
    variance : {"class", "shared"} or float
        One variance per class (a curved boundary), one for all classes (a linear one), or the variance
        itself.
    pseudo_observations : float
        How many pseudo-observations of the pooled variance each class gets; 0 is maximum likelihood.
    robust : float
        The share of a broad normal that is mixed in for every class; 0.001 keeps a single outlier from
        deciding alone.
    prior : Prior, optional
        By default the stream's own shares.
    classes_max, max_tokens, half_life_s, half_life_messages
        As for `NaiveBayes`.

    Raises
    ------
    ValueError
        A parameter is out of its range.

    Notes
    -----
    ``var_c = (squares_c + k v) / (n_c + k)``. Posteriors do not change with a number's units. A number that
    is missing (absent, ``None``, NaN, infinite) is left out, and a truth value is 1 or 0.

    Examples
    --------
    >>> model = GaussianNB()
    >>> for length, kind in [(1.4, "setosa"), (1.3, "setosa"), (4.7, "versicolor"), (4.5, "versicolor")]:
    ...     model.learn_one({"petal length": length}, kind)
    >>> model.predict_one({"petal length": 1.6})
    'setosa'
    """

    def __init__(
        self,
        variance: Literal["class", "shared"] | float = "class",
        pseudo_observations: float = 1.0,
        robust: float = 0.0,
        *,
        prior: Prior | None = None,
        classes_max: int | None = None,
        max_tokens: int | None = None,
        half_life_s: float | None = None,
        half_life_messages: float | None = None,
    ) -> None:
        self.variance = variance
        self.pseudo_observations = pseudo_observations
        self.robust = robust
        self.prior = prior
        self.classes_max = classes_max
        self.max_tokens = max_tokens
        self.half_life_s = half_life_s
        self.half_life_messages = half_life_messages
        event_model = Gaussian(pseudo_observations, variance, robust)
        view = View(_VIEW, Numbers(FIELD), event_model)
        self.state = self._built(view)

    @property
    def moments(self) -> dict[str, dict[Label, tuple[float, float, float]]]:
        """Name to class to (number of values, mean, maximum likelihood variance)."""
        block = cast("NumberBlock", self.state.statistics[_VIEW])
        return {
            name: {
                label: (n, mean, squares / n)
                for label, n, mean, squares in zip(
                    self.state.classes, moments.n, moments.mean, moments.squares, strict=True
                )
                if n
            }
            for name, moments in block.numbers.items()
        }

    @property
    def gaussians(self) -> dict[Label, Gaussians]:
        """A copy of the moments as river's normals: class to name to `river.proba.Gaussian`."""
        from river import proba  # brings scipy, which nothing else here needs

        from_state: Any = proba.Gaussian._from_state  # noqa: SLF001 - river has no other way in
        found: dict[Label, Gaussians] = {}
        for name, by_class in self.moments.items():
            for label, (n, mean, variance) in by_class.items():
                found.setdefault(label, Gaussians())[name] = from_state(n, mean, variance, ddof=0)
        return found


class GaussianDiscriminant(Estimator):
    """Gaussian discriminant analysis: all numbers of a message are drawn together from a normal of its class.

    It is the one model here that is not naive: the numbers' covariance is estimated too.

    Parameters
    ----------
    covariance : {"shared", "class"}
        One for all classes gives a linear boundary and the posterior ``1 / (1 + exp(-theta.x))``, the form of
        logistic regression (`linear_weights` is theta). One per class gives a curved boundary.
    messages_per_coordinate : float
        Until there are more messages than this many times the numbers of a message, one pseudo-observation of
        the pooled variance steadies the covariance. 1 is the lectures' n > d.
    prior : Prior, optional
        By default the stream's own shares.
    classes_max, max_tokens, half_life_s, half_life_messages
        As for `NaiveBayes`.

    Raises
    ------
    ValueError
        A parameter is out of its range.

    Notes
    -----
    A missing coordinate is marginalised when scored; when learned, every sum runs over the messages that hold
    both of its coordinates. A message costs O(d^2).

    References
    ----------
    Ng, CS229 lecture notes, part IV. Ng and Jordan 2002, On discriminative vs. generative classifiers.

    Examples
    --------
    >>> model = GaussianDiscriminant()
    >>> for length, width, kind in [
    ...     (1.4, 0.2, "setosa"),
    ...     (1.3, 0.3, "setosa"),
    ...     (1.6, 0.2, "setosa"),
    ...     (4.7, 1.4, "versicolor"),
    ...     (4.5, 1.5, "versicolor"),
    ...     (4.0, 1.3, "versicolor"),
    ... ]:
    ...     model.learn_one({"length": length, "width": width}, kind)
    >>> model.predict_one({"length": 1.5, "width": 0.4}), model.predict_one({"length": 4.2})
    ('setosa', 'versicolor')

    The lectures' phi, mu and Sigma:

    >>> model.names_, model.classes_, model.priors_.tolist()
    (['length', 'width'], ['setosa', 'versicolor'], [0.5, 0.5])
    >>> model.means_.round(3).tolist()
    [[1.433, 0.233], [4.4, 1.4]]
    >>> model.covariance_.round(4).tolist()
    [[0.0511, 0.0061], [0.0061, 0.0044]]
    """

    def __init__(
        self,
        covariance: Literal["shared", "class"] = "shared",
        messages_per_coordinate: float = 1.0,
        *,
        prior: Prior | None = None,
        classes_max: int | None = None,
        max_tokens: int | None = None,
        half_life_s: float | None = None,
        half_life_messages: float | None = None,
    ) -> None:
        self.covariance = covariance
        self.messages_per_coordinate = messages_per_coordinate
        self.prior = prior
        self.classes_max = classes_max
        self.max_tokens = max_tokens
        self.half_life_s = half_life_s
        self.half_life_messages = half_life_messages
        self._normal = Multivariate(covariance, messages_per_coordinate)
        self.state = self._built(View(_VIEW, Numbers(FIELD), self._normal))

    @property
    def _scatter(self) -> Scatter:
        return cast("Scatter", at_rest(self.state).statistics[_VIEW])

    @property
    def names_(self) -> list[str]:
        """The names of the numbers: the order of the coordinates in `means_` and `covariance_`."""
        return list(self._scatter.names)

    @property
    def priors_(self) -> Floats:
        """The class prior: the share of each class of `classes_`, 0 of one without messages."""
        active = self.state.active()
        priors = np.zeros(len(self.classes_))
        priors[active] = softmax(log_prior(self.state, active)) if active else []
        return priors

    @property
    def means_(self) -> Floats:
        """The mean of each class of `classes_`, by name; NaN where a class has no number of that name."""
        n, means = self._scatter.means()
        return np.where(n > 0, means, math.nan)

    @property
    def covariance_(self) -> Floats:
        """The covariance that scoring uses, of all classes, or of each class learned with "class".

        It is that of maximum likelihood, ``1/m`` times the scatter matrix, as soon as there are enough
        messages for it; see `messages_per_coordinate`.
        """
        return self._normal.covariances(self._scatter, self.state.active())
