"""Prediction by partial matching of characters, a model a class, for `study.py`: compression as evidence."""

from __future__ import annotations

import math
from collections import defaultdict

ORDER = 4
CHARACTERS_MAX = 1_000
ALPHABET = 256  # below order 0 every character is as likely


class CharacterModels:
    """A model of order 4 for each class, with escape by PPM-C's shares and no exclusion.

    Examples
    --------
    >>> models = CharacterModels(2)
    >>> models.learn("win win win", 0)
    >>> models.learn("lunch at noon", 1)
    >>> first, second = models.evidence("win")
    >>> first > second
    True
    """

    def __init__(self, n_classes: int) -> None:
        self._counts: dict[str, list[int]] = defaultdict(lambda: [0] * n_classes)  # of context + character
        self._totals: dict[str, list[int]] = defaultdict(lambda: [0] * n_classes)  # of context
        self._kinds: dict[str, list[int]] = defaultdict(lambda: [0] * n_classes)  # distinct, after context
        self.n_classes = n_classes

    def learn(self, text: str, c: int) -> None:
        """Count the text's contexts for class c."""
        text = text[:CHARACTERS_MAX].lower()
        for i in range(len(text)):
            for order in range(min(i, ORDER) + 1):
                context = text[i - order : i]
                count = self._counts[text[i - order : i + 1]]
                self._kinds[context][c] += count[c] == 0
                count[c] += 1
                self._totals[context][c] += 1

    def evidence(self, text: str) -> list[float]:
        """Each class's log likelihood less the classes' mean, per character^0.7."""
        text = text[:CHARACTERS_MAX].lower()
        nats = [self._log_likelihood(text, c) for c in range(self.n_classes)]
        mean = sum(nats) / len(nats)
        return [(value - mean) / (1 + len(text)) ** 0.7 for value in nats]

    def _log_likelihood(self, text: str, c: int) -> float:
        counts, totals, kinds = self._counts, self._totals, self._kinds
        total = 0.0
        for i in range(len(text)):
            share = 1.0
            for order in range(min(i, ORDER), -1, -1):
                context = text[i - order : i]
                if context not in totals:
                    continue
                n, k = totals[context][c], kinds[context][c]
                if not n:
                    continue
                found = counts.get(text[i - order : i + 1])
                if found is not None and found[c]:
                    total += math.log(share * found[c] / (n + k))
                    break
                share *= k / (n + k)
            else:
                total += math.log(share / ALPHABET)
        return total
