"""`save` and `streamnb.load`: the same class and posteriors, to the bit, in the file that engines write."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any

import pytest

import streamnb
from streamnb import (
    TEXT_ONLY,
    BernoulliNB,
    Beta,
    Binned,
    CategoricalNB,
    Category,
    CharacterGrams,
    ComplementNB,
    Dirichlet,
    FixedPrior,
    Flags,
    GaussianDiscriminant,
    GaussianNB,
    Laplace,
    Multinomial,
    MultinomialNB,
    Multivariate,
    NaiveBayes,
    Number,
    Numbers,
    Terms,
    Tokenizer,
    UniformPrior,
    View,
    Words,
)
from streamnb.base import Label, Snapshot
from streamnb.cli.snapshot.merge import merged
from streamnb.config import (
    build_decoder,
    build_model,
    decode_settings,
    grown,
    load_snapshot,
    restore_model,
    snapshot_of,
)
from streamnb.errors import SettingsError, SnapshotError, StorageError
from streamnb.naive_bayes import Forgetting
from streamnb.naive_bayes.model import plain
from streamnb.storage import read_snapshot, write_snapshot
from tests.naive_bayes.features.test_own_reader import ENDINGS

Pairs = list[tuple[Any, Label]]
TEXTS: Pairs = [
    ("win money", "spam"),
    ("lunch at noon", "ham"),
    ("win a prize", "spam"),
    ("the lunch", "ham"),
]
FIELDS: Pairs = [
    ({"text": "win money", "n": 1.0, "m": 2.5, "kind": "a", "sold": True}, 1),
    ({"text": "lunch", "n": 7.0, "m": 0.5, "kind": "b", "sold": False}, 2),
    ({"text": "win", "n": 2.0, "m": 1.5, "kind": "a"}, 1),
    ({"text": "noon", "n": 9.0, "m": 3.5, "kind": 'q"', "sold": True}, 2),
]
NUMBERS: Pairs = [({"a": float(i % 5), "b": float(i * i % 7)}, "xy"[i % 2]) for i in range(20)]
MODELS: dict[str, tuple[Callable[[], NaiveBayes], Pairs]] = {
    "every field": (NaiveBayes, FIELDS),
    "text of two fields": (lambda: NaiveBayes(text=["text", "kind"], head="calibrated"), FIELDS),
    "views": (
        lambda: NaiveBayes(
            [
                View("w", Words(), Multinomial(Dirichlet(3.0), "counts", "smooth")),
                View("c", CharacterGrams(("text",), n=3)),
                View("k", Category("kind")),
                View("n", Number("n")),
                View("m", Numbers(fields=("n", "m")), Multivariate("class", 2.0)),
                View("b", Numbers(fields=("m",)), Binned((1.0, 2.0))),
                View("f", Flags(fields=("sold",))),
            ],
            head="product",
            prior=UniformPrior(),
            classes=[2, 1],
            classes_max=5,
            max_tokens=500,
            tokenizer=Tokenizer(keep_whole=("urls",)),
            raw=True,
            explain=2,
        ),
        FIELDS,
    ),
    "calibrated, forgetting": (lambda: NaiveBayes(TEXT_ONLY, half_life_messages=10.0, raw=True), FIELDS),
    "multinomial": (lambda: MultinomialNB(0.5, prior=FixedPrior({"spam": 0.2, "ham": 0.8})), TEXTS),
    "complement": (lambda: ComplementNB(smoothing=Laplace(2.0), max_tokens=50), TEXTS),
    "bernoulli": (lambda: BernoulliNB(true_threshold=0.5, smoothing=Beta(0.1, 2.0)), TEXTS),
    "categorical": (lambda: CategoricalNB(unknown="skip", classes_max=3), NUMBERS),
    "gaussian": (lambda: GaussianNB("shared", robust=0.01, half_life_messages=30.0), NUMBERS),
    "given variance": (lambda: GaussianNB(2.0), NUMBERS),
    "discriminant": (lambda: GaussianDiscriminant("class"), NUMBERS),
}
each = pytest.mark.parametrize(("make", "pairs"), MODELS.values(), ids=MODELS)


def taught(make: Callable[[], NaiveBayes], pairs: Pairs) -> NaiveBayes:
    """Return a model that has learned the messages."""
    model = make()
    for x, y in pairs:
        model.learn_one(x, y)
    return model


@each
def test_a_loaded_model_is_the_one_that_was_saved(
    make: Callable[[], NaiveBayes], pairs: Pairs, tmp_path: Path
) -> None:
    """Class, parameters, digest and posteriors to the bit; both learn on alike."""
    model = taught(make, pairs)
    size = model.save(tmp_path / "m.snb")
    again = streamnb.load(str(tmp_path / "m.snb"))
    assert size == (tmp_path / "m.snb").stat().st_size
    assert type(again) is type(model)
    assert again.digest() == model.digest()
    assert again._get_params() == model._get_params()
    for one in (model, again):
        one.learn_one(*pairs[0])
    assert again.digest() == model.digest()
    for x, _ in pairs:
        assert again.predict_proba_one(x) == model.predict_proba_one(x)
        assert again.log_odds_one(x) == model.log_odds_one(x)


@each
def test_a_file_names_plain_settings_only(
    make: Callable[[], NaiveBayes], pairs: Pairs, tmp_path: Path
) -> None:
    """They survive JSON, and a snapshot's other readers find the model in them."""
    model = taught(make, pairs)
    model.save(tmp_path / "m.snb")
    snapshot = load_snapshot(tmp_path / "m.snb")
    assert json.loads(json.dumps(snapshot.settings)) == snapshot.settings
    built = NaiveBayes(**plain.parameters(plain.typed(snapshot.settings)))
    built.restore(snapshot.values, snapshot.sections)
    assert built.digest() == model.digest()


