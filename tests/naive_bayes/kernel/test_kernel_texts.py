"""The compiled tokenizer reads any text as the plain one does: each code point, each option, monsters."""

from __future__ import annotations

import os
import time
from functools import cache
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb.base.batch import Batch, Flag
from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.features.readers import WordPairs, Words
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.view import TEXT_ONLY, View
from tests.naive_bayes.kernel.test_kernel import ACCURATE, OPTIONS, TOKENIZER, WHOLE
from tests.support.twins import said as _said

pytestmark = pytest.mark.skipif(os.environ.get("STREAMNB_PURE", "") not in {"", "0"}, reason=_kernel.reason)


@pytest.mark.parametrize(
    "tokenizer",
    [Tokenizer(), Tokenizer(rule="words"), Tokenizer(keep_whole=WHOLE)],
    ids=["unicode", "words", "whole"],
)
def test_every_code_point_is_read_alike(tokenizer: Tokenizer) -> None:
    """Alone, doubled, between letters, and in what may be whole; all that Unicode has assigned, and more."""
    points = [*range(0x3_2400), *range(0xE_0000, 0xE_0200), *range(0x10_FF00, 0x11_0000)]
    letters = [chr(p) for p in points if not 0xD800 <= p < 0xE000]
    hosts = " {c}a://b{c} a{c}@b.c{c} 1{c}2" if tokenizer.keep_whole else ""
    texts = [
        " ".join(f"{c} {c}{c} b{c}d{hosts.format(c=c)}" for c in letters[start : start + 512])
        for start in range(0, len(letters), 512)
    ]
    models = [
        NaiveBayes(ACCURATE[:1], head="product", tokenizer=tokenizer, compiled=compiled)
        for compiled in (False, True)
    ]
    plain, twin = (model.step(Batch({"text": texts}, ["a"] * len(texts))) for model in models)
    assert _said(twin) == _said(plain)
    assert models[1].digest() == models[0].digest()


WORDS = [*"aé1", "x1", "1x", "Www", "the", "中", "\u0301", "", "a+b@c", "1%é@x"]
MARKS = [*".,@:/-+%_? \u200d\x00", "://", "://", ".", "@"]
LINKS = st.tuples(st.sampled_from(WORDS), st.sampled_from(MARKS)).map("".join)
HOSTS = st.lists(LINKS, max_size=9).map("".join)


@given(st.lists(HOSTS, min_size=20, max_size=40), TOKENIZER)
@settings(max_examples=300)
def test_every_option_reads_alike(texts: list[str], tokenizer: Tokenizer) -> None:
    """Whatever stands next to what; ASCII alone, which has a way of its own, and the rest."""
    texts += [text.encode("ascii", "ignore").decode() for text in texts]
    views = [View("w", Words()), View("p", WordPairs(prefix=True))]
    models = [
        NaiveBayes(views, head="product", tokenizer=tokenizer, compiled=compiled)
        for compiled in (False, True)
    ]
    plain, twin = (model.step(Batch({"text": texts}, ["a"] * len(texts))) for model in models)
    assert _said(twin) == _said(plain)
    assert models[1].digest() == models[0].digest()


@pytest.mark.parametrize("rule", ["unicode", "words"])
def test_every_character_of_ascii_is_what_the_alphabet_says_at_any_place(
    rule: Literal["unicode", "words"],
) -> None:
    """The twin looks at 8 in a word and 64 in a bitmap: each character before, on and after their edges."""
    texts = [
        "".join(chr((i * 67 + shift) % 128) for i in range(size))
        for shift in range(128)
        for size in (7, 8, 65)
    ]
    texts += [
        "x" * n + chr(i) + "Y" * (64 - n % 3) for n in (0, 1, 6, 7, 8, 62, 63, 64, 127) for i in range(128)
    ]
    tokenizer = Tokenizer(rule=rule, token_length_max=60)
    models = [
        NaiveBayes(TEXT_ONLY, head="product", tokenizer=tokenizer, compiled=compiled)
        for compiled in (False, True)
    ]
    plain, twin = (model.step(Batch({"text": texts}, ["a"] * len(texts))) for model in models)
    assert _said(twin) == _said(plain)
    assert models[1].digest() == models[0].digest()


# ---- what nobody should send

