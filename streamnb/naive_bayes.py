"""Naive Bayes: ``P(y) * prod_i P(x_i | y)`` over any number of views, learned message by message.

`NaiveBayes.step` is the one driver: for each message in turn it scores, then learns. Scoring only, learning
only, one message and many are the same loop. Scoring changes nothing, and a batch that cannot be read
changes nothing: everything is read before anything is learned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from streamnb.columns import Batch, Flag, Label, ScoreRows, Scores, likeliest
from streamnb.event_models.multinomial import TokenOdds, against_rest
from streamnb.explanation import Explanation, calibrated_parts, difference, ordered, product_part
from streamnb.head import Opinion, centred_and_clipped
from streamnb.posterior import log_odds, log_odds_of, never_labelled, softmax
from streamnb.reading import Features, Reading, read
from streamnb.state import State
from streamnb.tokens import Terms


class Evidence(NamedTuple):
    """What the calibrated head weighs in one message, and what it makes of it.

    Parameters
    ----------
    phi : list of F lists of S floats
        Feature i of active class c.
    odds : list of list of TokenOdds
        Of each text view, what the features were made of.
    unknown_share : float
        ``sqrt((U + 1/2) / (L + 1))``, U of the L distinct tokens unknown.
    opinion : Opinion
    """

    phi: list[list[float]]
    odds: list[list[TokenOdds]]
    unknown_share: float
    opinion: Opinion


class NaiveBayes(State):
    """An online naive Bayes over one or more views of a message.

    Parameters
    ----------
    views : sequence of View, optional
        By default the words of the field ``text``.
    prior : Prior, optional
        The product head's class prior; by default the stream's own shares.
    head : {"calibrated", "product"}, optional
        By default calibrated if some view reads text.
    classes : sequence of Label
        Classes declared before anything is learned; others may appear at any time.
    classes_max : int
        A label that would be one class more is refused and flagged.
    max_tokens : int, optional
        How many tokens the counts may hold, about 60 bytes each with two classes; at the cap the rarest
        sixteenth is let go. By default there is no cap.
    tokenizer : Tokenizer, optional
    raw : bool
        Whether scores carry the product posterior over the same counts beside their own.
    explain : int
        How many tokens each score of `step` is explained by; 0 for no explanation. Explaining every score
        is the plain driver's work.
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

    def _step(self, batch: Batch, *, score: bool, learn: bool) -> Scores:
        """`step`, as it is specified; the compiled driver does the same."""
        labels, weights = self.checked_labels(batch) if learn else ([None] * len(batch), None)
        readings = [read(self.views, self.tokenizer, batch.fields, i) for i in range(len(batch))]
        rows = ScoreRows(raw=self.raw and score)
        for i, reading in enumerate(readings):
            label, flags = labels[i], reading.flags
            if label is not None and not self.has_room_for(label):
                label, flags = None, flags | Flag.CLASS_LIMIT
            active = self.active()
            evidence = None
            if self.head is not None and active and (score or label is not None):
                evidence = self.evidence(reading, active)
            if score:
                self._score(rows, reading, active, evidence, flags)
            else:
                rows.append_unscored(self.learned, int(flags))
            if label is not None:
                self._learn(reading, label, 1.0 if weights is None else weights[i], active, evidence)
        return rows.scores(tuple(self.classes))

    def _score(
        self, rows: ScoreRows, reading: Reading, active: list[int], evidence: Evidence | None, flags: Flag
    ) -> None:
        n_classes = len(self.classes)
        weight = 0.0
        for count in self.class_counts:
            weight += count
        log_joint: list[float] = []
        raw: list[float] = []
        if evidence is None or self.raw:
            log_joint = self.log_joint(reading, active) if active else []
            if max(log_joint, default=0.0) == -math.inf:  # maximum likelihood's 0/0: the words say nothing
                log_joint = self.log_prior(active)
            raw = never_labelled(softmax(log_joint), active, n_classes, weight)
        posterior, over_active = raw, log_joint
        if evidence is not None:
            posterior = never_labelled(evidence.opinion.posterior, active, n_classes, weight)
            over_active = evidence.opinion.u
        u = [math.nan] * n_classes
        for c, value in zip(active, over_active, strict=True):
            u[c] = value
        exact = evidence is None and len(active) == n_classes
        explanation = None
        if self.explain and len(active) > 1:
            a, b = self._first_two(over_active, active)
            explanation = self._explanation(reading, active, evidence, a, b).published(self.explain)
        known, unknown = self._token_counts(reading)
        rows.append(
            posterior=posterior,
            log_odds=log_odds(log_joint) if exact else log_odds_of(posterior),
            u=u,
            raw=raw if self.raw else None,
            known=known,
            unknown=unknown,
            learned=self.learned,
            flags=int(flags),
            explanation=explanation,
        )

    def _learn(
        self, reading: Reading, label: Label, weight: float, active: list[int], evidence: Evidence | None
    ) -> None:
        c = self.class_index(label)
        if self.head is not None:
            known, unknown = self._token_counts(reading)
            self.head.length.add(reading.length, c, weight)
            self.head.unknown_share.add(_share(unknown, known + unknown), c, weight)
            if evidence is not None and len(active) > 1 and c in active:
                self.head.learn(evidence.opinion, evidence.phi, active, active.index(c), weight)
        by_view = dict(zip((view.name for view in self.views), reading.features, strict=True))
        self.counts.make_room({view: tokens for view, tokens in by_view.items() if isinstance(tokens, dict)})
        for view, features in zip(self.views, reading.features, strict=True):
            if isinstance(features, dict):
                self.counts[view.name].add(features, c, weight)
            elif not math.isnan(features):
                self.moments[view.name].add(features, c, weight)
        self.class_counts[c] += weight
        self.learned += 1

    # ---- evidence

    def evidence(self, reading: Reading, active: Sequence[int]) -> Evidence:
        """The calibrated head's features of one message, from the state as it stands.

        Parameters
        ----------
        active : sequence of int
            The classes labelled so far; at least one.
        """
        assert self.head is not None
        phi: list[list[float]] = []
        odds = []
        for i in self.text_views:
            view, features = self.views[i], reading.features[i]
            assert isinstance(features, dict)
            view_odds = view.multinomial.token_odds(features, self.counts[view.name], active)
            odds.append(view_odds)
            phi.extend(against_rest(view_odds, len(active)))
        known, unknown = self._token_counts(reading)
        unknown_share = _share(unknown, known + unknown)
        phi.append(self.head.length.evidence(reading.length, active))
        phi.append(self.head.unknown_share.evidence(unknown_share, active))
        others = [self._log_likelihood(i, reading.features[i], active) for i in self.other_views]
        phi.extend(centred_and_clipped(values) for values in others)
        return Evidence(phi, odds, unknown_share, self.head.opinion(phi, active))

    def log_joint(self, reading: Reading, active: Sequence[int]) -> list[float]:
        """The log of prior times likelihood, by class; all minus infinity is maximum likelihood's 0/0."""
        u = self.log_prior(active)
        for i, features in enumerate(reading.features):
            for c, z in enumerate(self._log_likelihood(i, features, active)):
                u[c] += z
        return u

    def log_prior(self, active: Sequence[int]) -> list[float]:
        """Log of the class prior over the classes labelled so far."""
        return self.prior.log_p([self.classes[c] for c in active], [self.class_counts[c] for c in active])

    def _log_likelihood(self, i: int, features: Features, active: Sequence[int]) -> list[float]:
        view = self.views[i]
        if isinstance(features, dict):
            return view.multinomial.log_likelihood(features, self.counts[view.name], active)
        return view.gaussian.log_density(features, self.moments[view.name], active)

    def _token_counts(self, reading: Reading) -> tuple[int, int]:
        """Known and unknown distinct tokens of the first view that has tokens."""
        views = self.text_views or [i for i, view in enumerate(self.views) if isinstance(view.reader, Terms)]
        if not views:
            return 0, 0
        features = reading.features[views[0]]
        assert isinstance(features, dict)
        rows = self.counts[self.views[views[0]].name].rows
        known = sum(token in rows for token in features)
        return known, len(features) - known

    # ---- explanations

    def explain_one(
        self, x: Mapping[str, object], classes: tuple[Label, Label] | None = None
    ) -> Explanation | None:
        """What makes the difference between two classes, token by token.

        Parameters
        ----------
        x : mapping of str to value
        classes : (Label, Label), optional
            For and against; by default the likeliest and the second.

        Returns
        -------
        Explanation or None
            ``None`` while fewer than two classes were labelled.

        Raises
        ------
        ValueError
            A class was never labelled.
        """
        with self.lock:
            return self._explained(x, classes)

    def _explained(self, x: Mapping[str, object], classes: tuple[Label, Label] | None) -> Explanation | None:
        reading = read(self.views, self.tokenizer, _columns(x), 0)
        active = self.active()
        if len(active) < 2:
            return None
        evidence = self.evidence(reading, active) if self.head is not None else None
        labels = [self.classes[c] for c in active]
        if classes is None:
            u = evidence.opinion.u if evidence is not None else self.log_joint(reading, active)
            a, b = self._first_two(u, active)
        elif all(label in labels for label in classes):
            a, b = (labels.index(label) for label in classes)
        else:
            raise ValueError(f"{classes!r}: both classes must have been labelled; {labels!r} were")
        return self._explanation(reading, active, evidence, a, b)

    def _first_two(self, u: Sequence[float], active: Sequence[int]) -> tuple[int, int]:
        first, second = sorted(range(len(active)), key=lambda i: (-u[i], self.classes[active[i]]))[:2]
        return first, second

    def _explanation(
        self, reading: Reading, active: list[int], evidence: Evidence | None, a: int, b: int
    ) -> Explanation:
        pair = (self.classes[active[a]], self.classes[active[b]])
        if self.head is not None and evidence is not None:
            names = [self.views[i].name for i in self.text_views]
            parts = calibrated_parts(names, evidence.odds, self.head.weights, a, b)
            first = 4 * len(names)
            titles = ["length", "unknown_share", *(self.views[i].name for i in self.other_views)]
            weighed = {
                title: [weight * value for value in feature]
                for title, weight, feature in zip(
                    titles, self.head.weights[first:], evidence.phi[first:], strict=True
                )
            }
            start = self.head.offsets[active[a]] - self.head.offsets[active[b]]
            return Explanation(pair, start, ordered(parts), difference(weighed, a, b))
        parts = []
        numbers = {}
        for i, (view, features) in enumerate(zip(self.views, reading.features, strict=True)):
            if isinstance(features, dict):
                tokens = view.multinomial.token_log_likelihoods(features, self.counts[view.name], active)
                parts.extend(product_part(view.name, token, values, a, b) for token, values in tokens)
            else:
                numbers[view.name] = self._log_likelihood(i, features, active)
        prior = self.log_prior(active)
        return Explanation(pair, prior[a] - prior[b], ordered(parts), difference(numbers, a, b))

    # ---- river's face

    def learn_one(self, x: Mapping[str, object], y: Label | None, weight: float = 1.0) -> None:
        """Learn one message, a mapping of field names to values; ``None`` is no label and is not learned."""
        self.step(Batch(_columns(x), [y], [weight]), score=False)

    def predict_proba_one(self, x: Mapping[str, object]) -> dict[Label, float]:
        """The posterior by class; empty before anything was learned or declared."""
        scores = self.score_one(x)
        return dict(zip(self.classes, scores.posterior[0].tolist(), strict=True))

    def predict_one(self, x: Mapping[str, object]) -> Label | None:
        """The likeliest class; of equals the smallest. ``None`` before anything was learned or declared."""
        return likeliest(self.predict_proba_one(x))

    def score_one(self, x: Mapping[str, object]) -> Scores:
        """The scores of one message, learning nothing."""
        return self.step(Batch(_columns(x), [None]), learn=False)

    def joint_log_likelihood(self, x: Mapping[str, object]) -> dict[Label, float]:
        """``log P(c) + log P(x | c)`` for each class labelled so far, by the product head."""
        with self.lock:
            active = self.active()
            if not active:
                return {}
            u = self.log_joint(read(self.views, self.tokenizer, _columns(x), 0), active)
            return {self.classes[c]: value for c, value in zip(active, u, strict=True)}


def _columns(x: Mapping[str, object]) -> dict[str, list[object]]:
    return {field: [value] for field, value in x.items()}


def _share(unknown: int, tokens: int) -> float:
    return math.sqrt((unknown + 0.5) / (tokens + 1.0))
