"""What a view is counted in, and which of a model's parts have a compiled twin."""

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
    """Whether the compiled twins drive a model: they know its prior and every view.

    Parameters
    ----------
    views : sequence of View
    prior : Prior
    decay : Decay or None
        Where the model stands in time, if it forgets.
    wanted : bool or None
        ``None`` leaves the choice to what there is.

    Raises
    ------
    ValueError
        They are wanted, and something of the model has none.
    """
    strangers = [f"view `{view.name}`" for view in views if not _has_twin(view)]
    if isinstance(prior, FixedPrior | FallbackPrior):
        strangers.append("the prior")
    if decay is not None:
        blocks = [view.name for view in views if isinstance(view.reader, Categories | Flags | Numbers)]
        strangers += [f"view `{name}` with a half-life" for name in blocks]
    if wanted and (strangers or not _kernel.compiled):
        raise ValueError(f"no compiled twin: {_kernel.reason or ', '.join(strangers)}")
    return _kernel.compiled and not strangers if wanted is None else wanted


def draws_words(view: View) -> bool:
    """Whether a view's event model is the plain multinomial, which is what the calibrated head reads."""
    return isinstance(view.event_model, Multinomial) and not view.event_model.complement


def tally_of(view: View, *, compiled: bool) -> AbsentWords | FieldTotals | None:
    """What a view's formula needs beside its counts, empty; ``None`` where it needs nothing."""
    if view.keeps != "counts" or isinstance(view.event_model, Multinomial):
        return None
    if isinstance(view.event_model, Bernoulli) and not isinstance(view.reader, Flags):
        return _kernel.AbsentWords() if compiled else AbsentWords()
    return FieldTotals(kind=_kernel.FieldTotal) if compiled else FieldTotals()


def block_of(view: View, *, compiled: bool) -> Statistic:
    """The statistics of its own that a view keeps, empty."""
    if compiled:  # of the blocks, the kernel knows the naive ones
        return NumberBlock(kind=_kernel.Moments)
    statistic: Statistic = view.own.statistic()
    return statistic


def _has_twin(view: View) -> bool:
    return draws_words(view) or isinstance(view.event_model, Gaussian | Categorical | Bernoulli)
