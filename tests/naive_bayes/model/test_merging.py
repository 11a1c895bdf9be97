"""Unlearning and subtracting, after rounding too: what is left is a state that a snapshot can hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import streamnb
from streamnb import (
    Bernoulli,
    BernoulliNB,
    CategoricalNB,
    Gaussian,
    GaussianDiscriminant,
    GaussianNB,
    NaiveBayes,
    Number,
    Terms,
    View,
    Words,
)
from streamnb.naive_bayes.model.view import TEXT_ONLY


def check_saved(model: NaiveBayes, folder: Path, *rows: Any) -> None:  # noqa: ANN401 - whatever the model reads
    """Check that the model's file can be loaded and gives the same posteriors to the bit."""
    model.save(folder / "model.snb", overwrite=True)
    loaded = streamnb.load(folder / "model.snb")
    assert loaded.digest() == model.digest()
    for x in rows:
        assert loaded.predict_proba_one(x) == model.predict_proba_one(x)


def test_a_value_with_a_tiny_count_in_another_class_stays_a_value_of_its_field(tmp_path: Path) -> None:
    """Beside 1e9 a count of 1e-9 is lost in a sum of both, but it is still there."""
    model = CategoricalNB()
    model.learn_one({"f": "x"}, "c", 1e-9)
    model.learn_one({"f": "x"}, "a", 1e9)
    model.unlearn_one({"f": "x"}, "a", 1e9)
    assert model.feature_counts == {"f": {"x": {"c": 1e-9}}}
    check_saved(model, tmp_path, {"f": "x"}, {"f": "y"})
    model.unlearn_one({"f": "x"}, "c", 1e-9)
    assert model.feature_counts == {}


def unlearned(model: NaiveBayes, *messages: tuple[Any, str, float], x: Any, y: str) -> NaiveBayes:  # noqa: ANN401
    """Return the model after it was refused a message that it has not learned, and nothing changed."""
    for known, label, weight in messages:
        model.learn_one(known, label, weight)
    before = model.digest()
    with pytest.raises(ValueError, match=r"learned|lacks"):
        model.unlearn_one(x, y)
    assert model.digest() == before
    return model


def test_a_message_without_a_word_of_all_messages_was_not_learned(tmp_path: Path) -> None:
    """The class would keep words in more messages than it has."""
    messages = [("win money", "x", 1.0), ("win", "x", 1.0), ("lunch", "y", 1.0)]
    model = unlearned(BernoulliNB(), *messages, x="money", y="x")
    with pytest.raises(ValueError, match="lacks"):
        model.unlearn_one("", "x")
    other = BernoulliNB()
    other.learn_one("money", "x")
    with pytest.raises(ValueError, match="lacks"):
        model.subtract(other)
    model.unlearn_one("win", "x")
    check_saved(model, tmp_path, "win", "lunch")


def test_numbers_that_always_came_with_another_were_not_learned_alone(tmp_path: Path) -> None:
    """A number would weigh less than its pair with the other one."""
    messages = [({"a": 1.0, "b": 2.0}, "x", 1.0), ({"a": 3.0, "b": 1.0}, "y", 1.0)]
    model = unlearned(GaussianDiscriminant(), *messages, x={"a": 1.0}, y="x")
    other = GaussianDiscriminant()
    other.learn_one({"a": 1.0}, "x")
    with pytest.raises(ValueError, match="more numbers"):
        model.subtract(other)
    model.learn_one({"a": 1.0}, "x")
    model.unlearn_one({"a": 1.0}, "x")
    check_saved(model, tmp_path, {"a": 1.0, "b": 1.0})


@pytest.mark.parametrize("late", [25.3, 40.3, 63.7])
def test_a_class_keeps_the_weight_of_its_words_when_a_heavy_message_goes(tmp_path: Path, late: float) -> None:
    """Beside the late message the weight of the early one is rounded, or lost."""
    model = BernoulliNB(half_life_s=1.0)
    model.learn_one("win", "s", at=0.0)
    model.learn_one("lunch", "s", at=late)
    model.unlearn_one("lunch", "s", at=late)
    check_saved(model, tmp_path, "win", "lunch")

    heavy, part = BernoulliNB(), BernoulliNB()
    heavy.learn_one("win money", "s", 0.1)
    for each in (heavy, part):
        each.learn_one("lunch at noon", "s", 1e8)
    twin = heavy.clone(include_attributes=True)
    heavy.unlearn_one("lunch at noon", "s", 1e8)
    twin.subtract(part)
    for each in (heavy, twin):
        check_saved(each, tmp_path, "win", "noon")


