"""Choosing words by what they tell of the class, for the benches of papers that did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(slots=True)
class Presence:
    """Which words stand in each message.

    Parameters
    ----------
    words, classes : list of str
        In order of appearance.
    labels : ndarray of int64
        Each message's place in `classes`.
    rows : list of ndarray of int64
        Each message's distinct words, as places in `words`.
    """

    words: list[str]
    classes: list[str]
    labels: Ints
    rows: list[Ints]

    @classmethod
    def of(cls, tokens: Iterable[Iterable[str]], labels: Sequence[str]) -> Presence:
        """The distinct words of each message."""
        places: dict[str, int] = {}
        rows = []
        for message in tokens:
            here = {places.setdefault(word, len(places)) for word in message}
            rows.append(np.array(sorted(here), np.int64))
        classes = list(dict.fromkeys(labels))
        return cls([*places], classes, np.array([classes.index(label) for label in labels], np.int64), rows)

    def counts(self, messages: Iterable[int]) -> tuple[Ints, Ints]:
        """How many of these messages of each class hold each word, and how many there are.

        Returns
        -------
        ndarray of int64, shape (C, words), and ndarray of int64, shape (C,)
        """
        chosen = np.fromiter(messages, np.int64)
        counts = np.zeros((len(self.classes), len(self.words)), np.int64)
        for c in range(len(self.classes)):
            rows = [self.rows[i] for i in chosen[self.labels[chosen] == c].tolist()]
            if rows:
                counts[c] = np.bincount(np.concatenate(rows), minlength=len(self.words))
        return counts, np.bincount(self.labels[chosen], minlength=len(self.classes))


def information_gain(counts: Ints, messages: Ints) -> NDArray[np.float64]:
    """Mutual information, in nats, of the class and whether a word is there.

    Parameters
    ----------
    counts : ndarray, shape (C, words)
        Messages of each class that hold the word.
    messages : ndarray, shape (C,)
        Messages of each class.

    Examples
    --------
    >>> information_gain(np.array([[2, 1], [0, 1]]), np.array([2, 2])).round(4).tolist()
    [0.6931, 0.0]
    """
    n = messages.sum()
    gain: NDArray[np.float64] = np.zeros(counts.shape[1])
    for held in (counts, messages[:, None] - counts):
        expected = messages[:, None] * held.sum(axis=0) / n
        gain += (held * np.log(np.where(held > 0, held, 1) / np.where(held > 0, expected, 1))).sum(axis=0)
    gain /= n
    return gain
