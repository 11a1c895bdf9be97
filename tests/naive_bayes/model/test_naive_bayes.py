"""The laws of the driver, in both twins: many is one, scoring is pure, refusals are whole, parts add up."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from random import Random
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb.base.batch import Batch, Flag, Label, Scores, likeliest
from streamnb.base.frozen import Section
from streamnb.errors import SnapshotError
from streamnb.evaluation import predictions
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.priors import FixedPrior, UniformPrior
from streamnb.naive_bayes.event_models.smoothing import Dirichlet, Laplace, NoSmoothing
from streamnb.naive_bayes.features.readers import (
    Category,
    CharacterGrams,
    Ends,
    Number,
    Terms,
    WordPairs,
    Words,
)
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.view import TEXT_ONLY, View

Make = Callable[[], NaiveBayes]
Row = tuple[dict[str, object], str | None, float]

WORDS = View("words", Words())
SIDES = [View("sender", Category("sender")), View("size", Number("size"))]
ALL_VIEWS = [
    WORDS,
    View("pairs", WordPairs(("subject", "text"))),
    View("characters", CharacterGrams()),
    View("ends", Ends(n=2)),
    *SIDES,
]
COUNTED = View("counted", Words(), Multinomial(Laplace(1.0), "counts", "smooth"))

KINDS: dict[str, partial[NaiveBayes]] = {
    "words": partial(NaiveBayes, TEXT_ONLY),
    "four views and the sides": partial(
        NaiveBayes, ALL_VIEWS, raw=True, explain=3, classes=["never", "spam"]
    ),
    "four views": partial(NaiveBayes, ALL_VIEWS[:4], raw=True, classes=["never", "spam"]),
    "product of four views": partial(NaiveBayes, [*ALL_VIEWS[:4], COUNTED], head="product", raw=True),
    "limits": partial(
        NaiveBayes, TEXT_ONLY, tokenizer=Tokenizer(token_length_max=3, message_tokens_max=4), classes_max=2
    ),
    "product of all views": partial(NaiveBayes, [*ALL_VIEWS, COUNTED], head="product", explain=2, raw=True),
    "textbook": partial(NaiveBayes, [COUNTED], head="product", tokenizer=Tokenizer(rule="words")),
    "maximum likelihood": partial(
        NaiveBayes, [View("w", Words(), Multinomial(NoSmoothing(), "counts", "smooth"))], head="product"
    ),
    "dirichlet": partial(
        NaiveBayes,
        [View("w", Words(), Multinomial(Dirichlet(5.0), "boolean"))],
        head="product",
        prior=UniformPrior(),
    ),
    "sides alone": partial(NaiveBayes, SIDES, prior=FixedPrior({"ham": 3.0, "spam": 1.0})),
    "numbers alone": partial(NaiveBayes, SIDES[1:]),
    "terms": partial(NaiveBayes, [View("terms", Terms("terms"))], classes=["ham"]),
}
MODELS: dict[str, Make] = {name: partial(make, compiled=False) for name, make in KINDS.items()}
MODELS.update({f"{name}, compiled": make for name, make in KINDS.items() if make().state.compiled})
models = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@pytest.fixture(scope="module", params=[False, None], ids=["plain", "compiled where it can be"])
def compiled(request: pytest.FixtureRequest) -> bool | None:
    """Which twin a law is held against."""
    return cast("bool | None", request.param)


MESSAGE: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {
        "text": st.one_of(
            st.none(),
            st.lists(
                st.sampled_from(["free", "cash", "lunch", "Noon", "!", "中文", "👍🏽", "neurips", "a", "éb"]),
                max_size=6,
            ).map(" ".join),
        ),
        "subject": st.sampled_from([None, "", "free lunch"]),
        "sender": st.sampled_from([None, "a@b", "c@d", 7, True, 1.5, math.nan]),
        "size": st.one_of(st.none(), st.integers(-5, 5), st.sampled_from([math.nan, math.inf, 1e9, 0.1])),
        "terms": st.one_of(st.none(), st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=3)),
    }
)
LABEL = st.sampled_from([None, "ham", "spam", "work"])
ROWS: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(MESSAGE, LABEL, st.sampled_from([1.0, 0.5, 2.0])), max_size=10
)


def _batch(rows: Sequence[Row]) -> Batch:
    names = ("text", "subject", "sender", "size", "terms")
    return Batch(
        {name: [x[name] for x, _, _ in rows] for name in names},
        [y for _, y, _ in rows],
        [w for _, _, w in rows],
    )


def _row(scores: Scores, i: int) -> tuple[object, ...]:
    """Everything that is said of message i, with NaN equal to itself."""
    n = int(scores.n_classes[i])
    raw = scores.raw_posterior
    return (
        scores.classes[:n],
        scores.posterior[i, :n].tobytes(),
        scores.log_odds[i, :n].tobytes(),
        scores.u[i, :n].tobytes(),
        None if raw is None else raw[i, :n].tobytes(),
        scores.learned_by_class[i, :n].tobytes(),
        (
            int(scores.known_tokens[i]),
            int(scores.unknown_tokens[i]),
            int(scores.learned[i]),
            int(scores.flags[i]),
        ),
        repr(scores.explanations[i]) if scores.explanations else "None",
    )


def _frozen(model: NaiveBayes) -> tuple[object, ...]:
    frozen = model.freeze()
    return (
        repr(frozen.values),
        {
            key: (array.shape, array.tobytes())
            for key, array in frozen.sections.items()
            if not key.startswith("index")  # of a seed of its own, and no part of the state
        },
        frozen.digest(),
        model.digest(),
    )


def _learned(make: Make, rows: Sequence[Row]) -> NaiveBayes:
    model = make()
    model.step(_batch(rows), score=False)
    return model


# ---- one driver


@models
@given(rows=ROWS, cuts=st.lists(st.integers(0, 10), max_size=3))
@settings(max_examples=40)
def test_many_is_one_to_the_bit(make: Make, rows: list[Row], cuts: list[int]) -> None:
    """T24: however a stream is split into batches, empty ones too; by the river-like methods as well."""
    whole, split, single = make(), make(), make()
    expected = whole.step(_batch(rows))
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [split.step(_batch(rows[a:b])) for a, b in pairwise(bounds)]
    found = [_row(part, i) for part in parts for i in range(len(part))]
    assert found == [_row(expected, i) for i in range(len(rows))]
    for i, (x, y, weight) in enumerate(rows):
        n = int(expected.n_classes[i])
        assert [*single.predict_proba_one(x).values()] == expected.posterior[i, :n].tolist()
        if y is None or single.state.has_room_for(y):
            single.learn_one(x, y, weight)
    assert _frozen(whole) == _frozen(split) == _frozen(single)


@models
@given(rows=ROWS, queries=ROWS)
@settings(max_examples=25)
def test_scoring_is_pure(make: Make, rows: list[Row], queries: list[Row]) -> None:
    """Nothing is inserted, labels are not looked at, and the answer is the same twice."""
    model = _learned(make, rows)
    before = _frozen(model)
    first, second = (model.step(_batch(queries), learn=False) for _ in range(2))
    for i, (x, _, _) in enumerate(queries):
        assert _row(first, i) == _row(second, i)
        model.predict_one(x)
        model.score_one(x)
        model.joint_log_likelihood(x)
        model.explain_one(x)
    assert _frozen(model) == before


@models
@given(rows=ROWS, queries=ROWS)
@settings(max_examples=25)
def test_a_posterior_sums_to_one(make: Make, rows: list[Row], queries: list[Row]) -> None:
    """To 1e-12, as does the raw one; columns past a row's classes are filled as documented."""
    scores = _learned(make, rows).step(_batch(queries))
    for i, n in enumerate(scores.n_classes.tolist()):
        assert math.fsum(scores.posterior[i, :n]) == pytest.approx(1.0 if n else 0.0, abs=1e-12)
        assert (scores.posterior[i, :n] >= 0).all()
        assert not scores.posterior[i, n:].any()
        assert np.isnan(scores.log_odds[i, n:]).all()
        assert np.isnan(scores.u[i, n:]).all()
        assert not np.isnan(scores.log_odds[i, :n]).any()
        if scores.raw_posterior is not None and n:
            assert math.fsum(scores.raw_posterior[i, :n]) == pytest.approx(1.0, abs=1e-12)


