"""A model with other views keeps what was learned in those that stay, to the bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb import (
    Bernoulli,
    Binned,
    Categories,
    CharacterGrams,
    FixedPrior,
    Flags,
    Multivariate,
    NaiveBayes,
    Numbers,
    View,
    WordPairs,
    Words,
)
from streamnb.naive_bayes import grow
from streamnb.naive_bayes.model.growing import Growth
from tests.laws.test_every_model import STREAM, Stream
from tests.support.twins import held, said

VIEWS = {
    "words": View("words", Words()),
    "pairs": View("pairs", WordPairs()),
    "coins": View("coins", Words(), Bernoulli()),
    "categories": View("categories", Categories(fields=("kind",))),
    "flags": View("flags", Flags(fields=("sold",))),
    "numbers": View("numbers", Numbers(fields=("size", "age"))),
    "ranges": View("ranges", Numbers(fields=("size",)), Binned((0.0, 1.0))),
    "quantiles": View("quantiles", Numbers(fields=("age",)), Binned(bins=3, warm_up=4)),
    "scatter": View("scatter", Numbers(fields=("size", "age")), Multivariate()),
}
FIELDS = {"categories": ("kind",), "flags": ("sold",), "numbers": ("size", "age"), "ranges": ("size",)}
FIELDS |= {"quantiles": ("age",), "scatter": ("size", "age")}
TWINS = pytest.mark.parametrize("compiled", [None, False], ids=["as built", "plain"])
KEPT = st.lists(st.sampled_from(sorted(VIEWS)), min_size=1, max_size=4, unique=True)
MISSING = st.lists(st.sampled_from(sorted(set(VIEWS) - {"coins"})), max_size=3, unique=True)


def model_of(names: Sequence[str], *, compiled: bool | None, head: Any = "product") -> NaiveBayes:  # noqa: ANN401
    """Return an empty model of these views."""
    return NaiveBayes([VIEWS[name] for name in names], head=head, compiled=compiled)


def grown(model: NaiveBayes, names: Sequence[str], **settings: Any) -> NaiveBayes:  # noqa: ANN401
    """Return what was learned, in a model of these views."""
    new = model_of(names, **settings)
    grow(new.state, model.state)
    return new


def learn(model: NaiveBayes, stream: Stream) -> NaiveBayes:
    """Return the model after it has learned a stream."""
    for x, y, weight in stream:
        model.learn_one({name: value for name, value in x.items() if name != "terms"}, y, weight)
    return model


@TWINS
@given(STREAM, STREAM, KEPT, MISSING)
@settings(max_examples=60)
def test_a_new_view_is_one_whose_fields_were_missing_until_now(
    compiled: bool | None, stream: Stream, later: Stream, kept: list[str], new: list[str]
) -> None:
    """Kept views have the digests they had; when the new ones are dropped again, all is as without them."""
    new = [name for name in new if name not in kept]
    old = learn(model_of(kept, compiled=compiled), stream)
    both = grown(old, [*new, *kept], compiled=compiled)
    for name in kept:
        statistic, before = both.state.statistics[name], old.state.statistics[name]
        labels = [str(label) for label in old.classes_]
        assert statistic.digest(name, labels).hex() == before.digest(name, labels).hex()
    assert held(grown(both, kept, compiled=compiled)) == held(old)

    read = {field for name in kept for field in FIELDS.get(name, ("text",))}
    unread = {field for name in new for field in FIELDS.get(name, ("text",))}
    if not unread & read:  # else what the new view reads was there, and is only counted from now on
        without: Stream = [
            ({name: value for name, value in x.items() if name not in unread}, y, weight)
            for x, y, weight in stream
        ]
        straight = learn(model_of([*new, *kept], compiled=compiled), without)
        assert both.digest() == straight.digest()
    learn(both, later)
    learn(old, later)
    back = grown(both, kept, compiled=compiled)
    assert back.digest() == old.digest()
    for x, _, _ in stream + later:
        message = {name: value for name, value in x.items() if name != "terms"}
        assert said(back.score_one(message)) == said(old.score_one(message))


@TWINS
@given(STREAM, STREAM)
@settings(max_examples=30)
def test_the_calibrated_head_grows_as_if_the_fields_had_been_missing(
    compiled: bool | None, stream: Stream, later: Stream
) -> None:
    """A missing field teaches its weight nothing, so the weight starts as in a new model."""
    old = learn(model_of(["words"], compiled=compiled, head="calibrated"), stream)
    names = ["categories", "words", "numbers"]
    both = grown(old, names, compiled=compiled, head="calibrated")
    straight = learn(
        model_of(names, compiled=compiled, head="calibrated"),
        [({key: value for key, value in x.items() if key == "text"}, y, weight) for x, y, weight in stream],
    )
    for part in ([], later):
        learn(both, part)
        learn(straight, part)
        assert both.digest() == straight.digest()


@TWINS
@given(STREAM)
@settings(max_examples=30)
def test_a_new_text_view_leaves_the_other_weights_alone(compiled: bool | None, stream: Stream) -> None:
    """Also if it is the first, whose unknown tokens are counted: then that feature starts again."""
    old = learn(model_of(["words"], compiled=compiled, head="calibrated"), stream)
    for names, counts_pairs in ((["words", "pairs"], False), (["pairs", "words"], True)):
        both = grown(old, names, compiled=compiled, head="calibrated")
        was, now, fresh = (
            model.state.head for model in (old, both, model_of(names, compiled=compiled, head="calibrated"))
        )
        assert was is not None
        assert now is not None
        assert fresh is not None
        at = 4 * names.index("words")
        assert now.weights[at : at + 4] == was.weights[:4]
        assert now.weights[4 - at : 8 - at] == fresh.weights[4 - at : 8 - at]
        assert now.weights[8] == was.weights[4]
        assert (now.offsets, now.eta, now.length.s) == (was.offsets, was.eta, was.length.s)
        unknown = (now.weights[9], now.unknown_share.n)
        assert unknown == (
            (0.5, [0.0] * len(both.classes_)) if counts_pairs else (was.weights[5], was.unknown_share.n)
        )
        if not counts_pairs:
            assert held(grown(both, ["words"], compiled=compiled, head="calibrated")) == held(old)


def test_the_twins_grow_to_the_same_bits() -> None:
    """Compiled and plain, from each to each."""
    mail: Stream = [({"text": "win money"}, "spam", 1.0), ({"text": "lunch", "kind": "a"}, "ham", 2.0)]
    kept, names = ["words", "flags"], ["categories", "words", "pairs"]
    results = []
    for first, second in product([None, False], repeat=2):
        old = learn(model_of(kept, compiled=first, head="calibrated"), mail)
        both = learn(grown(old, names, compiled=second, head="calibrated"), mail)
        results.append((said(both.score_one({"text": "win lunch", "kind": "a"})), both.digest()))
    assert results.count(results[0]) == 4


def test_a_model_that_forgets_keeps_its_place_in_time() -> None:
    """The new view's sums are in the same units."""
    views = [VIEWS["words"], VIEWS["numbers"]]
    old, new = (NaiveBayes(part, head="product", half_life_s=3.0) for part in (views[:1], views))
    for i in range(40):
        old.learn_one({"text": f"w{i % 4}"}, "ab"[i % 2], at=20.0 * i)
    assert grow(new.state, old.state) == Growth(["words"], ["numbers"], [])
    assert old.state.decay is not None
    assert new.state.decay is not None
    assert new.state.decay.freeze() == old.state.decay.freeze()
    assert new.class_counts_ == old.class_counts_
    assert new.predict_proba_one({"text": "w1"}) == old.predict_proba_one({"text": "w1"})


