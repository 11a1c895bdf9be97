"""River's face: estimators that stand where river's stand, in its pipelines and metrics.

River's base class declares that any keyword may follow `x`; these methods take none, so that a misspelt one
is an error. That is what the checker is told to let pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from river import base
from river.base import tags

from streamnb.columns import Label
from streamnb.event_models import Multinomial
from streamnb.explanation import Explanation
from streamnb.naive_bayes import NaiveBayes
from streamnb.smoothing import Laplace, LearnedPrior, NoSmoothing, Prior, Smoothing
from streamnb.tokens import Terms, Tokenizer
from streamnb.view import View

_FIELD = "x"
_TOKENIZER = Tokenizer(rule="words")


class MultinomialNB(base.Classifier):
    r"""Multinomial naive Bayes over term counts, or over a text.

    Parameters
    ----------
    alpha : float
        Pseudo-count of each token: 1 is Laplace's, below 1 Lidstone's, 0 is maximum likelihood.
    smoothing : Smoothing, optional
        In place of `alpha`.
    prior : Prior, optional
        By default the stream's own shares.
    weight : {"counts", "boolean", "log"}
        What a token that stands m times counts: m, 1 or ``ln(1 + m)``.
    unknown : {"smooth", "skip"}
        Whether a token that no class has taught takes part. Smoothed, as river does, it votes for the class
        with fewer tokens; skipped, it is silent.

    Raises
    ------
    ValueError
        `alpha` is negative, infinite or not a number.

    Notes
    -----
    A text is read by the rule ``\w\w+`` on lower case, the peers' own. Before anything was learned the
    prediction is ``None`` and the posterior empty, as river has it.

    References
    ----------
    McCallum and Nigam 1998, A comparison of event models for naive Bayes text classification.

    Examples
    --------
    >>> model = MultinomialNB(alpha=1.0)
    >>> for text, place in [
    ...     ("Chinese Beijing Chinese", "yes"),
    ...     ("Chinese Chinese Shanghai", "yes"),
    ...     ("Chinese Macao", "yes"),
    ...     ("Tokyo Japan Chinese", "no"),
    ... ]:
    ...     model.learn_one(text, place)
    >>> posterior = model.predict_proba_one("Chinese Chinese Chinese Tokyo Japan")
    >>> round(posterior["yes"], 4)
    0.6898
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        smoothing: Smoothing | None = None,
        prior: Prior | None = None,
        weight: Literal["counts", "boolean", "log"] = "counts",
        unknown: Literal["smooth", "skip"] = "smooth",
    ) -> None:
        self.alpha = alpha
        self.smoothing = smoothing
        self.prior = prior
        self.weight = weight
        self.unknown = unknown
        if smoothing is None:
            smoothing = NoSmoothing() if alpha == 0 else Laplace(alpha)
        event_model = Multinomial(smoothing, weight, unknown)
        self._model = NaiveBayes(
            [View("terms", Terms(_FIELD), event_model)], prior=prior or LearnedPrior(), head="product"
        )

    @property
    def _multiclass(self) -> bool:
        return True

    def _more_tags(self) -> set[str]:
        return {tags.POSITIVE_INPUT}

    def learn_one(self, x: Mapping[str, float] | str, y: Label | None, weight: float = 1.0) -> None:  # type: ignore[override]
        """Learn one message; a label of ``None`` is not learned.

        Raises
        ------
        ValueError
            A count is negative, infinite or not a number, or the label cannot be one; nothing was learned.
        """
        self._model.learn_one({_FIELD: _counts(x)}, y, weight)

    def predict_proba_one(self, x: Mapping[str, float] | str) -> dict[Label, float]:  # type: ignore[override]
        """The posterior by class; empty before anything was learned."""
        return self._model.predict_proba_one({_FIELD: _counts(x)})

    def predict_one(self, x: Mapping[str, float] | str) -> Label | None:  # type: ignore[override]
        """The likeliest class; of equals the smallest. ``None`` before anything was learned."""
        return self._model.predict_one({_FIELD: _counts(x)})

    def joint_log_likelihood(self, x: Mapping[str, float] | str) -> dict[Label, float]:
        """``log P(c) + log P(x | c)`` by class; all minus infinity is maximum likelihood's 0/0."""
        return self._model.joint_log_likelihood({_FIELD: _counts(x)})

    def explain_one(self, x: Mapping[str, float] | str) -> Explanation | None:
        """What makes the difference between the two likeliest classes, token by token."""
        return self._model.explain_one({_FIELD: _counts(x)})

    @property
    def class_counts(self) -> dict[Label, float]:
        """Weight of the messages learned, by class."""
        return dict(zip(self._model.classes, self._model.class_counts, strict=True))

    def p_class(self, c: Label) -> float:
        """The share of class c among the messages learned; 0 before any."""
        counts = self.class_counts
        total = sum(counts.values())
        return counts.get(c, 0.0) / total if total else 0.0


def _counts(x: Mapping[str, float] | str) -> Mapping[str, float]:
    if not isinstance(x, str):
        return x
    counts: dict[str, float] = {}
    for token in _TOKENIZER.read(x).tokens:
        counts[token] = counts.get(token, 0.0) + 1.0
    return counts
