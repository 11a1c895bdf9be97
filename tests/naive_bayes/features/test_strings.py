"""The reader of strings: which strings a text has, and that none is more frequent than its parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.naive_bayes.features.message import Message
from streamnb.naive_bayes.features.strings import Strings, shown
from streamnb.naive_bayes.features.tokenizer import Tokenizer

TEXT = st.text(st.sampled_from("abA É日\x00 "), max_size=30)


def strings_of(text: str, **settings: int) -> dict[str, float]:
    """Return the strings of a text with their counts."""
    return Strings(**settings).features(Message({"text": [text]}, 0, Tokenizer()))  # type: ignore[arg-type]


@given(TEXT, st.integers(1, 4))
def test_every_string_is_counted_as_often_as_it_occurs_in_the_padded_text(text: str, order: int) -> None:
    """Overlapping occurrences included."""
    padded = b" " * order + text.encode().lower() if text else b""

    for string, n in strings_of(text, order=order).items():
        bare = string.encode("latin-1")
        starts = range(len(padded) - len(bare) + (1 if bare else 0))

        assert len(bare) <= order + 1
        assert n == sum(padded.startswith(bare, start) for start in starts)


@given(TEXT, st.integers(1, 4))
def test_no_string_occurs_more_often_than_without_its_first_or_last_byte(text: str, order: int) -> None:
    """Eviction relies on it, and on the longer string being the older feature."""
    strings = strings_of(text, order=order)
    place = {string: i for i, string in enumerate(strings)}

    for string, n in strings.items():
        for shorter in (string[1:], string[:-1]) if string else ():
            assert strings[shorter] >= n
            assert place[shorter] > place[string]


def test_there_is_one_longest_string_for_each_byte() -> None:
    """It ends with that byte."""
    longest = [string for string in strings_of("win", order=2) if len(string) == 3]

    assert longest == ["  w", " wi", "win"]


def test_only_ascii_letters_are_read_in_lower_case_and_white_space_stays() -> None:
    """A byte of a longer character is not a letter."""
    assert "aÉ\t".encode().decode("latin-1") in strings_of("AÉ\t", order=3)


def test_only_the_first_bytes_are_read_even_if_a_character_is_cut() -> None:
    """The window is measured in bytes."""
    assert strings_of("aÉb", bytes=2) == strings_of("aÈ", bytes=2)
    assert strings_of("abc", bytes=2) == strings_of("ab")


def test_an_empty_text_has_no_strings() -> None:
    """Not even the spaces before it."""
    assert strings_of("") == {}


@pytest.mark.parametrize("settings", [{"order": 0}, {"order": 17}, {"bytes": 0}, {"bytes": 65_537}])
def test_limits_out_of_bounds_are_refused(settings: dict[str, int]) -> None:
    """The error names the setting."""
    with pytest.raises(ValueError, match=next(iter(settings))):
        Strings(**settings)  # type: ignore[arg-type]


def test_a_string_is_shown_as_the_text_that_it_is() -> None:
    """Bytes that are part of no character are marked."""
    assert shown("É".encode().decode("latin-1")) == "É"
    assert shown("\xc3") == "�"
