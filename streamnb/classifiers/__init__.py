"""River's face: estimators that stand where river's stand, in its pipelines and metrics."""

from streamnb.classifiers.estimator import Estimator
from streamnb.classifiers.fields import CategoricalNB, GaussianDiscriminant, GaussianNB
from streamnb.classifiers.mixed import MixedNB
from streamnb.classifiers.words import BernoulliNB, ComplementNB, MultinomialNB

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
