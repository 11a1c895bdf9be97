"""A model as text and as HTML: short, true, harmless, and without a trace in the model."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from river import compose

from streamnb import naive_bayes
from streamnb.naive_bayes import (
    EVERY_FIELD,
    TEXT_ONLY,
    BernoulliNB,
    Binned,
    CategoricalNB,
    ComplementNB,
    FixedPrior,
    Gaussian,
    GaussianDiscriminant,
    GaussianNB,
    Laplace,
    Multinomial,
    MultinomialNB,
    Multivariate,
    NaiveBayes,
    Numbers,
    Tokenizer,
    View,
    WordPairs,
    Words,
    compiled,
)
from tests.support.markup import Markup

HOSTILE = '<script>alert("1")</script>'
KINDS = [
    NaiveBayes,
    MultinomialNB,
    ComplementNB,
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    GaussianDiscriminant,
]
NUMBERS: dict[str, object] = {"a": 1.0, "b": 0.5}


def taught(kind: Callable[..., NaiveBayes] = NaiveBayes, **settings: Any) -> NaiveBayes:  # noqa: ANN401
    """Return a model that has learned three messages of two classes."""
    model = kind(**settings)
    for a, label in [(1.0, "spam"), (2.0, "ham"), (3.0, "spam")]:
        model.learn_one({"a": a, "b": 1.0 / a}, label)
    return model


def page_of(model: NaiveBayes) -> Markup:
    """Return the model's HTML, read strictly."""
    return Markup(model._repr_html_())


@dataclass(frozen=True)
class Rude:
    """An event model of a user that cannot be printed."""

    def statistic(self) -> Any:  # noqa: ANN401
        """That of `Gaussian`."""
        return Gaussian().statistic()

    def parts(self, features: Any, statistic: Any, active: Any) -> dict[str, list[float]]:  # noqa: ANN401, ARG002
        """No evidence."""
        return {}

    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_estimator_shows_what_it_learned(kind: Callable[..., NaiveBayes]) -> None:
    """Empty and taught, as text and as HTML."""
    name = type(kind()).__name__
    assert repr(kind()).startswith(f"{name}()  # learned 0 messages, 0 classes")
    assert repr(taught(kind)).startswith(f"{name}()  # learned 3 messages, 2 classes")
    assert page_of(kind()).text.startswith(f"{name}: learned 0 messages, 0 classes")
    page = page_of(taught(kind))
    assert page.text.startswith(f"{name}: learned 3 messages, 2 classes")
    assert ["spam", "66.7%", "2"] in page.rows
    assert ["ham", "33.3%", "1"] in page.rows
    assert ["head", "product"] in page.rows


def test_a_repr_counts_tokens_where_a_view_counts_them() -> None:
    """A model of numbers alone has none."""
    model = NaiveBayes(TEXT_ONLY)
    model.learn_one({"text": "win money"}, "spam")
    assert repr(model).endswith("# learned 1 message, 1 class, 2 tokens")
    assert repr(taught(GaussianNB)).endswith("# learned 3 messages, 2 classes")


def test_a_repr_lists_the_parameters_that_were_changed() -> None:
    """As they were given: evaluated, it makes such a model."""
    views = [
        View("words", Words(("subject", "text"), prefix=True), Multinomial(Laplace(1.0))),
        EVERY_FIELD[3],
    ]
    given: list[tuple[Callable[..., NaiveBayes], dict[str, Any]]] = [
        (NaiveBayes, {}),
        (NaiveBayes, {"classes": ["ham", "spam"], "max_tokens": 50, "half_life_messages": 9.5}),
        (NaiveBayes, {"text": "subject", "prior": FixedPrior({"ham": 0.5})}),
        (NaiveBayes, {"views": views, "head": "product", "tokenizer": Tokenizer(rule="words"), "raw": True}),
        (NaiveBayes, {"views": EVERY_FIELD}),
        (MultinomialNB, {"alpha": 0.5, "weight": "log"}),
        (MultinomialNB, {"alpha": 1}),
        (GaussianDiscriminant, {"covariance": "class"}),
    ]
    for kind, settings in given:
        model = kind(**settings)
        again = eval(repr(model), vars(naive_bayes))
        assert repr(again) == repr(model)
        assert again.state_settings() == model.state_settings()
        assert again.reading_settings() == model.reading_settings()
    assert repr(MultinomialNB(alpha=1)) == repr(MultinomialNB())
    assert len(repr(NaiveBayes(EVERY_FIELD)).splitlines()) == 8


def test_a_repr_is_short_whatever_was_given() -> None:
    """Long sequences and texts are cut, and no value adds a line."""
    model = NaiveBayes(classes=[f"class\n{i}" + "x" * 999 for i in range(200)], text=["field"] * 300)
    assert len(repr(model).splitlines()) < 20
    assert len(repr(model)) < 1500


def test_a_repr_never_raises() -> None:
    """Of a model whose constructor failed, or with an event model that cannot be printed."""
    unborn = NaiveBayes.__new__(NaiveBayes)
    assert repr(unborn) == "NaiveBayes()"
    assert Markup(unborn._repr_html_()).text == "NaiveBayes"
    rude = NaiveBayes([View("n", Numbers(), Rude())])
    rude.learn_one(NUMBERS, "spam")
    assert "Rude instance" in repr(rude)
    assert "Rude instance" in page_of(rude).text


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_to_look_at_a_model_changes_nothing(kind: Callable[..., NaiveBayes]) -> None:
    """Neither its sums nor what it learns next."""
    looked_at, left_alone = taught(kind, half_life_messages=2.0), taught(kind, half_life_messages=2.0)
    for model in (looked_at, left_alone):
        if model is looked_at:
            repr(model)
            model._repr_html_()
        assert model.digest() == taught(kind, half_life_messages=2.0).digest()
        model.learn_one(NUMBERS, "ham")
    assert looked_at.digest() == left_alone.digest()


