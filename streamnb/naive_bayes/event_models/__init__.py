"""Event models: how likely a feature is in each class, as pure formulas from statistics to log likelihoods.

These modules know the statistics, the formulas, their smoothing and the class priors. An event model is a
frozen value of settings; it never changes a statistic. They must not know batches, labels, snapshots or how
views combine. Of half-lives they know only the number `scale`: the weight of a message learned now, by
which pseudo-counts are multiplied.

A new event model is a subclass of `EventModel` in a module here. It also needs its name in `AnyEventModel`
below (and in `streamnb.naive_bayes` and `streamnb`, if it is public) and a place in `model/view.py`, which
pairs readers with event models. Settings files and snapshots then know it by its `kind`. A compiled twin in
`_kernel` is optional: `has_twin` is True for an event model that has one; those without run in Python.
"""

from streamnb.naive_bayes.event_models.base import Brought, EventModel
from streamnb.naive_bayes.event_models.bernoulli import Bernoulli
from streamnb.naive_bayes.event_models.binned import Binned
from streamnb.naive_bayes.event_models.categorical import Categorical
from streamnb.naive_bayes.event_models.contract import Generative, OwnEventModel, Statistic
from streamnb.naive_bayes.event_models.gaussian import Gaussian
from streamnb.naive_bayes.event_models.markov import Markov
from streamnb.naive_bayes.event_models.multinomial import Multinomial
from streamnb.naive_bayes.event_models.multivariate import Multivariate

AnyEventModel = Multinomial | Bernoulli | Markov | Categorical | Gaussian | Multivariate | Binned
"""The event models that a settings file can name."""

__all__ = [
    "AnyEventModel",
    "Bernoulli",
    "Binned",
    "Brought",
    "Categorical",
    "EventModel",
    "Gaussian",
    "Generative",
    "Markov",
    "Multinomial",
    "Multivariate",
    "OwnEventModel",
    "Statistic",
]
