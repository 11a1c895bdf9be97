"""streamnb's estimators under scikit-learn's API, so that scikit-learn's own tests can run on them.

Only names and forms are translated: a row is a message whose fields are its columns, and the dictionary is
the columns. Of scikit-learn's checks of its arguments only that of negative data is imitated, because much
else follows it in the same tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse  # type: ignore[import-untyped]
from sklearn.base import BaseEstimator, ClassifierMixin

from streamnb import FixedPrior, LaplacePerToken, NoSmoothing, UniformPrior
from streamnb.naive_bayes import estimators

Given = Any
"""Whatever scikit-learn's tests hand over: lists, arrays or matrices of scipy."""


class _AsSklearn(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What all have in common; `_made` returns streamnb's estimator for a number of columns."""

    _counts = True  # whether a negative value is refused

    def fit(self, X: Given, y: Given, sample_weight: Given = None) -> Any:  # noqa: ANN401
        """Learn from the beginning."""
        return self._learned(X, y, None, sample_weight, begin=True)

    def partial_fit(self, X: Given, y: Given, classes: Given = None, sample_weight: Given = None) -> Any:  # noqa: ANN401
        """Learn more."""
        return self._learned(X, y, classes, sample_weight, begin=not hasattr(self, "model_"))

    def _learned(self, X: Given, y: Given, classes: Given, weights: Given, *, begin: bool) -> Any:  # noqa: ANN401
        rows, labels = self._rows(X), np.asarray(y).tolist()
        declared = {*labels, *([] if classes is None else np.asarray(classes).tolist())}
        if begin:
            self.columns_ = np.asarray(_dense(X)).shape[1]
            self._known: set[Any] = set()
            self.model_ = self._made(sorted(declared), X)
        self._known |= declared
        w = np.ones(len(rows)) if weights is None else np.asarray(weights, float)
        kept = [i for i in range(len(rows)) if w[i] > 0]
        self.model_.learn_many(
            [rows[i] for i in kept], [labels[i] for i in kept], w=[float(w[i]) for i in kept]
        )
        return self

    def _made(self, classes: Sequence[Any], X: Given) -> Any:  # noqa: ANN401
        raise NotImplementedError

    def _rows(self, X: Given) -> list[dict[str, Any]]:
        if self._counts and (np.asarray(_dense(X)) < 0).any():
            raise ValueError(f"Negative values in data passed to {type(self).__name__} (input X)")
        return [{str(j): value for j, value in enumerate(row)} for row in np.asarray(_dense(X)).tolist()]

    def _columns(self) -> Iterable[str]:
        return (str(j) for j in range(self.columns_))

    def _table(self, found: Sequence[dict[Any, float]], missing: float) -> Any:  # noqa: ANN401
        return np.array([[row.get(label, missing) for label in self.classes_] for row in found])

    @property
    def classes_(self) -> Any:  # noqa: ANN401
        """Sorted, as scikit-learn has them."""
        return np.array(sorted(self._known))

    def predict(self, X: Given) -> Any:  # noqa: ANN401
        """Return the likeliest classes."""
        return np.array(self.model_.predict_many(self._rows(X)))

    def predict_proba(self, X: Given) -> Any:  # noqa: ANN401
        """Return the posteriors."""
        return self._table(self.model_.predict_proba_many(self._rows(X)), 0.0)

    def predict_log_proba(self, X: Given) -> Any:  # noqa: ANN401
        """Return their logarithms."""
        return self._table(self.model_.predict_log_proba_many(self._rows(X)), -math.inf)

    def predict_joint_log_proba(self, X: Given) -> Any:  # noqa: ANN401
        """Return the joints."""
        return self._table(self.model_.joint_log_likelihood_many(self._rows(X)), -math.inf)

    @property
    def class_count_(self) -> Any:  # noqa: ANN401
        """The weight of each class."""
        return self._table([self.model_.class_counts_], 0.0)[0]

    @property
    def class_prior_(self) -> Any:  # noqa: ANN401
        """The shares, or the prior that was given."""
        prior = self.model_.prior
        if isinstance(prior, UniformPrior):
            return np.full(len(self.classes_), 1 / len(self.classes_))
        if isinstance(prior, FixedPrior):
            return np.array([prior.p[str(c)] for c in self.classes_.tolist()]) / sum(prior.p.values())
        return self.class_count_ / self.class_count_.sum()

    @property
    def class_log_prior_(self) -> Any:  # noqa: ANN401
        """Its logarithm."""
        return np.log(self.class_prior_)

    def _shares(self) -> Any:  # noqa: ANN401
        share = self.model_.p_feature_given_class
        return np.array([[share(j, c) for j in self._columns()] for c in self.classes_.tolist()])

    @property
    def feature_log_prob_(self) -> Any:  # noqa: ANN401
        """The logarithm of the share of each word in each class."""
        return np.log(self._shares())


def _dense(X: Given) -> Any:  # noqa: ANN401
    return X.toarray() if sparse.issparse(X) else X


def _prior(fit_prior: bool, given: Given, classes: Sequence[Any]) -> Any:  # noqa: ANN401
    if given is not None:
        return FixedPrior(dict(zip(classes, np.asarray(given).tolist(), strict=True)))
    return None if fit_prior else UniformPrior()


class _Words(_AsSklearn):
    """The estimators of words."""

    @property
    def feature_count_(self) -> Any:  # noqa: ANN401
        """The counts."""
        counts = self.model_.feature_counts
        return np.array([[counts[j][c] for j in self._columns()] for c in self.classes_.tolist()])


class MultinomialNB(_Words):
    """`streamnb.MultinomialNB`."""

    _kind: Any = estimators.MultinomialNB

    def __init__(
        self,
        *,
        alpha: Given = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Given = None,
    ) -> None:
        self.alpha, self.force_alpha, self.fit_prior, self.class_prior = (
            alpha,
            force_alpha,
            fit_prior,
            class_prior,
        )

    def _made(self, classes: Sequence[Any], X: Given) -> Any:  # noqa: ANN401, ARG002
        more = {"norm": True} if getattr(self, "norm", False) else {}
        return self._kind(
            smoothing=self._smoothing(),
            prior=_prior(self.fit_prior, self.class_prior, classes),
            vocabulary=list(self._columns()),
            **more,
        )

    def _smoothing(self) -> Any:  # noqa: ANN401
        alphas = np.broadcast_to(self.alpha, self.columns_).tolist()
        return (
            LaplacePerToken(dict(zip(self._columns(), alphas, strict=True))) if any(alphas) else NoSmoothing()
        )


class ComplementNB(MultinomialNB):
    """`streamnb.ComplementNB`."""

    _kind: Any = estimators.ComplementNB

    def __init__(
        self,
        *,
        alpha: Given = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Given = None,
        norm: bool = False,
    ) -> None:
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.norm = norm

    @property
    def feature_all_(self) -> Any:  # noqa: ANN401
        """The count of each word in all classes."""
        return np.array([self.model_.feature_totals[j] for j in self._columns()])

    @property
    def feature_log_prob_(self) -> Any:  # noqa: ANN401
        """The weights: the evidence of each word alone."""
        return np.array(
            [
                [self.model_.joint_log_likelihood({j: 1})[c] for j in self._columns()]
                for c in self.classes_.tolist()
            ]
        )


class BernoulliNB(_Words):
    """`streamnb.BernoulliNB`."""

    _counts = False

    def __init__(
        self,
        *,
        alpha: Given = 1.0,
        force_alpha: bool = True,
        binarize: float = 0.0,
        fit_prior: bool = True,
        class_prior: Given = None,
    ) -> None:
        self.alpha, self.force_alpha, self.binarize = alpha, force_alpha, binarize
        self.fit_prior, self.class_prior = fit_prior, class_prior

    def _made(self, classes: Sequence[Any], X: Given) -> Any:  # noqa: ANN401, ARG002
        return estimators.BernoulliNB(
            self.alpha,
            self.binarize,
            prior=_prior(self.fit_prior, self.class_prior, classes),
            unknown="smooth",
            vocabulary=list(self._columns()),
        )


class CategoricalNB(_AsSklearn):
    """`streamnb.CategoricalNB`; scikit-learn's values are 0 to the largest."""

    def __init__(
        self,
        *,
        alpha: Given = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Given = None,
        min_categories: Given = None,
    ) -> None:
        self.alpha, self.force_alpha, self.min_categories = alpha, force_alpha, min_categories
        self.fit_prior, self.class_prior = fit_prior, class_prior

    def _made(self, classes: Sequence[Any], X: Given) -> Any:  # noqa: ANN401
        least = np.maximum(np.asarray(_dense(X)).max(axis=0).astype(int) + 1, self.min_categories or 0)
        return estimators.CategoricalNB(
            self.alpha,
            prior=_prior(self.fit_prior, self.class_prior, classes),
            values_min=dict(zip(self._columns(), least.tolist(), strict=True)),
        )

    def _rows(self, X: Given) -> list[dict[str, Any]]:
        return [
            {name: int(value) for name, value in row.items()} for row in super()._rows(X)
        ]  # as scikit-learn does

    @property
    def n_categories_(self) -> Any:  # noqa: ANN401
        """The number of values of each column."""
        counts, least = self.model_.feature_counts, self.model_.values_min
        return np.array([max(least[j], len(counts[j])) for j in self._columns()])

    @property
    def category_count_(self) -> Any:  # noqa: ANN401
        """The counts of the values of each column."""
        counts = self.model_.feature_counts
        return [
            np.array([[counts[j].get(v, {}).get(c, 0) for v in range(n)] for c in self.classes_.tolist()])
            for j, n in zip(self._columns(), self.n_categories_, strict=True)
        ]

    @property
    def feature_log_prob_(self) -> Any:  # noqa: ANN401
        """The shares of the values of each column."""
        share = self.model_.p_feature_given_class
        return [
            np.log([[share(j, v, c) for v in range(n)] for c in self.classes_.tolist()])
            for j, n in zip(self._columns(), self.n_categories_, strict=True)
        ]


class GaussianNB(_AsSklearn):
    """`streamnb.GaussianNB`; the smallest pseudo-observation is like theirs, a share of the variance."""

    _counts = False

    def __init__(self, *, priors: Given = None, var_smoothing: float = 1e-9) -> None:
        self.priors, self.var_smoothing = priors, var_smoothing

    def _made(self, classes: Sequence[Any], X: Given) -> Any:  # noqa: ANN401, ARG002
        return estimators.GaussianNB(
            pseudo_observations=self.var_smoothing, prior=_prior(True, self.priors, classes)
        )

    def _moments(self, which: int) -> Any:  # noqa: ANN401
        moments = self.model_.moments
        return np.array([[moments[j][c][which] for j in self._columns()] for c in self.classes_.tolist()])

    @property
    def theta_(self) -> Any:  # noqa: ANN401
        """The means."""
        return self._moments(1)

    @property
    def var_(self) -> Any:  # noqa: ANN401
        """The variances."""
        return self._moments(2)


REPLACED = {
    each.__name__: each for each in (MultinomialNB, ComplementNB, BernoulliNB, CategoricalNB, GaussianNB)
}
"""scikit-learn's names, with ours in their place."""