@models
@given(rows=ROWS)
@settings(max_examples=25)
def test_the_masks_are_scoring_and_learning(make: Make, rows: list[Row]) -> None:
    """Learn-only learns the same and says nothing; score-only says what the first message would hear."""
    both, only = make(), make()
    both.step(_batch(rows))
    silent = only.step(_batch(rows), score=False)
    assert _frozen(both) == _frozen(only)
    assert not silent.n_classes.any()
    fresh = make()
    for i, (x, _, _) in enumerate(rows):
        assert _row(fresh.step(_batch(rows), learn=False), i) == _row(fresh.score_one(x), 0)
    assert fresh.learned_ == 0


def test_an_empty_batch_is_nothing(compiled: bool | None) -> None:
    """No rows, no state."""
    model = NaiveBayes(TEXT_ONLY, compiled=compiled)
    assert len(model.step(Batch({"text": []}, []))) == 0
    assert model.digest() == NaiveBayes(TEXT_ONLY, compiled=compiled).digest()


def test_inputs_are_not_modified() -> None:
    """T27: columns and mappings come back as they were given."""
    x: dict[str, object] = {"terms": {"a": 2, "b": 0}}
    model = MODELS["terms"]()
    model.learn_one(x, "ham")
    model.predict_one(x)
    assert x == {"terms": {"a": 2, "b": 0}}