def test_a_heads_lengths_weigh_what_the_class_weighs(tmp_path: Path) -> None:
    """Also where rounding would leave the class less than its words hold."""
    model = NaiveBayes(
        [View("words", Words()), View("coins", Terms("terms"), Bernoulli())],
        half_life_s=1.0,
        time_skew_max_s=1e9,
    )
    for at, x in (0.0, {"text": "a", "terms": {"a": 1}}), (40.3, {"text": "b", "terms": {"b": 1}}):
        model.learn_one(x, "s", at=at)
    model.unlearn_one({"text": "b", "terms": {"b": 1}}, "s", at=40.3)
    check_saved(model, tmp_path, {"text": "a"})


def test_totals_are_the_sums_of_small_counts_beside_a_heavy_message(tmp_path: Path) -> None:
    """The total of 3e9 is a whole number, because the small weights are lost in it."""
    model = BernoulliNB()
    model.learn_one("lunch at noon", "a", 1e9)
    model.learn_one("win money", "a", 1e-9)
    model.learn_one("free prize", "a", 1e-9)
    model.unlearn_one("lunch at noon", "a", 1e9)
    (view,) = model.state.counts.views.values()
    assert list(view.totals) == [4e-9]
    check_saved(model, tmp_path, "win", "noon")


def test_a_fields_total_is_the_sum_of_its_counts_after_a_heavy_message(tmp_path: Path) -> None:
    """With maximum likelihood a total of 0 below a count would have no logarithm."""
    model = CategoricalNB(alpha=0, half_life_s=1.0)
    for at, x in (0.0, {"f": "x"}), (60.0, {"f": "y"}):
        model.learn_one(x, "a", at=at)
        model.learn_one(x, "b", at=at)
    model.unlearn_one({"f": "y"}, "a", at=60.0)
    assert model.state.statistics["fields"].tally.fields["f"].totals[0] == 1.0  # type: ignore[attr-defined]
    check_saved(model, tmp_path, {"f": "x"}, {"f": "y"})


def test_a_number_keeps_the_weight_of_its_pair_when_a_heavy_message_goes(tmp_path: Path) -> None:
    """Beside 1e9 the other message's weight is lost, but its pair is not."""
    model = GaussianDiscriminant()
    model.learn_one({"a": 1.0}, "x", 1e9)
    model.learn_one({"a": 2.0, "b": 3.0}, "x", 1e-9)
    model.learn_one({"a": 3.0, "b": 1.0}, "y")
    model.unlearn_one({"a": 1.0}, "x", 1e9)
    check_saved(model, tmp_path, {"a": 1.0, "b": 1.0})


def test_unlearning_with_a_half_life_leaves_what_is_loaded(tmp_path: Path) -> None:
    """The weight of the messages is rounded once, for the class and for the sums over absent words."""
    model = BernoulliNB(half_life_s=1.0)
    for x, y, at in ("", "p", 0.0), ("cc", "p", 31.3), ("bb", "q", 31.3):
        model.learn_one(x, y, at=at)
    model.unlearn_one("cc", "p", at=31.3)
    model.learn_one("aa", "p", at=32.3)
    check_saved(model, tmp_path, "aa", "bb")


def test_F21_a_refused_subtraction_leaves_no_classes_behind() -> None:
    """They are checked before any class is added."""
    model, other = BernoulliNB(), BernoulliNB()
    model.learn_one("win", "x")
    other.learn_one("lunch", "x")
    other.learn_one("noon", "y")
    other.unlearn_one("noon", "y")
    with pytest.raises(ValueError, match=r"cannot unlearn .* than the weight to remove"):
        model.subtract(other)
    assert list(model.class_counts_) == ["x"]


def test_a_subtraction_brings_no_more_classes_than_are_allowed() -> None:
    """A class of which all was unlearned is still one; with it, the next label was an IndexError."""
    model, other = (NaiveBayes([View("words", Words())], classes_max=1) for _ in range(2))
    model.learn_one({"text": "win"}, "x")
    other.learn_one({"text": "win"}, "y")
    other.unlearn_one({"text": "win"}, "y")
    with pytest.raises(ValueError, match="more than 1 classes; nothing was subtracted"):
        model.subtract(other)
    assert list(model.class_counts_) == ["x"]
    with pytest.raises(ValueError, match="'z' would be one class more"):
        model.learn_one({"text": "win"}, "z")


