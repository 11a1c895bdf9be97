"""Laws that hold for every model: batches, snapshots, explanations, sums taken apart and put together."""

import copy
import math
import pickle
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb.base.batch import Batch, Label
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import (
    Bernoulli,
    Binned,
    Categorical,
    Gaussian,
    Multinomial,
    Multivariate,
)
from streamnb.naive_bayes.event_models.priors import FallbackPrior
from streamnb.naive_bayes.event_models.smoothing import Beta, Dirichlet, Laplace, NoSmoothing
from streamnb.naive_bayes.features.readers import Categories, Category, Flags, Number, Numbers, Terms, Words
from streamnb.naive_bayes.model.message_features import read_message
from streamnb.naive_bayes.model.view import EVERY_FIELD, View
from streamnb.naive_bayes.statistics.number_block import NumberBlock
from streamnb.naive_bayes.statistics.scatter import Scatter

COMPLEMENT = Multinomial(Laplace(1.0), "counts", "smooth", complement=True)
MODELS: dict[str, Callable[[], NaiveBayes]] = {
    "every field": NaiveBayes,
    "every field, calibrated": partial(NaiveBayes, EVERY_FIELD, head="calibrated", raw=True),
    "bernoulli": partial(NaiveBayes, [View("coins", Words(), Bernoulli())]),
    "bernoulli, smooth": partial(NaiveBayes, [View("coins", Words(), Bernoulli(Beta(0.5, 2.0), "smooth"))]),
    "bernoulli, maximum likelihood": partial(NaiveBayes, [View("coins", Words(), Bernoulli(Beta(0.0, 0.0)))]),
    "bernoulli of counts": partial(NaiveBayes, [View("coins", Terms("terms", above=1.0), Bernoulli())]),
    "multinomial": partial(
        NaiveBayes, [View("words", Words(), Multinomial(Laplace(1.0), "boolean"))], head="product"
    ),
    "complement": partial(NaiveBayes, [View("others", Words(), COMPLEMENT)], prior=FallbackPrior()),
    "categories": partial(
        NaiveBayes, [View("c", Categories(fields=("kind", "sold")), Categorical(Dirichlet(5.0)))]
    ),
    "categories, maximum likelihood": partial(
        NaiveBayes, [View("c", Categories(), Categorical(NoSmoothing(), "smooth"))]
    ),
    "flags": partial(NaiveBayes, [View("f", Flags(), Bernoulli(Beta(1.0, 2.0)))]),
    "numbers": partial(NaiveBayes, [View("n", Numbers())]),
    "numbers, shared": partial(
        NaiveBayes, [View("n", Numbers(fields=("size", "age")), Gaussian(variance="shared"))]
    ),
    "numbers, robust": partial(NaiveBayes, [View("n", Numbers(), Gaussian(robust=0.01))]),
    "numbers, given": partial(NaiveBayes, [View("n", Numbers(), Gaussian(variance=2.0))]),
    "discriminant": partial(NaiveBayes, [View("n", Numbers(), Multivariate())]),
    "discriminant, a covariance a class": partial(NaiveBayes, [View("n", Numbers(), Multivariate("class"))]),
    "ranges": partial(NaiveBayes, [View("n", Numbers(), Binned((0.0, 1.0, 100.0)))]),
    "ranges, learned": partial(NaiveBayes, [View("n", Numbers(), Binned(bins=3, warm_up=4))]),
    "number, shared": partial(NaiveBayes, [View("n", Number("size"), Gaussian(variance="shared"))]),
    "few tokens": partial(NaiveBayes, EVERY_FIELD, max_tokens=16),
    "a category": partial(NaiveBayes, [View("c", Category("kind")), View("n", Numbers())]),
}
EACH = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
UNBOUNDED = pytest.mark.parametrize(
    "make",
    [make for name, make in MODELS.items() if name != "few tokens"],
    ids=[n for n in MODELS if n != "few tokens"],
)

NUMBER = st.sampled_from([None, math.nan, -3.0, 0.0, 1.5, 2, 1000.25])
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "text": st.lists(st.sampled_from("abcdefgh"), max_size=5).map(" ".join),
        "terms": st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)),
        "kind": st.sampled_from([None, "red", "blue", "1"]),
        "sold": st.sampled_from([None, True, False]),
        "size": NUMBER,
        "age": NUMBER,
    },
)
STREAM = st.lists(
    st.tuples(MESSAGE, st.sampled_from(["ham", "spam", "work"]), st.sampled_from([1.0, 2.0, 0.25])),
    max_size=12,
)
Stream = list[tuple[dict[str, object], str, float]]


