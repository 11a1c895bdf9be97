"""River's classifiers: estimators with river's names and numbers, for its pipelines and metrics.

It knows river's base classes, data frames (through narwhals) and the model. It must not know how a statistic
is kept.
"""

from streamnb.naive_bayes.estimators.estimator import Estimator
from streamnb.naive_bayes.estimators.fields import CategoricalNB, GaussianDiscriminant, GaussianNB
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.estimators.saving import ESTIMATOR, load
from streamnb.naive_bayes.estimators.words import BernoulliNB, ComplementNB, MultinomialNB

__all__ = [
    "ESTIMATOR",
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "Estimator",
    "GaussianDiscriminant",
    "GaussianNB",
    "MultinomialNB",
    "NaiveBayes",
    "load",
]
