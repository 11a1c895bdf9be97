"""The alphabet: the kind of a code point (letter, mark, space and so on) and its lower case.

Both depend on the code point alone, never on a locale, on neighbouring characters or on the version of
Python: `unicode_table` has the facts of one version of Unicode. The compiled twin asks this module for pages
of kinds (`kind_page`) and for lower cases, so it reads every character as the plain code does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cache

from streamnb.naive_bayes.features.unicode_table import ALPHANUMERIC, LOWER, MARKS, SPACES, VERSION

UNICODE: Mapping[str, str] = {"version": VERSION, "hash": "f47e98c6a4551892"}
"""The version of Unicode, and a hash of the kinds and lower cases of all code points. They decide which
tokens were counted; therefore both are part of a snapshot's statistics fingerprint.

The hash is BLAKE2b of 64 bits, of one text in UTF-8: the kinds of all code points in order, then the lower
cases of all code points in order (a surrogate has three bytes). A test computes it again."""

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


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the first and the last code point of each range, such as ``41-5a``."""
    for span in text.split():
        first, _, last = span.partition("-")
        yield int(first, 16), int(last or first, 16)


def _lower_cases() -> dict[int, int | str]:
    """Return the lower case of each code point that has one."""
    cases: dict[int, int | str] = {}
    for part in LOWER.split():
        span, _, low = part.partition(">")
        span, _, step = span.partition("/")
        ((first, last),) = _spans(span)
        first_low, *more = (int(one, 16) for one in low.split("+"))
        if more:
            cases[first] = "".join(map(chr, (first_low, *more)))
        else:
            points = range(first, last + 1, int(step or 1))
            cases.update(zip(points, (point - first + first_low for point in points), strict=True))
    return cases


_LOWER = _lower_cases()
_EXPANDING = {point: low for point, low in _LOWER.items() if isinstance(low, str)}
_RANGES = sorted(
    [
        *((first, last, WORD) for first, last in _spans(ALPHANUMERIC)),
        *((first, last, MARK) for first, last in _spans(MARKS)),
        *((first, last, SPACE) for first, last in _spans(SPACES)),
        (0, 0, OTHER),  # so that a range begins before every code point
        (0x5F, 0x5F, WORD),
        (0x200C, 0x200C, MARK),
        (0x200D, 0x200D, JOINER),
        (0x1F1E6, 0x1F1FF, REGION),
        (0x1F3FB, 0x1F3FF, TONE),
    ]
)
_FIRSTS = [first for first, _, _ in _RANGES]


def kind(code_point: int) -> str:
    """Return the kind of one code point: one of the constants `WORD` to `OTHER`.

    Examples
    --------
    >>> [kind(ord(c)) for c in "a中 !"]
    ['w', 'c', 's', 'p']
    """
    _, last, found = _RANGES[bisect_right(_FIRSTS, code_point) - 1]
    if code_point > last:
        return OTHER
    if found == WORD and any(first <= code_point <= last for first, last in _CJK_RANGES):
        return CJK
    return found


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
    return text.lower() if text.isascii() else text.translate(_LOWER)


def expanded(text: str) -> str:
    """Return a text with a code point in lower case if its lower case has several, as only ``İ`` has.

    Then each of its code points has one lower case, so that a text and its lower case are of equal length.

    Examples
    --------
    >>> len(expanded("İzmir")), expanded("Izmir")
    (6, 'Izmir')
    """
    return text if text.isascii() else text.translate(_EXPANDING)
