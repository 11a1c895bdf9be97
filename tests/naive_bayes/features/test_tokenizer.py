"""The tokenizer: its two rules, how they split many scripts, their limits, and every text reader."""

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable
from itertools import pairwise, product

import pytest
import unicodedata2
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from streamnb.base.batch import Flag
from streamnb.naive_bayes.features.alphabet import KIND_OF_CODE_POINT, kind, kind_page, lower
from streamnb.naive_bayes.features.entities import Whole, WholeReader
from streamnb.naive_bayes.features.readers import CharacterGrams, Ends, TextReader, WordPairs, Words
from streamnb.naive_bayes.features.stop_words import stop_words_of, words_fingerprint
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.message_features import read_message
from streamnb.naive_bayes.model.view import View

ENDLESS = 10**9
UNICODE = Tokenizer(token_length_max=ENDLESS, message_tokens_max=ENDLESS)
PEERS = Tokenizer(rule="words", token_length_max=ENDLESS, message_tokens_max=ENDLESS)

# İ becomes "i" and a combining dot, which the rule keeps with its letter: it has a test of its own.
LATIN = st.characters(max_codepoint=0x2FF, exclude_characters="İ")
KNOWN = st.characters().filter(  # to Python and to the table, which may have different versions of Unicode
    lambda character: "Cn" not in {unicodedata.category(character), unicodedata2.category(character)}
)
# The rules differ in what they do with neighbours, so the alphabet is small and mixed.
MIXED = st.text(
    st.one_of(
        st.sampled_from("aZß_9 .\n!Σİ中文々あア한กี\u093f\u0301\u200d\u200c\ufe0f\u20e3🇩🇪👍🏽❤👩\x00\u3000"),
        st.characters(),
    ),
    max_size=40,
)


WHOLE: tuple[Whole, ...] = ("numbers", "urls", "mail")
SOME_WHOLE = st.sets(st.sampled_from(WHOLE)).map(lambda some: tuple(sorted(some)))
MARKED = st.one_of(
    MIXED,
    st.text(st.sampled_from("aw1é.,:/@-+_%?(! \u0301\u200d中"), max_size=40),
    st.lists(
        st.sampled_from([*"a1.,:/@- é中\u0301", "www.", "WWW.", "://", "x@y.z", "1,0"]), max_size=12
    ).map("".join),
)


def _signs(low: str, kinds: list[str]) -> str:
    """A simplified text: a letter becomes w, a digit 0, a code point that only continues a word m."""
    names = {"w": "w", "m": "m", "j": "m"}
    return "".join(
        "0" if c in "0123456789" else names.get(k, c if c.isascii() else "\x00")
        for c, k in zip(low, kinds, strict=True)
    )


def _whole(low: str, signs: str, start: int, end: int, whole: tuple[Whole, ...]) -> int:
    """The definitions of URLs, addresses and numbers as regular expressions, which need not be fast."""
    url = re.compile(r"[w0][-w0m!#$%&'()*+,./:;=?@[\]~]*(?<=[w0m/])")
    if "urls" in whole:
        head = end + 3 if signs[end : end + 3] == "://" else 0
        head = end + 1 if low[start : end + 1] == "www." else head
        if head and (match := url.match(signs, head)):
            return match.end()
    mail = re.compile(r"[w0][w0m.%+-]*@([w0][w0m.-]*(?<=[w0m]))")
    if "mail" in whole and (match := mail.match(signs, start)) and "." in match[1]:
        return match.end()
    number = re.compile(r"[w0][w0m]*(?:(?<=0)[.,](?=0)[w0m]+)*")
    match = number.match(signs, start)
    return match.end() if match and "numbers" in whole else end


def _naive(low: str, whole: tuple[Whole, ...] = ()) -> list[str]:
    """The rule `unicode` as a state machine, one code point at a time."""
    kinds = [kind(ord(character)) for character in low]
    signs = _signs(low, kinds)
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
            j = _whole(low, signs, i, run(i + 1, "wmj"), whole)
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
    r"""Both the fast path and the path by kinds give ``\w+|[^\w\s]`` over lower case."""
    expected = re.findall(r"\w+|[^\w\s]", text.lower())
    assert UNICODE.read(text).tokens == expected
    assert UNICODE.read(text + " 中").tokens == [*expected, "中"]


