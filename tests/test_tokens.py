"""Tokens: the two rules, what they do with the world's writing, their limits, and every reader."""

# ruff: noqa: N802 - a trap is named by its number

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb import tokens
from streamnb.tokens import CharacterGrams, Edges, TextReader, Tokenizer, WordPairs, Words, kind, kind_page

ENDLESS = 10**9
UNICODE = Tokenizer(token_length_max=ENDLESS, message_tokens_max=ENDLESS)
PEERS = Tokenizer(rule="words", token_length_max=ENDLESS, message_tokens_max=ENDLESS)

# İ becomes "i" and a combining dot, which the rule keeps with its letter: it has a test of its own.
LATIN = st.characters(max_codepoint=0x2FF, exclude_characters="İ")
# What stands next to what is where the rules differ, so the alphabet is small and mixed.
MIXED = st.text(
    st.one_of(
        st.sampled_from("aZß_9 .\n!Σİ中文々あア한กี\u093f\u0301\u200d\u200c\ufe0f\u20e3🇩🇪👍🏽❤👩\x00\u3000"),
        st.characters(),
    ),
    max_size=40,
)


def _naive(low: str) -> list[str]:
    """The rule `unicode`, one code point at a time."""
    kinds = [kind(ord(character)) for character in low]
    n = len(low)
    found: list[str] = []

    def run(i: int, members: str) -> int:
        while i < n and kinds[i] in members:
            i += 1
        return i

    i = 0
    while i < n:
        if kinds[i] == "s":
            i += 1
            continue
        if kinds[i] == "c":
            before = ""
            while i < n and kinds[i] == "c":
                j = run(i + 1, "m")
                found += [before + low[i:j], low[i:j]] if before else [low[i:j]]
                before = low[i:j]
                i = j
            continue
        if kinds[i] == "w":
            j = run(i + 1, "wmj")
        elif kinds[i : i + 2] == ["r", "r"]:
            j = i + 2
        elif kinds[i] in "prt":
            j = run(i + 1, "tm")
            while j + 1 < n and kinds[j] == "j" and kinds[j + 1] in "prt":
                j = run(j + 2, "tm")
        else:
            j = run(i, "m") if kinds[i] == "m" else i + 1
        found.append(low[i:j])
        i = j
    return found


# ---- the rules


@given(st.text(LATIN))
def test_latin_text_reads_as_the_regex_does(text: str) -> None:
    r"""``\w+|[^\w\s]`` over lower case, on the quick way and on the way of kinds."""
    expected = re.findall(r"\w+|[^\w\s]", text.lower())
    assert UNICODE.read(text).tokens == expected
    assert UNICODE.read(text + " 中").tokens == [*expected, "中"]


@given(st.text())
def test_the_peers_rule_is_the_peers_regex(text: str) -> None:
    r"""``\w\w+`` over lower case, whatever the writing."""
    assert PEERS.read(text).tokens == re.findall(r"\w\w+", tokens.lower(text))


@given(MIXED)
def test_any_text_reads_as_one_code_point_after_another(text: str) -> None:
    """The regular expression over kinds is the state machine it stands for."""
    assert UNICODE.read(text).tokens == _naive(tokens.lower(text))


@given(MIXED)
def test_nothing_but_white_space_is_lost(text: str) -> None:
    """Every other code point stands in some token, and no token holds white space."""
    read = UNICODE.read(text)
    assert set("".join(read.tokens)) == {c for c in read.low if not c.isspace()}
    assert not any(c.isspace() for token in read.tokens for c in token)


@given(MIXED, MIXED)
def test_a_space_divides(left: str, right: str) -> None:
    """What stands left of white space does not depend on what stands right of it."""
    assert UNICODE.read(f"{left} {right}").tokens == UNICODE.read(left).tokens + UNICODE.read(right).tokens


@given(st.text())
def test_characters_are_those_of_the_text_as_it_came(text: str) -> None:
    """Code points, not those of the lower case, which may be more."""
    assert UNICODE.read(text).characters == len(text)


