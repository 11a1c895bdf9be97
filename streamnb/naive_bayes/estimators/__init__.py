"""The classifiers that users hold: `NaiveBayes` over any views, and the classic estimators of one view.

All are subclasses of river's `Classifier` and hold a `State`; they work in river's pipelines and metrics, and
accept data frames. `saving` writes them to a file, `loading` reads it, and `notebook` shows them. The package
knows river's base classes, data frames (through narwhals), the model and the snapshot file. It must not know
how a statistic is kept.
"""

from streamnb.naive_bayes.estimators.estimator import Estimator
from streamnb.naive_bayes.estimators.fields import CategoricalNB, GaussianDiscriminant, GaussianNB
from streamnb.naive_bayes.estimators.loading import load
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.estimators.saving import ESTIMATOR
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
