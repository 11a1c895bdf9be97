"""The Markov event model: a text is written byte by byte, and each byte depends on the bytes before it.

The lectures draw each word of a message on its own; here the message has a memory of a few bytes. This is the
model of data compression by prediction by partial matching (Cleary and Witten 1984): what a class has seldom
seen after a long context it predicts from a shorter one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from streamnb.naive_bayes.event_models.base import Draw, EventModel, Shelf, counts_on
from streamnb.naive_bayes.statistics.token_counts import PLAIN, NoTally, TokenCounts, Twins
from streamnb.naive_bayes.statistics.view_counts import Counted

FIRST_GUESS = 1.0 / 256.0  # the probability of each byte in a class that has learned nothing
P_MIN = 1e-300  # a smaller one, which only a forged snapshot gives, might have no logarithm


class Markov(EventModel, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="markov"):
    """A distribution of the next byte for each class and each string of bytes before it, for `Strings`.

    Let n be how often a class has seen a context x, and k how often the byte b after it. Then
    ``p(b | x) = (k + m p(b | x')) / (n + m)``, where x' is the context without its first byte, and
    ``m = sqrt(n)``. Without any byte of context the last p is 1/256. So the shorter context is a Dirichlet
    prior for the longer one (MacKay and Peto 1995) of the weight sqrt(n), the minimax choice for a proportion
    (Hodges and Lehmann 1950). It needs no other statistic than the counts of strings, so a half-life and
    weights apply to it as to words.

    Examples
    --------
    "Ab" was read with one byte of context, as ``Strings(order=1)`` does.

    >>> counts = TokenCounts(NoTally(), n_classes=1)
    >>> counts.add({" a": 1.0, "ab": 1.0, " ": 1.0, "a": 1.0, "b": 1.0, "": 3.0}, class_index=0)
    >>> ((string, (log_p,)),) = Markov().parts({"ab": 1.0, "a": 1.0, "b": 1.0, "": 2.0}, counts, [0])
    >>> without_context = (1 + 3**0.5 / 256) / (3 + 3**0.5)
    >>> abs(math.exp(log_p) - (1 + 1 * without_context) / (1 + 1)) < 1e-12
    True
    """

    counts_tokens: ClassVar[bool] = True
    worth: ClassVar[float] = 1.0 / 16.0  # a word is dozens of strings, most of which are hardly missed

    @property
    def token_weight(self) -> str:
        """Each occurrence of a string counts."""
        return "counts"

    @property
    def has_twin(self) -> bool:
        """The compiled driver knows it."""
        return True

    def statistic(self, twins: Twins = PLAIN, shelf: Shelf | None = None) -> TokenCounts[NoTally]:  # noqa: ARG002
        """Return empty counts."""
        return counts_on(shelf, NoTally())

    def parts(
        self, features: Mapping[str, float], statistic: Counted, active: Sequence[int], scale: float = 1.0
    ) -> Iterator[tuple[str, list[float]]]:
        """Yield each of the longest strings with f times the log probability of its last byte."""
        for string, f, log_p in predictions(features, statistic, active, scale):
            yield string, [f * value for value in log_p]

    def n_parameters(self, statistic: Counted, n_classes: int, *, naive: bool) -> int:
        """Return 255 for each context that is known, per class."""
        if not naive:
            raise ValueError(
                "without the naive assumption the number of parameters is infinite, "
                "because a message can have any length"
            )
        longest = max(map(len, statistic.rows), default=0)
        return n_classes * 255 * sum(len(string) < longest for string in statistic.rows)

    def drawing(self, statistic: Counted, active: Sequence[int], i: int, messages: float) -> Draw:
        """Return a function that writes a text byte by byte, with the spaces before it that were counted.

        The number of its bytes is Poisson with the mean of the class.
        """
        c = active[i]
        order = max(map(len, statistic.rows), default=1) - 1
        bytes_read = sum(row[c] for string, row in statistic.rows.items() if len(string) == order + 1)
        mean = bytes_read / messages

        def draw(random: np.random.Generator) -> list[tuple[str, float]]:
            text = " " * order
            for _ in range(int(random.poisson(mean))):
                context = text[len(text) - order :]
                p = np.array([probabilities(context + chr(b), statistic, [c])[0] for b in range(256)])
                text += chr(random.choice(256, p=p / p.sum()))
            return [(text[order:], 1.0)]

        return draw


def predictions(
    features: Mapping[str, float], counts: Counted, active: Sequence[int], scale: float = 1.0
) -> Iterator[tuple[str, float, list[float]]]:
    """Yield the longest strings, how often each occurs, and the log probability of its last byte per class.

    Parameters
    ----------
    features : mapping of str to float
        As `Strings` returns them: there is one longest string for each byte of the text, and the longest
        strings come first.
    """
    longest = -1
    for string, f in features.items():
        if longest < 0:
            longest = len(string)
        elif len(string) < longest:
            return
        yield string, f, [math.log(max(p, P_MIN)) for p in probabilities(string, counts, active, scale)]


def probabilities(string: str, counts: Counted, active: Sequence[int], scale: float = 1.0) -> list[float]:
    """Return the probability of a string's last byte given those before it, per active class.

    A context may have been seen less often than a byte after it, but only where eviction was followed by
    unlearning. The larger count then stands for both, so that p is at most 1.
    """
    p = [FIRST_GUESS] * len(active)
    for start in range(len(string) - 1, -1, -1):
        context = counts.rows.get(string[start:-1])
        if context is None:
            continue
        row = counts.rows.get(string[start:])
        for j, c in enumerate(active):
            n = context[c]
            if n > 0.0:
                k = row[c] if row is not None else 0.0
                m = math.sqrt(n * scale)
                p[j] = (k + m * p[j]) / (max(n, k) + m)
    return p