# ---- T54 and its like


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I I a b", ["i", "i", "a", "b"]),
        ("C++ C#", ["c", "+", "+", "c", "#"]),
        ("कमल कमला कमली", ["कमल", "कमला", "कमली"]),
        ("दिन दीन", ["दिन", "दीन"]),
        ("ที่นี่ ดี", ["ที่นี่", "ดี"]),
        ("你好吗", ["你", "你好", "好", "好吗", "吗"]),
        ("お茶がa", ["お", "お茶", "茶", "茶が", "が", "a"]),
        ("か\u3099な", ["か\u3099", "か\u3099な", "な"]),
        ("한국어", ["한국어"]),
        ("cafe\u0301 café", ["cafe\u0301", "café"]),
        ("👍🏽👍", ["👍🏽", "👍"]),
        ("👩‍👩‍👧‍👦!", ["👩‍👩‍👧‍👦", "!"]),
        ("❤️‍🔥", ["❤️‍🔥"]),
        ("🇩🇪🇫🇷🇩", ["🇩🇪", "🇫🇷", "🇩"]),
        ("1️⃣", ["1️⃣"]),
        ("نمی\u200cخواهم", ["نمی\u200cخواهم"]),
        ("\u0301\u0302 a", ["\u0301\u0302", "a"]),
        ("\u200d a", ["\u200d", "a"]),
        ("a\x00b", ["a", "\x00", "b"]),
        ("a\ud800b \udc00", ["a", "\ud800", "b", "\udc00"]),
        ("3.14 10,000", ["3", ".", "14", "10", ",", "000"]),
        ("", []),
        (" \t\n\u3000\u00a0", []),
    ],
)
def test_T54_the_worlds_writing_keeps_its_words(text: str, expected: list[str]) -> None:
    """Marks stay with their letter, Chinese is read by characters and pairs, an emoji is whole."""
    assert UNICODE.read(text).tokens == expected


def test_T54_the_peers_rule_loses_what_the_peers_lose() -> None:
    """Short words, emoji and vowel signs: the reason that it is not the default."""
    assert PEERS.read("I I a b").tokens == []
    assert PEERS.read("C++ C# 👍🏽").tokens == []
    assert PEERS.read("कमल कमला कमली").tokens == ["कमल"] * 3
    assert PEERS.read("3.14").tokens == ["14"]


def test_a_final_sigma_is_a_sigma() -> None:
    """Lower case does not look at the neighbours, so a word is one token wherever it stands."""
    assert UNICODE.read("ΟΔΟΣ ΟΔΟΣΑ").tokens == ["οδοσ", "οδοσα"]
    assert "ΟΔΟΣ".lower() == "οδος"


def test_the_dot_of_the_turkish_i_stays_with_it() -> None:
    """Lower case makes two code points of it, and one token."""
    read = UNICODE.read("İZMİR")
    assert (read.characters, read.tokens) == (5, ["i\u0307zmi\u0307r"])


@given(st.integers(0, 0x10FFFF))
def test_pages_agree_with_kinds(code_point: int) -> None:
    """A page holds, at its place, what `kind` says."""
    assert kind_page(code_point >> 8)[code_point & 255] == kind(code_point)


@pytest.mark.parametrize(
    "page", [0, 3, 0x0E, 0x20, 0x30, 0x31, 0x4D, 0xD8, 0xFF, 0x1B1, 0x1F1, 0x1F3, 0x10FF]
)
def test_a_page_is_256_kinds(page: int) -> None:
    """Also where scripts begin and end, surrogates stand and Unicode ends."""
    assert kind_page(page) == "".join(kind(256 * page + i) for i in range(256))


def test_scripts_without_spaces_are_read_by_characters() -> None:
    """Every Han ideograph and kana letter that Python's tables name, and nothing of another script."""
    ideographs = ("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH")
    kana = ("HIRAGANA LETTER", "KATAKANA LETTER", "HALFWIDTH KATAKANA LETTER", "HENTAIGANA LETTER")
    scripts = {"CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH", "HENTAIGANA", "IDEOGRAPHIC", "KATAKANA-HIRAGANA"}
    for code_point in range(0x2E00, 0x32000):
        called = unicodedata.name(chr(code_point), "")
        if kind(code_point) == "c":
            assert called.split(" ")[0] in scripts, called
        else:
            assert not called.startswith((*ideographs, *kana)) or "MINNAN" in called, called


# ---- limits


@given(MIXED, st.integers(1, 6), st.integers(1, 6))
def test_limits_cut_and_say_so(text: str, longest: int, most: int) -> None:
    """The first tokens, their first code points; flagged if and only if something was dropped."""
    whole = UNICODE.read(text).tokens
    read = Tokenizer(token_length_max=longest, message_tokens_max=most).read(text)
    assert read.tokens == [token[:longest] for token in whole[:most]]
    assert read.truncated == (len(whole) > most or any(len(token) > longest for token in whole[:most]))


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    """No limit may swallow everything."""
    with pytest.raises(ValueError, match="at least 1"):
        Tokenizer(token_length_max=limit)
    with pytest.raises(ValueError, match="at least 1"):
        Tokenizer(message_tokens_max=limit)


