"""The Markov event model against a direct computation, and what its probabilities sum up to."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb import Markov, NaiveBayes, Strings, View, Words
from streamnb.naive_bayes.event_models.markov import probabilities
from streamnb.naive_bayes.statistics.view_counts import ViewCounts

TEXTS = st.lists(st.text(st.sampled_from("ab é"), min_size=1, max_size=12), min_size=1, max_size=5)


def padded(text: str, order: int) -> bytes:
    """Return the bytes of a text with the spaces before it."""
    return b" " * order + text.encode()


def directly(texts: Sequence[str], context: bytes, byte: int, order: int) -> float:
    """Return the probability of a byte after a context, counted in the texts themselves."""
    p = 1 / 256
    for size in range(len(context) + 1):
        x = context[len(context) - size :]
        n = k = 0
        for text in texts:
            read = padded(text, order)
            for end in range(size, len(read) + 1):
                if read[end - size : end] == x and (size or end < len(read)):
                    n += 1
                    k += end < len(read) and read[end] == byte
        if n:
            p = (k + math.sqrt(n) * p) / (n + math.sqrt(n))
    return p


def learned(texts: Sequence[str], order: int) -> NaiveBayes:
    """Return a model of strings alone that has learned the texts as one class."""
    model = NaiveBayes([View("strings", Strings(order=order))], compiled=False)
    for text in texts:
        model.learn_one({"text": text}, "seen")
    return model


@given(TEXTS, st.integers(1, 3))
def test_the_probability_of_a_byte_is_that_counted_in_the_texts(texts: list[str], order: int) -> None:
    """For the contexts of a text that was learned and of one that was not."""
    counts = learned(texts, order).state.counts["strings"]
    for text in (texts[0], "ba"):
        read = padded(text, order)
        for end in range(order, len(read)):
            string = read[end - order : end + 1].decode("latin-1")
            expected = directly(texts, read[end - order : end], read[end], order)

            assert probabilities(string, counts, [0]) == [pytest.approx(expected, rel=1e-12)]


@given(TEXTS)
def test_the_bytes_that_may_follow_a_context_sum_to_one_but_for_the_end_of_the_text(texts: list[str]) -> None:
    """A text may end after each context, and what is missing in the sum is that probability."""
    counts = learned(texts, 2).state.counts["strings"]
    for context in ("ab", "  ", "zz"):
        total = math.fsum(probabilities(context + chr(b), counts, [0])[0] for b in range(256))
        ends = any(padded(text, 2)[-size:] == context[-size:].encode() for text in texts for size in (1, 2))

        assert total < 1 + 1e-12
        assert ends or total == pytest.approx(1)


def test_the_joint_log_likelihood_is_prior_times_the_probability_of_every_byte() -> None:
    """The lectures' generative story, with a memory."""
    model = NaiveBayes([View("strings", Strings(order=2))])
    texts = {"spam": ["win money", "win"], "ham": ["lunch"]}
    for label, learned_texts in texts.items():
        for text in learned_texts:
            model.learn_one({"text": text}, label)
    read = padded("wine", 2)
    joint = model.joint_log_likelihood({"text": "wine"})

    for label, prior in (("spam", 2 / 3), ("ham", 1 / 3)):
        product = sum(
            math.log(directly(texts[label], read[i - 2 : i], read[i], 2)) for i in range(2, len(read))
        )

        assert joint[label] == pytest.approx(math.log(prior) + product)


def test_a_class_that_has_learned_no_text_expects_every_byte_alike() -> None:
    """Its evidence is the same whatever the text is."""
    counts = ViewCounts(n_classes=1)

    assert probabilities("win", counts, [0]) == [1 / 256]


@pytest.mark.parametrize("k", [2.0, 1e300])
def test_a_count_above_that_of_its_context_makes_no_probability_above_one(k: float) -> None:
    """Unlearning after eviction leaves such counts, and a forged snapshot any others."""
    counts = ViewCounts(n_classes=1)
    counts.add({"ab": k, "a": 1.0, "b": 1.0, "": 2.0}, class_index=0)

    assert 0 < probabilities("ab", counts, [0])[0] <= 1
    assert all(math.isfinite(z) for _, (z,) in Markov().parts({"ab": 1.0, "xb": 1.0}, counts, [0]))


def test_samples_are_texts_of_the_class() -> None:
    """A model of one text writes strings of that text."""
    model = NaiveBayes([View("strings", Strings(order=3))])
    for _ in range(2000):
        model.learn_one({"text": "ababab"}, "only")
    texts = [str(x["text"]) for x, _ in model.sample(20, seed=1)]

    assert sum(set(text) <= set("ab") for text in texts) > 15
    assert 4 < np.mean([len(text) for text in texts]) < 8


def test_a_model_has_255_parameters_for_each_context_and_class() -> None:
    """The contexts are the strings but the longest."""
    model = NaiveBayes([View("strings", Strings(order=1))])
    for label in ("x", "y"):
        model.learn_one({"text": "a"}, label)

    assert model.n_parameters() == 1 + 2 * 255 * 3  # "", " " and "a"


def test_strings_need_markov_and_markov_needs_strings() -> None:
    """Its counts are of strings that contain each other."""
    with pytest.raises(ValueError, match="Markov"):
        View("words", Words(), Markov())
