r"""What a token is: the one definition, and the readers that turn fields into features.

A text is put into lower case code point by code point, every code point has one kind (see `alphabet`), and a
token is a run of kinds. Nothing here knows a locale or the neighbours of a message.

The rule ``unicode`` gives, on Latin text, what ``\w+|[^\w\s]`` gives on lower case: words, and each
punctuation mark for itself. Elsewhere it keeps combining marks with their letter (Hindi, Thai), reads
Chinese and Japanese by characters and pairs, and keeps an emoji and its modifiers whole. The rule
``words`` is the peers' ``\w\w+``: words of two characters and more. Numbers, URLs and mail addresses are read
in parts by both, and by ``unicode`` whole where that is asked for (see `whole`).

Then the limits cut, and short tokens and stop words are dropped from what is left, if that is asked for. All
readers see these tokens and no others: a pair joins the neighbours that are left, as the n-grams of
scikit-learn do, and no run of characters is taken from a dropped word.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

from streamnb.naive_bayes.features.alphabet import (
    CJK,
    JOINER,
    KIND_OF_CODE_POINT,
    MARK,
    OTHER,
    REGION,
    TONE,
    WORD,
    lower,
)
from streamnb.naive_bayes.features.entities import Whole, WholeReader
from streamnb.naive_bayes.features.stop_words import fingerprint, stop_words_of

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
    whole : tuple of {"numbers", "urls", "mail"}
        What is one token and not several, as `whole` defines it; with the rule ``unicode``.
    token_length_min : int
        Code points of a token; a shorter one is dropped. 2 drops punctuation too.
    stop_words : tuple of str
        Languages (ISO 639-1) whose stop words are dropped: the tokens that stand, whole, in the list. An
        entry that is several tokens ("don't") is none.

    Examples
    --------
    >>> Tokenizer().read("Win £1,000!").tokens
    ['win', '£', '1', ',', '000', '!']
    >>> Tokenizer(rule="words").read("I win £1,000!").tokens
    ['win', '000']
    >>> Tokenizer().read("कमल 你好吗 👍🏽").tokens
    ['कमल', '你', '你好', '好', '好吗', '吗', '👍🏽']
    >>> Tokenizer(whole=("numbers", "mail"), token_length_min=2).read("Mail £1,000 to a.b@c.org!").tokens
    ['mail', '1,000', 'to', 'a.b@c.org']
    """

    rule: Literal["unicode", "words"] = "unicode"
    token_length_max: int = 64
    message_tokens_max: int = 65_536
    whole: tuple[Whole, ...] = ()
    token_length_min: int = 1
    stop_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a limit out of bounds, options that contradict, or a language unknown."""
        _check_limits(self.token_length_max, self.message_tokens_max, self.token_length_min)
        if self.token_length_min > self.token_length_max:
            raise ValueError("`token_length_min` must not be above `token_length_max`")
        if self.whole and self.rule == "words":
            raise ValueError('`whole` goes with the rule "unicode"; the rule "words" has no marks in a token')
        stop_words_of(self.stop_words)

    def statistics(self) -> dict[str, object]:
        """What counts depend on; an option that is off is not named, as if there were no such option.

        Stop words are named with a fingerprint: a list that changed is another setting.
        """
        settings: dict[str, object] = {
            "rule": self.rule,
            "token_length_max": self.token_length_max,
            "message_tokens_max": self.message_tokens_max,
        }
        if self.whole:
            settings["whole"] = sorted(set(self.whole))
        if self.token_length_min > 1:
            settings["token_length_min"] = self.token_length_min
        if self.stop_words:
            settings["stop_words"] = sorted(set(self.stop_words))
            settings["stop_words_fingerprint"] = fingerprint(stop_words_of(self.stop_words))
        return settings

    def read(self, text: str) -> Text:
        """Lower case, tokens and flags of one text."""
        low = lower(text)
        tokens, truncated = self.split(low)
        return Text(len(text), low, tokens, truncated)

    def split(self, low: str) -> tuple[list[str], bool]:
        """The tokens of a text that is in lower case already, and whether a limit cut them."""
        if self.rule == "words":
            tokens = _PEERS_WORDS.findall(low)
        elif not self.whole and (low.isascii() or max(low) < "\u0300"):
            tokens = _UNICODE_WORDS.findall(low)  # the same tokens as below, without the detour
        else:
            tokens = _split_by_kind(low, self.whole)
        truncated = False
        if len(tokens) > self.message_tokens_max:
            del tokens[self.message_tokens_max :]
            truncated = True
        if len(low) > self.token_length_max:
            longest = self.token_length_max
            if any(len(token) > longest for token in tokens):
                tokens = [token[:longest] for token in tokens]
                truncated = True
        if self.token_length_min > 1:
            tokens = [token for token in tokens if len(token) >= self.token_length_min]
        if self.stop_words:
            dropped = stop_words_of(self.stop_words)
            tokens = [token for token in tokens if token not in dropped]
        return tokens, truncated


def _split_by_kind(low: str, whole: tuple[Whole, ...]) -> list[str]:
    kinds = low.translate(KIND_OF_CODE_POINT)
    reader = WholeReader(low, kinds, whole)
    tokens: list[str] = []
    end = 0
    while match := _KINDS_OF_TOKEN.search(kinds, end):
        start, end = match.span()
        if kinds[start] != CJK:
            if whole and kinds[start] == WORD:
                end = reader.end(start, end)
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


def _check_prefix(fields: tuple[str, ...], prefix: bool) -> None:
    for field in fields if prefix else ():
        if ":" in field:
            raise ValueError(f"a field whose name has a colon, as {field!r}, cannot be a prefix")


def _count(tokens: list[str]) -> Counts:
    counts: Counts = {}
    for token in tokens:
        counts[token] = counts.get(token, 0.0) + 1.0
    return counts


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="words"):
    """Every token.

    Parameters
    ----------
    fields : tuple of str
        Read as one text, a line each.
    prefix : bool
        Read each field for itself, and count its tokens apart: ``subject:free``, ``text:free``. What stands
        before the first colon is the field, so no two are one; a name with a colon is refused. The limits,
        and what other readers say of a text, then hold for each field.
    """

    fields: tuple[str, ...] = ("text",)
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a prefix with a colon."""
        _check_prefix(self.fields, self.prefix)

    def read(self, text: Text, _tokenizer: Tokenizer) -> Counts:
        """Token counts of one text."""
        return _count(text.tokens)


class WordPairs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="pairs"):
    """Every two neighbouring tokens, joined by a space (which no token holds)."""

    fields: tuple[str, ...] = ("text",)
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a prefix with a colon."""
        _check_prefix(self.fields, self.prefix)

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
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a run or a text shorter than 1, or a prefix with a colon."""
        _check_prefix(self.fields, self.prefix)
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
    prefix: bool = False

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for an edge of less than one token, or a prefix with a colon."""
        _check_prefix(self.fields, self.prefix)
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


def parts_of(reader: TextReader) -> list[tuple[str, tuple[str, ...]]]:
    """The texts that a reader looks at: what each one's tokens begin with, and its fields.

    Examples
    --------
    >>> parts_of(Words(("subject", "text")))
    [('', ('subject', 'text'))]
    >>> parts_of(Words(("subject", "text"), prefix=True))
    [('subject:', ('subject',)), ('text:', ('text',))]
    """
    if reader.prefix:
        return [(f"{field}:", (field,)) for field in reader.fields]
    return [("", reader.fields)]
