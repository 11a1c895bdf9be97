"""Naive Bayes: ``P(y) * prod_i P(x_i | y)`` over any number of views, learned message by message.

`NaiveBayes.step` is the one driver: for each message in turn it scores, then learns. Scoring only, learning
only, one message and many are the same loop. Scoring changes nothing, and a batch that cannot be read
changes nothing: everything is read before anything is learned.
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
        By default every field by what it holds (`streamnb.EVERY_FIELD`): the words of the field
        ``text``, and of all others numbers as normals, truth values as flags, strings as categories. For text
        alone ``streamnb.TEXT_ONLY`` is calibrated.
    prior : Prior, optional
        The product head's class prior; by default the stream's own shares.
    head : {"calibrated", "product"}, optional
        By default calibrated if views are given and some of them read text as draws of words; else product.
    classes : sequence of Label
        Classes declared before anything is learned; others may appear at any time.
    classes_max : int
        A label that would be one class more is refused and flagged.
    max_tokens : int, optional
        How many tokens the counts may hold, about 45 bytes each with two classes, and 25 more once they
        were frozen; at the cap the rarest sixteenth is let go. By default there is no cap.
    tokenizer : Tokenizer, optional
    raw : bool
        Whether scores carry the product posterior over the same counts beside their own.
    explain : int
        How many tokens each score of `step` is explained by; 0 for no explanation. Explaining every score
        is the plain driver's work.
    half_life_s, half_life_messages : float, optional
        The time, or the number of messages learned, after which a message weighs half; one of the two. By
        default nothing is forgotten.
    time_skew_max_s : float
        With `half_life_s`: a message counts as made at most so long after the newest of its partition.
    compiled : bool, optional
        Whether the compiled twins drive the model; by default where they were built and know its views.

    Raises
    ------
    ValueError
        The views cannot be told apart or do not suit the head.

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

    # ---- the driver

    def step(self, batch: Batch, *, score: bool = True, learn: bool = True) -> Scores:
        """Score each message, then learn it if it has a label, in order.

        Parameters
        ----------
        batch : Batch
        score, learn : bool
            Masks: with `score` off the rows of the result say nothing, with `learn` off labels are ignored.

        Returns
        -------
        Scores
            Row i from the state before message i's label.

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
        """`step` of one message, by either driver, and its posterior alone: no columns are made of it."""
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

    # ---- river's face

    def learn_one(
        self, x: Mapping[str, object], y: Label | None, weight: float = 1.0, at: float | None = None
    ) -> None:
        """Learn one message, a mapping of field names to values; ``None`` is no label and is not learned.

        A model with `half_life_s` must be told when the message was made: `at`, in seconds since 1970. What
        is scored without a time is as new as the newest learned.
        """
        self._one(x, y, weight, at, score=False)

    def predict_proba_one(self, x: Mapping[str, object], at: float | None = None) -> dict[Label, float]:
        """The posterior by class; empty before anything was learned or declared."""
        return self._one(x, None, 1.0, at, score=True)

    def predict_one(self, x: Mapping[str, object], at: float | None = None) -> Label | None:
        """The likeliest class; of equals the smallest. ``None`` before anything was learned or declared."""
        return likeliest(self.predict_proba_one(x, at))

    def score_one(self, x: Mapping[str, object], at: float | None = None) -> Scores:
        """The scores of one message, learning nothing."""
        return self.step(Batch(columns_of(x), [None], times=None if at is None else [at]), learn=False)

    def joint_log_likelihood(self, x: Mapping[str, object]) -> dict[Label, float]:
        """``log P(c) + log P(x | c)`` for each class labelled so far, by the product head."""
        with self.lock:
            active = self.active()
            if not active:
                return {}
            u = self.log_joint(self.read_now(x), active)
            return {self.classes[c]: value for c, value in zip(active, u, strict=True)}

    def log_odds_one(self, x: Mapping[str, object]) -> dict[Label, float]:
        """``log p - log(1 - p)`` by class, finite where p rounds to 1; infinite for an only class."""
        scores = self.score_one(x)
        return dict(zip(scores.classes, scores.log_odds[0].tolist(), strict=True))

    def predict_log_proba_one(self, x: Mapping[str, object]) -> dict[Label, float]:
        """The natural logarithm of the posterior, finite where the posterior rounds to 0."""
        return {label: _log_sigmoid(odds) for label, odds in self.log_odds_one(x).items()}

    # ---- models as sums

    def unlearn_one(
        self, x: Mapping[str, object], y: Label, weight: float = 1.0, at: float | None = None
    ) -> None:
        """Take back a message that was learned with that label and weight.

        Counts, moments and lengths fall; what the calibrated head learned from it stays. Where rare tokens
        were let go, a count stops at 0, and the tokens that fell short are counted in `fell_short`.

        Parameters
        ----------
        x : mapping of str to object
        y : Label
        weight : float
        at : float, optional
            When it was learned, for a model that forgets: in seconds since 1970 with `half_life_s`, else how
            many messages had been learned before it. By default it was the newest. No other
            model looks at it.

        Raises
        ------
        ValueError
            It was not learned that often, or cannot have been; nothing was changed.

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

        Counts and totals are equal to the bit to that, moments to rounding; the head's weights become the
        mean of both, weighted by the labels learned.

        Raises
        ------
        ValueError
            The other reads or counts otherwise, with the difference; nothing was changed.
        """
        merging.merge(self, other)

    def subtract(self, other: NaiveBayes) -> None:
        """Take away what another model has learned and this one too: `merge`, backwards.

        Raises
        ------
        ValueError
            The other reads or counts otherwise, or has learned what this one has not; nothing was changed.
        """
        merging.subtract(self, other)

    # ---- what the model believes

    def sample(self, n: int, seed: int = 0) -> Iterator[tuple[dict[str, object], Label]]:
        """Draw labelled messages: flip the coin of the classes, then tell each view's story.

        A multinomial's message has as many words as a Poisson of its class's mean length says; Bernoulli
        flips a coin for every word of the vocabulary. A field that the model has seen missing is drawn as
        there.

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
            Nothing was learned, or no text can be made of what a view reads (word pairs, character runs).

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
        """The straight boundary between two classes: ``u_a - u_b = intercept + sum_i w_i x_i``.

        Parameters
        ----------
        classes : (Label, Label), optional
            For and against; by default the only two, in order.

        Returns
        -------
        (float, dict of (view, feature) to float)
            `x_i` is the weight of a token in the message, 1 for a flag or category that is so, or the number.
            It is the model for messages of known tokens that lack no number.

        Raises
        ------
        ValueError
            The boundary is not straight (a variance per class, `robust`, the calibrated head), or two
            labelled classes are not named.
        """
        with self.lock:
            return linear.linear_weights(self._at_rest(), classes)

    def n_parameters(self, *, naive: bool = True) -> int:
        """How many numbers the model estimates, or would without the naive assumption.

        Parameters
        ----------
        naive : bool
            Off, a class has a probability for every combination of its features: ``2^V - 1`` of V words that
            are there or not, the product of the fields' values less 1, a full covariance.

        Raises
        ------
        ValueError
            There is no such number: a multinomial's messages may be of any length.
        """
        with self.lock:
            return linear.n_parameters(self, naive=naive)


def _log_sigmoid(odds: float) -> float:
    """``log p`` of ``log p - log(1 - p)``."""
    if odds == -math.inf:
        return -math.inf
    return -math.log1p(math.exp(-odds)) if odds > 0 else odds - math.log1p(math.exp(odds))
