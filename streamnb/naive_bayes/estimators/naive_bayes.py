"""Naive Bayes: ``P(y) * prod_i P(x_i | y)`` over any number of views, learned message by message.

The file is long because all methods of the one public class, with their documentation, are in it; each only
calls a function of `streamnb.naive_bayes.model`.

`NaiveBayes.step` does everything: for each message in turn it scores, then learns. Scoring only, learning
only, one message and many are the same loop. Scoring changes nothing that was learned. Nothing is learned
from a batch with an unreadable message, because all messages are read before one is learned.

River's base class declares that any keyword may follow `x`. These methods take none, so that a misspelt
keyword is an error; the type checker is told to accept the narrower signatures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamnb.base import Batch, FrozenState, Label, Scores, Sections, checked_labels, likeliest
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.estimators import notebook, saving
from streamnb.naive_bayes.estimators.batch_answers import BatchAnswers
from streamnb.naive_bayes.estimators.frames import Row, column_of, labels_of, rows_of
from streamnb.naive_bayes.estimators.parameters import check_parameter
from streamnb.naive_bayes.event_models.priors import Prior
from streamnb.naive_bayes.features.readers import Words
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model import explaining, linear, merging, sampling, state_arrays
from streamnb.naive_bayes.model.drivers import step_batch, step_one
from streamnb.naive_bayes.model.message_features import read_message
from streamnb.naive_bayes.model.scoring import columns_of, log_density, read_now
from streamnb.naive_bayes.model.state import HeadKind, State
from streamnb.naive_bayes.model.step import at_rest
from streamnb.naive_bayes.model.view import EVERY_FIELD, TEXT_ONLY, View
from streamnb.naive_bayes.posterior.explanation import Explanation
from streamnb.naive_bayes.posterior.odds import log_sigmoid
from streamnb.naive_bayes.statistics.forgetting import seconds

_PACKAGE = f"{__package__}."


class NaiveBayes(BatchAnswers):
    """An online naive Bayes over one or more views of a message.

    It is a classifier of river: `learn_one`, `predict_one`, `predict_proba_one`, and `learn_many`,
    `predict_many`, `predict_proba_many` for frames of pandas, polars and pyarrow or lists of messages. `step`
    scores and learns a batch in one pass. `score_one`, `log_odds_one`, `log_odds_many`,
    `predict_log_proba_one`, `predict_log_proba_many`, `joint_log_likelihood` and `joint_log_likelihood_many`
    return more of the posterior, and `explain_one` its reasons. `merge`, `subtract` and `unlearn_one` treat
    the model as sums. `sample`, `linear_weights` and `n_parameters` treat it as a distribution. `save` writes
    it to a file, which `streamnb.load` reads; `freeze`, `restore`, `digest`, `state_settings` and
    `reading_settings` serve the writers of snapshots.

    Every parameter is an attribute of the same name, as it was given. What was learned has other names:
    `classes_`, `class_counts_`, `learned_`, and everything else in `state`. A parameter that the sums do not
    depend on may be set after learning.

    Parameters
    ----------
    views : sequence of View, optional
        By default `streamnb.EVERY_FIELD`: the words of the field ``text``; of all other fields numbers as
        normals, truth values as flags and strings as categories. A warning names a category that is new in
        most of the first 100 messages learned: it is text or an id. For text alone use `streamnb.TEXT_ONLY`,
        whose posterior is calibrated.
    text : str or sequence of str, optional
        Without `views`: the fields whose words are read, as one text, instead of ``text``.
    prior : Prior, optional
        The product head's class prior; by default the classes' shares of the messages learned.
    head : {"calibrated", "product"}, optional
        By default calibrated if views are given and some of them read text as draws of words; else product.
    trust : bool
        Whether the calibrated head also learns one number per token: how far its evidence can be trusted.
        The product head has none.
    classes : sequence of Label
        Classes declared before anything is learned; others may appear at any time.
    classes_max : int, optional
        How many classes there may be; by default there is no limit. `learn_one` and `learn_many` refuse the
        label of a further class, and `step` flags its score.
    max_tokens : int, optional
        How many tokens the counts may hold. At the cap the rarest sixteenth is evicted. By default there is
        no cap.
    bytes_max : int, optional
        How much memory the counts may take, in bytes, with what their snapshot needs meanwhile: at least
        1 MiB. A token of 7 letters is charged 121 bytes with two classes, and 129 with more than eight if one
        of them has taught it; 20 more if the head learns trust. At the limit the rarest sixteenth is evicted.
        By default there is no limit. The plain model charges the same bytes, but takes more.
    tokenizer : Tokenizer, optional
        By default the rule ``unicode``, at most 65,536 tokens per text and 64 characters per token: the rest
        is not read. The scores of such a message have the flag `TRUNCATED`; `Tokenizer` sets other limits.
    raw : bool
        Whether scores carry the product posterior over the same counts beside their own.
    explain : int
        How many tokens the explanation of each score lists; 0 for no explanation. Models that explain run on
        the plain driver.
    half_life_s, half_life_messages : float, optional
        The time, or the number of messages learned, after which a message weighs half; one of the two. By
        default nothing is forgotten.
    time_skew_max_s : float
        With `half_life_s`: a message counts as at most this much newer than the newest of its partition. One
        that is newer still becomes the newest only after others confirm it.
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
    >>> model = NaiveBayes(text=["subject", "body"])
    >>> model.learn_one({"subject": "You won", "body": "claim your prize", "country": "no"}, "spam")
    >>> model.learn_one({"subject": "Lunch", "body": "at noon", "country": "no"}, "ham")
    >>> model.predict_one({"subject": "a prize"})
    'spam'

    EasySell: how many of a hundred young and a hundred old hear each of four radio stations. Who hears the
    first, and has not answered for the others? ``.95 / (.95 + .03)``.

    >>> from streamnb import Bernoulli, Beta, Flags, View
    >>> model = NaiveBayes([View("radio", Flags(), Bernoulli(Beta(0, 0)))])
    >>> for age, heard in {"young": (95, 5, 2, 20), "old": (3, 82, 34, 92)}.items():
    ...     for i in range(100):
    ...         model.learn_one({f"station {k}": i < n for k, n in enumerate(heard, 1)}, age)
    >>> round(model.predict_proba_one({"station 1": True, "station 3": None})["young"], 4)
    0.9694
    """

    def __init__(
        self,
        views: Sequence[View] | None = None,
        *,
        text: str | Sequence[str] | None = None,
        prior: Prior | None = None,
        head: HeadKind | None = None,
        trust: bool = True,
        classes: Sequence[Label] | None = None,
        classes_max: int | None = None,
        max_tokens: int | None = None,
        bytes_max: int | None = None,
        tokenizer: Tokenizer | None = None,
        raw: bool = False,
        explain: int = 0,
        half_life_s: float | None = None,
        half_life_messages: float | None = None,
        time_skew_max_s: float = 3600.0,
        compiled: bool | None = None,
    ) -> None:
        self.views = views
        self.text = text
        self.prior = prior
        self.head = head
        self.trust = trust
        self.classes = classes
        self.classes_max = classes_max
        self.max_tokens = max_tokens
        self.bytes_max = bytes_max
        self.tokenizer = tokenizer
        self.raw = raw
        self.explain = explain
        self.half_life_s = half_life_s
        self.half_life_messages = half_life_messages
        self.time_skew_max_s = time_skew_max_s
        self.compiled = compiled
        self.state = State(
            _default_views(text, head) if views is None else _given_views(views, text),
            prior=prior,
            head=head if head is not None or views is not None else "product",
            trust=trust,
            classes=classes or (),
            classes_max=classes_max,
            max_tokens=max_tokens,
            bytes_max=bytes_max,
            tokenizer=tokenizer,
            raw=raw,
            explain=explain,
            half_life_s=half_life_s,
            half_life_messages=half_life_messages,
            time_skew_max_s=time_skew_max_s,
            compiled=compiled,
        )

    @property
    def _multiclass(self) -> bool:
        return True

    def _get_params(self) -> dict[str, Any]:
        """Return the parameters as river's `clone` reads them: it takes a tuple for a nested model."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in super()._get_params().items()
        }

    def __str__(self) -> str:
        return repr(self)

    def __setattr__(self, name: str, value: object) -> None:
        """Set a parameter, also of a model that has learned: its sums stay and are used under the new value.

        Raises
        ------
        ValueError
            The value has another type than the parameter, or the sums depend on it; nothing was changed.
        """
        check_parameter(self._own_class(), name, value)
        if "state" not in self.__dict__ or name not in self.__dict__ or name not in self._get_params():
            super().__setattr__(name, value)
            return
        state, other = self.state, self.clone({name: value})
        with state.lock:  # of the other threads none learns in between
            frozen, fits = self.freeze(), other.state_settings() == self.state_settings()
            try:
                if fits:
                    other.restore(frozen.values, frozen.sections)
            except SnapshotError:
                fits = False
            if not fits:
                raise ValueError(
                    f"`{name}` cannot change after learning, because the sums depend on it; "
                    f"make a new model: clone({{{name!r}: ...}})"
                )
            state.become(other.state)
            self.__dict__.update(other.__dict__ | {"state": state})

    @classmethod
    def _own_class(cls) -> type:
        """Return the class of this package that a subclass extends, whose parameters are known."""
        return next(each for each in cls.__mro__ if each.__module__.startswith(_PACKAGE))

    def __repr__(self) -> str:
        """Return the call that makes such a model, and what this one has learned.

        Only parameters that differ from their defaults are in it.

        Examples
        --------
        >>> model = NaiveBayes(max_tokens=1000)
        >>> model.learn_one({"text": "win money"}, "spam")
        >>> model
        NaiveBayes(max_tokens=1000)  # learned 1 message, 1 class, 2 tokens
        """
        return notebook.text_of(self, self.__dict__.get("state"))

    def _repr_html_(self) -> str:
        """Return classes, views and settings as tables for a notebook."""
        return notebook.html_of(self, self.__dict__.get("state"))

    def _fields(self, x: Row) -> Mapping[str, object]:
        """Return a message as the fields that the views read."""
        if not isinstance(x, Mapping):
            raise ValueError(f"a message must be a mapping of fields to values, not {type(x).__name__}")
        return x

    def _message(self, fields: Mapping[str, object]) -> object:
        """Return fields as a message: the inverse of `_fields`."""
        return fields

    def _columns(self, rows: Sequence[Row]) -> dict[str, list[object]]:
        """Return messages as the columns of a batch."""
        messages = [self._fields(row) for row in rows]
        names = dict.fromkeys(name for message in messages for name in message)
        return {name: [x.get(name) for x in messages] for name in names}

    # ---- what was learned

    @property
    def classes_(self) -> list[Label]:
        """The classes, in order of appearance, declared ones first."""
        return list(self.state.classes)

    @property
    def class_counts_(self) -> dict[Label, float]:
        """The weight of the messages learned, per class; with a half-life, what is left of it by now."""
        state = self.state
        scale = 1.0 if state.decay is None else state.decay.scale(state.decay.now())
        return {label: n / scale for label, n in zip(state.classes, state.class_counts, strict=True)}

    @property
    def learned_(self) -> int:
        """The number of messages learned."""
        return self.state.learned

    # ---- a batch and a message

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
        return step_batch(self.state, batch, score=score, learn=learn)

    def learn_one(  # type: ignore[override]
        self, x: Row, y: Label | None, w: float = 1.0, at: float | None = None
    ) -> None:
        """Learn one message; a label of ``None`` is not learned.

        Parameters
        ----------
        x : mapping of str to object
            Field names to values.
        y : str, int or bool
            All labels of a model have one type. Scalars of numpy and members of enumerations of texts or
            integers are learned as Python's own texts and integers.
        w : float
            The weight, from 1e-9 to 1e9: that many messages. The name is river's.
        at : float, optional
            With `half_life_s`, the time of the message in seconds since 1970. A message scored without a time
            counts as new as the newest one learned.

        Raises
        ------
        ValueError
            A value, the label or the weight cannot be used, or the label would be one class more than
            `classes_max`; nothing was learned.
        """
        step_one(self.state, columns_of(self._fields(x)), y, w, at, score=False)

    def predict_proba_one(self, x: Row, at: float | None = None) -> dict[Label, float]:  # type: ignore[override]
        """Return the posterior per class; empty before any class was learned or declared."""
        return step_one(self.state, columns_of(self._fields(x)), None, 1.0, at, score=True)

    def predict_one(self, x: Row, at: float | None = None) -> Label | None:  # type: ignore[override]
        """Return the likeliest class, ties going to the smallest; ``None`` before any class was learned or
        declared.
        """
        return likeliest(self.predict_proba_one(x, at))

    def score_one(self, x: Row, at: float | None = None) -> Scores:
        """Return the scores of one message; nothing is learned."""
        batch = Batch(columns_of(self._fields(x)), [None], times=None if at is None else [at])
        return self.step(batch, learn=False)

    def joint_log_likelihood(self, x: Row) -> dict[Label, float]:
        """Return ``log P(c) + log P(x | c)`` of the product head, for each class learned so far.

        Of numbers, ``P(x | c)`` is the density, with its constant ``-ln(2 pi)/2`` per number; a text is the
        sequence of its tokens. All minus infinity is the 0/0 of maximum likelihood.

        Examples
        --------
        >>> import math
        >>> from streamnb import Gaussian, Numbers
        >>> model = NaiveBayes([View("n", Numbers(), Gaussian(variance=1.0))])
        >>> for x in (1.0, 3.0):
        ...     model.learn_one({"x": x}, "a")
        >>> round(math.exp(model.joint_log_likelihood({"x": 2.0})["a"]), 6)  # 1 / sqrt(2 pi)
        0.398942
        """
        state = self.state
        with state.lock:
            active = state.active()
            u = log_density(state, read_now(state, self._fields(x)), active) if active else []
            return {state.classes[c]: value for c, value in zip(active, u, strict=True)}

    def log_odds_one(self, x: Row) -> dict[Label, float]:
        """Return ``log p - log(1 - p)`` per class, finite where p rounds to 1; infinite for an only class."""
        scores = self.score_one(x)
        return self.state.without_unlearned(
            dict(zip(scores.classes, scores.log_odds[0].tolist(), strict=True))
        )

    def predict_log_proba_one(self, x: Row) -> dict[Label, float]:
        """Return the natural logarithm of the posterior, finite where the posterior rounds to 0."""
        return {label: log_sigmoid(odds) for label, odds in self.log_odds_one(x).items()}

    def explain_one(
        self, x: Row, classes: tuple[Label, Label] | None = None, top: int | None = None
    ) -> Explanation | None:
        """Return what each token contributes for one class and against another.

        The contributions sum to the logarithm of the ratio of the two posteriors; with the calibrated head,
        to its value before the correction for wrong labels.

        Parameters
        ----------
        x : mapping of str to value
        classes : (Label, Label), optional
            For and against; by default the likeliest and the second likeliest.
        top : int, optional
            How many tokens to list; the rest are summed as ``other tokens``.

        Returns
        -------
        Explanation or None
            ``None`` while fewer than two classes have been learned.

        Raises
        ------
        ValueError
            A class was never learned.
        """
        with self.state.lock:
            found = explaining.explanation(self.state, self._fields(x), classes)
        return found if found is None or top is None else found.top(top)

    # ---- many

    def learn_many(
        self,
        X: object,
        y: object,
        w: float | Iterable[float] = 1.0,
        at: Iterable[float] | None = None,
    ) -> None:
        """Learn a batch completely, or not at all.

        Parameters
        ----------
        X : frame of pandas, polars or pyarrow, or sequence of mappings
            One row per message; a null or NaN cell is a name that the message lacks.
        y : series, array or sequence of labels
            A missing label is not learned. A float is an integer as ``astype(float)`` writes it: 1.0 is 1.
        w : float, or sequence, array or series of float
            The weight of every message, or of each.
        at : sequence, array or series of float, optional
            For a model with `half_life_s`: the time of each message, in seconds since 1970.

        Raises
        ------
        ValueError
            A value, label or weight cannot be used, or there would be more classes than `classes_max`;
            nothing was learned.
        """
        if isinstance(y, str):
            raise ValueError(f"`y` must be the labels themselves, not the name of a column: {y!r}")
        rows, _ = rows_of(X, zeros=self._zeros)
        labels = labels_of(y)
        if len(rows) != len(labels):  # a row without any field is in no column
            raise ValueError(f"{len(rows)} messages were given with {len(labels)} labels")
        weights = column_of(w) if isinstance(w, Iterable) else [w] * len(rows)
        batch = Batch(self._columns(rows), labels, weights, None if at is None else column_of(at))
        with self.state.lock:
            self.state.check_room_for(labels)
            self.step(batch, score=False)

    # ---- models as sums

    def unlearn_one(self, x: Row, y: Label, w: float = 1.0, at: float | None = None) -> None:
        """Unlearn a message that was learned with that label and weight.

        Counts, moments and length sums are subtracted; what the calibrated head learned stays. After an
        eviction a count may be too small: it stops at 0, and `fell_short` counts the token.

        Parameters
        ----------
        x : mapping of str to object
        y : Label
        w : float
        at : float, optional
            For a model that forgets, when the message was learned: in seconds since 1970 with `half_life_s`,
            or as the number of messages learned before it. By default it was the newest. Other models ignore
            it.

        Raises
        ------
        ValueError
            The message's learned weight is smaller than the weight to remove; nothing was changed.

        Examples
        --------
        >>> from streamnb import TEXT_ONLY
        >>> model = NaiveBayes(TEXT_ONLY, half_life_messages=1000)
        >>> for text, label in [("win money", "spam"), ("lunch", "ham"), ("win", "spam")]:
        ...     model.learn_one({"text": text}, label)
        >>> model.unlearn_one({"text": "win money"}, "spam", at=0)
        >>> model.unlearn_one({"text": "win"}, "spam")
        >>> sorted(model.state.counts["words"].rows)
        ['lunch']
        """
        state = self.state
        with state.lock:
            batch = Batch(columns_of(self._fields(x)), [y], [w])
            (label,), _ = checked_labels(batch, state.classes)
            if label is None:
                raise ValueError("`y` must be a label: a message without one was never learned")
            message = read_message(state.views, state.tokenizer, batch.fields, 0)
            merging.unlearn(state, message, label, w, None if at is None else seconds(at))

    def merge(self, other: NaiveBayes, base: NaiveBayes | None = None) -> None:
        """Add what another model has learned, as if both streams had been learned by one.

        Counts and totals are then equal bit for bit, moments up to rounding. The head's weights become the
        mean of both, weighted by the labels learned.

        Parameters
        ----------
        other : NaiveBayes
        base : NaiveBayes, optional
            A model that both began from: what it had learned counts once.

        Raises
        ------
        ValueError
            The other model has other views or settings, which are named, or one of the two does not hold
            what `base` has learned; nothing was changed.
        """
        merging.merge(self.state, other.state, None if base is None else base.state)

    def subtract(self, other: NaiveBayes) -> None:
        """Subtract what another model has learned and this one too: the inverse of `merge`.

        Raises
        ------
        ValueError
            The other model has other views or settings, or has learned more than this one; nothing was
            changed.
        """
        merging.subtract(self.state, other.state)

    # ---- the model as a distribution

    def sample(self, n: int, seed: int = 0) -> Iterator[tuple[Any, Label]]:
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
        with self.state.lock:
            drawn = list(sampling.sample(at_rest(self.state), n, seed))
        return ((self._message(x), y) for x, y in drawn)

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
            present. Where maximum likelihood gives the probability 0, intercept and weights may be infinite,
            never NaN; if infinities of both signs meet in a message, it is impossible in both classes.

        Raises
        ------
        ValueError
            The boundary is not linear (a variance per class, `robust`, the calibrated head), or `classes`
            does not name two learned classes.
        """
        with self.state.lock:
            return linear.linear_weights(at_rest(self.state), classes)

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
        with self.state.lock:
            return linear.n_parameters(self.state, naive=naive)

    # ---- files and snapshots

    def save(self, path: Path | str, *, overwrite: bool = False) -> int:
        """Write the model to a file, and return its size in bytes; `streamnb.load` reads it.

        The file is a snapshot without offsets: ``streamnb score``, ``explain`` and ``snapshot`` read it, and
        ``streamnb run --from`` starts an engine with it. No Python code is stored.

        Parameters
        ----------
        path : Path or str
        overwrite : bool
            Whether a file of that name is replaced.

        Raises
        ------
        ValueError
            A reader or an event model is your own, or the class is.
        StorageError
            The file exists, or cannot be written.
        """
        return saving.save(self, path, overwrite=overwrite)

    def freeze(self) -> FrozenState:
        """Return the state as plain values and arrays that later learning does not change."""
        return state_arrays.freeze(self.state)

    def restore(self, values: Mapping[str, object], sections: Sections) -> None:
        """Restore what `freeze` returned into a model that has learned nothing.

        Raises
        ------
        SnapshotError
            The state does not fit this model, which must not be used afterwards.
        """
        state_arrays.restore(self.state, values, sections)

    @property
    def evicted_tokens(self) -> int:
        """How many rare tokens were forgotten so far, because the counts had reached their limit."""
        return self.state.counts.evicted_tokens

    def digest(self) -> dict[str, str]:
        """Return two hashes of the state, ``order_free`` and ``all``, of 32 hexadecimal digits each.

        Equal states have equal digests. ``order_free`` covers what does not depend on the order of messages
        (counts, totals, classes and lengths, for weights that are multiples of 1/256); ``all`` also covers
        moments and the head. In a model that forgets every sum is rounded, and ``order_free`` covers only the
        number of messages learned.
        """
        return state_arrays.digest(self.state)

    def state_settings(self) -> dict[str, object]:
        """Return the settings that the statistics depend on; a snapshot made under others does not fit."""
        return state_arrays.state_settings(self.state)

    def reading_settings(self) -> dict[str, object]:
        """Return the settings that only affect how the statistics are used; they may change at any start."""
        return state_arrays.reading_settings(self.state)


def _default_views(text: str | Sequence[str] | None, head: HeadKind | None) -> tuple[View, ...]:
    """Return the views of a model without `views`: the words of some fields, and every other field."""
    views = (*TEXT_ONLY, *EVERY_FIELD[1:]) if head == "calibrated" else EVERY_FIELD
    if text is None:
        return views
    fields = (text,) if isinstance(text, str) else tuple(text)
    if not fields or not all(isinstance(field, str) for field in fields):
        raise ValueError("`text` must name at least one field")
    return (View(views[0].name, Words(fields), views[0].event_model), *views[1:])


def _given_views(views: Sequence[View], text: object) -> Sequence[View]:
    if text is not None:
        raise ValueError(
            "give either `text` or `views`: with `views`, each view names the fields that it reads"
        )
    return views
