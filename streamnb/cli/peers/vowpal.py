"""vowpalwabbit's logistic regression, on its own words or on ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from streamnb.base import Label
from streamnb.cli.peers.base import Peer, package
from streamnb.naive_bayes import TextReader, Tokenizer

OPTIONS = "--quiet --loss_function logistic --link logistic -b 24"

P_MIN = 1e-15

Line = Callable[[str], str]
"""An unlabelled line of vowpalwabbit's input, from a text."""

_SPACE = str.maketrans({"|": " ", ":": " ", "\n": " ", "\r": " "})


class VowpalWabbit(Peer):
    """Logistic regression; one against all with more than two classes.

    Parameters
    ----------
    fields, classes
        See `Peer`.
    options : str
        Over `OPTIONS`: ``-l 5`` is the rate at which it is strong.
    line : callable
    """

    def __init__(self, fields: Sequence[str], classes: Sequence[Label], options: str, line: Line) -> None:
        super().__init__(fields, classes)
        package("vowpalwabbit", "vowpalwabbit")
        from vowpalwabbit import Workspace

        self._two = len(self.classes) <= 2
        several = "" if self._two else f"--oaa {len(self.classes)} --probabilities"
        self._model = Workspace(f"{OPTIONS} {options} {several}")
        self._line = line

    def log_scores(self, texts: list[str]) -> list[list[float]]:
        """The log of its posterior."""
        (text,) = texts
        answer = self._model.predict(self._line(text))
        p = [1.0 - answer, answer][: len(self.classes)] if self._two else answer
        return [[math.log(max(each, P_MIN)) for each in p]]

    def learn(self, texts: list[str], columns: list[int]) -> None:
        """One message: with two classes the second is 1 and the first -1, otherwise they count from 1."""
        (text,), (c,) = texts, columns
        self._model.learn(f"{2 * c - 1 if self._two else c + 1} {self._line(text)}")


def own_words(text: str) -> str:
    """A text as it is, split by vowpalwabbit at white space; bar and colon have a meaning there.

    Examples
    --------
    >>> own_words("Win: now")
    '| Win  now'
    """
    return f"| {text.translate(_SPACE)}"


def our_tokens(readers: Sequence[TextReader], tokenizer: Tokenizer) -> Line:
    """Lines of the tokens that those views read, each once, a namespace a view.

    No token of two characters and more holds a ``%``, so that escaped ones stay tokens of their own.
    """

    def line(text: str) -> str:
        words = tokenizer.read(text)
        parts = []
        for number, reader in enumerate(readers):
            tokens = reader.read(words, tokenizer)
            escaped = ("%20".join(t.replace("|", "%7c").replace(":", "%3a").split()) for t in tokens)
            parts.append(f"|{chr(ord('a') + number)} {' '.join(escaped)}")
        return " ".join(parts)

    return line
