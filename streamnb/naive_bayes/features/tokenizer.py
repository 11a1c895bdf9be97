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
from streamnb.naive_bayes.features.stop_words import stop_words_of, words_fingerprint

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


def check_limits(*limits: int) -> None:
    """Raise ``ValueError`` for a limit below 1 or above 2^31."""
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
        check_limits(self.token_length_max, self.message_tokens_max, self.token_length_min)
        if self.token_length_min > self.token_length_max:
            raise ValueError("`token_length_min` must not be above `token_length_max`")
        if self.whole and self.rule == "words":
            raise ValueError('`whole` goes with the rule "unicode"; the rule "words" has no marks in a token')
        stop_words_of(self.stop_words)

    def state_settings(self) -> dict[str, object]:
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
            settings["stop_words_fingerprint"] = words_fingerprint(stop_words_of(self.stop_words))
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
