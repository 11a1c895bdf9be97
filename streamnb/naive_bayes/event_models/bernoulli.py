"""The Bernoulli event model: one coin for each word of the vocabulary, and absent words count too.

``log P(x | c) = sum_j x_j log phi_jc + (1 - x_j) log(1 - phi_jc)`` over the whole vocabulary (McCallum and
Nigam 1998). Nobody walks the vocabulary: words that as many messages of a class held have one phi, so the sum
over absent words is one over distinct counts, and the words of the message are taken out of it.
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
"""The name of the part that all absent words of a message make together."""


class Bernoulli(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="bernoulli"):
    """A coin per word and class: ``phi_jc = (n_jc + a) / (n_c + a + b)``.

    `n_jc` messages of class c held word j, of `n_c` in all: absences count from the beginning of the stream,
    whenever the word was first seen.

    Parameters
    ----------
    smoothing : Beta
        Pseudo-messages with and without the word.
    unknown : {"skip", "smooth"}
        Whether a word that no class has taught takes part when it is there.

    Examples
    --------
    The lectures' neurips: in no message of either class. Add-one smoothing gives it 1/(n_c + 2).

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
        """What each present word, and all absent words together, add to each active class."""
        a, b = self.smoothing.a * scale, self.smoothing.b * scale
        messages = [occurrences.messages[c] for c in active]
        log_totals = [math.log(n + a + b) for n in messages]
        present_absent = [0.0] * len(active)  # what the present words would say if they were absent
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
        """The same for flags, true, false or missing: only those given count, and only where given."""
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
