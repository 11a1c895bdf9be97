"""Choose each view's statistic, plain or compiled, and explain why a model cannot run compiled."""

from __future__ import annotations

from collections.abc import Sequence

from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.event_models import Bernoulli, Categorical, Gaussian, Multinomial, Statistic
from streamnb.naive_bayes.event_models.priors import FallbackPrior, FixedPrior, Prior
from streamnb.naive_bayes.features.readers import Categories, Flags, Numbers
from streamnb.naive_bayes.model.view import View
from streamnb.naive_bayes.statistics.absent_words import AbsentWords
from streamnb.naive_bayes.statistics.field_totals import FieldTotals
from streamnb.naive_bayes.statistics.forgetting import Decay
from streamnb.naive_bayes.statistics.number_block import NumberBlock


def is_compiled(views: Sequence[View], prior: Prior, decay: Decay | None, wanted: bool | None) -> bool:
    """Return whether the compiled driver runs a model, which takes a twin for its prior and each of its
    views.

    Parameters
    ----------
    views : sequence of View
    prior : Prior
    decay : Decay or None
        The decay of a model that forgets.
    wanted : bool or None
        ``None`` runs compiled if that is possible.

    Raises
    ------
    ValueError
        The compiled driver is wanted, and a part of the model has no twin.
    """
    strangers = [f"view `{view.name}`" for view in views if not _has_twin(view)]
    if isinstance(prior, FixedPrior | FallbackPrior):
        strangers.append("the prior")
    if decay is not None:
        blocks = [view.name for view in views if isinstance(view.reader, Categories | Flags | Numbers)]
        strangers += [f"view `{name}` with a half-life" for name in blocks]
    if wanted and (strangers or not _kernel.compiled):
        raise ValueError(f"this model cannot run in compiled code: {_kernel.reason or ', '.join(strangers)}")
    return _kernel.compiled and not strangers if wanted is None else wanted


def draws_words(view: View) -> bool:
    """Return whether a view's event model is the plain multinomial, the only one that the calibrated head
    reads.
    """
    return isinstance(view.event_model, Multinomial) and not view.event_model.complement


def tally_of(view: View, *, compiled: bool) -> AbsentWords | FieldTotals | None:
    """Return an empty tally: the sums that a Bernoulli or categorical view needs beside its counts, else
    ``None``.
    """
    if view.keeps != "counts" or isinstance(view.event_model, Multinomial):
        return None
    if isinstance(view.event_model, Bernoulli) and not isinstance(view.reader, Flags):
        return _kernel.AbsentWords() if compiled else AbsentWords()
    return FieldTotals(kind=_kernel.FieldTotal) if compiled else FieldTotals()


def block_of(view: View, *, compiled: bool) -> Statistic:
    """Return the empty statistic of a view that does not use the count store."""
    if compiled:  # a model with any other block is not compiled
        return NumberBlock(kind=_kernel.Moments)
    statistic: Statistic = view.own.statistic()
    return statistic


def _has_twin(view: View) -> bool:
    return draws_words(view) or isinstance(view.event_model, Gaussian | Categorical | Bernoulli)
