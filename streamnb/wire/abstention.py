"""Abstention: a score names no class when the evidence is too thin.

Only the prediction is withheld. The posterior is still published, and the reason with it.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamnb.base import Floats, Scores

REASONS = ("too_few_learned", "too_few_known_tokens", "unsure")
PREDICTED = -1  # instead of an index into `REASONS`: the score names a class


class Abstain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The least evidence with which a score names a class. With the defaults every score does.

    Parameters
    ----------
    learned_min : float
        The least total weight of learned messages that every class must have. A class that is declared and
        has no labels yet has 0.
    known_tokens_min : int
        The least number of distinct tokens of the first text view that occur in learned messages.
    posterior_min : float
        The least posterior of the likeliest class.
    between : mapping of str to (float, float)
        A low and a high posterior per class: the score abstains if the class's posterior lies strictly
        between them. Useful when errors differ in cost: with ``{"spam": (0.2, 0.99)}`` a message is
        delivered up to 0.2, put aside from 0.99 on, and shown to a person in between.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> model = NaiveBayes(classes=["ham", "spam"])
    >>> model.learn_one({"text": "win"}, "spam")
    >>> reason = Abstain(learned_min=1).reasons(model.score_one({"text": "win"}))[0]
    >>> REASONS[reason]
    'too_few_learned'
    """

    learned_min: float = 0.0
    known_tokens_min: int = 0
    posterior_min: float = 0.0
    between: dict[str, tuple[float, float]] = {}

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a bound outside its range."""
        if not 0 <= self.learned_min < float("inf") or self.known_tokens_min < 0:
            raise ValueError("`learned_min` and `known_tokens_min` must not be below 0")
        if not 0 <= self.posterior_min <= 1:
            raise ValueError("`posterior_min` must be from 0 to 1")
        for name, (low, high) in self.between.items():
            if not 0 <= low < high <= 1:
                raise ValueError(f"`between`: the bounds of {name!r} must be 0 <= low < high <= 1")

    def reasons(self, scores: Scores) -> NDArray[np.int64] | None:
        """Return why each row abstains: an index into `REASONS`, or `PREDICTED` if it does not.

        If several reasons apply, the first in `REASONS` is returned.

        Returns
        -------
        ndarray of int64, shape (n,), or None
            ``None`` if all bounds have their defaults, so that no row can abstain.
        """
        if self == Abstain():
            return None
        unknown_class = np.arange(len(scores.classes)) >= scores.n_classes[:, None]
        learned = np.where(unknown_class, np.inf, scores.learned_by_class).min(axis=1, initial=np.inf)
        too_few_learned = np.where(scores.n_classes > 0, learned, 0.0) < self.learned_min
        too_few_known = scores.known_tokens < self.known_tokens_min
        reasons = [too_few_learned, too_few_known, self._unsure(scores.classes_as_text(), scores.posterior)]
        return np.select(reasons, np.arange(len(REASONS)), PREDICTED)

    def _unsure(self, names: list[str], posterior: Floats) -> NDArray[np.bool_]:
        unsure: NDArray[np.bool_] = posterior.max(axis=1, initial=0.0) < self.posterior_min
        for name, (low, high) in self.between.items():
            if name in names:
                p = posterior[:, names.index(name)]
                unsure |= (low < p) & (p < high)
        return unsure
