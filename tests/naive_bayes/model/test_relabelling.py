"""Learning and then relabelling is relabelling and then learning, for every model and in both twins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb import TEXT_ONLY, NaiveBayes
from streamnb.base import Label
from streamnb.naive_bayes import State, relabel
from tests.laws.test_every_model import MODELS, STREAM, Stream, _close, _learned, _readable

ROUNDED = ("every field", "number", "discriminant", "a category", "few tokens")
"""Models with moments, by the beginning of their names; those of all others are exact."""

NAMES = st.dictionaries(
    st.sampled_from(["ham", "spam", "work"]), st.sampled_from(["ham", "spam", "junk", "all"]), max_size=3
).map(lambda names: {old: new for old, new in names.items() if new not in names})


def relabelled(model: NaiveBayes, names: Mapping[str, str], empty: NaiveBayes) -> NaiveBayes:
    """Return what was learned, under new labels; classes that were never seen are not asked for."""
    known: dict[Label, Label] = {old: new for old, new in names.items() if old in model.classes_}
    relabel(empty.state, model.state, known)
    return empty


@pytest.mark.parametrize("compiled", [None, False], ids=["as built", "plain"])
@pytest.mark.parametrize("name", MODELS)
@given(STREAM, STREAM, NAMES)
@settings(max_examples=20)
def test_learn_then_relabel_is_relabel_then_learn(
    name: str, compiled: bool | None, stream: Stream, later: Stream, names: dict[str, str]
) -> None:
    """With equal order-free digests; sums without moments give all bits of the posterior, then and later."""

    def make() -> NaiveBayes:
        build: Callable[..., NaiveBayes] = MODELS[name]
        return build(compiled=compiled)

    stream, later = (_readable(make, part) for part in (stream, later))
    renamed, renamed_later = (
        [(x, names.get(y, y), weight) for x, y, weight in part] for part in (stream, later)
    )
    model = relabelled(_learned(make, stream), names, make())
    straight = _learned(make, renamed)
    for part in ([], renamed_later):
        for x, y, weight in part:
            model.learn_one(x, y, weight)
            straight.learn_one(x, y, weight)
        assert model.classes_ == straight.classes_
        assert model.digest()["order_free"] == straight.digest()["order_free"]
        if model.state.head is None:
            exact = not name.startswith(ROUNDED)
            assert not exact or model.digest() == straight.digest()
            for x, _, _ in stream + later:
                one, other = model.predict_proba_one(x), straight.predict_proba_one(x)
                assert one == other if exact else _close(one, other)


def test_a_renamed_class_keeps_all_bits_of_the_calibrated_head() -> None:
    """Its offset too; only the names differ."""
    model = taught()
    again = relabelled(model, {"spam": "junk"}, NaiveBayes(TEXT_ONLY))
    for text in ("win the prize", "noon", "neurips"):
        before = model.predict_proba_one({"text": text})
        assert again.predict_proba_one({"text": text}) == {
            "junk" if label == "spam" else label: p for label, p in before.items()
        }


def test_without_evidence_a_merged_class_gets_the_sum_of_the_posteriors() -> None:
    """The offset is the log of the sum of the shares; the weights stay."""
    model = taught()
    again = relabelled(model, {"spam": "junk", "work": "junk"}, NaiveBayes(TEXT_ONLY))
    old, new = model.state.head, again.state.head
    assert old is not None
    assert new is not None
    assert (new.weights, new.weight_squares, new.eta) == (old.weights, old.weight_squares, old.eta)
    silent = [[0.0] * 3] * len(old.weights)
    apart = dict(zip(model.classes_, old.opinion(silent, [0, 1, 2]).softmax, strict=True))
    together = dict(
        zip(again.classes_, new.opinion([[0.0] * 2] * len(new.weights), [0, 1]).softmax, strict=True)
    )
    assert math.isclose(together["junk"], apart["spam"] + apart["work"], rel_tol=1e-12)
    assert math.isclose(together["ham"], apart["ham"], rel_tol=1e-12)


def test_a_class_without_labels_adds_nothing_to_a_merged_one() -> None:
    """It was declared only; its offset of 0 is no share."""
    model = NaiveBayes(TEXT_ONLY, classes=["ham", "spam", "work"])
    for text, label in (("win", "spam"), ("noon", "ham"), ("win money", "spam")):
        model.learn_one({"text": text}, label)
    again = relabelled(model, {"work": "spam"}, NaiveBayes(TEXT_ONLY, classes=["ham", "spam"]))
    x = {"text": "win noon"}
    assert again.score_one(x).u[0].tolist() == model.score_one(x).u[0, :2].tolist()


def test_a_model_that_forgets_keeps_its_place_in_time() -> None:
    """The landmark, the times and the sums at them."""
    build: dict[str, NaiveBayes] = {}
    for key, labels in (("old", ("ham", "spam", "work")), ("straight", ("ham", "junk", "junk"))):
        build[key] = NaiveBayes(TEXT_ONLY, head="product", half_life_s=3.0)
        for i in range(30):
            build[key].learn_one({"text": f"w{i % 4} a"}, labels[i % 3], at=50.0 * i)
    empty = NaiveBayes(TEXT_ONLY, head="product", half_life_s=3.0)
    model = relabelled(build["old"], {"spam": "junk", "work": "junk"}, empty)
    decay, straight = model.state.decay, build["straight"].state.decay
    assert decay is not None
    assert straight is not None
    assert decay.freeze() == straight.freeze()
    for text in ("w1", "w3 a", "neurips"):
        one = model.predict_proba_one({"text": text})
        assert _close(one, build["straight"].predict_proba_one({"text": text}), 1e-12)


def test_what_was_evicted_is_still_counted() -> None:
    """And what could not be unlearned completely for that reason."""
    model, straight = (NaiveBayes(TEXT_ONLY, head="product", max_tokens=16) for _ in range(2))
    texts = [f"common w{i} x{i} y{i}" for i in range(20)]
    for text, i in zip(texts * 2, range(30), strict=False):
        for each, label in ((model, "ab"[i % 2]), (straight, "c")):
            each.learn_one({"text": text}, label) if i < 20 else each.unlearn_one({"text": text}, label)
    again = relabelled(model, {"a": "c", "b": "c"}, NaiveBayes(TEXT_ONLY, head="product", max_tokens=16))
    assert model.state.fell_short > 0
    assert again.digest() == straight.digest()
    assert again.freeze().values == straight.freeze().values


def test_labels_keep_their_type() -> None:
    """Integers become integers."""
    model = NaiveBayes(TEXT_ONLY)
    for text, label in (("win", 1), ("noon", 2), ("win money", 3)):
        model.learn_one({"text": text}, label)
    empty = NaiveBayes(TEXT_ONLY)
    relabel(empty.state, model.state, {3: 1})
    assert empty.classes_ == [1, 2]
    with pytest.raises(ValueError, match="a label of this model must be int, not 'spam'"):
        relabel(NaiveBayes(TEXT_ONLY).state, model.state, {3: "spam"})


def test_labels_get_another_type_if_all_of_them_do() -> None:
    """A model that learned truth values from Python gets the labels of a stream, which are text."""
    model = NaiveBayes(TEXT_ONLY)
    for text, label in (("win", True), ("noon", False)):
        model.learn_one({"text": text}, label)
    named, part = NaiveBayes(TEXT_ONLY), NaiveBayes(TEXT_ONLY)
    relabel(named.state, model.state, {True: "spam", False: "ham"})
    assert list(named.predict_proba_one({"text": "win"}).values()) == list(
        model.predict_proba_one({"text": "win"}).values()
    )
    assert named.classes_ == ["spam", "ham"]
    with pytest.raises(ValueError, match="bool"):
        relabel(part.state, model.state, {True: "spam"})


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({"eggs": "ham"}, "there is no class 'eggs'; the classes are: spam, ham, work"),
        ({"spam": ""}, "the new label of 'spam' is empty"),
        ({"spam": " \t"}, "the new label of 'spam' is empty"),
        ({"spam": "ham", "ham": "junk"}, "'ham' is both a new label and a class to rename"),
        ({"spam": "spam"}, "'spam' is both a new label and a class to rename"),
    ],
)
def test_what_is_not_clear_is_refused(names: dict[Label, Label], reason: str) -> None:
    """Before anything is changed."""
    empty = NaiveBayes(TEXT_ONLY)
    with pytest.raises(ValueError, match=reason):
        relabel(empty.state, taught().state, names)
    assert empty.classes_ == []


def test_only_an_empty_model_that_counts_alike_becomes_another() -> None:
    """Otherwise the sums would mean something else."""
    model = taught()

    def refused(state: State, reason: str) -> None:
        with pytest.raises(ValueError, match=reason):
            relabel(state, model.state, {"spam": "junk"})

    refused(taught().state, "has already learned 30 messages")
    refused(NaiveBayes(TEXT_ONLY, head="product").state, "differ in settings that their counts depend on")
    refused(model.state, "itself")


def taught() -> NaiveBayes:
    """Return a calibrated model of three classes."""
    model = NaiveBayes(TEXT_ONLY)
    mail = (("win the prize", "spam"), ("lunch at noon", "ham"), ("minutes of the meeting", "work"))
    for i in range(30):
        text, label = mail[i * i % 7 % 3]
        model.learn_one({"text": f"{text} w{i % 5}"}, label)
    return model
