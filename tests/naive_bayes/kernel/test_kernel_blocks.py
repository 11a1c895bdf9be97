"""Blocks of named values, compiled: the plain twin's bits, whatever the names and values are."""

from __future__ import annotations

import copy
import math
import os
import pickle
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb.base.batch import Batch, Label
from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.estimators import BernoulliNB, CategoricalNB, GaussianNB, NaiveBayes
from streamnb.naive_bayes.event_models import Bernoulli, Categorical, Gaussian
from streamnb.naive_bayes.event_models.smoothing import Beta, Dirichlet, Laplace, NoSmoothing
from streamnb.naive_bayes.features.readers import Categories, Flags, Number, Numbers, Words
from streamnb.naive_bayes.model.view import EVERY_FIELD, TEXT_ONLY, View
from streamnb.naive_bayes.statistics.moments import Moments
from tests.support.twins import held, said

pytestmark = pytest.mark.skipif(os.environ.get("STREAMNB_PURE", "") not in {"", "0"}, reason=_kernel.reason)

Make = Callable[[bool], NaiveBayes]
Row = tuple[dict[str, object], Label | None, float]
Head = Literal["calibrated", "product"]

NAMED = ("kind", "town", "sold", "size", "Größe", "\x7f=")  # names of fields and of a mapping's values
MISSING: list[object] = [None, math.nan, np.float32("nan")]
TEXTS = ["red", "", "Malmö", 'a"b', "back\\slash", "\n", "\x7f", "\x00", "中", "1", "true", "👍\u2028"]
CATEGORY = st.sampled_from([*MISSING, *TEXTS, 0, -7, 2**63, True, False, 1.0, -0.0, 2.5, 1e300, np.int8(3)])
FLAG = st.sampled_from([*MISSING, True, False, 1, 0, 2.5, 10**30, np.True_])
NUMBER = st.sampled_from([*MISSING, 0, -3, 2.5, -0.0, 1e100, -1e100, 5e-324, math.inf, 10**400, 2**62 + 1])
NUMBER |= st.sampled_from([True, np.float64(1.5), np.int64(-4), 1e-3]) | st.floats(-1e6, 1e6)
ANY = st.sampled_from([*MISSING, *TEXTS, True, False, 1, 2.5, -3, 1e6, np.float32(0.5), np.False_, 2**62])
NAME = st.sampled_from([*NAMED, "new", 7, "", ("a", 1)])
MESSAGE: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {
        "text": st.lists(st.sampled_from(["win", "lunch", "a", "été"]), max_size=4).map(" ".join),
        "of categories": st.none() | st.dictionaries(NAME, CATEGORY, max_size=4),
        "of flags": st.none() | st.dictionaries(NAME, FLAG, max_size=4),
        "of numbers": st.none() | st.dictionaries(NAME, NUMBER, max_size=4),
        "length": NUMBER.filter(lambda x: not isinstance(x, bool)),
    },
    optional=dict.fromkeys(NAMED[:2], CATEGORY)
    | dict.fromkeys(NAMED[2:3], FLAG)
    | dict.fromkeys(NAMED[3:], NUMBER),
)
LABEL = st.sampled_from([None, *"abcd"])
WEIGHT = st.sampled_from([1.0, 0.5, 2.0, 1 / 256, 0.1, 1e9, 1e-9])
ROWS: st.SearchStrategy[list[Row]] = st.lists(st.tuples(MESSAGE, LABEL, WEIGHT), max_size=12)
ANY_ROWS: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(st.dictionaries(st.sampled_from([*NAMED, "new"]), ANY, max_size=5), LABEL, WEIGHT), max_size=12
)

CATEGORICAL = st.builds(
    Categorical,
    st.sampled_from([Laplace(1.0), Laplace(0.03), NoSmoothing(), Dirichlet(0.5), Dirichlet(100.0)]),
    st.sampled_from(["skip", "smooth"]),
)
COIN = st.builds(Bernoulli, st.sampled_from([Beta(), Beta(0.0, 0.0), Beta(0.1, 3.0), Beta(2.0, 0.0)]))
GAUSSIAN = st.builds(
    Gaussian,
    st.sampled_from([1.0, 0.0, 1e-3, 1e3]),
    st.sampled_from(["class", "shared", 1.0, 2, 1e-300]),
    st.sampled_from([0.0, 0.0, 1e-3, 0.5, 5e-324]),
)
VIEW = st.one_of(
    st.builds(
        partial(View, ""),
        st.sampled_from([Categories("of categories"), Categories("", NAMED[:2])]),
        CATEGORICAL,
    ),
    st.builds(partial(View, ""), st.sampled_from([Flags("of flags"), Flags("", NAMED[2:3])]), COIN),
    st.builds(
        partial(View, ""),
        st.sampled_from([Numbers("of numbers"), Numbers("", (*NAMED[3:], "gone"))]),
        GAUSSIAN,
    ),
    st.builds(partial(View, "", Number("length")), GAUSSIAN),
)
EVERY = st.tuples(
    st.builds(partial(View, "c", Categories()), CATEGORICAL),
    st.builds(partial(View, "f", Flags()), COIN),
    st.builds(partial(View, "n", Numbers()), GAUSSIAN),
).flatmap(st.permutations)
heads = pytest.mark.parametrize("head", ["product", "calibrated"])