@given(st.text(KNOWN))
def test_the_peers_rule_is_the_peers_regex(text: str) -> None:
    r"""``\w\w+`` over lower case, whatever the writing."""
    assert PEERS.read(text).tokens == re.findall(r"\w\w+", lower(text))


@given(MIXED)
def test_any_text_reads_as_one_code_point_after_another(text: str) -> None:
    """The regular expression over kinds and the state machine give the same tokens."""
    assert UNICODE.read(text).tokens == _naive(lower(text))


@given(MARKED, SOME_WHOLE)
def test_nothing_but_white_space_is_lost(text: str, whole: tuple[Whole, ...]) -> None:
    """Every other code point is in some token, and no token contains white space."""
    read = replace(UNICODE, keep_whole=whole).read(text)
    assert set("".join(read.tokens)) == {c for c in read.low if not c.isspace()}
    assert not any(c.isspace() for token in read.tokens for c in token)


@given(MARKED, MARKED, SOME_WHOLE)
def test_a_space_divides(left: str, right: str, whole: tuple[Whole, ...]) -> None:
    """The tokens before white space do not depend on the text after it."""
    tokenizer = replace(UNICODE, keep_whole=whole)
    apart = tokenizer.read(left).tokens + tokenizer.read(right).tokens
    assert tokenizer.read(f"{left} {right}").tokens == apart


@given(st.text())
def test_characters_are_those_of_the_text_as_it_came(text: str) -> None:
    """They are counted in the original text; its lower case may have more code points."""
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
    """Marks stay with their letter, Chinese is split into characters and pairs, an emoji is one token."""
    assert UNICODE.read(text).tokens == expected


def test_T54_the_peers_rule_loses_what_the_peers_lose() -> None:
    """It loses short words, emoji and vowel signs, which is why it is not the default."""
    assert PEERS.read("I I a b").tokens == []
    assert PEERS.read("C++ C# 👍🏽").tokens == []
    assert PEERS.read("कमल कमला कमली").tokens == ["कमल"] * 3
    assert PEERS.read("3.14").tokens == ["14"]


def test_a_final_sigma_is_a_sigma() -> None:
    """Lower case ignores the neighbours of a letter, so a word is the same token wherever it occurs."""
    assert UNICODE.read("ΟΔΟΣ ΟΔΟΣΑ").tokens == ["οδοσ", "οδοσα"]
    assert "ΟΔΟΣ".lower() == "οδος"


def test_the_dot_of_the_turkish_i_stays_with_it() -> None:
    """Lower case turns it into two code points, which stay in one token."""
    read = UNICODE.read("İZMİR")
    assert (read.characters, read.tokens) == (5, ["i\u0307zmi\u0307r"])


@given(st.integers(0, 0x10FFFF))
def test_pages_agree_with_kinds(code_point: int) -> None:
    """A page holds the result of `kind` for each of its code points."""
    assert kind_page(code_point >> 8)[code_point & 255] == kind(code_point)


@pytest.mark.parametrize(
    "page", [0, 3, 0x0E, 0x20, 0x30, 0x31, 0x4D, 0xD8, 0xFF, 0x1B1, 0x1F1, 0x1F3, 0x10FF]
)
def test_a_page_is_256_kinds(page: int) -> None:
    """Among the pages are those where scripts begin and end, those of surrogates, and the last of Unicode."""
    assert kind_page(page) == "".join(kind(256 * page + i) for i in range(256))


def test_scripts_without_spaces_are_read_by_characters() -> None:
    """The ranges hold every Han ideograph and kana letter, and no letter of another script."""
    ideographs = ("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH")
    kana = ("HIRAGANA LETTER", "KATAKANA LETTER", "HALFWIDTH KATAKANA LETTER", "HENTAIGANA LETTER")
    scripts = {"CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH", "HENTAIGANA", "IDEOGRAPHIC", "KATAKANA-HIRAGANA"}
    for code_point in range(0x2E00, 0x32000):
        called = unicodedata2.name(chr(code_point), "")
        if kind(code_point) == "c":
            assert called.split(" ")[0] in scripts, called
        else:
            assert not called.startswith((*ideographs, *kana)) or "MINNAN" in called, called


