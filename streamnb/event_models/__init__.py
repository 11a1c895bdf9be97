"""Event models: the probability story of a feature, as pure formulas from statistics to evidence."""

from streamnb.event_models.gaussian import Gaussian
from streamnb.event_models.multinomial import Multinomial

EventModel = Multinomial | Gaussian

__all__ = ["EventModel", "Gaussian", "Multinomial"]
