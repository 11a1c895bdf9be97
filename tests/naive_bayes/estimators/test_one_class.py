"""`NaiveBayes` is one class: a classifier of river, with its parameters and what it learned side by side."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from river import compose, ensemble, evaluate, metrics, preprocessing

from streamnb import (
    TEXT_ONLY,
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    Laplace,
    LearnedPrior,
    Multinomial,
    MultinomialNB,
    NaiveBayes,
    Numbers,
    Tokenizer,
    UniformPrior,
    View,
    Words,
)
from streamnb.base import Label
from streamnb.naive_bayes.estimators.batch_answers import BatchAnswers

Metrics: Any = metrics
METHODS_MAX = 25
GIVEN: dict[str, Any] = {
    "views": [View("words", Words(), Multinomial(Laplace(1.0))), View("n", Numbers())],
    "text": None,
    "prior": UniformPrior(),
    "head": "product",
    "trust": False,
    "classes": ["ham", "spam"],
    "classes_max": 7,
    "max_tokens": 99,
    "bytes_max": 2_000_000,
    "tokenizer": Tokenizer(rule="words"),
    "raw": True,
    "explain": 2,
    "half_life_s": None,
    "half_life_messages": 50.0,
    "time_skew_max_s": 5.0,
    "compiled": None,
}
MESSAGES: list[tuple[dict[str, object], Label]] = [
    ({"text": "win money", "amount": 900.0}, "spam"),
    ({"text": "lunch at noon", "amount": 12.0}, "ham"),
    ({"text": "win a prize", "amount": 700.0}, "spam"),
    ({"text": "the minutes of lunch", "amount": 3.0}, "ham"),
]


def taught(**settings: Any) -> NaiveBayes:  # noqa: ANN401 - the parameters
    """Return a model that has learned the messages."""
    model = NaiveBayes(**settings)
    for x, y in MESSAGES:
        model.learn_one(x, y)
    return model


def test_parameters_are_attributes_as_they_were_given() -> None:
    """Every parameter of the constructor, and nothing that was learned under such a name."""
    model = NaiveBayes(**GIVEN)
    assert set(inspect.signature(NaiveBayes).parameters) == set(GIVEN)
    assert {name: getattr(model, name) for name in GIVEN} == GIVEN
    for x, y in MESSAGES:
        model.learn_one(x, y)
    assert {name: getattr(model, name) for name in GIVEN} == GIVEN


def test_what_was_learned_has_names_of_its_own() -> None:
    """With an underscore at the end, as in scikit-learn."""
    model = taught()
    assert model.classes_ == ["spam", "ham"]
    assert model.class_counts_ == {"spam": 2.0, "ham": 2.0}
    assert model.learned_ == 4


def test_a_clone_of_a_taught_model_knows_nothing() -> None:
    """It has the parameters, also empty tuples, which river's `clone` cannot take."""
    for model in (taught(), taught(**GIVEN), taught(views=TEXT_ONLY, classes=())):
        clone = model.clone()
        assert clone.learned_ == 0
        assert not any(clone.class_counts_.values())
        assert clone.state_settings() == model.state_settings()
    other = taught().clone({"max_tokens": 50, "classes": ["ham"]})
    assert (other.max_tokens, other.classes_) == (50, ["ham"])


def test_a_class_has_at_most_twenty_five_public_methods() -> None:
    """Of its own; all are named in its docstring."""
    own = [
        name
        for name, value in vars(NaiveBayes).items()
        if inspect.isfunction(value) and not name.startswith("_")
    ]
    assert len(own) <= METHODS_MAX
    own += [name for name in vars(BatchAnswers) if name.endswith("_many")]
    described = inspect.getdoc(NaiveBayes) or ""
    assert [name for name in own if f"`{name}`" not in described] == []


@pytest.mark.parametrize("views", [None, TEXT_ONLY], ids=["every field", "text"])
def test_copies_go_on_to_the_bit(views: Any) -> None:  # noqa: ANN401
    """Pickled or deep-copied, with a lock and a driver of its own."""
    model = taught(views=views)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.state.lock is not model.state.lock
        for each in (other, again := copy.deepcopy(model)):
            each.learn_one({"text": "win the lunch", "amount": 5.0}, "ham")
        assert other.digest() == again.digest()
        assert other.predict_proba_one({"text": "win"}) == again.predict_proba_one({"text": "win"})


def test_a_setting_that_the_sums_do_not_depend_on_may_change() -> None:
    """The state stays, to the bit; another tokenizer is refused, and nothing changes."""
    model = taught(views=TEXT_ONLY)
    before = model.digest()
    model.raw, model.max_tokens = True, 1000
    assert (model.digest(), model.raw, model.state.raw, model.state.max_tokens) == (before, True, True, 1000)
    assert model.score_one({"text": "win"}).raw_posterior is not None
    with pytest.raises(ValueError, match="tokenizer"):
        model.tokenizer = Tokenizer(rule="words")
    with pytest.raises(ValueError, match="`classes` cannot change after learning"):
        model.classes = ["other"]
    assert (model.digest(), model.tokenizer, model.classes) == (before, None, None)


def test_rivers_metrics_and_evaluation_take_it() -> None:
    """`works_with` holds, and progressive validation runs."""
    model = NaiveBayes()
    for metric in (Metrics.Accuracy(), Metrics.LogLoss(), Metrics.ROCAUC(), Metrics.ConfusionMatrix()):
        assert metric.works_with(model)
    rows: Any = [(x, y == "spam") for x, y in MESSAGES * 25]
    found = evaluate.progressive_val_score(rows, model, Metrics.Accuracy())
    assert found.get() > 0.9