# ---- whole

EVERYTHING = Tokenizer(keep_whole=WHOLE)


@given(MARKED, SOME_WHOLE)
def test_what_is_whole_is_what_its_definition_says(text: str, whole: tuple[Whole, ...]) -> None:
    """The search and the regular expressions agree, whatever text comes before and after."""
    assert replace(UNICODE, keep_whole=whole).read(text).tokens == _naive(lower(text), whole)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("£1,000.50!", ["£", "1,000.50", "!"]),
        ("3.5mm v2.0.1, 192.168.0.1.", ["3.5mm", "v2.0.1", ",", "192.168.0.1", "."]),
        ("1. 2 ,3 4,,5 a.6 7.b", ["1", ".", "2", ",", "3", "4", ",", ",", "5", "a", ".", "6", "7", ".", "b"]),
        ("1\u0301.5 ٣.٤", ["1\u0301", ".", "5", "٣", ".", "٤"]),
        ("https://x.y/z?q", ["https://x.y/z?q"]),
        ("See http://x.y.", ["see", "http://x.y", "."]),
        ("(HTTP://X.y/a_(b))", ["(", "http://x.y/a_(b", ")", ")"]),
        ("http://x.y/ www.x.y/?", ["http://x.y/", "www.x.y/", "?"]),
        ("ftp://u:p@x.y:21/é?a=b&c=1,5#d", ["ftp://u:p@x.y:21/é?a=b&c=1,5#d"]),
        ("hxxp://x www. www", ["hxxp://x", "www", ".", "www"]),
        ("http:// x", ["http", ":", "/", "/", "x"]),
        ("http://-x", ["http", ":", "/", "/", "-", "x"]),
        ("❤️https://t.co/a谢谢", ["❤️", "https://t.co/a", "谢", "谢谢", "谢"]),
        ("http://x.y/कमल", ["http://x.y/कमल"]),
        ("http://x\x00y", ["http://x", "\x00", "y"]),
        ("Mail a.b@c.org.", ["mail", "a.b@c.org", "."]),
        ("<jörg+x%1_a@b-c.d.de>", ["<", "jörg+x%1_a@b-c.d.de", ">"]),
        ("-a@b.c- mailto:a@b.c", ["-", "a@b.c", "-", "mailto", ":", "a@b.c"]),
        ("a@b a@ @b.c a@.c", ["a", "@", "b", "a", "@", "@", "b", ".", "c", "a", "@", ".", "c"]),
        ("a@b@c.d", ["a", "@", "b@c.d"]),
        ("1.5@x.org", ["1.5@x.org"]),
    ],
)
def test_numbers_urls_and_mail_addresses_are_whole(text: str, expected: list[str]) -> None:
    """They are one token if the settings ask for it; trailing punctuation is not part of it."""
    assert EVERYTHING.read(text).tokens == expected


def test_each_is_whole_for_itself() -> None:
    """Each of the three has its own switch, and all are off by default: the published figures are of the
    plain rule.
    """
    text = "1.5 www.x.y a@b.c"
    assert Tokenizer().keep_whole == ()
    assert Tokenizer().read(text).tokens == re.findall(r"\w+|[^\w\s]", text)
    for some in product((False, True), repeat=3):
        whole = tuple(name for name, there in zip(WHOLE, some, strict=True) if there)
        tokens = Tokenizer(keep_whole=whole).read(text).tokens
        assert tuple(token in tokens for token in text.split()) == some


def test_the_peers_rule_has_nothing_whole() -> None:
    """Its tokens contain no marks, so the option is refused."""
    with pytest.raises(ValueError, match='needs the rule "unicode"'):
        Tokenizer(rule="words", keep_whole=("urls",))


def test_a_long_url_is_cut_and_flagged() -> None:
    """The limit applies to it as to any token."""
    read = EVERYTHING.read(f"see http://x.y/{'a/' * 100}")
    assert read.tokens == ["see", f"http://x.y/{'a/' * 100}"[:64]]
    assert read.truncated


