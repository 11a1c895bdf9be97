"""The alphabet: of what kind a code point is, and its lower case.

Each code point is judged for itself, without a locale or its neighbours, so that a compiled twin that asks
for `kind_page` reads the same characters.
"""

from __future__ import annotations

import unicodedata
from functools import cache

UNICODE_VERSION = unicodedata.unidata_version
"""Which code points are letters depends on it, so it is part of a snapshot's statistics fingerprint."""

WORD, MARK, CJK, SPACE, JOINER, REGION, TONE, OTHER = "wmcsjrtp"

# Han with its extensions and compatibility forms, Hiragana, Katakana: scripts without spaces, in which
# single characters and pairs are the usual index terms.
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
    """The kind of one code point: one of `WORD` to `OTHER`.

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
    """The kinds of the 256 code points from ``256 * page`` on (at most 4,352 pages, 1.3 MB in all)."""
    return "".join(kind(256 * page + i) for i in range(256))


class _KindOfCodePoint:
    """What ``str.translate`` asks, page by page."""

    def __getitem__(self, code_point: int) -> str:
        return kind_page(code_point >> 8)[code_point & 255]


KIND_OF_CODE_POINT = _KindOfCodePoint()
"""``text.translate(KIND_OF_CODE_POINT)`` is the kinds of a text, one a code point."""


def lower(text: str) -> str:
    """Lower case, each code point for itself: a final sigma is a sigma.

    Examples
    --------
    >>> lower("ΟΔΟΣ")
    'οδοσ'
    """
    return text.lower() if text.isascii() else text.replace("Σ", "σ").lower()
