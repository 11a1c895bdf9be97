"""Estimators of words: multinomial, complement and Bernoulli naive Bayes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, cast

import msgspec
from river.base import tags

from streamnb.base import Label
from streamnb.naive_bayes.estimators.estimator import FIELD, Estimator, counts_of
from streamnb.naive_bayes.estimators.frames import Row
from streamnb.naive_bayes.event_models import Bernoulli, Multinomial
from streamnb.naive_bayes.event_models.priors import FallbackPrior, Prior
from streamnb.naive_bayes.event_models.smoothing import (
    Beta,
    Laplace,
    NoSmoothing,
    TokenSmoothing,
)
from streamnb.naive_bayes.features.readers import Terms
from streamnb.naive_bayes.model.view import View
from streamnb.naive_bayes.statistics.view_counts import Counted

_VIEW = "terms"


class FeatureCounts(Mapping[str, Counter[Label]]):
    """A mapping of word to counts per class, as river's `feature_counts`; an unknown word has no counts.

    It reads the model's own rows; a row is copied when it is looked up.
    """

    def __init__(self, counts: Counted, classes: list[Label]) -> None:
        self._rows = counts.rows
        self._classes = classes

    def __getitem__(self, word: object) -> Counter[Label]:
        row = self._rows.get(str(word), ())
        return Counter({label: n for label, n in zip(self._classes, row, strict=False) if n})

    def __contains__(self, word: object) -> bool:
        return str(word) in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return repr(dict(self.items()))


class _WordsNB(Estimator):
    """The base class of the estimators of words."""

    _zeros = False

    def _fields(self, x: Row) -> Mapping[str, object]:
        return {FIELD: counts_of(x)}

    def _word_view(
        self,
        vocabulary: int | Sequence[str] | None,
        above: float | None,
        event_model: Multinomial | Bernoulli,
    ) -> View:
        """Return the view of the words, under a vocabulary of a given size, or of given words."""
        if vocabulary is None or isinstance(vocabulary, int):
            event_model = msgspec.structs.replace(event_model, vocabulary_min=vocabulary or 0)
            return View(_VIEW, Terms(FIELD, above), event_model)
        return View(_VIEW, Terms(FIELD, above, frozenset(vocabulary)), event_model)

    @property
    def _event_model(self) -> Multinomial | Bernoulli:
        return cast("Multinomial | Bernoulli", self.state.views[0].event_model)

    @property
    def _counts(self) -> Counted:
        return self.state.counts[_VIEW]

    @property
    def feature_counts(self) -> FeatureCounts:
        """The counts: word to class to count."""
        return FeatureCounts(self._counts, self.state.classes)

    @property
    def class_totals(self) -> Counter[Label]:
        """The sum of all counts per class."""
        return Counter(dict(zip(self.state.classes, self._counts.totals, strict=True)))

    @property
    def feature_totals(self) -> Counter[str]:
        """The count of each word in all classes together."""
        return Counter({word: sum(row) for word, row in self._counts.rows.items()})

    @property
    def n_terms(self) -> int:
        """The number of words in the vocabulary: those learned, or of the one given if that is larger."""
        return self._event_model.vocabulary(self._counts.rows)

    def _row(self, word: object, c: Label) -> tuple[float, float, int]:
        """Return a word's count in class c, its count in all classes, and the index of c (-1: no class)."""
        row = self._counts.rows.get(str(word), ())
        i = self.state.index.get(c, -1)
        return (row[i] if row and i >= 0 else 0.0), sum(row), i


class _DrawsNB(_WordsNB):
    """The base class of the multinomial and the complement estimator."""

    norm: bool = False
    _complement = False

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        smoothing: TokenSmoothing | None = None,
        prior: Prior | None = None,
        weight: Literal["counts", "boolean", "log"] = "counts",
        unknown: Literal["smooth", "skip"] = "smooth",
        vocabulary: int | Sequence[str] | None = None,
        classes_max: int | None = None,
        max_tokens: int | None = None,
        half_life_s: float | None = None,
        half_life_messages: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.smoothing = smoothing
        self.prior = prior
        self.classes_max = classes_max
        self.max_tokens = max_tokens
        self.half_life_s = half_life_s
        self.half_life_messages = half_life_messages
        self.weight = weight
        self.unknown = unknown
        self.vocabulary = vocabulary
        pseudo = smoothing or (NoSmoothing() if alpha == 0 else Laplace(alpha))
        made = Multinomial(pseudo, weight, unknown, self._complement, self.norm)
        self.state = self._built(self._word_view(vocabulary, None, made))

    def _more_tags(self) -> set[str]:
        return {tags.POSITIVE_INPUT}

    def _drawn(self, word: object, c: Label) -> tuple[float, float, float]:
        """Return the count of a word in class c, its count in all classes, and the total count of c."""
        n_fc, n_f, i = self._row(word, c)
        return n_fc, n_f, (self._counts.totals[i] if i >= 0 else 0.0)

    def _share(self, word: object, count: float, n_f: float, total: float) -> float:
        """Return a smoothed share; 0 where that is 0/0."""
        model = cast("Multinomial", self._event_model)
        count += model.pseudo_count(str(word), n_f, sum(self._counts.totals), self.n_terms)
        total += model.smoothing.pseudo_total(self.n_terms)
        return count / total if total else 0.0