class _Watched(str):
    """A text that counts how much of it was examined."""

    __slots__ = ("looks",)
    looks: int

    def __getitem__(self, key: object) -> str:
        part = super().__getitem__(key)  # type: ignore[index]
        self.looks += len(part)
        return part


@pytest.mark.parametrize(
    "piece",
    ["a.", "a@", "a@b-", "a.b@", "www.", "www.@", "a://", "a:/", "1.", "1,1.", "é+", "a@b.\u0301", "x", "-@"],
)
@pytest.mark.parametrize("last", ["", "!", "@", "@a", "@a.", "://"])
def test_ten_times_the_text_is_ten_times_the_looks(piece: str, last: str) -> None:
    """No text makes the search for addresses start again and again."""

    def looks(copies: int) -> int:
        text = piece * copies + last
        low, kinds = _Watched(text), _Watched(text.translate(KIND_OF_CODE_POINT))
        low.looks = kinds.looks = 0
        reader = WholeReader(low, kinds, WHOLE)
        end = 0
        for word in re.finditer("w[wmj]*", str(kinds)):
            if word.start() >= end:
                end = reader.end(*word.span())
        return low.looks + kinds.looks

    assert looks(1_000) <= 10 * looks(100) + 1_000


# ---- what is dropped


@given(MARKED, SOME_WHOLE, st.integers(1, 4), st.sets(st.sampled_from(["en", "fr", "zh", "hi"])))
def test_short_tokens_and_stop_words_are_dropped_after_the_limits(
    text: str, whole: tuple[Whole, ...], shortest: int, languages: set[str]
) -> None:
    """All of them and no other tokens are dropped; dropping them does not flag the message."""
    tokenizer = Tokenizer(token_length_max=4, message_tokens_max=9, keep_whole=whole)
    before = tokenizer.read(text)
    after = replace(tokenizer, token_length_min=shortest, stop_words=tuple(languages)).read(text)
    dropped = stop_words_of(tuple(languages))
    assert after.tokens == [t for t in before.tokens if len(t) >= shortest and t not in dropped]
    assert after.truncated == before.truncated


def test_stop_words_are_of_the_languages_named() -> None:
    """They are compared in lower case, with whole tokens."""
    text = "The cat and DER Hund, don't"
    assert Tokenizer(stop_words=("en",)).read(text).tokens == ["cat", "der", "hund", ",", "'"]
    both = Tokenizer(stop_words=("en", "de"), token_length_min=2).read(text)
    assert both.tokens == ["cat", "hund"]


def test_readers_see_what_is_left() -> None:
    """A pair joins the neighbours that remain, as in scikit-learn; dropped words have no character runs."""
    tokenizer = Tokenizer(stop_words=("en",))
    text = tokenizer.read("win the big cash")
    assert WordPairs().read(text, tokenizer) == {"win cash": 1.0}
    assert CharacterGrams(n=5).read(text, tokenizer) == {" win ": 1.0, " cash": 1.0, "cash ": 1.0}
    assert Ends(n=1).read(text, tokenizer) == {"hwin": 1.0, "tcash": 1.0}


def test_a_language_without_a_list_is_refused() -> None:
    """The error lists the languages that have one."""
    with pytest.raises(ValueError, match=r"no stop words for 'xx'; there are lists for .*, en, .*, zu$"):
        Tokenizer(stop_words=("en", "xx"))


