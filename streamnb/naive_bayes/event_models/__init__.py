"""Event models: the probability story of a feature, as pure formulas from statistics to evidence."""

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
