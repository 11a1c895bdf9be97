"""The plain driver: score a message from the present state, then learn it.

It is the specification: the compiled driver must give the same bits.
"""

from __future__ import annotations

import copy
import math
from typing import Self

from streamnb.base import Batch, Flag, Label, ScoreRows, Scores, checked_labels
from streamnb.naive_bayes.model import merging
from streamnb.naive_bayes.model.message_features import MessageFeatures, read_message
from streamnb.naive_bayes.model.scoring import Evidence, Scorer, share_of_unknown
from streamnb.naive_bayes.posterior.odds import log_odds, log_odds_of, never_labelled, softmax


class PlainStep(Scorer):
    """Scores and learns message by message; see `NaiveBayes` for the parameters."""

    def _step(self, batch: Batch, *, score: bool, learn: bool) -> Scores:
        """Score and learn a batch; the specification of `_kernel.Driver.step`."""
        labels, weights = checked_labels(batch, self.classes) if learn else ([None] * len(batch), None)
        messages = [read_message(self.views, self.tokenizer, batch.fields, i) for i in range(len(batch))]
        times = self.decay.times_of(batch.times, labels) if self.decay is not None else None
        rows = ScoreRows(raw=self.raw and score)
        for i, message in enumerate(messages):
            instant = 0.0
            if self.decay is not None and times is not None:
                instant = self.decay.instant(times[i], batch.partition)
                message = message._replace(scale=self.decay.scale(instant))  # noqa: PLW2901
                if learn:
                    self.decay.saw(times[i], batch.partition)
            weight = 1.0 if weights is None else weights[i]
            self._message(rows, message, labels[i], weight, instant, score=score)
        return rows.scores(tuple(self.classes))

    def _message(
        self,
        rows: ScoreRows,
        message: MessageFeatures,
        label: Label | None,
        weight: float,
        instant: float = 0.0,
        *,
        score: bool,
    ) -> None:
        """Score a message, then learn it if it has a label."""
        flags = message.flags
        if label is not None and not self.has_room_for(label):
            label, flags = None, flags | Flag.CLASS_LIMIT
        active = self.active()
        evidence = None
        if self.head is not None and active and (score or label is not None):
            evidence = self.evidence(message, active)
        if score:
            self._score(rows, message, active, evidence, flags)
        else:
            rows.append_unscored(self.learned, int(flags))
        if label is not None:
            self._learn(message, label, weight, instant, active, evidence)

    def _score(
        self,
        rows: ScoreRows,
        message: MessageFeatures,
        active: list[int],
        evidence: Evidence | None,
        flags: Flag,
    ) -> None:
        n_classes = len(self.classes)
        weight = 0.0
        for count in self.class_counts:
            weight += count
        weight /= message.scale
        log_joint: list[float] = []
        raw: list[float] = []
        if evidence is None or self.raw:
            log_joint = self.log_joint(message, active) if active else []
            if max(log_joint, default=0.0) == -math.inf:  # maximum likelihood's 0/0: no evidence
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
            a, b = self.first_two(over_active, active)
            explanation = self.explanation_of(message, active, evidence, a, b).published(self.explain)
        known, unknown = self.token_counts(message)
        rows.append(
            posterior=posterior,
            log_odds=log_odds(log_joint) if exact else log_odds_of(posterior),
            u=u,
            raw=raw if self.raw else None,
            known=known,
            unknown=unknown,
            learned=self.learned,
            learned_by_class=[count / message.scale for count in self.class_counts],
            flags=int(flags),
            explanation=explanation,
        )

    def _learn(
        self,
        message: MessageFeatures,
        label: Label,
        weight: float,
        instant: float,
        active: list[int],
        evidence: Evidence | None,
    ) -> None:
        c = self.class_index(label)
        known, unknown = self.token_counts(message) if self.head is not None else (0, 0)
        if self.head is not None and evidence is not None and len(active) > 1 and c in active:
            if self.decay is not None:
                self.head.fade(self.decay.fade_of_head(instant))
            self.head.learn(evidence.opinion, evidence.phi, active, active.index(c), weight)
        if self.decay is not None:  # the head's steps are not decayed: their weight is the message's own
            weight *= self._grown(instant)
        if self.head is not None:
            self.head.length.add(message.length, c, weight)
            self.head.unknown_share.add(share_of_unknown(unknown, known + unknown), c, weight)
        self._make_room(message)
        for statistic, features in zip(self.statistics.values(), message.features, strict=True):
            statistic.add(features, c, weight)
        self.class_counts[c] += weight
        self.learned += 1

    def _grown(self, instant: float) -> float:
        """Return the weight of a message at an instant, after moving the landmark if the weight would be too
        large.
        """
        assert self.decay is not None
        shift = self.decay.shift_for(instant)
        if shift:
            merging.fade(self, math.ldexp(1.0, -shift))
        self.decay.position += 1
        return self.decay.scale(instant)

    def _make_room(self, message: MessageFeatures) -> None:
        """Evict rare tokens if the message's new tokens would not fit into `max_tokens`."""
        if self.max_tokens is None:
            return
        features = dict(zip(self.statistics, message.features, strict=True))
        before = self.counts.evicted_tokens
        self.counts.make_room({name: features[name] for name in self.counts})
        if self.counts.evicted_tokens > before:
            self.recount()

    def _at_rest(self) -> Self:
        """Return the model or, if it forgets, a copy without decay whose sums are rescaled to the present."""
        if self.decay is None:
            return self
        still = copy.deepcopy(self)
        merging.fade(still, 1.0 / self.decay.scale(self.decay.now()))
        still.decay = None
        return still
