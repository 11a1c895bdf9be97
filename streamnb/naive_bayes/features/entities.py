"""Numbers, URLs and mail addresses that are kept as one token: how each is defined and found.

All three begin where the rule ``unicode`` begins a word. Below, a *letter* is any code point that may
continue a word: letters and digits of every script written with spaces, combining marks and joiners. A word
is tried as a URL, then as a mail address, then as a number; the first that matches becomes one token, and the
text after it is split by the rule as usual.

url
    A word followed by ``://``, or the word ``www`` followed by a point; then the beginning of a word; then
    letters and the marks of `URL_MARKS`, up to the last letter or slash among them.
mail address
    A word; then letters and `NAME_MARKS`; an ``@``; the beginning of a word; then letters and `HOST_MARKS`,
    up to the last letter among them. There must be a point after the ``@``.
number
    Words joined by a point or a comma that has an ASCII digit on both sides (as in rules WB11 and WB12 of
    Unicode Standard Annex 29). Versions and amounts with a unit match too.

The search takes time linear in the length of the text, so a hostile message cannot make it slow: what was
examined for a URL or a number becomes part of the token (except trailing marks, which cannot begin one), and
a failed search for a mail address is not repeated for the other words it has already passed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from streamnb.naive_bayes.features.alphabet import JOINER, MARK, WORD

Whole = Literal["numbers", "urls", "mail"]

LETTERS = WORD + MARK + JOINER
"""The kinds of code point that may continue a word. A word begins with `WORD`."""

URL_MARKS = "!#$%&'()*+,-./:;=?@[]~"
"""The marks that RFC 3986 allows in a URL. The underscore is missing because it counts as a letter."""
NAME_MARKS = "%+-."
HOST_MARKS = "-."


class WholeReader:
    """Finds the ends of numbers, URLs and mail addresses in one text, from left to right.

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
        """Return the end of the URL, mail address or number that starts with the word ``[start, word_end)``.

        If none starts there, return `word_end`. Call it with increasing `start`: it remembers where a search
        for a mail address has already failed.
        """
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
        self._no_mail_before = at  # a search from any word before this offset would end at it too
        if not (self._low.startswith("@", at) and self._kinds.startswith(WORD, at + 1)):
            return word_end
        end = self._last(self._run(at + 1, HOST_MARKS), "")
        return end if "." in self._low[at:end] else word_end

    def _number_end(self, end: int) -> int:
        while self._low[end : end + 1] in {".", ","} and self._is_digit(end - 1) and self._is_digit(end + 1):
            end = self._run(end + 1, "")
        return end

    def _run(self, i: int, marks: str) -> int:
        """Return the end of the run of letters and `marks` that begins at offset i."""
        low, kinds, size = self._low, self._kinds, len(self._low)
        while i < size and (kinds[i] in LETTERS or low[i] in marks):
            i += 1
        return i

    def _last(self, end: int, marks: str) -> int:
        """Return `end`, moved left past code points that are neither letters nor in `marks`.

        The caller has made sure that a letter comes before `end`.
        """
        while not (self._kinds[end - 1] in LETTERS or self._low[end - 1] in marks):
            end -= 1
        return end

    def _is_digit(self, i: int) -> bool:
        return "0" <= self._low[i : i + 1] <= "9"