def test_an_engines_snapshot_gives_its_model(tmp_path: Path) -> None:
    """Without its offsets: the posteriors in a notebook are those of the engine, to the bit."""
    tables: dict[str, object] = {
        "message": {"text": ["text"], "number": ["n"]},
        "tokens": {"token_length_min": 2},
        "views": [
            {"name": "w", "reader": {"kind": "words"}, "event_model": {"kind": "multinomial"}},
            {"name": "n", "reader": {"kind": "number", "field": "n"}},
        ],
        "forgetting": {"half_life_messages": 100.0},
        "output": {"raw_posterior": True},
    }
    settings = decode_settings(tables, "the test")
    model = build_model(settings)
    for x, y in FIELDS:
        model.learn_one(x, "spam" if y == 1 else "ham")
    write_snapshot(tmp_path / "m.snb", snapshot_of(settings, model))
    again = streamnb.load(tmp_path / "m.snb")
    assert type(again) is NaiveBayes
    assert again.digest() == model.digest()
    assert again.state_settings() == model.state_settings()
    for x, _ in FIELDS:
        assert again.predict_proba_one(x) == model.predict_proba_one(x)


def test_a_saved_model_restores_from_its_tables(tmp_path: Path) -> None:
    """As `streamnb score` and `run --from` do; records cannot be read for a model that reads every field."""
    views = [View("w", Words()), View("n", Number("n")), View("k", Category("kind"))]
    model = taught(lambda: NaiveBayes(views), FIELDS)
    model.save(tmp_path / "m.snb")
    settings, restored = restore_model(load_snapshot(tmp_path / "m.snb"))
    assert restored.digest() == model.digest()
    assert settings.message.number == ("n",)
    every = taught(NaiveBayes, FIELDS)
    every.save(tmp_path / "every.snb")
    settings, restored = restore_model(load_snapshot(tmp_path / "every.snb"))
    assert restored.digest() == every.digest()
    with pytest.raises(SettingsError, match="View `categories` does not name the fields it reads"):
        build_decoder(settings)


@pytest.mark.parametrize(
    "make",
    [
        lambda: NaiveBayes(TEXT_ONLY, half_life_messages=1000),
        lambda: NaiveBayes(TEXT_ONLY, half_life_s=3600, time_skew_max_s=3600),
        lambda: BernoulliNB(true_threshold=1),
        lambda: NaiveBayes([View("n", Numbers(), Binned(edges=(400, 800, 1200)))]),
        lambda: NaiveBayes([View("t", Terms("t", above=1))]),
    ],
)
def test_a_whole_number_where_a_float_is_meant_is_saved_and_loaded(
    make: Callable[[], NaiveBayes], tmp_path: Path
) -> None:
    """1000 is 1000.0: the settings in the file are those of the model that is built from them."""
    model = make()
    model.save(tmp_path / "m.snb")
    assert streamnb.load(tmp_path / "m.snb").state_settings() == model.state_settings()
    assert restore_model(load_snapshot(tmp_path / "m.snb"))[1].digest() == model.digest()


