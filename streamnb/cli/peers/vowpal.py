"""vowpalwabbit's logistic regression, on words split at white space or on streamnb's tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from streamnb.base import Label
from streamnb.cli.peers.base import Peer, package
from streamnb.naive_bayes import TextReader, Tokenizer

OPTIONS = "--quiet --loss_function logistic --link logistic -b 24"

P_MIN = 1e-15

Line = Callable[[str], str]
"""A function that returns an unlabelled line of vowpalwabbit's input format for a text."""

_SPACE = str.maketrans({"|": " ", ":": " ", "\n": " ", "\r": " "})


class VowpalWabbit(Peer):
    """vowpalwabbit's logistic regression; one-against-all with more than two classes.

    Parameters
    ----------
    fields, classes
        See `Peer`.
    options : str
        Command line options added to `OPTIONS`. ``-l 5`` sets a learning rate at which it does well.
    line : callable
        Formats a text as input, see `Line`.
    """

    def __init__(self, fields: Sequence[str], classes: Sequence[Label], options: str, line: Line) -> None:
        super().__init__(fields, classes)
        package("vowpalwabbit", "vowpalwabbit")
        from vowpalwabbit import Workspace

        self._two = len(self.classes_) <= 2
        several = "" if self._two else f"--oaa {len(self.classes_)} --probabilities"
        self._model = Workspace(f"{OPTIONS} {options} {several}")
        self._line = line

    def log_scores(self, texts: list[str]) -> list[list[float]]:
        """Return the log of its posterior."""
        (text,) = texts
        answer = self._model.predict(self._line(text))
        p = [1.0 - answer, answer][: len(self.classes_)] if self._two else answer
        return [[math.log(max(each, P_MIN)) for each in p]]

    def learn(self, texts: list[str], columns: list[int]) -> None:
        """Learn one message.

        With two classes vowpalwabbit's labels are -1 and 1, with more they are numbered from 1.
        """
        (text,), (c,) = texts, columns
        self._model.learn(f"{2 * c - 1 if self._two else c + 1} {self._line(text)}")


def own_words(text: str) -> str:
    """Return a text as input that vowpalwabbit splits at white space.

    Bars and colons, which have a meaning in its format, become spaces.

    Examples
    --------
    >>> own_words("Win: now")
    '| Win  now'
    """
    return f"| {text.translate(_SPACE)}"


def our_tokens(readers: Sequence[TextReader], tokenizer: Tokenizer) -> Line:
    """Return a function that formats a text as the distinct tokens of some views, one namespace per view.

    Bars, colons and spaces in a token are escaped with ``%``. No token of two or more characters contains a
    ``%``, so an escaped token cannot equal another one.
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