def _refused(old: NaiveBayes, new: NaiveBayes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        grow(new.state, old.state)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (
            lambda: NaiveBayes([View("words", WordPairs())], head="product"),
            r'views\.words\.reader\.kind: "words" -> "pairs"',
        ),
        (
            lambda: NaiveBayes([View("words", Words(), Bernoulli()), VIEWS["flags"]], head="product"),
            r'views\.words\.weight: "log" -> "boolean"',
        ),
        (lambda: NaiveBayes([VIEWS["words"]]), 'head: "product" -> "calibrated"'),
        (lambda: NaiveBayes([VIEWS["words"]], head="product", half_life_s=1.0), "forgetting: null -> "),
        (lambda: NaiveBayes([VIEWS["numbers"]]), "none of its views would be kept: words"),
        (lambda: NaiveBayes([VIEWS["words"]], head="product", classes=["z"]), r"do not begin with .*'z'"),
        (
            lambda: NaiveBayes([VIEWS["words"], VIEWS["coins"]], head="product"),
            "view `coins` is new and takes absent words as evidence, so all messages learned before",
        ),
    ],
)
def test_what_would_give_the_counts_another_meaning_is_refused(
    make: Callable[[], NaiveBayes], reason: str
) -> None:
    """Leaf by leaf, with the view's name."""
    old = learn(model_of(["words"], compiled=None), [({"text": "win money"}, "spam", 1.0)])
    _refused(old, make(), reason)


def test_the_length_of_a_message_stays_that_of_the_same_fields() -> None:
    """The calibrated head has learned it; the product head does not use it."""
    grams = View("grams", CharacterGrams(fields=("subject",)))
    for head in ("calibrated", "product"):
        old, new = (NaiveBayes(views, head=head) for views in ([VIEWS["words"]], [VIEWS["words"], grams]))
        old.learn_one({"text": "win"}, "spam")
        if head == "calibrated":
            _refused(old, new, "learned the length of the fields text, and now .* of subject, text")
        else:
            assert grow(new.state, old.state).new == ["grams"]


def test_an_empty_model_may_get_a_view_of_absent_words() -> None:
    """No message was learned without it. A prior is no statistic, so it may change."""
    old = model_of(["words"], compiled=None)
    new = NaiveBayes([VIEWS["words"], VIEWS["coins"]], head="product", prior=FixedPrior({"spam": 1.0}))
    assert grow(new.state, old.state) == Growth(["words"], ["coins"], [])
    _refused(old, learn(model_of(["words"], compiled=None), [({}, "a", 1.0)]), "already learned 1 messages")
