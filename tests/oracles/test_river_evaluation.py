"""River's evaluation of the estimators, its own naive Bayes beside them: metrics, delays, weights, tracks."""

import datetime as dt
from typing import Any

import pytest

from streamnb.naive_bayes.estimators import GaussianNB, NaiveBayes
from tests.support.ecosystem import MODELS, Pairs, river, stream

METRICS = {
    name: metric
    for name in river.metrics.__all__
    if isinstance(metric := getattr(river.metrics, name, None), type)
    and issubclass(metric, river.metrics.base.ClassificationMetric)
}
PARAMETERS: dict[str, dict[str, Any]] = {
    **{name: {"beta": 2.0} for name in METRICS if name.endswith("FBeta") or name == "VBeta"},
    "MultiFBeta": {"betas": {True: 1, False: 2}, "weights": None},
}
MAIL = [(x, label == "spam") for x, label in stream("words")]
WORDS = ["MultinomialNB", "ComplementNB"]
MOMENT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def _answers(model: Any, pairs: Pairs, metric: Any, **asked: Any) -> Any:  # noqa: ANN401
    """Return the metric's value, the text of one that has no value, or the error of river's evaluation."""
    try:
        found = river.evaluate.progressive_val_score(pairs, model, metric, **asked)
        return (
            str(found)
            if isinstance(found, river.metrics.ConfusionMatrix | river.metrics.ClassificationReport)
            else found.get()
        )
    except Exception as error:  # noqa: BLE001 - compared with the peer's
        return type(error)


@pytest.mark.parametrize("name", METRICS)
def test_each_metric_of_classification_has_rivers_value(name: str) -> None:
    """Of the two estimators that give river's numbers; what the peer cannot answer, ours cannot either."""
    metric = METRICS[name](**PARAMETERS.get(name, {}))
    for model in WORDS:
        ours, theirs = MODELS[model]
        assert metric.works_with(ours()) == metric.works_with(theirs())
        value = _answers(theirs(), MAIL, metric.clone())
        assert _answers(ours(), MAIL, metric.clone()) == (
            pytest.approx(value, abs=1e-9) if isinstance(value, float) else value
        )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("metric", ["Accuracy", "LogLoss", "CrossEntropy", "ROCAUC", "ClassificationReport"])
def test_each_estimator_is_evaluated_where_its_peer_is(model: str, metric: str) -> None:
    """By labels, by posteriors, of two classes and of seven."""
    for name in ("numbers", "segments"):
        ours, theirs = (
            _answers(make(), stream(name), getattr(river.metrics, metric)()) for make in MODELS[model]
        )
        assert not isinstance(ours, type) or isinstance(theirs, type)


@pytest.mark.parametrize("model", MODELS)
def test_the_loop_is_predict_then_learn(model: str) -> None:
    """The same accuracy as by hand, and the same state after it."""
    pairs = stream("numbers")
    one, evaluated = MODELS[model][0](), MODELS[model][0]()
    right = answered = 0
    for x, y in pairs:
        label = one.predict_one(x)
        answered += label is not None
        right += label == y
        one.learn_one(x, y)
    accuracy = river.evaluate.progressive_val_score(pairs, evaluated, river.metrics.Accuracy())
    assert accuracy.get() == right / answered
    assert evaluated.digest() == one.digest()


def _moment(x: Any) -> dt.datetime:  # noqa: ANN401
    return MOMENT + dt.timedelta(hours=int(x["the"] if "the" in x else len(x)))


DELAYS: dict[str, dict[str, Any]] = {
    "by number": {"delay": 3},
    "by time": {"moment": _moment, "delay": dt.timedelta(hours=5)},
    "by a function": {"moment": _moment, "delay": lambda x, y: dt.timedelta(hours=len(x) + len(y))},
}


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("model", WORDS)
def test_labels_that_come_late_have_rivers_value(model: str, delay: str) -> None:
    """The messages are scored in between."""
    ours, theirs = (
        _answers(make(), stream("words"), river.metrics.LogLoss(), **DELAYS[delay]) for make in MODELS[model]
    )
    assert isinstance(theirs, float)
    assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_each_step_reports_metric_time_memory_and_prediction(model: str) -> None:
    """River measures memory by walking the model's attributes."""
    steps = list(
        river.evaluate.iter_progressive_val_score(
            stream("numbers"),
            MODELS[model][0](),
            river.metrics.Accuracy() + river.metrics.LogLoss(),
            step=10,
            measure_time=True,
            measure_memory=True,
            yield_predictions=True,
        )
    )
    assert [step["Step"] for step in steps] == [10, 20, 30]
    assert all(step["Memory"] > 1000 for step in steps)
    assert all(sum(step["Prediction"].values()) == pytest.approx(1.0) for step in steps)


def test_weights_of_the_data_reach_the_model() -> None:
    """River passes `w` on to a model that names such a parameter."""
    weighed = [(x, y, {"w": 1.0 + i % 3}) for i, (x, y) in enumerate(stream("numbers"))]
    for make in (GaussianNB, NaiveBayes):
        evaluated, one = make(), make()
        river.evaluate.progressive_val_score(weighed_again(weighed), evaluated, river.metrics.Accuracy())
        for x, y, given in weighed:
            one.learn_one(x, y, w=given["w"])
        assert evaluated.digest() == one.digest()
        assert sum(evaluated.class_counts_.values()) == sum(given["w"] for _, _, given in weighed)


def weighed_again(weighed: Any) -> Any:  # noqa: ANN401
    """Return copies, because river takes the weight out of the mapping."""
    return [(x, y, dict(given)) for x, y, given in weighed]


def test_an_active_learner_asks_for_some_labels_only() -> None:
    """As many as around river's own."""
    asked = []
    for make in MODELS["MultinomialNB"]:
        learner = river.active.EntropySampler(make(), seed=1)
        steps = river.evaluate.iter_progressive_val_score(
            stream("words"), learner, river.metrics.Accuracy(), step=30
        )
        asked.append(next(iter(steps))["Samples used"])
    assert asked[0] == asked[1] < 30


@pytest.mark.parametrize("model", MODELS)
def test_a_track_runs(model: str) -> None:
    """River's benchmark of several streams."""

    class Stream(list[Any]):
        n_samples = 30

    track = river.evaluate.Track("ours", [Stream(stream("numbers"))], river.metrics.Accuracy())
    steps = list(track.run(MODELS[model][0](), track.datasets[0], 3))
    assert steps[-1]["Step"] == 30
    assert steps[-1]["Accuracy"].get() > 0.5
