"""Shapes: what words look like as they were sent; equal in both twins for texts of any script."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamnb.base import Batch
from streamnb.naive_bayes import NaiveBayes, View, Words, _kernel
from streamnb.naive_bayes.features.message import Message
from streamnb.naive_bayes.features.shapes import Shapes, shapes
from streamnb.naive_bayes.features.tokenizer import Tokenizer

TEXTS = st.text(
    st.one_of(
        st.sampled_from("abXYZ019_ !?£é你कİΣ\u200d\u0301👍🏽"), st.characters(exclude_categories=["Cs"])
    )
)


@given(st.text(st.characters(max_codepoint=126)))
def test_ascii_shapes_are_those_of_a_regular_expression(text: str) -> None:
    """Letters, digits, and runs of three or more; every other character that is no white space is a sign."""
    expected = []
    for token in re.findall(r"\w+|[^\w\s]", text):
        shape = re.sub("[A-Z]", "X", re.sub("[0-9]", "9", re.sub("[a-z]", "x", token)))
        expected.append(re.sub(r"(.)\1\1+", r"\1\1+", shape))
    if all(len(token) <= 64 for token in re.findall(r"\w+", text)):
        assert shapes(text, Tokenizer()) == expected


@pytest.mark.skipif(os.environ.get("STREAMNB_PURE", "") not in {"", "0"}, reason=_kernel.reason)
@given(TEXTS)
@example("İ Σ ß")
@example("X" * 70 + "abc")
def test_both_twins_read_the_same_shapes(text: str) -> None:
    """Under short limits too."""
    limits = Tokenizer(token_length_max=5, message_tokens_max=4)
    read = Shapes().features(Message({"text": [text]}, 0, limits))
    model = NaiveBayes([View("words", Words()), View("shapes", Shapes())], tokenizer=limits)
    model.step(Batch({"text": [text]}, ["a"]))
    assert set(model.state.counts["shapes"].rows) == set(read)


def test_limits_hold_for_shapes() -> None:
    """A word is cut before its runs are shortened, and a text after its last token."""
    limits = Tokenizer(token_length_max=4, message_tokens_max=2)
    assert shapes("abcdefg AB1 c", limits) == ["xx+", "XX9"]


def test_a_prefix_tells_fields_apart() -> None:
    """As for words."""
    message = Message({"subject": ["WIN"], "text": ["win"]}, 0, Tokenizer())
    assert Shapes(("subject", "text"), prefix=True).features(message) == {"subject:XX+": 1.0, "text:xx+": 1.0}


def test_shapes_start_with_less_weight_than_words() -> None:
    """A tenth, and the other views share the rest; alone they have all of it."""

    def starts(*names: str) -> list[float]:
        views = [View(name, Shapes() if name == "shapes" else Words()) for name in names]
        head = NaiveBayes(views).state.head
        assert head is not None
        return head.weights[: 4 * len(names) : 4]

    assert starts("words", "shapes", "subject") == pytest.approx([0.3, 0.1, 0.3])
    assert starts("shapes") == [0.7]
    assert starts("words") == [0.7]
