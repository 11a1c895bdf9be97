"""What may be read whole: numbers, URLs and mail addresses; the one definition of each.

All three begin where the rule ``unicode`` begins a word, and hold *letters*: here every code point that a
word may go on with, so digits, marks and letters of any script written with spaces. The first that fits is
taken, and what is left after it is read by the rule again.

url
    A word and ``://``, or the word ``www`` and a point; then the beginning of a word; then letters and the
    marks of `URL_MARKS`, up to the last letter or slash among them.
mail address
    A word; then letters and `NAME_MARKS`; an ``@``; the beginning of a word; then letters and `HOST_MARKS`,
    up to the last letter among them, with a point between.
number
    Words, joined by a point or a comma wherever that stands between two ASCII digits (as in rules WB11 and
    WB12 of Unicode Standard Annex 29): also a version, and an amount with its unit.

Nobody can make this slow. A URL and a number consist of what was looked at; where no address was found, none
is looked for again before that place.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from streamnb.naive_bayes.features.alphabet import JOINER, MARK, WORD

Whole = Literal["numbers", "urls", "mail"]

LETTERS = WORD + MARK + JOINER
"""The kinds of code point that a word goes on with; it begins with `WORD`."""

URL_MARKS = "!#$%&'()*+,-./:;=?@[]~"
"""The marks of a URL (RFC 3986); the underscore is a letter."""
NAME_MARKS = "%+-."
HOST_MARKS = "-."


class WholeReader:
    """Finds where things end in one text, from left to right.

    Parameters
    ----------
    low : str
        The text in lower case.
    kinds : str
        The kind of each of its code points.
    whole : collection of {"numbers", "urls", "mail"}

    Examples
    --------
    >>> from streamnb.naive_bayes.features.alphabet import KIND_OF_CODE_POINT
    >>> text = "1,000.50, or see www.x.y/z?q."
    >>> reader = WholeReader(text, text.translate(KIND_OF_CODE_POINT), ["urls", "numbers"])
    >>> text[0 : reader.end(0, 1)], text[17 : reader.end(17, 20)]
    ('1,000.50', 'www.x.y/z?q')
    """

    def __init__(self, low: str, kinds: str, whole: Collection[Whole]) -> None:
        self._low = low
        self._kinds = kinds
        self._whole = whole
        self._no_mail_before = 0

    def end(self, start: int, word_end: int) -> int:
        """Where what begins with the word from `start` to `word_end` ends; words are asked for in order."""
        end = word_end
        if "urls" in self._whole:
            end = self._url_end(start, word_end)
        if end == word_end and "mail" in self._whole and start >= self._no_mail_before:
            end = self._mail_end(word_end)
        if end == word_end and "numbers" in self._whole:
            end = self._number_end(word_end)
        return end

    def _url_end(self, start: int, word_end: int) -> int:
        if self._low.startswith("://", word_end):
            host = word_end + 3
        elif self._low.startswith(".", word_end) and self._low[start:word_end] == "www":
            host = word_end + 1
        else:
            return word_end
        if not self._kinds.startswith(WORD, host):
            return word_end
        return self._last(self._run(host, URL_MARKS), "/")

    def _mail_end(self, word_end: int) -> int:
        at = self._run(word_end, NAME_MARKS)
        self._no_mail_before = at  # a later word of this name would meet the same end
        if not (self._low.startswith("@", at) and self._kinds.startswith(WORD, at + 1)):
            return word_end
        end = self._last(self._run(at + 1, HOST_MARKS), "")
        return end if "." in self._low[at:end] else word_end

    def _number_end(self, end: int) -> int:
        while self._low[end : end + 1] in {".", ","} and self._is_digit(end - 1) and self._is_digit(end + 1):
            end = self._run(end + 1, "")
        return end

    def _run(self, i: int, marks: str) -> int:
        """Where the letters and marks from i on end."""
        low, kinds, size = self._low, self._kinds, len(self._low)
        while i < size and (kinds[i] in LETTERS or low[i] in marks):
            i += 1
        return i

    def _last(self, end: int, marks: str) -> int:
        """The end of what is before `end` without the marks that trail; there is a letter."""
        while not (self._kinds[end - 1] in LETTERS or self._low[end - 1] in marks):
            end -= 1
        return end

    def _is_digit(self, i: int) -> bool:
        return "0" <= self._low[i : i + 1] <= "9"