def test_a_file_is_replaced_only_if_told_to(tmp_path: Path) -> None:
    """The old one stays until the new one is complete, and where the new one cannot be written."""
    path = tmp_path / "m.snb"
    taught(NaiveBayes, FIELDS[:2]).save(path)
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"exists\. Pass overwrite=True"):
        taught(NaiveBayes, FIELDS).save(path)
    assert path.read_bytes() == before
    model = taught(NaiveBayes, FIELDS)
    model.save(path, overwrite=True)
    assert streamnb.load(path).digest() == model.digest()
    assert [each.name for each in tmp_path.iterdir()] == ["m.snb"]
    with pytest.raises(StorageError, match=r"The folder of .* does not exist"):
        model.save(tmp_path / "gone" / "m.snb", overwrite=True)


@dataclass(frozen=True)
class Constant:
    """An event model without evidence."""

    def statistic(self) -> Any:  # noqa: ANN401 - its own
        """Return moments."""
        return streamnb.Gaussian().statistic()

    def parts(self, features: Any, statistic: Any, active: Any) -> Any:  # noqa: ANN401, ARG002 - its own
        """Return nothing."""
        return {}


class Mine(NaiveBayes):
    """A class that `load` cannot know."""


def test_what_no_setting_can_name_is_refused(tmp_path: Path) -> None:
    """With a hint: an own event model, an own reader, an own class; no file is left."""
    for model in (
        NaiveBayes([View("n", Numbers(), Constant())]),
        NaiveBayes([ENDINGS], head="product"),
    ):
        with pytest.raises(ValueError, match="of your own cannot be saved; keep the code"):
            model.save(tmp_path / "m.snb")
    with pytest.raises(ValueError, match="a Mine cannot be saved"):
        Mine().save(tmp_path / "m.snb")
    assert not list(tmp_path.iterdir())


def changed(path: Path, **settings: object) -> None:
    """Write a snapshot again with other settings."""
    snapshot = read_snapshot(path, lambda size: memoryview(bytearray(size)))
    tables = snapshot.settings | settings
    write_snapshot(path, Snapshot(**{**vars_of(snapshot), "settings": tables}), overwrite=True)


def vars_of(snapshot: Snapshot) -> dict[str, Any]:
    """Return the fields of a snapshot."""
    return {name: getattr(snapshot, name) for name in snapshot.__dataclass_fields__}


class Queue(StrEnum):
    """Labels as an enumeration of texts."""

    BILLING = "billing"
    REPAIR = "repair"


class Level(IntEnum):
    """Labels as an enumeration of integers."""

    LOW = 0
    HIGH = 1


class Named(str):
    """Labels as a subclass of str."""

    __slots__ = ()


class Mixed(str, Enum):  # noqa: UP042 - the older way
    """An enumeration of texts whose `str` is not its value."""

    BILLING = "billing"
    REPAIR = "repair"


@pytest.mark.parametrize("compiled", [False, None])
@pytest.mark.parametrize(
    ("labels", "plain_labels"),
    [
        (tuple(Queue), ["billing", "repair"]),
        (tuple(Level), [0, 1]),
        ((Named("billing"), Named("repair")), ["billing", "repair"]),
        (tuple(Mixed), ["billing", "repair"]),
    ],
    ids=["StrEnum", "IntEnum", "subclass of str", "str and Enum"],
)
@pytest.mark.parametrize("declared", [False, True])
def test_a_label_of_a_subclass_is_learned_as_the_plain_label(
    labels: tuple[Label, Label],
    plain_labels: list[Label],
    compiled: bool | None,
    declared: bool,
    tmp_path: Path,
) -> None:
    """A file keeps only plain labels, so a loaded model could not learn the same member again."""
    classes = list(labels) if declared else None
    model = NaiveBayes(TEXT_ONLY, compiled=compiled, classes=classes)
    model.learn_one({"text": "win"}, labels[0])
    model.learn_many([{"text": "win"}, {"text": "noon"}, {"text": "win"}], [*labels, labels[0]])
    assert model.classes_ == plain_labels
    assert {type(label) for label in model.classes_} == {type(plain_labels[0])}
    model.save(tmp_path / "model.snb")
    again = streamnb.load(tmp_path / "model.snb")
    for each in (model, again):
        each.learn_one({"text": "noon"}, labels[1])
        each.learn_one({"text": "noon"}, plain_labels[1])
        each.unlearn_one({"text": "win"}, labels[0])
    assert again.digest() == model.digest()
    assert type(model.predict_one({"text": "win"})) is type(plain_labels[0])


