"""The alphabet: the kind of a code point (letter, mark, space and so on) and its lower case.

Both depend on the code point alone, never on a locale or on neighbouring characters. The compiled twin asks
this module for pages of kinds (`kind_page`), so it classifies every character as the plain code does.
"""

from __future__ import annotations

import unicodedata
from functools import cache

UNICODE_VERSION = unicodedata.unidata_version
"""The version of Python's Unicode tables. It decides which code points are letters, and so which tokens were
counted; therefore it is part of a snapshot's statistics fingerprint."""

# Letters, digits and "_"; combining marks and the zero width non-joiner; characters of the ranges below;
# white space; the zero width joiner; regional indicators (two make a flag emoji); skin tones; everything
# else, such as punctuation and emoji.
WORD, MARK, CJK, SPACE, JOINER, REGION, TONE, OTHER = "wmcsjrtp"

# Han with its extensions and compatibility forms, Hiragana and Katakana. These scripts have no spaces between
# words, so single characters and pairs of characters are the usual index terms.
_CJK_RANGES = (
    (0x3005, 0x3007),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),
    (0x1B000, 0x1B16F),
    (0x20000, 0x3FFFF),
)


def kind(code_point: int) -> str:
    """Return the kind of one code point: one of the constants `WORD` to `OTHER`.

    Examples
    --------
    >>> [kind(ord(c)) for c in "a中 !"]
    ['w', 'c', 's', 'p']
    """
    character = chr(code_point)
    if any(first <= code_point <= last for first, last in _CJK_RANGES) and character.isalnum():
        return CJK
    if character.isalnum() or character == "_":
        return WORD
    if character.isspace():
        return SPACE
    if unicodedata.category(character).startswith("M") or code_point == 0x200C:
        return MARK
    if code_point == 0x200D:
        return JOINER
    if 0x1F1E6 <= code_point <= 0x1F1FF:
        return REGION
    return TONE if 0x1F3FB <= code_point <= 0x1F3FF else OTHER


@cache
def kind_page(page: int) -> str:
    """Return the kinds of 256 code points, beginning with ``256 * page``, as one string.

    There are at most 4,352 pages, which take 1.3 MB when all are cached.
    """
    return "".join(kind(256 * page + i) for i in range(256))


class _KindOfCodePoint:
    """The table that ``str.translate`` looks kinds up in; it is filled page by page, as text needs it."""

    def __getitem__(self, code_point: int) -> str:
        return kind_page(code_point >> 8)[code_point & 255]


KIND_OF_CODE_POINT = _KindOfCodePoint()
"""``text.translate(KIND_OF_CODE_POINT)`` is a string of the same length with the kind of each code point."""


def lower(text: str) -> str:
    """Return a text in lower case, converting each code point by itself.

    Python's `str.lower` writes a capital sigma at the end of a word as a final sigma. Here it is always
    ``σ``, so a word is the same token wherever it occurs.

    Examples
    --------
    >>> lower("ΟΔΟΣ")
    'οδοσ'
    """
    return text.lower() if text.isascii() else text.replace("Σ", "σ").lower()
