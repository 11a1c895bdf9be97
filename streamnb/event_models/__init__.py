"""Event models: the probability story of a feature, as pure formulas from statistics to evidence."""

from streamnb.event_models.bernoulli import Bernoulli
from streamnb.event_models.categorical import Categorical
from streamnb.event_models.gaussian import Gaussian
from streamnb.event_models.multinomial import Multinomial
from streamnb.event_models.own import Generative, OwnEventModel, Statistic

EventModel = Multinomial | Bernoulli | Categorical | Gaussian

__all__ = [
    "Bernoulli",
    "Categorical",
    "EventModel",
    "Gaussian",
    "Generative",
    "Multinomial",
    "OwnEventModel",
    "Statistic",
]