@pytest.mark.parametrize(
    ("estimator", "what"),
    [
        ({"class": "Popen", "parameters": {}}, "'Popen' is not a class of streamnb"),
        ({"class": "Estimator", "parameters": {}}, "'Estimator' is not a class of streamnb"),
        ({"class": "NaiveBayes"}, "lacks its class or its parameters"),
        ([], "lacks its class or its parameters"),
        ({"class": "NaiveBayes", "parameters": {"speed": 3}}, "NaiveBayes has no parameter `speed`"),
        ({"class": "NaiveBayes", "parameters": {"raw": "yes"}}, "`raw`: Expected `bool`"),
        ({"class": "MultinomialNB", "parameters": {"alpha": -1.0}}, "alpha"),
        (None, "Object missing required field `views`"),
    ],
)
def test_settings_that_a_stranger_wrote_are_refused(estimator: object, what: str, tmp_path: Path) -> None:
    """One sentence with the path, whatever they hold; no code that they name runs."""
    path = tmp_path / "m.snb"
    taught(NaiveBayes, FIELDS).save(path)
    changed(path, estimator=estimator, **({"views": None} if estimator is None else {}))
    with pytest.raises(SnapshotError, match="do not describe a model") as refused:
        streamnb.load(path)
    assert what in str(refused.value) or estimator is None
    assert str(path) in str(refused.value)


def test_other_settings_than_the_counts_were_made_with_are_refused(tmp_path: Path) -> None:
    """The difference is named."""
    path = tmp_path / "m.snb"
    taught(lambda: NaiveBayes(TEXT_ONLY), FIELDS).save(path)
    changed(path, estimator={"class": "NaiveBayes", "parameters": {"tokenizer": {"rule": "words"}}})
    with pytest.raises(SnapshotError, match="was made with other settings: model"):
        streamnb.load(path)


def test_plain_settings_leave_out_defaults() -> None:
    """And give the same values back."""
    assert plain.plain(Forgetting()) == {}
    described = plain.described(NaiveBayes(TEXT_ONLY, max_tokens=99).state)
    tables = plain.typed(described)
    assert (tables.views, tables.model.max_tokens, tables.model.head) == (TEXT_ONLY, 99, "calibrated")
    assert NaiveBayes(**plain.parameters(tables)).state_settings() == NaiveBayes(TEXT_ONLY).state_settings()


@pytest.mark.skipif(
    os.environ.get("STREAMNB_PURE", "") not in {"", "0"}, reason="the plain store has no hash table"
)
def test_F19_a_life_that_begins_from_a_file_draws_its_own_key(tmp_path: Path) -> None:
    """`load`, `run --from` and `merge`; with the key of a file one could choose words that collide."""

    def key(model: NaiveBayes) -> object:
        return model.freeze().sections["index_state"].tolist()[1]

    model = taught(lambda: NaiveBayes([View("w", Words())]), [(x, f"class {y}") for x, y in FIELDS])
    model.save(tmp_path / "m.snb")
    held = load_snapshot(tmp_path / "m.snb")
    assert held.sections["index_state"].tolist()[1] == key(model)
    settings, resumed = restore_model(held)
    assert key(resumed) == key(model)
    begun = grown(settings, load_snapshot(tmp_path / "m.snb"), tmp_path / "m.snb")
    lives = [streamnb.load(tmp_path / "m.snb"), restore_model(begun)[1]]
    assert all(life.digest() == model.digest() for life in lives)
    model.learn_one(FIELDS[0][0], "class more")
    model.save(tmp_path / "more.snb")
    both = merged(
        load_snapshot(tmp_path / "m.snb"), load_snapshot(tmp_path / "more.snb"), statistics_only=True
    )
    keys = [key(life) for life in lives] + [both.sections["index_state"].tolist()[1]]
    assert len({key(model), *keys}) == 4
