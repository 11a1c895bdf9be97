"""How many words of a class stand in how many of its messages: what the sum over absent words needs.

It is made from the rows of the count store and kept in step with them, so a snapshot does not carry it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


class AbsentWords:
    """Per class, the messages learned and a histogram: count to the number of words with that count.

    Parameters
    ----------
    n_classes : int

    Attributes
    ----------
    messages : list of float
        Weight of the messages learned, per class.
    histograms : list of dict of float to int
        Words with a count of 0 stand in none of them.

    Examples
    --------
    >>> occurrences = AbsentWords(n_classes=1)
    >>> occurrences.add({}, {"free": 1.0, "cash": 1.0}, class_index=0)
    >>> occurrences.histograms
    [{1.0: 2}]
    """

    __slots__ = ("_sums", "histograms", "messages")

    def __init__(self, n_classes: int = 0) -> None:
        self.messages = [0.0] * n_classes
        self.histograms: list[dict[float, int]] = [{} for _ in range(n_classes)]
        self._sums: dict[int, tuple[float, float, int, int]] = {}

    def __getstate__(self) -> tuple[list[float], list[dict[float, int]]]:
        return self.messages, self.histograms

    def __setstate__(self, state: tuple[list[float], list[dict[float, int]]]) -> None:
        self.messages, self.histograms = state
        self._sums = {}

    def add_class(self) -> None:
        """Append a class without messages."""
        self.messages.append(0.0)
        self.histograms.append({})

    def add(
        self,
        rows: Mapping[str, Sequence[float]],
        words: Mapping[str, float],
        class_index: int,
        weight: float = 1.0,
    ) -> None:
        """Follow a message's words, before the rows do."""
        histogram = self.histograms[class_index]
        for word, f in words.items():
            row = rows.get(word)
            before = row[class_index] if row is not None else 0.0
            _move(histogram, before, before + f * weight)
        self.messages[class_index] += weight
        self._sums.pop(class_index, None)

    def remove(
        self,
        rows: Mapping[str, Sequence[float]],
        amounts: Mapping[str, float],
        class_index: int,
        weight: float = 1.0,
    ) -> None:
        """Take a message of a weight back, and of each word's count an amount, before the rows do."""
        histogram = self.histograms[class_index]
        for word, amount in amounts.items():
            before = rows[word][class_index]
            _move(histogram, before, before - amount)
        self.messages[class_index] = max(0.0, self.messages[class_index] - weight)
        self._sums.pop(class_index, None)

    def rebuild(self, rows: Mapping[str, Sequence[float]], messages: Sequence[float]) -> None:
        """Begin again from the rows, as after a snapshot was read or rare words were let go."""
        self.messages = list(messages)
        self.histograms = [{} for _ in messages]
        self._sums = {}
        for row in rows.values():
            for histogram, count in zip(self.histograms, row, strict=True):
                _move(histogram, 0.0, count)

    def is_possible(self) -> bool:
        """Whether no word stands in more messages of a class than there were."""
        return all(
            count <= n * (1 + 1e-9)
            for n, histogram in zip(self.messages, self.histograms, strict=True)
            for count in histogram
        )

    def all_absent(self, c: int, vocabulary: int, b: float) -> tuple[float, int]:
        """``sum_j log(n_c - n_jc + b)`` over the vocabulary, but for words that every message held.

        Those, of which maximum likelihood says that they are never absent, are counted apart. The sum is
        kept until the class learns again: how many words there are may change, what they add may not.

        Returns
        -------
        (float, int)
            The sum, and the words left out of it.
        """
        n = self.messages[c]
        kept = self._sums.get(c)
        if kept is None or kept[0] != b:
            total, counted, certain = 0.0, 0, 0
            for count, n_words in sorted(self.histograms[c].items()):
                counted += n_words
                if n - count + b > 0:
                    total += n_words * math.log(n - count + b)
                else:
                    certain += n_words
            kept = self._sums[c] = (b, total, counted, certain)
        _, total, counted, certain = kept
        never = vocabulary - counted
        if never and n + b > 0:
            total += never * math.log(n + b)
        return total, certain


def _move(histogram: dict[float, int], before: float, after: float) -> None:
    """One word goes from one count to another; a count of 0 is not kept."""
    if before > 0:
        left = histogram[before] - 1
        if left:
            histogram[before] = left
        else:
            del histogram[before]
    if after > 0:
        histogram[after] = histogram.get(after, 0) + 1