def _readable(make: Callable[[], NaiveBayes], stream: Stream) -> Stream:
    """A block that reads every field refuses a mapping; only the model of terms is given one."""
    model = make()
    has_terms = any(isinstance(view.reader, Terms) for view in model.state.views)
    return [
        ({name: value for name, value in x.items() if has_terms or name != "terms"}, y, weight)
        for x, y, weight in stream
    ]


def _learned(make: Callable[[], NaiveBayes], stream: Stream) -> NaiveBayes:
    model = make()
    for x, y, weight in stream:
        model.learn_one(x, y, weight)
    return model


def _close(a: dict[Label, float], b: dict[Label, float], tolerance: float = 1e-9) -> bool:
    return a.keys() == b.keys() and all(
        math.isclose(a[key], b[key], rel_tol=tolerance, abs_tol=tolerance) for key in a
    )


@EACH
@given(STREAM)
@settings(max_examples=25)
def test_many_is_one_to_the_bit(make: Callable[[], NaiveBayes], stream: Stream) -> None:
    """In one batch or message by message: the same posteriors, which sum to 1, and the same state."""
    stream = _readable(make, stream)
    one, many = make(), make()
    names = sorted({name for x, _, _ in stream for name in x})
    columns = {name: [x.get(name) for x, _, _ in stream] for name in names}
    scores = many.step(Batch(columns, [y for _, y, _ in stream], [weight for _, _, weight in stream]))
    for i, (unordered, y, weight) in enumerate(stream):
        x = {name: unordered[name] for name in names if name in unordered}  # sums have an order
        expected = one.predict_proba_one(x)
        assert scores.posterior[i, : scores.n_classes[i]].tolist() == [*expected.values()]
        assert not expected or math.isclose(math.fsum(expected.values()), 1.0, abs_tol=1e-12)
        one.learn_one(x, y, weight)
    assert one.digest() == many.digest()


