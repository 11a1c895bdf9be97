"""A histogram of word counts per class, which makes the Bernoulli sum over all absent words cheap.

Every absent word of a class adds a term that depends only on the number of the class's messages with that
word. So it is enough to know how many words have each count; the vocabulary need not be walked.

The histogram follows from the rows of the count store and is not part of a snapshot. `add` and `remove` read
each word's old count from the rows, so they must be called before the rows change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from streamnb.base import HINT, Section, Sections
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.statistics.decay import WEIGHT_ROUNDING


class AbsentWords:
    """Per class, the messages learned and a histogram: for each count, the number of words that have it.

    Parameters
    ----------
    n_classes : int

    Attributes
    ----------
    messages : list of float
        Per class, the summed weight of the messages learned.
    histograms : list of dict of float to int
        Per class, the number of words with each count; words with a count of 0 are left out.

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
        """Add a message: `weight` to the class's messages, and its part to the count of each word.

        Call it before the rows themselves change: it reads the words' old counts from `rows`.
        """
        histogram = self.histograms[class_index]
        for word, f in words.items():
            row = rows.get(word)
            before = row[class_index] if row is not None else 0.0
            _move(histogram, before, before + f * weight)
        self.messages[class_index] += weight
        self._sums.pop(class_index, None)

    def check_removable(
        self,
        rows: Mapping[str, Sequence[float]],
        amounts: Mapping[str, float],
        class_index: int,
        weight: float = 1.0,
    ) -> None:
        """Raise ``ValueError`` if `remove` would leave a word in more messages than there are.

        A word that every message of the class contains must be in a message of the class, too.
        """
        messages = self.messages[class_index]
        left = messages - weight + WEIGHT_ROUNDING * messages
        over = sum(n_words for count, n_words in self.histograms[class_index].items() if count > left)
        for word, amount in amounts.items() if over else ():
            count = rows[word][class_index]
            over -= count > left >= count - amount
        if over:
            raise never_learned()

    def remove(
        self,
        rows: Mapping[str, Sequence[float]],
        amounts: Mapping[str, float],
        class_index: int,
        weight: float = 1.0,
    ) -> None:
        """Undo `add`: subtract `weight` from the class's messages and each word's amount from its count.

        Call it before the rows themselves change: it reads the words' old counts from `rows`.
        """
        histogram = self.histograms[class_index]
        for word, amount in amounts.items():
            before = rows[word][class_index]
            _move(histogram, before, before - amount)
        self.messages[class_index] = max(0.0, self.messages[class_index] - weight)
        self._sums.pop(class_index, None)

    def messages_of(self, class_index: int) -> float:
        """Return the weight of the messages learned for a class."""
        return self.messages[class_index]

    def settle(self, class_index: int, messages: float) -> float:
        """Set the weight of a class's messages, and return it: at least the largest count of a word.

        Subtracting a heavy message may round the weight below that.
        """
        messages = max(messages, max(self.histograms[class_index], default=0.0))
        self.messages[class_index] = messages
        self._sums.pop(class_index, None)
        return messages

    def rebuild(self, rows: Mapping[str, Sequence[float]], messages: Sequence[float]) -> None:
        """Rebuild the histograms from the rows, after a snapshot was restored or rare words were evicted."""
        self.messages = list(messages)
        self.histograms = [{} for _ in messages]
        self._sums = {}
        for row in rows.values():
            for histogram, count in zip(self.histograms, row, strict=True):
                _move(histogram, 0.0, count)

    def freeze(self, prefix: str) -> dict[str, Section]:  # noqa: ARG002 - there is nothing to name
        """Return no sections: the rows and the class counts determine everything."""
        return {}

    def restore(self, sections: Sections, n_classes: int, prefix: str) -> None:  # noqa: ARG002 - as above
        """Check that no word has a higher count than its class has messages, as in a damaged snapshot.

        Raises
        ------
        SnapshotError
            A word has.
        """
        for n, histogram in zip(self.messages, self.histograms, strict=True):
            if any(count > n * (1 + WEIGHT_ROUNDING) for count in histogram):
                raise impossible()

    def all_absent(self, c: int, vocabulary: int, b: float) -> tuple[float, int]:
        """Return ``sum_j log(n_c - n_jc + b)`` over the vocabulary: all words, as if every one were absent.

        With maximum likelihood (b = 0), words that every message of the class contains have log(0) here. They
        are left out of the sum and returned as a number of their own.

        The sum over the words that the class has seen is cached until the class learns again. It depends on
        the class's counts alone; for the rest of the vocabulary, ``log(n_c + b)`` per word is added.

        Returns
        -------
        (float, int)
            The sum, and the number of words left out of it.
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


def impossible() -> SnapshotError:
    """Return the error for a word that occurs in more messages than there were."""
    return SnapshotError("A word occurs in more messages of a class than were learned.", HINT)


def never_learned() -> ValueError:
    """Return the error for a message that lacks a word of all messages of its class."""
    return ValueError(
        "the message was never learned with its label: it lacks a word that every learned message of the "
        "class has; nothing was changed"
    )


def _move(histogram: dict[float, int], before: float, after: float) -> None:
    """Move one word of a histogram from its old count to its new one; a count of 0 is not stored."""
    if before > 0:
        left = histogram[before] - 1
        if left:
            histogram[before] = left
        else:
            del histogram[before]
    if after > 0:
        histogram[after] = histogram.get(after, 0) + 1