@st.composite
def _streams(draw: st.DrawFn, head: Head) -> tuple[Make, list[Row]]:
    """A model's settings, waiting to hear which twin drives it, and what it is to read."""
    every = draw(st.booleans())
    views = list(draw(EVERY) if every else draw(st.lists(VIEW, min_size=1, max_size=4)))
    views = [View(f"v{i}", view.reader, view.event_model) for i, view in enumerate(views)]
    if head == "calibrated":
        views.insert(draw(st.integers(0, len(views))), TEXT_ONLY[0])
    elif not every and draw(st.booleans()):
        views.append(View("w", Words()))
    options = {
        "classes": draw(st.sampled_from([(), ("a",), ("never", "b")])),
        "classes_max": draw(st.sampled_from([2, 3, 256])),
        "max_tokens": draw(st.sampled_from([None, None, 16])),
        "raw": draw(st.booleans()),
    }
    rows = draw(ANY_ROWS if every else ROWS)

    def make(compiled: bool) -> NaiveBayes:
        return NaiveBayes(views, head=head, compiled=compiled, **options)  # type: ignore[arg-type]

    return make, rows


def _batch(rows: Sequence[Row]) -> Batch:
    names = dict.fromkeys(name for x, _, _ in rows for name in x)
    columns = {name: [x.get(name) for x, _, _ in rows] for name in names}
    return Batch(columns, [label for _, label, _ in rows], [weight for _, _, weight in rows])


def _outcome(act: Callable[[], object]) -> object:
    """What came of it, a refusal in its words."""
    try:
        return act()
    except ValueError as error:
        return str(error)


def _told(model: NaiveBayes, batch: Batch, score: bool = True, learn: bool = True) -> object:
    return _outcome(lambda: said(model.step(batch, score=score, learn=learn)))


@heads
@given(st.data(), st.lists(st.integers(0, 12), max_size=3))
@settings(max_examples=200)
def test_twin_is_twin_to_the_bit(head: Head, data: st.DataObject, cuts: list[int]) -> None:
    """Scores and state after every batch, however the stream is cut; refusals in the same words."""
    make, rows = data.draw(_streams(head))
    plain, twin = make(False), make(True)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for a, b in pairwise(bounds):
        score, learn = data.draw(st.sampled_from([(True, True), (True, False), (False, True)]))
        batch = _batch(rows[a:b])
        assert _told(twin, batch, score, learn) == _told(plain, batch, score, learn)
        assert held(twin) == held(plain)


@heads
@given(st.data(), st.lists(st.integers(0, 11), max_size=6))
@settings(max_examples=75)
def test_sums_are_taken_apart_and_put_together_alike(
    head: Head, data: st.DataObject, which: list[int]
) -> None:
    """Learned one by one, unlearned, merged, subtracted, restored, copied: one state, one refusal."""
    make, rows = data.draw(_streams(head))
    models = make(False), make(True)
    for model in models:
        for x, label, weight in rows:
            _outcome(partial(model.learn_one, x, label, weight))
    said_of = [
        [_outcome(partial(model.unlearn_one, rows[i % len(rows)][0], "a")) for i in which if rows]
        for model in models
    ]
    assert said_of[0] == said_of[1]
    assert held(models[1]) == held(models[0])
    for a, b in ((0, 1), (1, 0)):  # each takes in the other's
        other = copy.deepcopy(models[b])
        frozen = models[b].freeze()
        restored = make(a == 1)
        restored.restore(frozen.values, frozen.sections)
        assert held(restored) == held(pickle.loads(pickle.dumps(other)))
        assert _outcome(partial(restored.merge, other)) == _outcome(partial(other.merge, models[a]))
        assert held(restored) == held(other)
        assert _outcome(partial(restored.subtract, models[b])) == _outcome(partial(other.subtract, models[a]))
        assert held(restored) == held(other)
        for x, _, _ in rows:
            query = _batch([(x, None, 1.0)])
            assert _told(restored, query) == _told(other, query)