@EACH
@given(STREAM, STREAM)
@settings(max_examples=25)
def test_a_restored_or_pickled_model_goes_on(
    make: Callable[[], NaiveBayes], stream: Stream, after: Stream
) -> None:
    """From arrays, from a pickle, from a deep copy: the same scores and the same state afterwards."""
    stream, after = _readable(make, stream), _readable(make, after)
    model = _learned(make, stream)
    restored = make()
    frozen = model.freeze()
    restored.restore(frozen.values, frozen.sections)
    for other in (restored, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        mine = pickle.loads(pickle.dumps(model))
        assert other.digest() == mine.digest()
        for x, y, weight in after:
            assert other.predict_proba_one(x) == mine.predict_proba_one(x)
            other.learn_one(x, y, weight)
            mine.learn_one(x, y, weight)
        assert other.digest() == mine.digest()


@EACH
@given(STREAM, MESSAGE)
@settings(max_examples=40)
def test_an_explanation_adds_up(make: Callable[[], NaiveBayes], stream: Stream, x: dict[str, object]) -> None:
    """To 1e-9 of the difference between two classes, whichever parts are named.

    The difference of two sums near 1e8 has itself no more digits.
    """
    ((x, _, _),) = _readable(make, [(x, "ham", 1.0)])
    model = _learned(make, _readable(make, stream))
    explanation = model.explain_one(x)
    if explanation is None:
        assert len(model.state.active()) < 2
        return
    a, b = explanation.classes
    scores = model.score_one(x)
    u = dict(zip(scores.classes, scores.u[0].tolist(), strict=True))
    if model.state.head is None:
        u.update(model.joint_log_likelihood(x))
    if all(map(math.isfinite, u.values())):
        rounding = max(1e-9, 1e-14 * max(map(abs, u.values())))
        assert explanation.total == pytest.approx(u[a] - u[b], rel=1e-9, abs=rounding)
        shorter = model.explain_one(x, top=1, classes=(b, a))
        assert shorter is not None
        assert len(shorter.tokens) <= 1
        assert shorter.total == pytest.approx(u[b] - u[a], rel=1e-9, abs=rounding)


@UNBOUNDED
@given(STREAM, STREAM)
@settings(max_examples=30)
def test_what_is_unlearned_leaves_no_trace(
    make: Callable[[], NaiveBayes], stream: Stream, more: Stream
) -> None:
    """The order-free part to the bit, posteriors of the product to 1e-9: moments round."""
    stream, more = _readable(make, stream), _readable(make, more)
    model, expected = _learned(make, stream + more), _learned(make, stream)
    for x, y, weight in more:
        model.unlearn_one(x, y, weight)
    assert model.digest()["order_free"] == expected.digest()["order_free"]
    assert model.state.class_counts[: len(expected.classes_)] == expected.state.class_counts
    restored = make()
    frozen = model.freeze()
    restored.restore(frozen.values, frozen.sections)
    for x, _, _ in stream:
        assert restored.predict_proba_one(x) == model.predict_proba_one(x)
    for view, block in model.state.statistics.items():
        other = expected.state.statistics[view]
        if not isinstance(block, NumberBlock) or not isinstance(other, NumberBlock):
            if isinstance(block, Scatter) and isinstance(other, Scatter):
                assert sorted(block.names) == sorted(other.names)
            continue
        assert block.numbers.keys() == other.numbers.keys()
        for name, moments in block.numbers.items():
            for c in range(len(expected.classes_)):
                assert moments.n[c] == other.numbers[name].n[c]
                assert moments.mean[c] == pytest.approx(other.numbers[name].mean[c], abs=1e-9)
                assert moments.squares[c] == pytest.approx(other.numbers[name].squares[c], abs=1e-6)
    # Moments round: where all numbers were equal, a trace of others is left.
    numbers = len(model.state.token_statistics()) < len(model.state.views)
    if model.state.head is None and not numbers and len(model.classes_) == len(expected.classes_):
        for x, _, _ in stream:
            assert _close(model.predict_proba_one(x), expected.predict_proba_one(x))


def _refusal(act: Callable[[], None]) -> str:
    try:
        act()
    except ValueError as error:
        return str(error)
    return ""


@UNBOUNDED
@given(STREAM, STREAM)
@settings(max_examples=30)
def test_two_models_add_up_to_the_whole(
    make: Callable[[], NaiveBayes], first: Stream, second: Stream
) -> None:
    """And what is subtracted again leaves what there was."""
    first, second = _readable(make, first), _readable(make, second)
    whole, model, other = _learned(make, first + second), _learned(make, first), _learned(make, second)
    before = model.digest()["order_free"]
    if refusal := _refusal(partial(model.merge, other)):
        assert make is MODELS["ranges, learned"]  # two halves may have settled apart
        assert "different bin edges" in refusal
        assert model.digest()["order_free"] == before
        return
    assert model.digest()["order_free"] == whole.digest()["order_free"]
    if model.state.head is None and make is not MODELS["ranges, learned"]:  # whose edges follow the order
        for x, _, _ in first + second:
            assert _close(model.predict_proba_one(x), whole.predict_proba_one(x))
    model.subtract(other)
    assert model.digest()["order_free"] == before


@UNBOUNDED
@given(STREAM, STREAM, STREAM)
@settings(max_examples=30)
def test_two_models_that_began_from_one_add_up_to_the_whole(
    make: Callable[[], NaiveBayes], base: Stream, first: Stream, second: Stream
) -> None:
    """What it had learned counts once, and a refusal changes nothing."""
    base, first, second = (_readable(make, stream) for stream in (base, first, second))
    begun, whole = _learned(make, base), _learned(make, base + first + second)
    model, other = _learned(make, base + first), _learned(make, base + second)
    before = model.digest()["order_free"]
    if refusal := _refusal(partial(model.merge, other, begun)):
        assert make is MODELS["ranges, learned"]  # two halves may have settled apart
        assert "edges" in refusal
        assert model.digest()["order_free"] == before
        return
    assert model.state.learned == whole.state.learned
    if make is not MODELS["ranges, learned"]:  # whose edges follow the order
        assert model.digest()["order_free"] == whole.digest()["order_free"]


@UNBOUNDED
@given(STREAM, STREAM)
@settings(max_examples=30)
def test_what_was_not_learned_cannot_be_taken_away(
    make: Callable[[], NaiveBayes], stream: Stream, others: Stream
) -> None:
    """A refusal changes nothing."""
    stream, others = _readable(make, stream), _readable(make, others)
    model, other = _learned(make, stream), _learned(make, stream + others)
    before = model.digest()
    attempts: list[Callable[[], None]] = [partial(model.unlearn_one, {"text": "a"}, "never")]
    if others:
        attempts.append(partial(model.subtract, other))
    for attempt in attempts:
        with pytest.raises(ValueError, match=r"nothing was|learned"):
            attempt()
        assert model.digest() == before


STRAIGHT = [
    "bernoulli",
    "bernoulli of counts",
    "multinomial",
    "flags",
    "numbers, shared",
    "numbers, given",
    "discriminant",
    "categories",
    "complement",
]


@pytest.mark.parametrize("make", [MODELS[name] for name in STRAIGHT], ids=STRAIGHT)
@given(STREAM, STREAM)
@settings(max_examples=30)
def test_linear_weights_are_the_model(
    make: Callable[[], NaiveBayes], stream: Stream, queries: Stream
) -> None:
    """To 1e-9, for messages of known features that lack no number."""
    stream, queries = _readable(make, stream), _readable(make, queries)
    model = _learned(make, stream)
    labels = sorted(model.classes_[c] for c in model.state.active())
    if len(labels) < 2:
        with pytest.raises(ValueError, match="two of the classes learned"):
            model.linear_weights()
        return
    a, b = labels[:2]
    intercept, weights = model.linear_weights((a, b))
    view = model.state.views[0]
    for x, _, _ in queries:
        columns = {name: [value] for name, value in x.items()}
        (features,) = read_message(model.state.views, model.state.tokenizer, columns, 0).features
        if isinstance(features, float):
            features = {} if math.isnan(features) else {"": features}
        known = {key for key in features if (view.name, key) in weights}
        needed = (
            {key for _, key in weights}
            if isinstance(view.event_model, Gaussian | Multivariate)
            else set(features)
        )
        says_nothing = not any(weights[view.name, key] * features[key] for key in known)
        if known != needed or (says_nothing and view.name == "others"):
            continue  # a number is missing, a word is unknown, or the prior stands in
        joint = model.joint_log_likelihood(x)
        u = intercept + math.fsum(weights[view.name, key] * features[key] for key in known)
        assert u == pytest.approx(joint[a] - joint[b], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", ["numbers", "numbers, robust", "every field, calibrated"])
def test_a_curved_boundary_has_no_weights(name: str) -> None:
    """It is refused with the reason."""
    model = _learned(MODELS[name], [({"size": 1.0}, "ham", 1.0), ({"size": 2.0}, "spam", 1.0)])
    with pytest.raises(ValueError, match=r"curved|no linear boundary"):
        model.linear_weights()


def test_models_that_count_otherwise_are_refused_with_the_difference() -> None:
    """Other views, another weight, itself."""
    model = NaiveBayes()
    for other in (
        NaiveBayes([View("coins", Words(), Bernoulli())]),
        NaiveBayes(EVERY_FIELD, head="calibrated"),
    ):
        with pytest.raises(ValueError, match=r"settings that their counts depend on: .* here, .* there"):
            model.merge(other)
        with pytest.raises(ValueError, match="settings that their counts depend on"):
            model.subtract(other)
    with pytest.raises(ValueError, match="itself"):
        model.merge(model)


def test_where_tokens_were_evicted_a_count_stops_at_0_and_is_counted() -> None:
    """Evicted counts cannot be subtracted."""
    model = NaiveBayes(max_tokens=16)
    texts = [f"common w{i} x{i} y{i}" for i in range(20)]
    for text in texts:
        model.learn_one({"text": text}, "ham")
    for text in texts:
        model.unlearn_one({"text": text}, "ham")
    assert model.state.fell_short > 0
    assert model.state.class_counts == [0.0]
    assert len(model.state.counts) == 0
    restored = NaiveBayes(max_tokens=16)
    frozen = model.freeze()
    restored.restore(frozen.values, frozen.sections)
    assert restored.state.fell_short == model.state.fell_short


def test_a_merge_past_the_cap_lets_the_rarest_go() -> None:
    """The counts add first."""
    first, second = NaiveBayes(max_tokens=16), NaiveBayes(max_tokens=16)
    for i in range(15):
        first.learn_one({"text": f"common a{i}"}, "ham")
        second.learn_one({"text": f"common b{i}"}, "spam")
    first.merge(second)
    assert len(first.state.counts) <= 16
    assert first.state.counts["words"].rows["common"] == [15.0, 15.0]
