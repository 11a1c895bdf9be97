"""Event models: how likely a feature is in each class, as pure formulas from statistics to log likelihoods.

These modules know the statistics, the formulas, their smoothing and the class priors. An event model is a
frozen value of settings; it never changes a statistic. They must not know how the views of a model are
combined into a posterior, nor anything about batches, labels that arrive, snapshots or time, except one
number, `scale`: the weight that a message has now in a model that forgets.
"""

from streamnb.naive_bayes.event_models.bernoulli import Bernoulli
from streamnb.naive_bayes.event_models.binned import Binned
from streamnb.naive_bayes.event_models.categorical import Categorical
from streamnb.naive_bayes.event_models.contract import Generative, OwnEventModel, Statistic
from streamnb.naive_bayes.event_models.gaussian import Gaussian
from streamnb.naive_bayes.event_models.multinomial import Multinomial
from streamnb.naive_bayes.event_models.multivariate import Multivariate

EventModel = Multinomial | Bernoulli | Categorical | Gaussian | Multivariate | Binned

__all__ = [
    "Bernoulli",
    "Binned",
    "Categorical",
    "EventModel",
    "Gaussian",
    "Generative",
    "Multinomial",
    "Multivariate",
    "OwnEventModel",
    "Statistic",
]