def test_the_estimators_of_fields_are_compiled() -> None:
    """By themselves; and the model that reads every field."""
    for estimator in (
        GaussianNB(),
        CategoricalNB(),
        BernoulliNB(),
        NaiveBayes(),
        GaussianNB("shared", robust=0.1),
    ):
        assert estimator.state.compiled
    assert NaiveBayes().state.compiled
    assert NaiveBayes(EVERY_FIELD, head="calibrated").state.compiled


@pytest.mark.parametrize("name", [*"ab", "c"])
def test_a_value_that_uses_the_model_while_it_is_read(name: str) -> None:
    """Code of its own may learn and unlearn the same names: nothing dangles, and all is learned."""
    view = View("f", Flags("x"))
    model = NaiveBayes([view], classes=["old", "new"], compiled=True)
    model.learn_one({"x": {"a": True, "b": False}}, "old")

    class Meddler:
        def __bool__(self) -> bool:
            model.learn_one({"x": {name: True, "c": False}}, "new")
            model.unlearn_one({"x": {"a": True, "b": False}}, "old")
            return True

    model.learn_one({"x": {"a": True, "meddler": Meddler(), "c": True}}, "old")
    expected = NaiveBayes([view], classes=["old", "new"], compiled=False)
    expected.learn_one({"x": {name: True, "c": False}}, "new")
    expected.learn_one({"x": {"a": True, "meddler": True, "c": True}}, "old")
    assert held(model)[2:4] == held(expected)[2:4]


@pytest.mark.parametrize("many", [False, True])
def test_a_value_that_teaches_a_class_while_it_is_read_is_refused(many: bool) -> None:
    """There would be no room for it in what the batch has prepared; nothing but that class was learned."""
    model = NaiveBayes([View("f", Flags("x"))], compiled=True)

    class Teacher:
        def __bool__(self) -> bool:
            model.learn_one({"x": {"a": True}}, "taught")
            return True

    x: dict[str, object] = {"x": {"b": Teacher()}}
    with pytest.raises(RuntimeError, match="taught the model a new class while the message was read"):
        model.step(Batch({"x": [x["x"]]}, ["new"])) if many else model.learn_one(x, "new")
    assert model.classes_ == ["taught"]


@pytest.mark.parametrize("value", [Decimal(10) ** 101, [1], b"1", "1", 1j, 1e101, -(10**101)], ids=repr)
def test_a_number_that_is_none_is_refused_alike(value: object) -> None:
    """In a batch behind one that is; and nothing is learned."""
    words = []
    for compiled in (False, True):
        model = NaiveBayes([View("n", Numbers("x"))], compiled=compiled)
        model.learn_one({"x": {"a": 1.0}}, "ham")
        before = held(model)
        with pytest.raises(ValueError, match=r"must hold a number") as error:
            model.step(Batch({"x": [{"b": 2.0}, {"b": 1.0, "a": value}]}, ["ham", "spam"]))
        words.append(str(error.value))
        assert held(model) == before
    assert words[0] == words[1]


def test_the_twin_of_moments_is_moments() -> None:
    """The class alone, every method."""
    plain, twin = Moments(2), _kernel.Moments(2)
    other, other_twin = Moments(1), _kernel.Moments(1)
    for one, another in ((plain, other), (twin, other_twin)):
        for i in range(5):
            one.add(1.5 * i, i % 2, 0.5)
            another.add(2.0 + i, 0)
        one.remove(3.0, 0, 0.5)
        one.add_class()
        one.merge(another, [2])
        one.merge(another, [0])
        one.check_subtractable(another, [0])
        one.subtract(another, [0])
        with pytest.raises(ValueError, match="than were learned"):
            one.check_subtractable(another, [1])
        with pytest.raises(ValueError, match="smaller than the weight to remove"):
            one.remove(1.0, 1, 100.0)
    assert (twin.n, twin.mean, twin.squares) == (plain.n, plain.mean, plain.squares)
    assert twin.pooled() == plain.pooled()
    assert twin.freeze().tolist() == plain.freeze().tolist() == copy.deepcopy(twin).freeze().tolist()
    assert twin.digest("v", [*"abc"]).hex() == plain.digest("v", [*"abc"]).hex()
    with pytest.raises(IndexError, match="no class 3 of 3"):
        twin.add(1.0, 3)
