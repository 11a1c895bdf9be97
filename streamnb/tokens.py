r"""What a token is: the one definition, and the readers that turn fields into features.

A text is put into lower case code point by code point, every code point has one `kind`, and a token is a
run of kinds. Nothing here knows a locale or the neighbours of a message, so that a compiled twin that asks
for `kind_page` reads the same tokens.

The rule ``unicode`` gives, on Latin text, what ``\w+|[^\w\s]`` gives on lower case: words, and each
punctuation mark for itself. Elsewhere it keeps combining marks with their letter (Hindi, Thai), reads
Chinese and Japanese by characters and pairs, and keeps an emoji and its modifiers whole. The rule
``words`` is the peers' ``\w\w+``: words of two characters and more.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

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

_UNICODE_WORDS = re.compile(r"\w+|[^\w\s]")
_PEERS_WORDS = re.compile(r"\w\w+")
_KINDS_OF_TOKEN = re.compile(
    f"{WORD}[{WORD}{MARK}{JOINER}]*"
    f"|(?:{CJK}{MARK}*)+"
    f"|{REGION}{REGION}"
    f"|[{OTHER}{REGION}{TONE}][{TONE}{MARK}]*(?:{JOINER}[{OTHER}{REGION}{TONE}][{TONE}{MARK}]*)*"
    f"|{JOINER}|{MARK}+"
)
_CJK_CHARACTER = re.compile(f"{CJK}{MARK}*")


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


_KIND_OF_CODE_POINT = _KindOfCodePoint()


def lower(text: str) -> str:
    """Lower case, each code point for itself: a final sigma is a sigma.

    Examples
    --------
    >>> lower("ΟΔΟΣ")
    'οδοσ'
    """
    return text.lower() if text.isascii() else text.replace("Σ", "σ").lower()


def _check_limits(*limits: int) -> None:
    for limit in limits:
        if not 1 <= limit <= 1 << 31:
            raise ValueError(
                f"a limit of tokens or characters must be at least 1 and at most 2^31, not {limit}"
            )


class Text(NamedTuple):
    """One message's text, read.

    Parameters
    ----------
    characters : int
        Code points of the text as it came.
    low : str
        The text in lower case.
    tokens : list of str
        In order, with repeats.
    truncated : bool
        Whether a token or the list was cut at its limit.
    """

    characters: int
    low: str
    tokens: list[str]
    truncated: bool


class Tokenizer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rule, and its limits: a hostile message must not choose the memory or the time it takes.

    Parameters
    ----------
    rule : {"unicode", "words"}
    token_length_max : int
        Code points of a token; the rest of a longer one is dropped and the message flagged.
    message_tokens_max : int
        Tokens of a text; those after it are dropped and the message flagged.

    Examples
    --------
    >>> Tokenizer().read("Win £1,000!").tokens
    ['win', '£', '1', ',', '000', '!']
    >>> Tokenizer(rule="words").read("I win £1,000!").tokens
    ['win', '000']
    >>> Tokenizer().read("कमल 你好吗 👍🏽").tokens
    ['कमल', '你', '你好', '好', '好吗', '吗', '👍🏽']
    """

    rule: Literal["unicode", "words"] = "unicode"
    token_length_max: int = 64
    message_tokens_max: int = 65_536

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a limit below 1 or above 2^31."""
        _check_limits(self.token_length_max, self.message_tokens_max)

    def read(self, text: str) -> Text:
        """Lower case, tokens and flags of one text."""
        low = lower(text)
        tokens, truncated = self.split(low)
        return Text(len(text), low, tokens, truncated)

    def split(self, low: str) -> tuple[list[str], bool]:
        """The tokens of a text that is in lower case already, and whether a limit cut them."""
        if self.rule == "words":
            tokens = _PEERS_WORDS.findall(low)
        elif low.isascii() or max(low) < "\u0300":
            tokens = _UNICODE_WORDS.findall(low)  # the same tokens as below, without the detour
        else:
            tokens = _split_by_kind(low)
        truncated = False
        if len(tokens) > self.message_tokens_max:
            del tokens[self.message_tokens_max :]
            truncated = True
        if len(low) > self.token_length_max:
            longest = self.token_length_max
            if any(len(token) > longest for token in tokens):
                tokens = [token[:longest] for token in tokens]
                truncated = True
        return tokens, truncated


def _split_by_kind(low: str) -> list[str]:
    kinds = low.translate(_KIND_OF_CODE_POINT)
    tokens: list[str] = []
    for match in _KINDS_OF_TOKEN.finditer(kinds):
        start, end = match.span()
        if kinds[start] != CJK:
            tokens.append(low[start:end])
            continue
        previous = ""
        for character in _CJK_CHARACTER.finditer(kinds, start, end):
            now = low[character.start() : character.end()]
            if previous:
                tokens.append(previous + now)
            tokens.append(now)
            previous = now
    return tokens


Counts = dict[str, float]
"""Distinct tokens of one view of one message, in order of first appearance, with how often each occurs."""


def _count(tokens: list[str]) -> Counts:
    counts: Counts = {}
    for token in tokens:
        counts[token] = counts.get(token, 0.0) + 1.0
    return counts


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="words"):
    """Every token. `fields` are read as one text, a line each."""

    fields: tuple[str, ...] = ("text",)

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Token counts of one text."""
        return _count(text.tokens)