MB = 1 << 20
MONSTERS = {
    "a token of 1 MB": "x" * MB,
    "a token of 1 MB of Latin": "é" * (MB // 2),
    "a token of 1 MB of marks": "\u0301" * (MB // 2),
    "1 MB of Chinese": "中" * (MB // 3),
    "1 MB of joiners": "👍\u200d" * (MB // 7),
    "1 MB of NUL": "\x00" * MB,
    "a million tokens": "a " * 10**6,
    "a million distinct tokens": " ".join(map(str, range(10**6))),
    "10 MB of words": "free cash now " * (10 * MB // 14),
    "10 MB of Hindi": "कमल कमल " * (10 * MB // 20),
}


MONSTERS_OF_OPTIONS = {
    "a URL of 1 MB": "http://x/" + "a/" * (MB // 2),
    "a URL of 1 MB of marks": "http://x" + "?" * MB,
    "1 MB of URLs in one": "http://" * (MB // 7),
    "a name of 1 MB": "a." * (MB // 2),
    "1 MB of names": "a@" * (MB // 2),
    "1 MB of hosts": "a@b-" * (MB // 4),
    "a name of 1 MB of Latin": "é+" * (MB // 3),
    "a number of 1 MB": "1," * (MB // 2),
    "1 MB of stop words": "the of " * (MB // 7),
    "3 MB of addresses": "free@cash.now www.a.b/c 1.5 " * (3 * MB // 28),
}


ORDINARY = "free cash now " * (MB // 14)
LENGTHS = {False: MB // 16, True: MB // 2}  # the plain twin takes a second for a megabyte of some
LONGER = {False: 25.0, True: 12.0}  # measured: the worst takes 5 times as long, and compiled 2.5 times


@pytest.mark.parametrize(
    ("text", "tokenizer"),
    [
        *((text, Tokenizer()) for text in MONSTERS.values()),
        *((text, OPTIONS) for text in MONSTERS_OF_OPTIONS.values()),
    ],
    ids=[*MONSTERS, *MONSTERS_OF_OPTIONS],
)
def test_monsters_are_cut_and_flagged(text: str, tokenizer: Tokenizer) -> None:
    """In either twin, to the bit. A quarter of it is read backwards too, which turns begins into ends."""
    backwards = text[: -len(text) // 4 : -1]
    monster = Batch({"text": ["free cash", text, backwards]}, ["a", "b", "a"])
    said = []
    for compiled in (False, True):
        model = NaiveBayes(ACCURATE, tokenizer=tokenizer, compiled=compiled)
        model.step(Batch({"text": ["free lunch", "x"]}, ["a", "b"]))
        scores = model.step(monster)
        assert [bool(flag & Flag.TRUNCATED) for flag in scores.flags.tolist()] == [False, True, True]
        assert np.isfinite(scores.posterior).all()
        said.append((_said(scores), model.digest()))
        rows = model.state.counts["w"].rows
        assert max(len(token) for token, _ in rows.items()) <= 64
    assert said[0] == said[1]


@cache
def _ordinary_s(tokenizer: Tokenizer, *, compiled: bool) -> float:
    return _seconds_per_mb(ORDINARY[: LENGTHS[compiled]], tokenizer, compiled=compiled)


def _seconds_per_mb(text: str, tokenizer: Tokenizer, *, compiled: bool) -> float:
    """Return the least of two costs of a megabyte, in time of the processor: other programs add little."""
    took = []
    for _ in range(2):
        model = NaiveBayes(ACCURATE, tokenizer=tokenizer, compiled=compiled)
        model.step(Batch({"text": ["free lunch", "x"]}, ["a", "b"]))
        monster = Batch({"text": ["free cash", text, text[::-1]]}, ["a", "b", "a"])
        began = time.thread_time()
        model.step(monster)
        took.append(time.thread_time() - began)
    return min(took) / (2 * len(text.encode()) / MB)


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize(
    ("text", "tokenizer"),
    [
        *((text, Tokenizer()) for text in MONSTERS.values()),
        *((text, OPTIONS) for text in MONSTERS_OF_OPTIONS.values()),
    ],
    ids=[*MONSTERS, *MONSTERS_OF_OPTIONS],
)
def test_A13_a_megabyte_of_any_text_costs_about_as_much_as_one_of_words(
    text: str, tokenizer: Tokenizer, compiled: bool
) -> None:
    """Beside ordinary words in the same run, so that a slow machine is as slow with both.

    A megabyte of words takes 3 ms compiled, so any text stays below the 50 ms that a stream may wait. With a
    search that begins again at each word it would take hundreds of times as long.
    """
    ordinary_s, part = _ordinary_s(tokenizer, compiled=compiled), text[: LENGTHS[compiled]]
    assert _seconds_per_mb(part, tokenizer, compiled=compiled) < LONGER[compiled] * ordinary_s
