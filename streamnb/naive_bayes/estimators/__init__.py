"""River's face: estimators that stand where river's stand, in its pipelines and metrics."""

from streamnb.naive_bayes.estimators.any_fields import MixedNB
from streamnb.naive_bayes.estimators.estimator import Estimator
from streamnb.naive_bayes.estimators.fields import CategoricalNB, GaussianDiscriminant, GaussianNB
from streamnb.naive_bayes.estimators.words import BernoulliNB, ComplementNB, MultinomialNB

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "Estimator",
    "GaussianDiscriminant",
    "GaussianNB",
    "MixedNB",
    "MultinomialNB",
]