class MultinomialNB(_DrawsNB):
    r"""Multinomial naive Bayes over term counts, or over a text.

    Parameters
    ----------
    alpha : float
        Pseudo-count of each token: 1 is Laplace's, below 1 Lidstone's, 0 is maximum likelihood.
    smoothing : NoSmoothing, Laplace, LaplacePerToken or Dirichlet, optional
        In place of `alpha`; `LaplacePerToken` has a pseudo-count of its own for each token.
    prior : Prior, optional
        By default the stream's own shares.
    weight : {"counts", "boolean", "log"}
        The weight of a token that occurs m times in a message: m, 1 or ``ln(1 + m)``.
    unknown : {"smooth", "skip"}
        Whether a token that no class has learned takes part. Smoothed, as in river, it favours the class with
        fewer tokens; skipped, it has no influence.
    vocabulary : int or sequence of str, optional
        The dictionary, if it is known beforehand: its size, or its words. Words that are not in the list are
        left out. By default it is the words learned so far.
    classes_max, max_tokens, half_life_s, half_life_messages
        As for `NaiveBayes`.

    Raises
    ------
    ValueError
        `alpha` is negative, infinite or not a number.

    Notes
    -----
    A text is tokenized by ``\w\w+`` on lower case, as in river and scikit-learn, whatever its length. Before
    anything was learned the prediction is ``None`` and the posterior is empty, as in river.

    References
    ----------
    McCallum and Nigam 1998, A comparison of event models for naive Bayes text classification.

    Examples
    --------
    The China example (Manning, Raghavan and Schütze 2008, chapter 13).

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

    def p_feature_given_class(self, f: object, c: Label) -> float:
        """Return ``(n_fc + alpha) / (N_c + alpha |V|)``; 0 where that is 0/0."""
        n_fc, n_f, n_c = self._drawn(f, c)
        return self._share(f, n_fc, n_f, n_c)


class ComplementNB(_DrawsNB):
    """Complement naive Bayes: a class scores high if all other classes together explain the message badly.

    The other classes have more words than the class itself, which helps classes with few messages
    (Rennie, Shih, Teevan and Karger 2003, Tackling the poor assumptions of naive Bayes text classifiers).

    Parameters
    ----------
    alpha : float
        Pseudo-count of each token; 0 is maximum likelihood.
    smoothing : NoSmoothing, Laplace, LaplacePerToken or Dirichlet, optional
        In place of `alpha`; `LaplacePerToken` has a pseudo-count of its own for each token.
    prior : Prior, optional
        By default the class prior is used only for a message without known words, as in river and
        scikit-learn. ``LearnedPrior()`` is the rule of the paper.
    weight, unknown, vocabulary
        As for `MultinomialNB`.
    norm : bool
        Whether each class's weights are divided by their sum over the vocabulary, as in the paper; by default
        they are not, as in river and scikit-learn. Every score then walks the vocabulary.
    classes_max, max_tokens, half_life_s, half_life_messages
        As for `NaiveBayes`.

    Raises
    ------
    ValueError
        `alpha` is negative, infinite or not a number.

    Examples
    --------
    >>> model = ComplementNB()
    >>> for text, place in [("Chinese Beijing", "yes"), ("Chinese Macao", "yes"), ("Tokyo Chinese", "no")]:
    ...     model.learn_one(text, place)
    >>> model.predict_one("Tokyo")
    'no'
    >>> model.predict_proba_one("")["yes"]  # no words: the classes' shares
    0.6666666666666666
    """

    _complement = True
    _by_default: Prior = FallbackPrior()

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        smoothing: TokenSmoothing | None = None,
        prior: Prior | None = None,
        weight: Literal["counts", "boolean", "log"] = "counts",
        unknown: Literal["smooth", "skip"] = "smooth",
        vocabulary: int | Sequence[str] | None = None,
        norm: bool = False,
        classes_max: int | None = None,
        max_tokens: int | None = None,
        half_life_s: float | None = None,
        half_life_messages: float | None = None,
    ) -> None:
        self.norm = norm
        super().__init__(
            alpha,
            smoothing=smoothing,
            prior=prior,
            weight=weight,
            unknown=unknown,
            vocabulary=vocabulary,
            classes_max=classes_max,
            max_tokens=max_tokens,
            half_life_s=half_life_s,
            half_life_messages=half_life_messages,
        )

    def p_feature_given_class(self, f: object, c: Label) -> float:
        """Return ``(n_f - n_fc + alpha) / (N - N_c + alpha |V|)``: word f's share of all other classes."""
        n_fc, n_f, n_c = self._drawn(f, c)
        return self._share(f, n_f - n_fc, n_f, sum(self._counts.totals) - n_c)


