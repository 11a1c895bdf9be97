"""Choose between the plain driver and the compiled one, and explain why a model cannot run compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.event_models.priors import FallbackPrior, FixedPrior, Prior
from streamnb.naive_bayes.model.view import View
from streamnb.naive_bayes.statistics.token_counts import PLAIN, Twins


def is_compiled(views: Sequence[View], prior: Prior, wanted: bool | None) -> bool:
    """Return whether the compiled driver runs a model, which takes a twin for its prior and each of its
    views.

    Parameters
    ----------
    views : sequence of View
    prior : Prior
    wanted : bool or None
        ``None`` runs compiled if that is possible.

    Raises
    ------
    ValueError
        The compiled driver is wanted, and a part of the model has no twin.
    """
    reason = why_plain(views, prior)
    if wanted and reason:
        raise ValueError(f"this model cannot run in compiled code: {reason}")
    return not reason if wanted is None else wanted


def why_plain(views: Sequence[View], prior: Prior) -> str:
    """Return why a model cannot run in compiled code, or an empty text if it can."""
    strangers = _without_twin(views, prior)
    return _kernel.reason or (f"there is no compiled twin of {', '.join(strangers)}" if strangers else "")


def slowed_by(views: Sequence[View], prior: Prior, explain: int) -> list[str]:
    """Return which parts of a model make it run in plain Python, which is slower; empty if none."""
    if _kernel.reason:
        return ["the missing kernel"]
    return [*_without_twin(views, prior), *["explanations"] * (explain > 0)]


def _without_twin(views: Sequence[View], prior: Prior) -> list[str]:
    found = [f"view `{view.name}`" for view in views if not view.has_twin]
    return [*found, "the prior"] if isinstance(prior, FixedPrior | FallbackPrior) else found


def twins(*, compiled: bool) -> Twins:
    """Return the classes of statistics, plain or compiled."""
    if not compiled:
        return PLAIN
    made = (_kernel.CountStore, _kernel.AbsentWords, _kernel.FieldTotal, _kernel.Moments)
    return Twins(*cast("Twins", made))  # the twins have the same methods, which no type says
