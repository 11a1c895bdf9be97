"""When a score names no class: too little is known to say, and the reader of the scores had better be told.

The posterior is published all the same; only the prediction is withheld, and the reason stands beside it.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamnb.base import Floats, Scores

REASONS = ("too_few_learned", "too_few_known_tokens", "unsure")
PREDICTED = -1  # what stands in place of a reason where there is none


class Abstain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a score must rest on to name a class. By default it always does.

    Parameters
    ----------
    learned_min : float
        Messages learned of the class of which fewest were; a weight counts as so many, and a class that is
        declared and never labelled has none.
    known_tokens_min : int
        Distinct tokens of the first text view that some labelled message has taught.
    posterior_min : float
        The likeliest class's posterior.
    between : mapping of str to (float, float)
        By class, a low and a high posterior: in the open interval between them, the score names none. For
        costs that differ: ``{"spam": (0.2, 0.99)}`` delivers below, puts aside above, and asks in between.

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
        """Raises ``ValueError`` for a bound that no score could be held to."""
        if not 0 <= self.learned_min < float("inf") or self.known_tokens_min < 0:
            raise ValueError("`learned_min` and `known_tokens_min` must not be below 0")
        if not 0 <= self.posterior_min <= 1:
            raise ValueError("`posterior_min` must be from 0 to 1")
        for name, (low, high) in self.between.items():
            if not 0 <= low < high <= 1:
                raise ValueError(f"`between`: of {name!r}, 0 <= low < high <= 1 must hold")

    def reasons(self, scores: Scores) -> NDArray[np.int64] | None:
        """Of each row its place in `REASONS`, or `PREDICTED`; of several reasons the first.

        Returns
        -------
        ndarray of int64, shape (n,), or None
            ``None`` where the rule is off.
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
