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

import msgspec

from streamnb.naive_bayes.event_models.smoothing import Beta
from streamnb.naive_bayes.features.readers import field_of
from streamnb.naive_bayes.statistics.absent_words import AbsentWords
from streamnb.naive_bayes.statistics.counts import Counted
from streamnb.naive_bayes.statistics.field_totals import FieldTotals

ABSENT = "absent words"
"""The name of the part of the evidence that comes from all absent words together."""


class Bernoulli(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="bernoulli"):
    """A coin per word and class: ``phi_jc = (n_jc + a) / (n_c + a + b)``.

    `n_jc` of the `n_c` messages of class c contained word j. Messages learned before the word first appeared
    count as messages without it.

    Parameters
    ----------
    smoothing : Beta
        Pseudo-messages with and without the word.
    unknown : {"skip", "smooth"}
        Whether a word of the message that no class has seen is left out, or counts with n_jc = 0.

    Examples
    --------
    The lectures' "neurips" is in no message of either class. Add-one smoothing gives it 1/(n_c + 2).

    >>> from streamnb.naive_bayes.statistics.counts import ViewCounts
    >>> counts, occurrences = ViewCounts(2), AbsentWords(2)
    >>> for words, c in [({"free": 1.0}, 0), ({"free": 1.0}, 0), ({"lunch": 1.0}, 1)]:
    ...     occurrences.add(counts.rows, words, c)
    ...     counts.add(words, c)
    >>> coin = Bernoulli(Beta(1.0, 1.0), unknown="smooth")
    >>> parts = dict(coin.parts({"neurips": 1.0}, counts, occurrences, [0, 1]))
    >>> [round(math.exp(z), 4) for z in parts["neurips"]]  # 1/4 and 1/3
    [0.25, 0.3333]
    """

    smoothing: Beta = Beta()
    unknown: Literal["skip", "smooth"] = "skip"

    def parts(
        self,
        features: Mapping[str, float],
        counts: Counted,
        occurrences: AbsentWords,
        active: Sequence[int],
        scale: float = 1.0,
    ) -> Iterator[tuple[str, list[float]]]:
        """Yield what each present word, and all absent words together, add to each active class."""
        a, b = self.smoothing.a * scale, self.smoothing.b * scale
        messages = [occurrences.messages[c] for c in active]
        log_totals = [math.log(n + a + b) for n in messages]
        # `all_absent` sums over the whole vocabulary. Per class, these are the terms of the present words in
        # that sum, and the number of present words it leaves out: every message of the class has them.
        present_absent = [0.0] * len(active)
        certain = [0] * len(active)
        known = 0
        for word in features:
            row: Sequence[float] | None = counts.rows.get(word)
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
        vocabulary = len(counts.rows)
        if vocabulary == known:
            return
        absent = []
        for i, c in enumerate(active):
            everyone, certain_of_all = occurrences.all_absent(c, vocabulary, b)
            others = everyone - (vocabulary - certain_of_all) * log_totals[i] - present_absent[i]
            absent.append(-math.inf if certain_of_all > certain[i] else min(others, 0.0))
        yield ABSENT, absent

    def flag_parts(
        self,
        features: Mapping[str, float],
        counts: Counted,
        fields: FieldTotals,
        active: Sequence[int],
        scale: float = 1.0,
    ) -> Iterator[tuple[str, list[float]]]:
        """Yield what each flag of the message adds to each active class.

        A flag is true, false or missing. Only messages that had the flag count, and a missing flag adds
        nothing.
        """
        a, b = self.smoothing.a * scale, self.smoothing.b * scale
        for token in features:
            field = fields.fields.get(field_of(token))
            if field is None:
                continue
            totals = field.totals
            row: Sequence[float] = counts.rows.get(token, [0.0] * len(totals))
            pseudo = a if token.endswith("=true") else b
            yield (
                token,
                [
                    _log(row[c] + pseudo) - _log(totals[c] + a + b) if totals[c] + a + b > 0 else -math.inf
                    for c in active
                ],
            )


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