class WordPairs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="pairs"):
    """Every two neighbouring tokens, joined by a space (which no token holds)."""

    fields: tuple[str, ...] = ("text",)

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Pair counts of one text."""
        tokens = text.tokens
        return _count([f"{first} {second}" for first, second in pairwise(tokens)])


class CharacterGrams(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="characters"
):
    """Runs of `n` characters inside each word, the word padded by a space at both ends.

    A padded word of at most `n` characters is one feature. Only the first `characters_max` code points of
    the text are read: the end of a long mail says little that its beginning does not.
    """

    fields: tuple[str, ...] = ("text",)
    n: int = 4
    characters_max: int = 3000

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a run or a text shorter than 1."""
        _check_limits(self.n, self.characters_max)

    def read(self, text: Text, tokenizer: Tokenizer) -> Counts:
        """Counts of the runs of one text."""
        tokens = text.tokens
        if len(text.low) > self.characters_max:
            tokens, _ = tokenizer.split(text.low[: self.characters_max])
        counts: Counts = {}
        for token in tokens:
            for gram in _grams(token, self.n):
                counts[gram] = counts.get(gram, 0.0) + 1.0
        return counts


@lru_cache(maxsize=1 << 16)
def _grams(token: str, n: int) -> tuple[str, ...]:
    padded = f" {token} "
    if len(padded) <= n:
        return (padded,)
    return tuple(padded[i : i + n] for i in range(len(padded) - n + 1))


class Edges(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="edges"):
    """The first and the last `n` tokens, marked ``h`` (head) and ``t`` (tail): greetings and signatures."""

    fields: tuple[str, ...] = ("text",)
    n: int = 8

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for an edge of less than one token."""
        _check_limits(self.n)

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Counts of the marked tokens of one text."""
        tokens = text.tokens
        return _count(["h" + t for t in tokens[: self.n]] + ["t" + t for t in tokens[-self.n :]])


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="terms"):
    """A field that holds term counts already: a mapping of name to count, as river's `BagOfWords` gives.

    Parameters
    ----------
    field : str
    above : float, optional
        Then any finite number may stand for a term, and a term is there, once, if its number is above this
        one; ``None`` and NaN are not above it.
    """

    field: str
    above: float | None = None


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="category"):
    """A field with one of several values; the token is the value's JSON, so that 1 and "1" differ."""

    field: str


class Number(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="number"):
    """A field with a real value; ``None`` and NaN are missing."""

    field: str


TextReader = Words | WordPairs | CharacterGrams | Edges
Reader = Words | WordPairs | CharacterGrams | Edges | Terms | Category | Number