class BernoulliNB(_WordsNB):
    """Bernoulli naive Bayes: each word of the vocabulary is present or absent, and absent words count.

    Parameters
    ----------
    alpha : float
        Pseudo-messages with the word, and as many without; 0 is maximum likelihood.
    true_threshold : float
        A word is present if its value, a number or truth value, is above this; ``None`` and NaN are not.
    smoothing : Beta, optional
        In place of `alpha`.
    prior : Prior, optional
        By default the stream's own shares.
    unknown : {"skip", "smooth"}
        Whether a present word that no class has learned takes part. River skips it.
    vocabulary : int or sequence of str, optional
        The dictionary, if it is known beforehand: its size, or its words. Each of its words is present or
        absent in every message; words that are not in the list are left out. By default it is the words
        learned so far.
    classes_max, max_tokens, half_life_s, half_life_messages
        As for `NaiveBayes`.

    Raises
    ------
    ValueError
        `alpha` is negative, infinite or not a number, or the threshold is.

    Notes
    -----
    A word counts as absent from all messages before the first one with it. Scoring does not walk the
    vocabulary: the sum over absent words is cached per class until the class learns again.

    References
    ----------
    McCallum and Nigam 1998, A comparison of event models for naive Bayes text classification.

    Examples
    --------
    Scots and English (Barber): who likes shortbread, lager, whiskey, porridge, and watched England play?

    >>> likes = ["shortbread", "lager", "whiskey", "porridge", "football"]
    >>> english = ["".join(person) for person in zip("011100", "001110", "110000", "110001", "101010")]
    >>> scots = ["".join(person) for person in zip("1111111", "0111100", "0010011", "1011101", "1100100")]
    >>> def answers(person):
    ...     return {like: int(answer) for like, answer in zip(likes, person)}
    >>> model = BernoulliNB(alpha=0)
    >>> for people, nation in ((english, "English"), (scots, "Scottish")):
    ...     for person in people:
    ...         model.learn_one(answers(person), nation)
    >>> round(model.predict_proba_one(answers("10110"))["Scottish"], 4)
    0.8076

    No Scot in the data dislikes shortbread, so maximum likelihood gives it probability 0. A pseudo-count on
    both outcomes fixes that.

    >>> model.predict_proba_one(answers("01111"))["Scottish"]
    0.0
    >>> smoothed = BernoulliNB(alpha=1)
    >>> smoothed.merge(model)
    >>> 0.1 < smoothed.predict_proba_one(answers("01111"))["Scottish"] < 0.3
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        true_threshold: float = 0.0,
        *,
        smoothing: Beta | None = None,
        prior: Prior | None = None,
        unknown: Literal["skip", "smooth"] = "skip",
        vocabulary: int | Sequence[str] | None = None,
        classes_max: int | None = None,
        max_tokens: int | None = None,
        half_life_s: float | None = None,
        half_life_messages: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.true_threshold = true_threshold
        self.smoothing = smoothing
        self.prior = prior
        self.classes_max = classes_max
        self.max_tokens = max_tokens
        self.half_life_s = half_life_s
        self.half_life_messages = half_life_messages
        self.unknown = unknown
        if not math.isfinite(true_threshold):
            raise ValueError(f"`true_threshold` must be finite, not {true_threshold!r}")
        if not 0 <= alpha < math.inf:
            raise ValueError(f"`alpha` must be 0 or above and finite, not {alpha!r}")
        self._zeros = true_threshold < 0
        self.vocabulary = vocabulary
        self._coin = Beta(alpha, alpha) if smoothing is None else smoothing
        self.state = self._built(self._word_view(vocabulary, true_threshold, Bernoulli(self._coin, unknown)))

    def p_feature_given_class(self, f: object, c: Label) -> float:
        """Return ``(n_fc + a) / (n_c + a + b)``; 0 where that is 0/0."""
        n_fc, _, i = self._row(f, c)
        n_c = self.state.class_counts[i] if i >= 0 else 0.0
        total = n_c + self._coin.a + self._coin.b
        return (n_fc + self._coin.a) / total if total else 0.0