# ---- order


@models
@given(rows=ROWS, random=st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_order_leaves_no_trace_in_what_is_order_free(make: Make, rows: list[Row], random: Random) -> None:
    """Counts, totals, classes and lengths, to the bit; what the head learned may differ."""
    model = make()
    if model.state.classes_max is not None:
        rows = [(x, "ham" if y else None, weight) for x, y, weight in rows]
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert _learned(make, shuffled).digest()["order_free"] == _learned(make, rows).digest()["order_free"]


def test_the_whole_digest_knows_the_order(compiled: bool | None) -> None:
    """The head's weights are a function of the order: another order, another `all`."""
    rows: list[tuple[str, str]] = [
        ("free cash", "spam"),
        ("lunch", "ham"),
        ("free lunch", "spam"),
        ("cash", "ham"),
    ]
    digests = []
    for order in (rows, rows[::-1]):
        model = NaiveBayes(TEXT_ONLY, compiled=compiled)
        for text, label in order:
            model.learn_one({"text": text}, label)
        digests.append(model.digest())
    assert digests[0]["order_free"] == digests[1]["order_free"]
    assert digests[0]["all"] != digests[1]["all"]


@pytest.mark.parametrize(("head", "text"), [("calibrated", ""), ("product", ""), ("product", "free")])
@pytest.mark.parametrize("labels", [["ham", "spam"], ["spam", "ham"], [2, 10], [10, 2], [True, False]])
def test_T18_ties_do_not_know_who_came_first(
    compiled: bool | None, head: str, text: str, labels: list[Label]
) -> None:
    """Of equal classes the smallest, for one message and for many."""
    model = NaiveBayes(TEXT_ONLY, head=head, classes=labels, compiled=compiled)  # type: ignore[arg-type]
    assert model.predict_one({"text": text}) == min(labels)
    for label in labels:
        model.learn_one({"text": text}, label)
    assert model.predict_one({"text": text}) == min(labels)
    assert predictions(model.score_one({"text": text})) == [min(labels)]
    explanation = model.explain_one({"text": text})
    assert explanation is not None
    assert explanation.classes == (min(labels), max(labels))


def test_the_likeliest_of_nothing_is_none(compiled: bool | None) -> None:
    """Before anything was learned."""
    assert likeliest({}) is None
    assert NaiveBayes(TEXT_ONLY, compiled=compiled).predict_one({"text": "free"}) is None


# ---- hostile input: everything or nothing


HOSTILE: dict[str, tuple[Mapping[str, object], object, object]] = {
    "a label that is a float": ({}, 1.5, 1.0),
    "a label that is not a number": ({}, math.nan, 1.0),
    "a label that is bytes": ({}, b"spam", 1.0),
    "a label that is a list": ({}, ["spam"], 1.0),
    "a label of another type": ({}, 1, 1.0),
    "a label that is a truth value": ({}, True, 1.0),
    "a label with half a surrogate pair": ({}, "\ud800", 1.0),
    "no weight": ({}, "ham", 0.0),
    "a negative weight": ({}, "ham", -1.0),
    "a weight that is not a number": ({}, "ham", math.nan),
    "an infinite weight": ({}, "ham", math.inf),
    "a weight past the limit": ({}, "ham", 1.1e9),
    "a weight that is text": ({}, "ham", "1"),
    "a weight that is missing": ({}, "ham", None),
    "a text that is bytes": ({"text": b"free"}, "ham", 1.0),
    "a text that is a number": ({"text": 5}, "ham", 1.0),
    "a text with half a surrogate pair": ({"text": "free \ud83d"}, "ham", 1.0),
    "a subject that is a list": ({"subject": ["free"]}, "ham", 1.0),
    "a category that is a list": ({"sender": ["a"]}, "ham", 1.0),
    "a category with half a surrogate pair": ({"sender": "\udc00"}, "ham", 1.0),
    "a category past 64 bits": ({"sender": 1 << 70}, "ham", 1.0),
    "an infinite category": ({"sender": math.inf}, "ham", 1.0),
    "a number that is text": ({"size": "5"}, "ham", 1.0),
    "a number whose square overflows": ({"size": 1e101}, "ham", 1.0),
    "counts that are a list": ({"terms": ["a"]}, "ham", 1.0),
    "a count that is text": ({"terms": {"a": 1, "b": "oops"}}, "ham", 1.0),
    "a count that looks like one": ({"terms": {"a": "3"}}, "ham", 1.0),
    "a negative count": ({"terms": {"a": 1, "b": -1}}, "ham", 1.0),
    "an infinite count": ({"terms": {"a": math.inf}}, "ham", 1.0),
    "a count past the limit": ({"terms": {"a": 1e308}}, "ham", 1.0),
    "a term with half a surrogate pair": ({"terms": {"\ud800": 1}}, "ham", 1.0),
}
GOOD: dict[str, object] = {
    "text": "free lunch",
    "subject": None,
    "sender": "a@b",
    "size": 1.0,
    "terms": {"a": 1},
}


@pytest.mark.parametrize(("fields", "label", "weight"), HOSTILE.values(), ids=HOSTILE)
def test_a_message_that_cannot_be_used_changes_nothing(
    compiled: bool | None, fields: Mapping[str, object], label: object, weight: object
) -> None:
    """T14, T15, T16: nor do the good ones of its batch; a `ValueError`, and the same state to the bit."""
    model = NaiveBayes([*ALL_VIEWS, View("terms", Terms("terms"))], compiled=compiled)
    model.step(_batch([(GOOD, "ham", 1.0), (GOOD, "spam", 1.0)]))
    before, scores = _frozen(model), model.predict_proba_one(GOOD)
    bad: Row = ({**GOOD, **fields}, label, weight)  # type: ignore[assignment]
    for rows in ([bad], [(GOOD, "spam", 1.0), bad, (GOOD, "new", 1.0)]):
        with pytest.raises(ValueError, match=r"must|cannot|holds"):
            model.step(_batch(rows))
        assert _frozen(model) == before
    assert model.predict_proba_one(GOOD) == scores
    assert all(map(math.isfinite, scores.values()))


@pytest.mark.parametrize("weights", [[], [1.0], [1.0, 1.0, 1.0]])
def test_weights_of_another_number_change_nothing(compiled: bool | None, weights: list[float]) -> None:
    """One a message, or none at all."""
    model = NaiveBayes(TEXT_ONLY, compiled=compiled)
    with pytest.raises(ValueError, match="weights were given for 2 messages"):
        model.step(Batch({"text": ["a", "b"]}, ["ham", "spam"], weights))
    assert model.digest() == NaiveBayes(TEXT_ONLY, compiled=compiled).digest()


def test_weights_may_be_an_array(compiled: bool | None) -> None:
    """And labels numpy's own, which become Python's."""
    model = NaiveBayes(TEXT_ONLY, compiled=compiled)
    weights: Sequence[float] = np.array([1.0, 2.0])  # type: ignore[assignment]
    model.step(Batch({"text": ["a", "b"]}, np.array(["ham", "spam"]), weights))  # type: ignore[arg-type]
    assert (model.classes_, model.state.class_counts) == (["ham", "spam"], [1.0, 2.0])
    assert {type(label) for label in model.classes_} == {str}


@pytest.mark.parametrize("wrong", [[1.5], ["a", 1], [1, True], [b"x"]])
def test_classes_that_cannot_be_labels_are_not_declared(wrong: list[Label]) -> None:
    """One type a model, from the beginning."""
    with pytest.raises(ValueError, match="label"):
        NaiveBayes(TEXT_ONLY, classes=wrong)


def test_F2_a_model_has_no_limit_of_classes_unless_it_is_given_one(compiled: bool | None) -> None:
    """The 257th class is learned as the first was; past `classes_max` one and many are refused whole."""
    model = NaiveBayes(TEXT_ONLY, compiled=compiled)
    model.learn_many([{"text": f"word{i}"} for i in range(300)], [f"class {i}" for i in range(300)])
    model.learn_one({"text": "word300"}, "class 300")
    assert len(model.classes_) == 301
    assert model.predict_one({"text": "word299"}) == "class 299"
    few = NaiveBayes(TEXT_ONLY, classes_max=2, compiled=compiled)
    few.learn_one({"text": "a"}, "x")
    before = few.digest()
    for labels in (["y", "x", "z"], ["x", "y", "z", "w"]):
        with pytest.raises(
            ValueError, match="'z' would be one class more than `classes_max`, 2; nothing was"
        ):
            few.learn_many([{"text": "b"}] * len(labels), labels)
    few.learn_one({"text": "a"}, "y")
    with pytest.raises(ValueError, match="'z' would be one class more"):
        few.learn_one({"text": "a"}, "z")
    assert (few.classes_, few.learned_) == (["x", "y"], 2)
    few.unlearn_one({"text": "a"}, "y")
    assert few.digest()["order_free"] == before["order_free"]


def test_a_class_too_many_is_refused_and_flagged(compiled: bool | None) -> None:
    """It is scored, not learned, and the stream goes on."""
    model = NaiveBayes(TEXT_ONLY, classes_max=2, compiled=compiled)
    rows = [("a", "x"), ("b", "y"), ("c", "z"), ("d", "x")]
    scores = model.step(Batch({"text": [text for text, _ in rows]}, [label for _, label in rows]))
    assert [bool(flag & Flag.CLASS_LIMIT) for flag in scores.flags.tolist()] == [False, False, True, False]
    assert (model.classes_, model.learned_, scores.learned.tolist()) == (["x", "y"], 3, [0, 1, 2, 2])
    assert "c" not in model.state.counts["words"].rows
    without = NaiveBayes(TEXT_ONLY, classes_max=2, compiled=compiled)
    without.step(Batch({"text": ["a", "b", "d"]}, ["x", "y", "x"]))
    assert model.digest() == without.digest()


def test_flags_say_empty_and_truncated(compiled: bool | None) -> None:
    """Of the message as it was read."""
    model = NaiveBayes(
        TEXT_ONLY, tokenizer=Tokenizer(token_length_max=3, message_tokens_max=2), compiled=compiled
    )
    scores = model.step(Batch({"text": ["", None, " \n", "a b", "a b c", "long"]}, [None] * 6))
    empty, cut = int(Flag.EMPTY), int(Flag.TRUNCATED)
    assert scores.flags.tolist() == [empty, empty, empty, 0, cut, cut]


def test_known_and_unknown_are_of_the_first_text_view(compiled: bool | None) -> None:
    """Distinct tokens that some class has taught, and that none has."""
    model = NaiveBayes(TEXT_ONLY, compiled=compiled)
    model.learn_one({"text": "free free cash"}, "spam")
    scores = model.score_one({"text": "free neurips neurips lunch"})
    assert (scores.known_tokens.tolist(), scores.unknown_tokens.tolist()) == ([1], [2])


WRONG_MODELS: dict[str, Make] = {
    "no views": lambda: NaiveBayes([]),
    "two views of one name": lambda: NaiveBayes([WORDS, View("words", Ends())]),
    "calibrated without text": lambda: NaiveBayes(SIDES, head="calibrated"),
    "calibrated with a prior": lambda: NaiveBayes(TEXT_ONLY, prior=UniformPrior()),
    "calibrated without Lidstone": lambda: NaiveBayes([View("w", Words(), Multinomial(Dirichlet()))]),
}


@pytest.mark.parametrize("make", WRONG_MODELS.values(), ids=WRONG_MODELS)
def test_models_that_contradict_themselves_are_refused(make: Make) -> None:
    """At construction."""
    with pytest.raises(ValueError, match=r"view|prior|calibrated"):
        make()


# ---- empty messages


@pytest.mark.parametrize("shares", [(1, 1), (99, 1), (3, 5)])
def test_an_empty_text_is_the_prior(compiled: bool | None, shares: tuple[int, int]) -> None:
    """Under the product head: no words, no evidence (T5)."""
    model = KINDS["textbook"](compiled=compiled)
    for label, n in zip(("ham", "spam"), shares, strict=True):
        for _ in range(n):
            model.learn_one({"text": "some words here"}, label)
    for text in ("", None, " ", "a"):
        p = model.predict_proba_one({"text": text})
        assert p == pytest.approx(
            {"ham": shares[0] / sum(shares), "spam": shares[1] / sum(shares)}, rel=1e-14
        )


# ---- freeze and restore


@models
@given(rows=ROWS, after=ROWS)
@settings(max_examples=25)
def test_restoring_is_the_way_back(make: Make, rows: list[Row], after: list[Row]) -> None:
    """The same digest, and from then on the same scores and states, to the bit."""
    model, restored = _learned(make, rows), make()
    frozen = model.freeze()
    restored.restore(frozen.values, frozen.sections)
    assert restored.digest() == model.digest()
    a, b = model.step(_batch(after)), restored.step(_batch(after))
    assert [_row(a, i) for i in range(len(after))] == [_row(b, i) for i in range(len(after))]
    assert _frozen(restored) == _frozen(model)
    again = make()
    again.restore(frozen.values, frozen.sections)  # and what was frozen has not moved
    assert _frozen(again) == _frozen(_learned(make, rows))


@models
@given(rows=ROWS, after=ROWS)
@settings(max_examples=25)
def test_the_digest_of_a_frozen_state_is_the_models_at_that_moment(
    make: Make, rows: list[Row], after: list[Row]
) -> None:
    """Whenever it is asked for, and however often: what is learned later does not move it."""
    model = _learned(make, rows)
    then, frozen, learned = model.digest(), model.freeze(), model.learned_
    assert frozen.digest() == then
    model.step(_batch(after))
    assert frozen.digest() == frozen.digest() == then
    assert model.freeze().digest() == model.digest()
    assert (model.digest() != then) == (model.learned_ != learned)


Damage = Callable[[dict[str, object], dict[str, Section]], object]
DAMAGES: dict[str, Damage] = {
    "no classes": lambda v, _: v.pop("classes"),
    "no number of messages": lambda v, _: v.pop("learned"),
    "a negative number of messages": lambda v, _: v.update(learned=-1),
    "classes that are not a list": lambda v, _: v.update(classes="ham"),
    "a class that is a number of another kind": lambda v, _: v.update(classes=["ham", 1]),
    "a class that is null": lambda v, _: v.update(classes=["ham", None]),
    "a class that stands twice": lambda v, _: v.update(classes=["ham", "ham"]),
    "a class more": lambda v, _: v.update(classes=["ham", "spam", "work"]),
    "no class counts": lambda _, s: s.pop("class_counts"),
    "a negative class count": lambda _, s: s["class_counts"].__setitem__((0, 0), -1.0),
    "class counts the lengths have not": lambda _, s: s["class_counts"].__setitem__((0, 0), 9.0),
    "no counts": lambda _, s: s.pop("counts"),
    "no moments": lambda _, s: s.pop("block5_moments"),
    "moments of more names": lambda _, s: s.update(block5_moments=np.zeros((6, 2))),
    "a negative number of numbers": lambda _, s: s["block5_moments"].__setitem__((0, 0), -1.0),
    "a negative sum of squares": lambda _, s: s["block5_moments"].__setitem__((2, 1), -1.0),
    "a mean that is not a number": lambda _, s: s["block5_moments"].__setitem__((1, 0), np.nan),
    "totals of a field without a name": lambda _, s: s.update(block4_fields=np.frombuffer(b"[]", np.uint8)),
    "fields that are not JSON": lambda _, s: s.update(block4_fields=np.frombuffer(b"[", np.uint8)),
    "a field that no count names": lambda _, s: s.update(block4_fields=np.frombuffer(b'["a"]', np.uint8)),
    "a negative total of a field": lambda _, s: s["block4_totals"].__setitem__((0, 0), -1.0),
    "no totals of fields": lambda _, s: s.pop("block4_totals"),
    "no head": lambda _, s: s.pop("head_weights"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_not_this_models_state_is_refused(compiled: bool | None, damage: Damage) -> None:
    """With a `SnapshotError`, whichever part is wrong."""
    model = NaiveBayes(ALL_VIEWS, compiled=compiled)
    model.step(_batch([(GOOD, "ham", 1.0), ({**GOOD, "size": 3.0}, "spam", 1.0)]))
    frozen = model.freeze()
    values, sections = frozen.values, frozen.sections
    damage(values, sections)
    with pytest.raises(SnapshotError):
        NaiveBayes(ALL_VIEWS, compiled=compiled).restore(values, sections)


def test_a_state_restores_only_into_its_own_views_and_classes(compiled: bool | None) -> None:
    """Other views or other declared classes are another model."""
    frozen = _learned(partial(NaiveBayes, TEXT_ONLY, compiled=compiled), [(GOOD, "ham", 1.0)]).freeze()
    for other in (
        NaiveBayes(ALL_VIEWS, compiled=compiled),
        NaiveBayes(TEXT_ONLY, classes=["work"], compiled=compiled),
        NaiveBayes([WORDS, View("ends", Ends())], compiled=compiled),
    ):
        with pytest.raises(SnapshotError):
            other.restore(frozen.values, frozen.sections)


# ---- explanations and log odds


@models
@given(rows=ROWS, query=MESSAGE)
@settings(max_examples=40)
def test_an_explanation_adds_up(make: Make, rows: list[Row], query: dict[str, object]) -> None:
    """To ``u_a - u_b`` within 1e-9, for every pair of classes, both heads and all kinds of view."""
    model = _learned(make, rows)
    u = dict(zip(model.classes_, model.score_one(query).u[0].tolist(), strict=True))
    joint = model.joint_log_likelihood(query)
    labelled = [label for label, n in zip(model.classes_, model.state.class_counts, strict=True) if n > 0]
    for a in labelled:
        for b in labelled:
            if a == b:
                continue
            explanation = model.explain_one(query, (a, b))
            assert explanation is not None
            assert explanation.classes == (a, b)
            if not (math.isfinite(joint[a]) and math.isfinite(joint[b])):
                continue  # maximum likelihood's zeros have no finite difference
            rounding = 1e-9 + 1e-12 * max(abs(u[a]), abs(u[b]))  # a number far out makes a u of 1e18
            assert explanation.total == pytest.approx(u[a] - u[b], abs=rounding)
            for top in (0, 2, 99):
                published = explanation.published(top)
                tokens, others = published["tokens"], published["others"]
                assert isinstance(tokens, list)
                assert isinstance(others, dict)
                assert len(tokens) <= top
                parts = [
                    published["start"],
                    published["other_tokens"],
                    *(part[2] for part in tokens),
                    *others.values(),
                ]
                assert math.fsum(map(float, parts)) == pytest.approx(u[a] - u[b], abs=rounding)
    default = model.explain_one(query)
    assert (default is None) == (len(labelled) < 2)


def test_an_explanation_names_what_each_view_saw(compiled: bool | None) -> None:
    """Text tokens by view, largest first; length, unknown share and the sides beside them."""
    model = NaiveBayes(ALL_VIEWS, compiled=compiled)
    for _ in range(5):
        model.learn_one({"text": "free cash", "sender": "a@b", "size": 1.0}, "spam")
        model.learn_one({"text": "lunch at noon", "sender": "c@d", "size": 2.0}, "ham")
    explanation = model.explain_one({"text": "free neurips lunch lunch", "sender": "a@b", "size": 1.0})
    assert explanation is not None
    assert {(part.view, part.token) for part in explanation.tokens if part.view == "words"} == {
        ("words", "free"),
        ("words", "lunch"),
    }
    values = [abs(part.value) for part in explanation.tokens]
    assert values == sorted(values, reverse=True)
    assert {"length", "unknown_share", "sender", "size"} <= explanation.others.keys() | {
        p.view for p in explanation.tokens
    }


def test_a_class_never_labelled_is_not_explained(compiled: bool | None) -> None:
    """There is no evidence for or against it."""
    model = NaiveBayes(TEXT_ONLY, classes=["ham", "spam", "never"], compiled=compiled)
    assert model.explain_one({"text": "free"}) is None
    model.learn_one({"text": "free"}, "spam")
    model.learn_one({"text": "lunch"}, "ham")
    with pytest.raises(ValueError, match="must have been learned"):
        model.explain_one({"text": "free"}, ("ham", "never"))


@pytest.mark.parametrize("head", ["calibrated", "product"])
def test_T17_log_odds_stay_finite_past_certainty(compiled: bool | None, head: str) -> None:
    """100,000 copies of a token: p rounds to 1, the log odds go on, and rank."""
    tokenizer = Tokenizer(message_tokens_max=10**6)
    views = [COUNTED] if head == "product" else [WORDS]
    model = NaiveBayes(views, head=head, tokenizer=tokenizer, compiled=compiled)  # type: ignore[arg-type]
    for _ in range(20):
        model.learn_one({"text": "free cash prize"}, "spam")
        model.learn_one({"text": "lunch noon"}, "ham")
    few, many = (model.score_one({"text": "free " * n}) for n in (50_000, 100_000))
    for scores in (few, many):
        assert np.isfinite(scores.log_odds).all()
        assert scores.log_odds[0, 0] == pytest.approx(-scores.log_odds[0, 1], rel=1e-9)
    if head == "product":
        assert many.posterior[0].tolist() == [1.0, 0.0]
        assert many.log_odds[0, 0] > 1.5 * few.log_odds[0, 0] > 10_000
    assert many.u[0, 0] - many.u[0, 1] > few.u[0, 0] - few.u[0, 1]