READERS: list[TextReader] = [Words(), WordPairs(), CharacterGrams(), Edges()]


@pytest.mark.parametrize("rule", ["unicode", "words"])
@pytest.mark.parametrize("character", ["a", "中", "\u0301", "é", "\u200d"])
def test_a_token_of_a_million_characters_is_cut(rule: str, character: str) -> None:
    """It ends, flagged, in tokens of at most 64 code points and bounded features."""
    tokenizer = Tokenizer(rule=rule)  # type: ignore[arg-type]
    read = tokenizer.read(character * 1_000_000)
    assert read.truncated or not read.tokens
    assert all(len(token) <= tokenizer.token_length_max for token in read.tokens)
    assert len(read.tokens) <= tokenizer.message_tokens_max
    for reader in READERS:
        assert len(reader.read(read, tokenizer)) <= 4 * 64


@pytest.mark.parametrize("word", ["ab ", "! ", "中", "👍🏽", "क़ी "])
def test_a_million_tokens_are_cut_at_the_limit(word: str) -> None:
    """What is kept is the beginning, in each kind of writing."""
    text = word * 1_000_000
    read = Tokenizer().read(text)
    assert read.truncated
    assert len(read.tokens) == 65_536
    assert read.tokens == UNICODE.read(word * 70_000).tokens[:65_536]


@pytest.mark.parametrize(
    "text", ["free money 中文! ", "👩‍👩‍👧 ", "\u0301\u200d", "a\u0301", "中\u0301", "🇩", "ab"]
)
@pytest.mark.parametrize("reader", READERS)
def test_ten_times_the_text_is_ten_times_the_work(text: str, reader: TextReader) -> None:
    """Code points that tokens and features hold grow no faster than the text."""

    def work(copies: int) -> float:
        read = Tokenizer(message_tokens_max=ENDLESS).read(text * copies)
        features = reader.read(read, Tokenizer())
        return sum(map(len, read.tokens)) + sum(len(name) * n for name, n in features.items())

    assert work(10_000) <= 10 * work(1_000) + 1_000


# ---- readers


@given(MIXED)
def test_words_are_every_token(text: str) -> None:
    """Counted, in order of first appearance."""
    read = UNICODE.read(text)
    assert list(Words().read(read, UNICODE).items()) == list(Counter(read.tokens).items())


@given(MIXED)
def test_pairs_are_neighbours(text: str) -> None:
    """Joined by a space, which no token holds, so that no two pairs are one."""
    read = UNICODE.read(text)
    expected = Counter(pairwise(read.tokens))
    counts = WordPairs().read(read, UNICODE)
    assert {tuple(name.split(" ")): n for name, n in counts.items()} == expected


@given(MIXED, st.integers(1, 5), st.integers(1, 60))
def test_grams_run_inside_padded_words(text: str, n: int, characters_max: int) -> None:
    """A short word whole; only the first code points of the text are read."""
    expected: Counter[str] = Counter()
    for token in _naive(tokens.lower(text)[:characters_max]):
        padded = f" {token} "
        expected.update(
            [padded] if len(padded) <= n else (padded[i : i + n] for i in range(len(padded) - n + 1))
        )
    reader = CharacterGrams(n=n, characters_max=characters_max)
    assert reader.read(UNICODE.read(text), UNICODE) == expected


@given(MIXED, st.integers(1, 9))
def test_edges_are_the_first_and_last_tokens(text: str, n: int) -> None:
    """Marked by their end, so that a greeting is not a signature."""
    read = UNICODE.read(text)
    expected: Counter[str] = Counter()
    for i, token in enumerate(read.tokens):
        expected["h" + token] += i < n
        expected["t" + token] += i >= len(read.tokens) - n
    assert Edges(n=n).read(read, UNICODE) == +expected


@pytest.mark.parametrize(
    "wrong", [lambda: CharacterGrams(n=0), lambda: CharacterGrams(characters_max=0), lambda: Edges(n=0)]
)
def test_readers_of_nothing_are_refused(wrong: Callable[[], object]) -> None:
    """A run, a text and an edge are at least 1 long."""
    with pytest.raises(ValueError, match="at least 1"):
        wrong()