def test_it_runs_in_rivers_pipelines_and_ensembles() -> None:
    """As a step after a scaler, and as the model that an ensemble clones."""
    rows = [({"x": float(i % 7), "y": float(i % 2)}, i % 2 == 1) for i in range(60)]
    views = [View("n", Numbers())]
    models: list[Any] = [
        compose.Pipeline(preprocessing.StandardScaler(), NaiveBayes(views)),
        ensemble.BaggingClassifier(NaiveBayes(views), n_models=3, seed=1),
        ensemble.ADWINBaggingClassifier(NaiveBayes(views), n_models=3, seed=1),
        ensemble.AdaBoostClassifier(NaiveBayes(views), n_models=3, seed=1),
        ensemble.LeveragingBaggingClassifier(NaiveBayes(views), n_models=3, seed=1),
    ]
    for model in models:
        for x, y in rows:
            model.learn_one(x, y)
        assert model.predict_one({"x": 3.0, "y": 1.0}) is True


def test_mutate_changes_what_river_lets_it_change() -> None:
    """No attribute is mutable, as in river's own naive Bayes: the parameter may be assigned instead."""
    with pytest.raises(ValueError, match="not a mutable attribute"):
        taught().mutate({"raw": True})


@pytest.mark.parametrize(
    "frame_of", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"]
)
def test_frames_are_learned_and_predicted(frame_of: Any) -> None:  # noqa: ANN401
    """The same bits as message by message, and a frame of the same kind back."""
    names = ("text", "amount")
    frame = frame_of({name: [x[name] for x, _ in MESSAGES] for name in names})
    model, one = NaiveBayes(), taught()
    model.learn_many(frame, [y for _, y in MESSAGES])
    assert model.digest() == one.digest()
    posterior = model.predict_proba_many(frame)
    assert isinstance(posterior, type(frame))
    assert list(model.predict_many(frame)) == [y for _, y in MESSAGES] or not isinstance(frame, pd.DataFrame)
    rows = model.predict_proba_many([x for x, _ in MESSAGES])
    assert rows == [one.predict_proba_one(x) for x, _ in MESSAGES]


def test_frames_have_times_too() -> None:
    """A model with a half-life in seconds learns a batch with the time of each message."""
    model, one = NaiveBayes(half_life_s=60.0), NaiveBayes(half_life_s=60.0)
    times = [0.0, 30.0, 60.0, 90.0]
    model.learn_many([x for x, _ in MESSAGES], [y for _, y in MESSAGES], at=times)
    for (x, y), at in zip(MESSAGES, times, strict=True):
        one.learn_one(x, y, at=at)
    assert model.digest() == one.digest()


def test_text_names_the_fields_of_words() -> None:
    """Several are read as one text; other fields are read by the type of their values."""
    model = NaiveBayes(text=["subject", "body"])
    model.learn_one({"subject": "win", "body": "money", "text": "red"}, "spam")
    assert set(model.state.counts["words"].rows) == {"win", "money"}
    assert set(model.state.counts["categories"].rows) == {'text="red"'}
    assert NaiveBayes(text="body", head="calibrated").state.views[0].reader == Words(("body",))
    with pytest.raises(ValueError, match="give either `text` or `views`"):
        NaiveBayes(TEXT_ONLY, text="body")
    with pytest.raises(ValueError, match="`text` must name at least one field"):
        NaiveBayes(text=[])
    with pytest.raises(ValueError, match="`text` must be a text or a list of texts or None, not"):
        NaiveBayes(text=[3])  # type: ignore[list-item]


def test_the_classic_estimators_forget_and_are_bounded() -> None:
    """By the parameters that `NaiveBayes` has; the first class past the limit is refused."""
    for make in (MultinomialNB, BernoulliNB):
        model = make(max_tokens=16, classes_max=2, half_life_messages=10.0)
        for i in range(60):
            model.learn_one({f"w{i}": 1}, "ab"[i % 2])
        with pytest.raises(ValueError, match="'c' would be one class more"):
            model.learn_one({"w": 1}, "c")
        assert model.classes_ == ["a", "b"]
        assert len(model.state.counts) <= 16
        assert sum(model.class_counts_.values()) > 0
        assert model.clone().half_life_messages == 10.0
    numbers = GaussianNB(half_life_s=10.0)
    numbers.learn_one({"x": 1.0}, "old", at=0.0)
    numbers.learn_one({"x": 2.0}, "new", at=100.0)
    assert numbers.class_counts_["old"] < 0.001 * numbers.class_counts_["new"]
    assert CategoricalNB(half_life_messages=5.0).state.decay is not None


def test_threads_may_teach_one_model() -> None:
    """Every message is counted, whichever thread brought it."""
    model = NaiveBayes(prior=LearnedPrior())

    def learn() -> None:
        for _ in range(200):
            model.learn_one({"text": "win", "amount": 1.0}, "spam")

    threads = [threading.Thread(target=learn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.learned_ == 800
    assert model.state.counts["words"].rows == {"win": [800.0]}


def test_a_parameter_set_while_others_learn_loses_no_message() -> None:
    """The threads that wait learn into the state that the new parameter made."""
    model = NaiveBayes(TEXT_ONLY)

    def learn() -> None:
        for _ in range(500):
            model.learn_one({"text": "win"}, "spam")

    threads = [threading.Thread(target=learn) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        model.raw = not model.raw
    assert (model.learned_, model.class_counts_) == (1500, {"spam": 1500.0})