def test_a_model_can_be_looked_at_while_it_learns() -> None:
    """New classes and tokens appear between two looks, not within one."""
    model = NaiveBayes(TEXT_ONLY, classes_max=10**6)
    failed: list[BaseException] = []

    def look() -> None:
        try:
            for _ in range(50):
                rows = page_of(model).rows
                total = sum(float(row[1].rstrip("%")) for row in rows if len(row) == 3 and "%" in row[1])
                assert total <= 101
                repr(model)
        except BaseException as error:  # noqa: BLE001 - reported by the test
            failed.append(error)

    looker = threading.Thread(target=look)
    looker.start()
    i = 0
    while looker.is_alive() and i < 500:
        model.learn_one({"text": f"w{i} win"}, f"class {i}")
        i += 1
    looker.join()
    assert failed == []


def test_hostile_labels_tokens_and_names_are_shown_as_text() -> None:
    """No tag of them reaches the browser."""
    views = [View(HOSTILE, Words((HOSTILE,))), View("n", Numbers())]
    model = NaiveBayes(views, head="product", classes=[HOSTILE, '"><b>'])
    model.learn_one({HOSTILE: HOSTILE, HOSTILE + "n": 1.0}, HOSTILE)
    model.learn_one({HOSTILE: "b"}, '"><b>')
    markup = model._repr_html_()
    markup.encode()
    assert "<script" not in markup
    assert [HOSTILE, "50.0%", "1"] in Markup(markup).rows
    why = model.explain_one({HOSTILE: HOSTILE})
    assert why is not None
    assert "<script" not in why._repr_html_()


def test_three_hundred_classes_are_twenty_rows() -> None:
    """The heaviest ones; the number of the others is below."""
    model = NaiveBayes(TEXT_ONLY, classes_max=300)
    for i in range(300):
        model.learn_one({"text": "win"}, i, w=float(1 + i))
    page = page_of(model)
    classes = [row[0] for row in page.rows if len(row) == 3][1:]
    assert classes == [str(i) for i in range(299, 279, -1)]
    assert "and 280 more" in page.text


def test_views_show_reader_smoothing_and_vocabulary() -> None:
    """The number of tokens, or the names of numbers."""
    model = NaiveBayes(
        [
            View("words", Words()),
            View("pairs", WordPairs()),
            View("normal", Numbers(fields=("a", "b"))),
            View("together", Numbers(fields=("c",)), Multivariate()),
            View("ranges", Numbers(fields=("d",)), Binned(edges=(1.0,))),
        ],
        head="product",
    )
    empty = {row[0]: row for row in page_of(model).rows if len(row) == 4}
    assert [row[3] for row in empty.values()][1:] == ["0 tokens"] * 2 + ["no numbers"] * 3
    model.learn_one({"text": "win money now", "a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}, "spam")
    rows = {row[0]: row for row in page_of(model).rows if len(row) == 4}
    assert {name: row[3] for name, row in rows.items()} == {
        "view": "has learned",
        "words": "3 tokens",
        "pairs": "2 tokens",
        "normal": "a, b",
        "together": "c",
        "ranges": "d",
    }
    assert rows["words"][1].startswith("Words(fields=('text',)")
    assert "smoothing=Laplace(alpha=0.1)" in rows["words"][2]
    assert "5 tokens" in page_of(model).text


def test_many_names_of_numbers_are_cut() -> None:
    """Eight are shown."""
    model = NaiveBayes()
    model.learn_one({f"n{i}": float(i) for i in range(50)}, "spam")
    assert "n7, and 42 more" in page_of(model).text


def test_a_model_that_forgets_shows_present_weights() -> None:
    """After one half-life a message weighs half."""
    model = NaiveBayes(TEXT_ONLY, half_life_messages=1.0)
    for label in ("spam", "ham"):
        model.learn_one({"text": "win"}, label)
    page = page_of(model)
    assert ["half-life in messages", "1"] in page.rows
    assert ["ham", "66.7%", "0.5"] in page.rows
    assert ["spam", "33.3%", "0.25"] in page.rows


def test_the_page_names_the_driver() -> None:
    """And why it is the plain one."""
    runs = {
        name: dict(row for row in page_of(model).rows if len(row) == 2)["runs"]
        for name, model in {
            "default": NaiveBayes(),
            "explains": NaiveBayes(explain=1),
            "asked": NaiveBayes(compiled=False),
            "prior": NaiveBayes(prior=FixedPrior({"ham": 1.0})),
        }.items()
    }
    if compiled:
        assert runs["default"] == "compiled"
        assert runs["explains"] == "compiled, but explained scores in plain Python"
        assert runs["asked"].endswith("as the parameter asks")
        assert runs["prior"].endswith("there is no compiled twin of the prior")
    assert {name: text.startswith("in plain Python") for name, text in runs.items()} == {
        "default": not compiled,
        "explains": not compiled,
        "asked": True,
        "prior": True,
    }


def test_a_pipeline_shows_its_model() -> None:
    """River prints each step by its own `repr`."""
    pipeline: Any = compose.Pipeline(("nb", taught(MultinomialNB)))
    assert "MultinomialNB()  # learned 3 messages" in repr(pipeline)