def test_lists_that_are_not_installed_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the package to install."""
    monkeypatch.setitem(sys.modules, "stopwordsiso", None)
    stop_words_of.cache_clear()
    with pytest.raises(ValueError, match=r"pip install 'streamnb\[stopwords\]'"):
        Tokenizer(stop_words=("en",))


def test_a_least_length_above_the_greatest_is_refused() -> None:
    """It would drop every token."""
    with pytest.raises(ValueError, match="must be at most"):
        Tokenizer(token_length_min=65)
    with pytest.raises(ValueError, match="at least 1"):
        Tokenizer(token_length_min=0)


# ---- what a snapshot remembers


def test_options_that_are_off_are_not_in_the_statistics() -> None:
    """A snapshot from before the options existed equals one with all of them off."""
    plain = {"rule": "unicode", "token_length_max": 64, "message_tokens_max": 65_536}
    assert Tokenizer().state_settings() == plain
    assert Tokenizer(keep_whole=("urls", "mail", "urls")).state_settings() == {
        **plain,
        "keep_whole": ["mail", "urls"],
    }
    assert Tokenizer(token_length_min=2).state_settings() == {**plain, "token_length_min": 2}


def test_statistics_know_the_words_of_a_list() -> None:
    """Another release of the lists is another setting; the order of the languages makes no difference."""
    said = Tokenizer(stop_words=("en", "de")).state_settings()
    assert said["stop_words"] == ["de", "en"]
    assert said == Tokenizer(stop_words=("de", "en", "de")).state_settings()
    assert said["stop_words_fingerprint"] == words_fingerprint(stop_words_of(("de", "en")))
    assert words_fingerprint(frozenset({"a", "b"})) != words_fingerprint(frozenset({"a", "c"}))
    assert words_fingerprint(frozenset({"a", "b"})) != words_fingerprint(frozenset({"ab"}))


# ---- limits


@given(MIXED, st.integers(1, 6), st.integers(1, 6))
def test_limits_cut_and_say_so(text: str, longest: int, most: int) -> None:
    """The first tokens and their first code points are kept; the message is flagged exactly if something was
    cut.
    """
    whole = UNICODE.read(text).tokens
    read = Tokenizer(token_length_max=longest, message_tokens_max=most).read(text)
    assert read.tokens == [token[:longest] for token in whole[:most]]
    assert read.truncated == (len(whole) > most or any(len(token) > longest for token in whole[:most]))


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    """No limit can remove everything."""
    with pytest.raises(ValueError, match="at least 1"):
        Tokenizer(token_length_max=limit)
    with pytest.raises(ValueError, match="at least 1"):
        Tokenizer(message_tokens_max=limit)


READERS: list[TextReader] = [Words(), WordPairs(), CharacterGrams(), Ends()]


@pytest.mark.parametrize("rule", ["unicode", "words"])
@pytest.mark.parametrize("character", ["a", "中", "\u0301", "é", "\u200d"])
def test_a_token_of_a_million_characters_is_cut(rule: str, character: str) -> None:
    """It becomes tokens of at most 64 code points, with a bounded number of features, and is flagged."""
    tokenizer = Tokenizer(rule=rule)  # type: ignore[arg-type]
    read = tokenizer.read(character * 1_000_000)
    assert read.truncated or not read.tokens
    assert all(len(token) <= tokenizer.token_length_max for token in read.tokens)
    assert len(read.tokens) <= tokenizer.message_tokens_max
    for reader in READERS:
        assert len(reader.read(read, tokenizer)) <= 4 * 64


@pytest.mark.parametrize("word", ["ab ", "! ", "中", "👍🏽", "क़ी "])
def test_a_million_tokens_are_cut_at_the_limit(word: str) -> None:
    """The first tokens are kept, in each kind of writing."""
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
    """The code points in all tokens and features grow no faster than the text."""

    def work(copies: int) -> float:
        read = Tokenizer(message_tokens_max=ENDLESS).read(text * copies)
        features = reader.read(read, Tokenizer())
        return sum(map(len, read.tokens)) + sum(len(name) * n for name, n in features.items())

    assert work(10_000) <= 10 * work(1_000) + 1_000


# ---- readers


@given(MIXED)
def test_words_are_every_token(text: str) -> None:
    """They are counted, in order of first appearance."""
    read = UNICODE.read(text)
    assert list(Words().read(read, UNICODE).items()) == list(Counter(read.tokens).items())


@given(MIXED)
def test_pairs_are_neighbours(text: str) -> None:
    """They are joined by a space, which no token contains, so different pairs stay different."""
    read = UNICODE.read(text)
    expected = Counter(pairwise(read.tokens))
    counts = WordPairs().read(read, UNICODE)
    assert {tuple(name.split(" ")): n for name, n in counts.items()} == expected


@given(MIXED, st.integers(1, 5), st.integers(1, 60))
def test_grams_run_inside_padded_words(text: str, n: int, characters_max: int) -> None:
    """A short padded word is one feature; only the first code points of the text are read."""
    expected: Counter[str] = Counter()
    for token in _naive(lower(text)[:characters_max]):
        padded = f" {token} "
        expected.update(
            [padded] if len(padded) <= n else (padded[i : i + n] for i in range(len(padded) - n + 1))
        )
    reader = CharacterGrams(n=n, characters_max=characters_max)
    assert reader.read(UNICODE.read(text), UNICODE) == expected


@given(MIXED, st.integers(1, 9))
def test_ends_are_the_first_and_last_tokens(text: str, n: int) -> None:
    """The mark keeps the same word in a greeting and in a signature apart."""
    read = UNICODE.read(text)
    expected: Counter[str] = Counter()
    for i, token in enumerate(read.tokens):
        expected["h" + token] += i < n
        expected["t" + token] += i >= len(read.tokens) - n
    assert Ends(n=n).read(read, UNICODE) == +expected


@pytest.mark.parametrize(
    "wrong", [lambda: CharacterGrams(n=0), lambda: CharacterGrams(characters_max=0), lambda: Ends(n=0)]
)
def test_readers_of_nothing_are_refused(wrong: Callable[[], object]) -> None:
    """The length of a run, of a text and of each end is at least 1."""
    with pytest.raises(ValueError, match="at least 1"):
        wrong()


# ---- fields apart

FIELDS = ("subject", "text", "a b")
PREFIXED: list[TextReader] = [replace(reader, fields=FIELDS, prefix=True) for reader in READERS]


ENCODABLE = MARKED.filter(lambda text: not re.search("[\ud800-\udfff]", text))  # readers refuse the others


@given(st.tuples(ENCODABLE, ENCODABLE, ENCODABLE), st.sampled_from(PREFIXED))
def test_a_prefix_tells_the_field(texts: tuple[str, str, str], reader: TextReader) -> None:
    """Before the first colon is the field's name; after it is the token that the field alone would give."""
    message = dict(zip(FIELDS, texts, strict=True))
    found = read_message([View("v", reader)], UNICODE, {name: [text] for name, text in message.items()}, 0)
    alone = {
        (name, token): n
        for name, text in message.items()
        for token, n in reader.read(UNICODE.read(text), UNICODE).items()
    }
    (features,) = found.features
    weighed = View("v", reader).formulas.features(
        {f"{name}:{token}": n for (name, token), n in alone.items()}
    )
    assert features == weighed
    assert {tuple(token.split(":", 1)) for token in features} == set(alone)


