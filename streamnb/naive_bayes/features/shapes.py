"""`Shapes`: the reader of what words look like as they were sent: in capitals, with digits, between signs.

Other readers of text read it in lower case. "FREE entry 4U" looks like an advertisement, whatever its words
are, and so do words that nobody has seen yet.
"""

from __future__ import annotations

import re

from streamnb.naive_bayes.features.alphabet import CJK, JOINER, MARK, SPACE, WORD, kind, lower
from streamnb.naive_bayes.features.readers import Counts, TextReader, counted
from streamnb.naive_bayes.features.tokenizer import Text, Tokenizer


class Shapes(TextReader, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="shapes"):
    """Counts the shape of every word, and every sign, of a text as it was sent.

    In a word, each letter that has a lower case becomes ``X``, each digit from 0 to 9 becomes ``9``, and each
    other letter or mark becomes ``x``. Three or more equal ones in a row become two and ``+``. A sign between
    words is itself. The tokenizer's limits apply, but not its rule and what it drops. `TextReader` describes
    `fields` and `prefix`.

    Examples
    --------
    >>> from streamnb.naive_bayes.features.message import Message
    >>> Shapes().features(Message({"text": ["WIN £1,000 in Ely!!"]}, 0, Tokenizer()))
    {'XX+': 1.0, '£': 1.0, '9': 1.0, ',': 1.0, '99+': 1.0, 'xx': 1.0, 'Xxx': 1.0, '!': 2.0}
    """

    def read(self, text: Text, tokenizer: Tokenizer) -> Counts:
        """Return the shapes of one text with their counts."""
        return counted(shapes(text.original, tokenizer))


def shapes(text: str, limits: Tokenizer) -> list[str]:
    """Return the shapes of the words and the signs of a text, in order, with repetitions.

    Examples
    --------
    >>> shapes("Don't PANIC, e2e!", Tokenizer())
    ['Xxx', "'", 'x', 'XX+', ',', 'x9x', '!']
    """
    found = _SHAPE.findall(text.translate(_LETTERS))[: limits.message_tokens_max]
    return [_RUN.sub(r"\1\1+", shape[: limits.token_length_max]) for shape in found]


class _Letters:
    """The table that ``str.translate`` looks letters up in; it is filled as texts need it."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def __getitem__(self, code_point: int) -> str:
        found = self._known.get(code_point)
        if found is None:
            found = self._known[code_point] = _letter(code_point)
        return found


def _letter(code_point: int) -> str:
    """Return the letter of one code point in a shape, a space, or the sign itself."""
    character, of_kind = chr(code_point), kind(code_point)
    if of_kind in {SPACE, JOINER}:
        return " "
    if of_kind not in {WORD, MARK, CJK} or character == "_":
        return character
    return "9" if character in "0123456789" else "X" if lower(character) != character else "x"


_LETTERS = _Letters()
_SHAPE = re.compile("[Xx9_]+|[^Xx9_ ]")
_RUN = re.compile(r"(.)\1\1+")
