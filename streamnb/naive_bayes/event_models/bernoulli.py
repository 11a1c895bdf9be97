"""The Bernoulli event model: one coin for each word of the vocabulary, so absent words are evidence too.

``log P(x | c) = sum_j x_j log phi_jc + (1 - x_j) log(1 - phi_jc)`` over the whole vocabulary (McCallum and
Nigam 1998). The vocabulary is never walked. Words that the same number of the class's messages contained have
the same phi, so the sum over absent words needs one term per distinct count (see `AbsentWords`); the terms of
the words that are present in the message are then subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from streamnb.naive_bayes.event_models.base import (
    Draw,
    Line,
    OncePerMessage,
    Shelf,
    combinations,
    counts_on,
    difference,
    shares_of,
    token_weights,
)
from streamnb.naive_bayes.event_models.smoothing import Beta
from streamnb.naive_bayes.features.arguments import check_fields
from streamnb.naive_bayes.features.field_tokens import field_of
from streamnb.naive_bayes.statistics.absent_words import AbsentWords
from streamnb.naive_bayes.statistics.field_totals import FieldTotals
from streamnb.naive_bayes.statistics.token_counts import PLAIN, TokenCounts, Twins

Coins = TokenCounts[AbsentWords] | TokenCounts[FieldTotals]
"""The counts of words, or of flags: values of fields that are true or false."""

ABSENT = "absent words"
"""The name of the part of the evidence that comes from all absent words together."""


class Bernoulli(OncePerMessage, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="bernoulli"):
    """A coin per word and class: ``phi_jc = (n_jc + a) / (n_c + a + b)``.

    `n_jc` of the `n_c` messages of class c contained word j. Messages learned before the word first appeared
    count as messages without it.

    A flag is a coin too. It is true, false or missing: only messages that had the flag count, and a missing
    flag adds nothing.

    Parameters
    ----------
    smoothing : Beta
        Pseudo-messages with and without the word.
    unknown : {"skip", "smooth"}
        Whether a word of the message that no class has seen is left out, or counts with n_jc = 0.
    vocabulary_min : int
        The size of the dictionary, if it is known: at least that many words are present or absent in each
        message. Otherwise they are the words learned so far. A model with it runs on the plain driver.

    Raises
    ------
    ValueError
        `vocabulary_min` is negative.

    Examples
    --------
    The lectures' "neurips" is in no message of either class. Add-one smoothing gives it 1/(n_c + 2).

    >>> counts = TokenCounts(AbsentWords(), n_classes=2)
    >>> for words, c in [({"free": 1.0}, 0), ({"free": 1.0}, 0), ({"lunch": 1.0}, 1)]:
    ...     counts.add(words, c)
    >>> coin = Bernoulli(Beta(1.0, 1.0), unknown="smooth")
    >>> parts = dict(coin.parts({"neurips": 1.0}, counts, [0, 1]))
    >>> [round(math.exp(z), 4) for z in parts["neurips"]]  # 1/4 and 1/3
    [0.25, 0.3333]
    """

    smoothing: Beta = Beta()
    unknown: Literal["skip", "smooth"] = "skip"
    vocabulary_min: int = 0

    def __post_init__(self) -> None:
        """Check `vocabulary_min`."""
        check_fields(self)
        if self.vocabulary_min < 0:
            raise ValueError(f"`vocabulary_min` must be 0 or above, not {self.vocabulary_min}")

    @property
    def has_twin(self) -> bool:
        """Whether the compiled driver knows the event model: not with `vocabulary_min`."""
        return not self.vocabulary_min

    def vocabulary(self, rows: Mapping[str, Sequence[float]]) -> int:
        """Return the number of words: those learned, and at least `vocabulary_min`."""
        return max(self.vocabulary_min, len(rows))

    def statistic(self, twins: Twins = PLAIN, shelf: Shelf | None = None) -> Coins:
        """Return empty counts, of flags where the tokens are values of fields."""
        if shelf is not None and shelf.names_fields:
            return counts_on(shelf, twins.field_totals())
        return counts_on(shelf, twins.absent_words())

    def parts(
        self, features: Mapping[str, float], statistic: Coins, active: Sequence[int], scale: float = 1.0
    ) -> Iterator[tuple[str, list[float]]]:
        """Yield what each present word, and all absent words together, add to each active class."""
        tally = statistic.tally
        if isinstance(tally, FieldTotals):
            return self._flag_parts(features, statistic.rows, tally, active, scale)
        return self._word_parts(features, statistic.rows, tally, active, scale)

    def linear(self, statistic: Coins, active: Sequence[int], a: int, b: int) -> Line:
        """Return a weight per word or flag; absent words make the intercept.

        If maximum likelihood gives a word the probability 1 in a class, a message without it is impossible
        there: the word's weight and the intercept are infinite. If messages without some words are impossible
        in both classes, the intercept is 0/0 and counts as 0.
        """
        weights, tally = token_weights(self, statistic, active, a, b), statistic.tally
        if isinstance(tally, FieldTotals):
            return Line(0.0, weights)
        left = self.vocabulary(statistic.rows) - len(statistic.rows)
        intercept = left * self._absence(tally, active[a], active[b], (0.0, 0.0)) if left else 0.0
        for token in weights:
            row = statistic.rows[token]
            absence = self._absence(tally, active[a], active[b], (row[active[a]], row[active[b]]))
            weights[token] -= absence
            intercept += absence
        return Line(0.0 if math.isnan(intercept) else intercept, weights)

    def _absence(self, tally: AbsentWords, a: int, b: int, counts: tuple[float, float]) -> float:
        """Return the evidence for class a against b of the absence of a word with these counts."""
        pseudo = self.smoothing
        logs = [
            _log((tally.messages[c] - count + pseudo.b) / (tally.messages[c] + pseudo.a + pseudo.b))
            for c, count in zip((a, b), counts, strict=True)
        ]
        return difference(logs[0], logs[1])

    def n_parameters(self, statistic: Coins, n_classes: int, *, naive: bool) -> int:
        """Return one per coin and class; without the naive assumption one per combination, less one."""
        tally = statistic.tally
        coins = len(tally.fields) if isinstance(tally, FieldTotals) else self.vocabulary(statistic.rows)
        return n_classes * combinations([2] * coins, naive=naive)

    def drawing(self, statistic: Coins, active: Sequence[int], i: int, messages: float) -> Draw:  # noqa: ARG002
        """Return a function that tosses every coin."""
        tokens, shares = shares_of(self, statistic, active, i)
        if not isinstance(statistic.tally, FieldTotals):
            return lambda random: [
                (tokens[j], 1.0) for j in np.flatnonzero(random.random(len(shares)) < shares)
            ]
        true: dict[str, float] = {}  # one of the two values of a flag may never have been seen
        for token, share in zip(tokens, shares, strict=True):
            true.setdefault(field_of(token), share if is_true(token) else 1.0 - share)

        def toss(random: np.random.Generator) -> list[tuple[str, float]]:
            return [(f"{name}={'true' if random.random() < p else 'false'}", 1.0) for name, p in true.items()]

        return toss

    def _word_parts(
        self,
        features: Mapping[str, float],
        rows: Mapping[str, Sequence[float]],
        occurrences: AbsentWords,
        active: Sequence[int],
        scale: float,
    ) -> Iterator[tuple[str, list[float]]]:
        a, b = self.smoothing.a * scale, self.smoothing.b * scale
        messages = [occurrences.messages[c] for c in active]
        log_totals = [math.log(n + a + b) for n in messages]
        # `all_absent` sums over the whole vocabulary. Per class, these are the terms of the present words in
        # that sum, and the number of present words it leaves out: every message of the class has them.
        present_absent = [0.0] * len(active)
        certain = [0] * len(active)
        known, vocabulary = 0, self.vocabulary(rows)
        unseen = [0.0] * len(occurrences.messages)
        left = vocabulary - len(rows)  # words of the dictionary that no class has seen
        for word in features:
            row: Sequence[float] | None = rows.get(word)
            if row is None and left and self.unknown == "smooth":
                row, left = unseen, left - 1
            if row is not None:
                known += 1
                for i, c in enumerate(active):
                    rest = messages[i] - row[c] + b
                    if rest > 0:
                        present_absent[i] += math.log(rest) - log_totals[i]
                    else:
                        certain[i] += 1
            elif self.unknown == "skip":
                continue
            yield (
                word,
                [
                    _log((row[c] if row is not None else 0.0) + a) - log_total
                    for c, log_total in zip(active, log_totals, strict=True)
                ],
            )
        if vocabulary == known:
            return
        absent = []
        for i, c in enumerate(active):
            everyone, certain_of_all = occurrences.all_absent(c, vocabulary, b)
            others = everyone - (vocabulary - certain_of_all) * log_totals[i] - present_absent[i]
            absent.append(-math.inf if certain_of_all > certain[i] else min(others, 0.0))
        yield ABSENT, absent

    def _flag_parts(
        self,
        features: Mapping[str, float],
        rows: Mapping[str, Sequence[float]],
        fields: FieldTotals,
        active: Sequence[int],
        scale: float,
    ) -> Iterator[tuple[str, list[float]]]:
        a, b = self.smoothing.a * scale, self.smoothing.b * scale
        for token in features:
            field = fields.fields.get(field_of(token))
            if field is None:
                continue
            totals = field.totals
            row: Sequence[float] = rows.get(token, [0.0] * len(totals))
            pseudo = a if is_true(token) else b
            yield (
                token,
                [
                    _log(row[c] + pseudo) - _log(totals[c] + a + b) if totals[c] + a + b > 0 else -math.inf
                    for c in active
                ],
            )


def is_true(token: str) -> bool:
    """Return whether a flag's token has the value true."""
    return token.endswith("=true")


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