@pytest.mark.parametrize("make", [GaussianNB, GaussianDiscriminant])
def test_a_mean_stays_within_the_largest_number(make: type[NaiveBayes], tmp_path: Path) -> None:
    """A number that was not learned, though its weight was, would move the mean a million times as far."""
    model = make()
    for weight in (1.0, 1e-6):
        model.learn_one({"a": 1e100}, "x", weight)
    model.unlearn_one({"a": -1e100}, "x")
    check_saved(model, tmp_path, {"a": 1.0})


MODELS: dict[str, Callable[[], NaiveBayes]] = {
    "words": lambda: NaiveBayes(TEXT_ONLY),
    "numbers": lambda: NaiveBayes([View("size", Number("size"), Gaussian())]),
    "half-life": lambda: NaiveBayes(TEXT_ONLY, half_life_s=3600.0),
}
Mail = list[tuple[dict[str, Any], str, float]]


def mail(n: int, seed: int) -> Mail:
    """Return messages with their labels and times."""
    draw = Random(seed)
    words = [f"w{i}" for i in range(30)]
    found: Mail = []
    for i in range(n):
        label = draw.choice(["spam", "ham"])
        text = " ".join(
            [*draw.choices(words, k=4), *draw.choices(words[:9] if label == "spam" else words[9:], k=4)]
        )
        found.append(({"text": text, "size": float(draw.randrange(9))}, label, 60.0 * i))
    return found


def taught(model: NaiveBayes, messages: Mail) -> NaiveBayes:
    """Return the model after it learned messages."""
    for x, label, at in messages:
        model.learn_one(x, label, at=at)
    return model


def copied(model: NaiveBayes, kind: str) -> NaiveBayes:
    """Return another model of the same state."""
    frozen, other = model.freeze(), MODELS[kind]()
    other.restore(frozen.values, frozen.sections)
    return other


@pytest.mark.parametrize("kind", MODELS)
def test_models_that_began_from_one_are_merged_with_it_counted_once(kind: str) -> None:
    """Counts are those of one model that learned all; with a half-life up to rounding."""
    history, mine, theirs = mail(60, 1), mail(40, 2), mail(30, 3)
    base = taught(MODELS[kind](), history)
    first, second = taught(copied(base, kind), mine), taught(copied(base, kind), theirs)
    first.merge(second, base)
    one = taught(MODELS[kind](), [*history, *mine, *theirs])
    assert first.state.learned == one.state.learned == 130
    for view, counts in one.state.counts.views.items():
        assert dict(first.state.counts.views[view].rows.items()).keys() == dict(counts.rows.items()).keys()
        for token, row in counts.rows.items():
            assert list(first.state.counts.views[view].rows[token]) == pytest.approx(list(row))
    assert first.state.class_counts == pytest.approx(one.state.class_counts)
    if kind == "words":
        assert first.digest()["order_free"] == one.digest()["order_free"]


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_merged_with_its_own_beginning_is_as_it_was(kind: str) -> None:
    """However often: nothing that both hold twice may grow, or it would outweigh what is learned later."""
    base = taught(MODELS[kind](), mail(60, 1))
    model = taught(copied(base, kind), mail(40, 2))
    before = copied(model, kind)
    for _ in range(50):
        model.merge(copied(base, kind), base)
    for x, _, _ in mail(20, 4):
        assert model.predict_proba_one(x) == pytest.approx(before.predict_proba_one(x), abs=1e-4)
    assert model.state.class_counts == pytest.approx(before.state.class_counts)
    assert model.state.learned == before.state.learned
    assert (model.state.head is None) == (kind == "numbers")
    if model.state.head is not None and before.state.head is not None:
        assert model.state.head.weights == before.state.head.weights
        assert model.state.head.unknown_share.n == pytest.approx(before.state.head.unknown_share.n)
        assert model.state.head.unknown_share.ss == pytest.approx(before.state.head.unknown_share.ss)
    for view, counts in before.state.counts.views.items():
        for token, trust, squares in counts.trust.items():
            assert model.state.counts.views[view].trust.get(token) == pytest.approx(
                (trust, squares), abs=1e-3
            )


def test_a_model_that_did_not_begin_from_the_base_is_not_merged() -> None:
    """Whichever of the two it is; nothing is changed."""
    base, stranger = taught(MODELS["words"](), mail(20, 1)), taught(MODELS["words"](), mail(5, 9))
    begun = taught(copied(base, "words"), mail(5, 3))
    for mine, other in ((begun, stranger), (stranger, begun)):
        before = mine.digest()
        with pytest.raises(ValueError, match="nothing was merged"):
            mine.merge(other, base)
        assert mine.digest() == before
