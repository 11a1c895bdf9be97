"""Event models: the probability story of a feature, as pure formulas from statistics to evidence."""

from streamnb.event_models.bernoulli import Bernoulli
from streamnb.event_models.binned import Binned
from streamnb.event_models.categorical import Categorical
from streamnb.event_models.gaussian import Gaussian
from streamnb.event_models.multinomial import Multinomial
from streamnb.event_models.multivariate import Multivariate
from streamnb.event_models.own import Generative, OwnEventModel, Statistic

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