@pytest.mark.parametrize("reader", READERS)
def test_limits_hold_for_each_field_apart(reader: TextReader) -> None:
    """With a prefix each field has the whole limit; one field that is cut flags the message."""
    tokenizer = Tokenizer(message_tokens_max=2)
    fields = {"subject": ["a b"], "text": ["c d"], "long": ["e f g"]}

    def flags(*names: str, prefix: bool) -> Flag:
        view = View("v", replace(reader, fields=names, prefix=prefix))
        return read_message([view], tokenizer, fields, 0).flags

    assert flags("subject", "text", prefix=False) == Flag.TRUNCATED
    assert flags("subject", "text", prefix=True) == Flag(0)
    assert flags("subject", "long", prefix=True) == Flag.TRUNCATED
    assert flags("absent", prefix=True) == Flag.EMPTY


@pytest.mark.parametrize("reader", READERS)
def test_a_colon_cannot_be_in_a_prefix(reader: TextReader) -> None:
    """The field's name would end at it."""
    with pytest.raises(ValueError, match="'dc:title' cannot be a prefix"):
        replace(reader, fields=("dc:title",), prefix=True)
    assert replace(reader, fields=("dc:title",)).fields == ("dc:title",)


def test_every_two_neighbours_of_a_script_without_spaces_are_a_pair() -> None:
    """Not only every other two."""
    assert Tokenizer().read("你好吗呢").tokens == ["你", "你好", "好", "好吗", "吗", "吗呢", "呢"]
