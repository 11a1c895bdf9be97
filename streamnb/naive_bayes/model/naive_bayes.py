"""Naive Bayes: ``P(y) * prod_i P(x_i | y)`` over any number of views, learned message by message.

`NaiveBayes.step` does everything: for each message in turn it scores, then learns. Scoring only, learning
only, one message and many are the same loop. Scoring changes nothing. A batch with an unreadable message
changes nothing either, because all messages are read before one is learned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from streamnb.base import Batch, Label, ScoreRows, Scores, checked_labels, likeliest
from streamnb.naive_bayes.model import linear, merging, sampling
from streamnb.naive_bayes.model.message_features import read_message
from streamnb.naive_bayes.model.scoring import columns_of
from streamnb.naive_bayes.model.step import PlainStep
from streamnb.naive_bayes.statistics.forgetting import seconds


class NaiveBayes(PlainStep):
    """An online naive Bayes over one or more views of a message.

    Parameters
    ----------
    views : sequence of View, optional
        By default `streamnb.EVERY_FIELD`: the words of the field ``text``; of all other fields numbers as
        normals, truth values as flags and strings as categories. For text alone use `streamnb.TEXT_ONLY`,
        whose posterior is calibrated.
    prior : Prior, optional
        The product head's class prior; by default the classes' shares of the messages learned.
    head : {"calibrated", "product"}, optional
        By default calibrated if views are given and some of them read text as draws of words; else product.
    classes : sequence of Label
        Classes declared before anything is learned; others may appear at any time.
    classes_max : int
        How many classes there may be; the label of a further one is not learned, and its score is flagged.
    max_tokens : int, optional
        How many tokens the counts may hold. A token takes about 45 bytes with two classes, and 25 more after
        the first `freeze`. At the cap the rarest sixteenth is evicted. By default there is no cap.
    tokenizer : Tokenizer, optional
    raw : bool
        Whether scores carry the product posterior over the same counts beside their own.
    explain : int
        How many tokens the explanation of each score lists; 0 for no explanation. Models that explain run on
        the plain driver.
    half_life_s, half_life_messages : float, optional
        The time, or the number of messages learned, after which a message weighs half; one of the two. By
        default nothing is forgotten.
    time_skew_max_s : float
        With `half_life_s`: a message counts as at most this much newer than the newest of its partition.
    compiled : bool, optional
        Whether the compiled driver runs the model; by default it does if it was built and knows all views.

    Raises
    ------
    ValueError
        The views' names are not unique, or the views do not fit the head.

    Examples
    --------
    >>> model = NaiveBayes()
    >>> for text, label in [("win money now", "spam"), ("lunch at noon", "ham"), ("win a prize", "spam")]:
    ...     model.learn_one({"text": text}, label)
    >>> model.predict_one({"text": "money"})
    'spam'
    >>> model.predict_one({"text": "lunch"})
    'ham'
    """

    # ---- one step for everything

    def step(self, batch: Batch, *, score: bool = True, learn: bool = True) -> Scores:
        """Score each message, then learn it if it has a label, in order.

        Parameters
        ----------
        batch : Batch
        score, learn : bool
            Masks: without `score` the rows of the result are empty, without `learn` labels are ignored.

        Returns
        -------
        Scores
            Row i is computed from the state before message i's label was learned.

        Raises
        ------
        ValueError
            A field, label or weight cannot be used; nothing of the batch was learned.
        """
        with self.lock:
            if self._driver is not None and not self.explain:
                return self._driver.step(self, batch, score, learn)
            return self._step(batch, score=score, learn=learn)

    def _one(
        self, x: Mapping[str, object], label: Label | None, weight: float, at: float | None, *, score: bool
    ) -> dict[Label, float]:
        """Step one message on either driver, and return its posterior without building `Scores`."""
        fields = columns_of(x)
        with self.lock:
            if self._driver is not None:
                return self._driver.one(self, fields, label, weight, at, score)
            if self.decay is not None:
                times = None if at is None else [at]
                scores = self._step(Batch(fields, [label], [weight], times), score=score, learn=not score)
                return dict(zip(scores.classes, scores.posterior[0].tolist(), strict=True)) if score else {}
            (label,), _ = checked_labels(Batch(fields, [label], [weight]), self.classes)
            rows = ScoreRows()
            self._message(
                rows, read_message(self.views, self.tokenizer, fields, 0), label, weight, score=score
            )
            return dict(zip(self.classes, rows.last_posterior, strict=True)) if score else {}

    # ---- river's methods

    def learn_one(
        self, x: Mapping[str, object], y: Label | None, weight: float = 1.0, at: float | None = None
    ) -> None:
        """Learn one message, a mapping of field names to values; ``None`` is no label and is not learned.

        A model with `half_life_s` needs `at`, the time of the message in seconds since 1970. A message scored
        without a time counts as new as the newest one learned.
        """
        self._one(x, y, weight, at, score=False)

    def predict_proba_one(self, x: Mapping[str, object], at: float | None = None) -> dict[Label, float]:
        """Return the posterior per class; empty before any class was learned or declared."""
        return self._one(x, None, 1.0, at, score=True)

    def predict_one(self, x: Mapping[str, object], at: float | None = None) -> Label | None:
        """Return the likeliest class, ties going to the smallest; ``None`` before any class was learned or
        declared.
        """
        return likeliest(self.predict_proba_one(x, at))

    def score_one(self, x: Mapping[str, object], at: float | None = None) -> Scores:
        """Return the scores of one message; nothing is learned."""
        return self.step(Batch(columns_of(x), [None], times=None if at is None else [at]), learn=False)

    def joint_log_likelihood(self, x: Mapping[str, object]) -> dict[Label, float]:
        """Return ``log P(c) + log P(x | c)`` of the product head, for each class labelled so far."""
        with self.lock:
            active = self.active()
            if not active:
                return {}
            u = self.log_joint(self.read_now(x), active)
            return {self.classes[c]: value for c, value in zip(active, u, strict=True)}

    def log_odds_one(self, x: Mapping[str, object]) -> dict[Label, float]:
        """Return ``log p - log(1 - p)`` per class, finite where p rounds to 1; infinite for an only class."""
        scores = self.score_one(x)
        return dict(zip(scores.classes, scores.log_odds[0].tolist(), strict=True))

    def predict_log_proba_one(self, x: Mapping[str, object]) -> dict[Label, float]:
        """Return the natural logarithm of the posterior, finite where the posterior rounds to 0."""
        return {label: _log_sigmoid(odds) for label, odds in self.log_odds_one(x).items()}

    # ---- models as sums

    def unlearn_one(
        self, x: Mapping[str, object], y: Label, weight: float = 1.0, at: float | None = None
    ) -> None:
        """Unlearn a message that was learned with that label and weight.

        Counts, moments and length sums are subtracted; what the calibrated head learned stays. After an
        eviction a count may be too small: it stops at 0, and `fell_short` counts the token.

        Parameters
        ----------
        x : mapping of str to object
        y : Label
        weight : float
        at : float, optional
            For a model that forgets, when the message was learned: in seconds since 1970 with `half_life_s`,
            or as the number of messages learned before it. By default it was the newest. Other models ignore
            it.

        Raises
        ------
        ValueError
            The message was not learned that often; nothing was changed.

        Examples
        --------
        >>> from streamnb import TEXT_ONLY
        >>> model = NaiveBayes(TEXT_ONLY, half_life_messages=1000)
        >>> for text, label in [("win money", "spam"), ("lunch", "ham"), ("win", "spam")]:
        ...     model.learn_one({"text": text}, label)
        >>> model.unlearn_one({"text": "win money"}, "spam", at=0)
        >>> model.unlearn_one({"text": "win"}, "spam")
        >>> sorted(model.counts["words"].rows)
        ['lunch']
        """
        with self.lock:
            batch = Batch(columns_of(x), [y], [weight])
            (label,), _ = checked_labels(batch, self.classes)
            if label is None:
                raise ValueError("a message without a label was never learned")
            message = read_message(self.views, self.tokenizer, batch.fields, 0)
            merging.unlearn(self, message, label, weight, None if at is None else seconds(at))

    def merge(self, other: NaiveBayes) -> None:
        """Add what another model has learned, as if both streams had been learned by one.

        Counts and totals are then equal to the bit, moments up to rounding. The head's weights become the
        mean of both, weighted by the labels learned.

        Raises
        ------
        ValueError
            The other model has other views or settings, which are named; nothing was changed.
        """
        merging.merge(self, other)

    def subtract(self, other: NaiveBayes) -> None:
        """Subtract what another model has learned and this one too: the inverse of `merge`.

        Raises
        ------
        ValueError
            The other model has other views or settings, or has learned more than this one; nothing was
            changed.
        """
        merging.subtract(self, other)

    # ---- the model as a distribution

    def sample(self, n: int, seed: int = 0) -> Iterator[tuple[dict[str, object], Label]]:
        """Draw labelled messages: first a class, then the features of each view given the class.

        The number of words of a multinomial's message is Poisson, with the mean length of its class. A
        Bernoulli view draws every word of the vocabulary. A field that was missing in some messages is drawn
        in all.

        Parameters
        ----------
        n : int
        seed : int

        Yields
        ------
        (dict of str to value, Label)

        Raises
        ------
        ValueError
            Nothing was learned, or a view reads features that cannot be written as text (pairs, characters).

        Examples
        --------
        >>> model = NaiveBayes()
        >>> model.learn_one({"text": "win win win", "amount": 9.0}, "spam")
        >>> model.learn_one({"text": "lunch at noon", "amount": 5.0}, "ham")
        >>> messages = list(model.sample(100, seed=1))
        >>> {label for x, label in messages} == {"ham", "spam"}
        True
        """
        with self.lock:
            return iter(list(sampling.sample(self._at_rest(), n, seed)))

    def linear_weights(
        self, classes: tuple[Label, Label] | None = None
    ) -> tuple[float, dict[tuple[str, str], float]]:
        """Return the linear boundary between two classes: ``u_a - u_b = intercept + sum_i w_i x_i``.

        Parameters
        ----------
        classes : (Label, Label), optional
            For and against; by default the only two, in order.

        Returns
        -------
        (float, dict of (view, feature) to float)
            Intercept and weights. `x_i` is a token's weight in the message, 1 for a flag or category value
            that holds, or the number. The form is exact for messages whose tokens are known and numbers
            present.

        Raises
        ------
        ValueError
            The boundary is not linear (a variance per class, `robust`, the calibrated head), or `classes`
            does not name two labelled classes.
        """
        with self.lock:
            return linear.linear_weights(self._at_rest(), classes)

    def n_parameters(self, *, naive: bool = True) -> int:
        """Return how many numbers the model estimates, or would estimate without the naive assumption.

        Parameters
        ----------
        naive : bool
            If false, each class has a probability for every combination of features: ``2^V - 1`` for V words
            that are present or absent, the product of the fields' values minus 1, a full covariance.

        Raises
        ------
        ValueError
            There is no such number: the messages of a multinomial may have any length.
        """
        with self.lock:
            return linear.n_parameters(self, naive=naive)


def _log_sigmoid(odds: float) -> float:
    """Return ``log p`` given ``log p - log(1 - p)``."""
    if odds == -math.inf:
        return -math.inf
    return -math.log1p(math.exp(-odds)) if odds > 0 else odds - math.log1p(math.exp(odds))
