"""Models with a view of strings: merged, unlearned, bounded, stored, explained; by both twins."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamnb
from streamnb import NaiveBayes, Strings, View, Words
from streamnb.base import Batch
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.model.plain import described, typed
from tests.support.twins import said

PURE = os.environ.get("STREAMNB_PURE", "") not in {"", "0"}
TWINS = pytest.mark.parametrize("compiled", [False] if PURE else [True, False])
MESSAGES = st.lists(
    st.tuples(st.text(st.sampled_from("ab É"), max_size=9), st.sampled_from(["spam", "ham"])), max_size=8
)
VIEWS = (View("words", Words()), View("strings", Strings(order=3)))


def model_of(compiled: bool = not PURE, **options: Any) -> NaiveBayes:  # noqa: ANN401 - arguments passed on
    """Return an empty model of words and strings."""
    return NaiveBayes(VIEWS, compiled=compiled, classes=["spam", "ham"], **options)


def learned(messages: list[tuple[str, str]], **options: Any) -> NaiveBayes:  # noqa: ANN401
    """Return a model that has learned messages in order."""
    model = model_of(**options)
    for text, label in messages:
        model.learn_one({"text": text}, label)
    return model


def batch_of(rng: random.Random, n: int, classes: int) -> Batch:
    """Return messages in several alphabets, some empty, some without a label, some of half a weight."""

    def text() -> str:
        letters = rng.choice(["abc AB ", "aé ü日本 x", "\x00ÿ z", "😀ab", "   a", "Win £1000 now! ", "İi A"])
        return "".join(rng.choice(letters) for _ in range(rng.choice([0, 1, 2, 3, 5, 30, 200])))

    labels = [rng.choice([None, *(f"c{i}" for i in range(classes))]) for _ in range(n)]
    return Batch(
        {"text": [text() for _ in range(n)]}, labels, [rng.choice([1.0, 2.0, 0.5]) for _ in range(n)]
    )


@pytest.mark.skipif(PURE, reason="compares the twins")
@pytest.mark.parametrize("classes", [1, 2, 3, 9, 12])
@pytest.mark.parametrize("head", ["product", "calibrated"])
@pytest.mark.parametrize("limit", [{}, {"max_tokens": 200}, {"half_life_messages": 20.0}, {"raw": True}])
def test_the_twins_agree_to_the_bit(classes: int, head: Any, limit: dict[str, Any]) -> None:  # noqa: ANN401
    """Scores and states, above eight classes too, where rows hold only counts above 0."""
    rng = random.Random(classes)
    for order, size in ((5, 500), (1, 3), (4, 50), (16, 100)):
        views = [View("s", Strings(order=order, bytes=size)), View("w", Words())]
        twins = [NaiveBayes(views, head=head, compiled=compiled, **limit) for compiled in (True, False)]
        for _ in range(2):
            batch = batch_of(rng, 20, classes)
            scores = [said(twin.step(batch)) for twin in twins]

            assert scores[0] == scores[1]
        assert dict(twins[0].state.counts["s"].rows) == dict(twins[1].state.counts["s"].rows)
        assert twins[0].digest() == twins[1].digest()


@given(MESSAGES, st.integers(0, 8))
def test_two_halves_merged_have_learned_the_whole(messages: list[tuple[str, str]], cut: int) -> None:
    """The order-free digest is that of one model that learned all messages."""
    whole, first = learned(messages), learned(messages[:cut])
    first.merge(learned(messages[cut:]))

    assert first.digest()["order_free"] == whole.digest()["order_free"]


@given(MESSAGES)
def test_the_order_of_messages_does_not_matter(messages: list[tuple[str, str]]) -> None:
    """Reversed, they give the same order-free digest."""
    assert learned(messages).digest()["order_free"] == learned(messages[::-1]).digest()["order_free"]


@given(MESSAGES, st.randoms(use_true_random=False))
def test_a_model_that_unlearned_everything_is_empty(
    messages: list[tuple[str, str]], rng: random.Random
) -> None:
    """In any order; its order-free digest is that of a new model."""
    model = learned(messages)
    for text, label in rng.sample(messages, len(messages)):
        model.unlearn_one({"text": text}, label)

    assert len(model.state.counts) == 0
    assert model.digest()["order_free"] == model_of().digest()["order_free"]


@given(MESSAGES)
@settings(max_examples=25)
def test_a_restored_model_scores_as_before(messages: list[tuple[str, str]]) -> None:
    """Digest and posterior are equal."""
    model = learned(messages)
    frozen = model.freeze()
    restored = model_of()
    restored.restore(frozen.values, {name: np.array(array) for name, array in frozen.sections.items()})

    assert restored.digest() == model.digest()
    assert restored.predict_proba_one({"text": "ab a"}) == model.predict_proba_one({"text": "ab a"})


def test_a_saved_model_is_loaded_with_its_reader(tmp_path: Any) -> None:  # noqa: ANN401
    """A snapshot needs nothing new to hold strings."""
    model = learned([("win money", "spam"), ("lunch", "ham")])
    model.save(tmp_path / "model.snb")
    loaded = streamnb.load(tmp_path / "model.snb")

    assert isinstance(loaded, NaiveBayes)
    assert loaded.state.views == VIEWS
    assert loaded.predict_proba_one({"text": "win"}) == model.predict_proba_one({"text": "win"})


@given(st.data())
@settings(max_examples=50)
def test_a_forged_snapshot_is_refused_or_scored_without_a_fault(data: st.DataObject) -> None:
    """Counts that no text has give a posterior, not a crash."""
    model = learned([("win money", "spam"), ("lunch", "ham")])
    frozen = model.freeze()
    sections = {name: np.array(array) for name, array in frozen.sections.items()}
    counts = sections["counts"]
    cell = data.draw(st.integers(0, counts.size - 1))
    counts.reshape(-1)[cell] = data.draw(st.sampled_from([0.0, 0.25, 1e15, 1e200, float("inf"), -1.0]))
    for c in range(2):  # totals that fit, so that the checks let it through
        views = np.asarray(sections["token_bounds"][1:], np.int64) % 256
        sections["totals"][:, c] = np.bincount(views, counts[:, c], minlength=2)
    forged = model_of()
    try:
        forged.restore(frozen.values, sections)
    except SnapshotError:
        return
    posterior = forged.predict_proba_one({"text": "win lunch"})

    assert abs(sum(posterior.values()) - 1) < 1e-9


@TWINS
@pytest.mark.parametrize("limit", [{"max_tokens": 400}, {"bytes_max": 1 << 20}])
def test_eviction_bounds_the_strings_and_never_leaves_one_without_its_parts(
    compiled: bool, limit: dict[str, Any]
) -> None:
    """A string that stays has its context, and the string without its first byte."""
    rng = random.Random(5)
    model = model_of(compiled=compiled, **limit)
    for _ in range(60 if "max_tokens" in limit else 400):
        text = "".join(rng.choice("abcdefgh ij") for _ in range(rng.randrange(60)))
        model.learn_one({"text": text}, rng.choice(["spam", "ham"]))
    counts = model.state.counts
    rows = dict(counts["strings"].rows.items())

    assert counts.evicted_tokens > 100
    assert len(counts) <= limit.get("max_tokens", len(counts))
    assert counts.charge() <= limit.get("bytes_max", counts.charge())
    for string, row in rows.items():
        for shorter in (string[1:], string[:-1]) if string else ():
            assert all(n <= m for n, m in zip(row, rows[shorter], strict=True))


@TWINS
def test_unlearning_after_eviction_leaves_a_model_that_scores(compiled: bool) -> None:
    """Counts then stop at 0, and a context may have been seen less often than what follows it."""
    rng = random.Random(6)
    model = model_of(compiled=compiled, max_tokens=300)
    messages = [
        ("".join(rng.choice("abcd ") for _ in range(40)), rng.choice(["spam", "ham"])) for _ in range(60)
    ]
    for text, label in messages:
        model.learn_one({"text": text}, label)
    for text, label in messages[:50]:
        model.unlearn_one({"text": text}, label)
        posterior = model.predict_proba_one({"text": messages[-1][0]})

        assert abs(sum(posterior.values()) - 1) < 1e-9


@pytest.mark.parametrize("head", ["product", "calibrated"])
def test_the_parts_of_an_explanation_add_up(head: Any) -> None:  # noqa: ANN401
    """To the difference of u, within 1e-9, with a part for each of the longest strings."""
    rng = random.Random(7)
    model = NaiveBayes(VIEWS, head=head)
    for _ in range(50):
        label = rng.choice(["spam", "ham", "news"])
        model.learn_one({"text": f"{label} É " + "".join(rng.choice("ab ") for _ in range(20))}, label)
    text = "spam hat É aab"
    why = model.explain_one({"text": text}, classes=("spam", "news"))
    scores = model.step(Batch({"text": [text]}, [None]))
    u = dict(zip(scores.classes, scores.u[0], strict=True))

    assert why is not None
    assert abs(why.total - (u["spam"] - u["news"])) < 1e-9
    strings = {part.token for part in why.tokens if part.view == "strings"}
    assert strings >= {"   s", "spam", " É "}


@TWINS
def test_a_half_life_forgets_strings(compiled: bool) -> None:
    """After many half-lives a text that changed sides is of its new class."""
    model = model_of(compiled=compiled, half_life_messages=5)
    for label, other in (("spam", "ham"), ("ham", "spam")):
        for _ in range(40):
            model.learn_one({"text": "abab"}, label)
            model.learn_one({"text": "b  b"}, other)

    assert model.predict_one({"text": "abab"}) == "ham"


def test_a_view_of_strings_is_named_in_settings() -> None:
    """With the defaults left out, and read back as it was."""
    tables = described(model_of().state)

    assert tables["views"][1] == {  # type: ignore[index]
        "name": "strings",
        "reader": {"kind": "strings", "order": 3},
        "event_model": {"kind": "markov"},
    }
    assert tuple(typed(tables).views) == VIEWS


def test_strings_are_no_tokens_and_no_view_of_text_for_the_head() -> None:
    """Known and unknown tokens are counted in the first view of words, and without one there are none."""
    scores = NaiveBayes([VIEWS[1]]).step(Batch({"text": ["win"]}, ["spam"]))

    assert scores.unknown_tokens.tolist() == [0]
    assert NaiveBayes([VIEWS[1]]).state.head is None
    with pytest.raises(ValueError, match="view of text"):
        NaiveBayes([VIEWS[1]], head="calibrated")
