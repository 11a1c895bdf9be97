r"""The tokenizer: how a text becomes tokens. This is the only definition of a token.

The text is converted to lower case code point by code point, each code point has one kind (see `alphabet`),
and a token is a run of kinds. The result does not depend on the locale or on other messages.

The rule ``unicode`` gives the same tokens on Latin text as ``\w+|[^\w\s]`` on lower case: words, and each
punctuation mark as a token of its own. On other text it keeps combining marks with their letter (Hindi,
Thai), splits Chinese and Japanese into characters and pairs of characters, and keeps an emoji with its
modifiers. The rule ``words`` is ``\w\w+``, words of at least two characters, as in scikit-learn.
Both rules split numbers, URLs and mail addresses into parts; the rule ``unicode`` can keep them as one token
(see `entities`).

Then the limits are applied, and after them short tokens and stop words are dropped, if the settings ask for
it. All readers work on the tokens that remain. So a word pair joins neighbours among the remaining tokens, as
the n-grams of scikit-learn do, and a dropped word has no character runs.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import msgspec

from streamnb.naive_bayes.features.alphabet import (
    CJK,
    JOINER,
    KIND_OF_CODE_POINT,
    MARK,
    OTHER,
    REGION,
    SPACE,
    TONE,
    WORD,
    expanded,
    kind_page,
    lower,
)
from streamnb.naive_bayes.features.arguments import check_fields
from streamnb.naive_bayes.features.entities import Whole, WholeReader
from streamnb.naive_bayes.features.stop_words import stop_words_of, words_fingerprint

_LATIN_END = 0x300  # the first combining mark; below it are only words, white space and other signs
_LATIN_KINDS = "".join(kind_page(page) for page in range(_LATIN_END >> 8))


def _latin(kind: str) -> str:
    """Return the ranges of code points below `_LATIN_END` of one kind, as the inside of a class of `re`."""
    return "".join(
        f"{chr(run.start())}-{chr(run.end() - 1)}" for run in re.finditer(f"{kind}+", _LATIN_KINDS)
    )


# `\w` and `\s` would do the same by Python's version of Unicode.
_LATIN_TOKENS = re.compile(f"[{_latin(WORD)}]+|[^{_latin(WORD)}{_latin(SPACE)}]")
_LATIN_PEERS_WORDS = re.compile(f"[{_latin(WORD)}]{{2,}}")
_KINDS_OF_PEERS_WORD = re.compile(f"[{WORD}{CJK}]{{2,}}")
_KINDS_OF_TOKEN = re.compile(
    f"{WORD}[{WORD}{MARK}{JOINER}]*"
    f"|(?:{CJK}{MARK}*)+"
    f"|{REGION}{REGION}"
    f"|[{OTHER}{REGION}{TONE}][{TONE}{MARK}]*(?:{JOINER}[{OTHER}{REGION}{TONE}][{TONE}{MARK}]*)*"
    f"|{JOINER}|{MARK}+"
)
_CJK_CHARACTER = re.compile(f"{CJK}{MARK}*")


def check_limits(*limits: int) -> None:
    """Raise ``ValueError`` if a limit is below 1 or above 2^31."""
    for limit in limits:
        if not 1 <= limit <= 1 << 31:
            raise ValueError(
                f"a limit of tokens or characters must be at least 1 and at most 2^31, not {limit}"
            )


class Text(NamedTuple):
    """The text of one message (or of one field), split into tokens.

    Parameters
    ----------
    characters : int
        Number of code points of the original text; in lower case there may be more.
    original : str
        The text as it was sent, but for `streamnb.naive_bayes.features.alphabet.expanded`.
    low : str
        The text in lower case.
    tokens : list of str
        In order, with repetitions.
    truncated : bool
        Whether a token or the list of tokens was cut at its limit.
    """

    characters: int
    original: str
    low: str
    tokens: list[str]
    truncated: bool


class Tokenizer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the tokenizer: its rule and its limits.

    The limits exist because a hostile message must not decide how much memory or time it takes.

    Parameters
    ----------
    rule : {"unicode", "words"}
    token_length_max : int
        Most code points of a token. A longer token is cut there and the message is flagged.
    message_tokens_max : int
        Most tokens of a text. Further tokens are dropped and the message is flagged.
    keep_whole : tuple of {"numbers", "urls", "mail"}
        Which texts stay one token instead of several, as `entities` defines it; with the rule ``unicode``.
    token_length_min : int
        Fewest code points of a token. A shorter token is dropped; 2 drops punctuation too.
    stop_words : tuple of str
        Languages (ISO 639-1) whose stop words are dropped. A token is dropped if it equals an entry of the
        list, so an entry that the rule splits into several tokens ("don't") has no effect.

    Examples
    --------
    >>> Tokenizer().read("Win £1,000!").tokens
    ['win', '£', '1', ',', '000', '!']
    >>> Tokenizer(rule="words").read("I win £1,000!").tokens
    ['win', '000']
    >>> Tokenizer().read("कमल 你好吗 👍🏽").tokens
    ['कमल', '你', '你好', '好', '好吗', '吗', '👍🏽']
    >>> Tokenizer(keep_whole=("numbers", "mail"), token_length_min=2).read("Mail £1,000 to a.b@c.org!").tokens
    ['mail', '1,000', 'to', 'a.b@c.org']
    """

    rule: Literal["unicode", "words"] = "unicode"
    token_length_max: int = 64
    message_tokens_max: int = 65_536  # not a file's to set: a long mail has 10,000, and none needs more
    keep_whole: tuple[Whole, ...] = ()
    token_length_min: int = 1
    stop_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a wrong limit, contradicting options or a language without a list."""
        check_fields(self)
        for name in ("keep_whole", "stop_words"):
            if not isinstance(getattr(self, name), tuple):
                raise ValueError(f"`{name}` must be a tuple of texts, not {getattr(self, name)!r}")
        check_limits(self.token_length_max, self.message_tokens_max, self.token_length_min)
        if self.token_length_min > self.token_length_max:
            raise ValueError(
                f"`token_length_min` must be at most `token_length_max` ({self.token_length_max}), "
                f"not {self.token_length_min}"
            )
        if self.keep_whole and self.rule == "words":
            raise ValueError(
                '`keep_whole` needs the rule "unicode", because the rule "words" drops punctuation'
            )
        stop_words_of(self.stop_words)

    def state_settings(self) -> dict[str, object]:
        """Return the settings that counts depend on, for the statistics fingerprint.

        An option that is off is left out, so snapshots from before the option existed still match. Stop words
        come with a fingerprint of their list, because a changed list is a changed setting.
        """
        settings: dict[str, object] = {
            "rule": self.rule,
            "token_length_max": self.token_length_max,
            "message_tokens_max": self.message_tokens_max,
        }
        if self.keep_whole:
            settings["keep_whole"] = sorted(set(self.keep_whole))
        if self.token_length_min > 1:
            settings["token_length_min"] = self.token_length_min
        if self.stop_words:
            settings["stop_words"] = sorted(set(self.stop_words))
            settings["stop_words_fingerprint"] = words_fingerprint(stop_words_of(self.stop_words))
        return settings

    def read(self, text: str) -> Text:
        """Return the lower case of a text, its tokens, and whether a limit cut them."""
        low = lower(text)
        tokens, truncated = self.split(low)
        return Text(len(text), expanded(text), low, tokens, truncated)

    def split(self, low: str) -> tuple[list[str], bool]:
        """Split a text that is already in lower case; return its tokens and whether a limit cut them."""
        is_latin = low.isascii() or ord(max(low)) < _LATIN_END  # then a faster way to the same tokens
        if self.rule == "words":
            tokens = _LATIN_PEERS_WORDS.findall(low) if is_latin else _peers_words_by_kind(low)
        elif is_latin and not self.keep_whole:
            tokens = _LATIN_TOKENS.findall(low)
        else:
            tokens = _split_by_kind(low, self.keep_whole)
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


def _peers_words_by_kind(low: str) -> list[str]:
    """Return the tokens of the rule ``words``, found by the kinds of the code points."""
    kinds = low.translate(KIND_OF_CODE_POINT)
    return [low[found.start() : found.end()] for found in _KINDS_OF_PEERS_WORD.finditer(kinds)]


def _split_by_kind(low: str, whole: tuple[Whole, ...]) -> list[str]:
    """Return the tokens of the rule ``unicode``, found by the kinds of the code points."""
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
