"""Readers of named values, and the model that chooses a reader for every field by the type of its value."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.batch import Batch
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import (
    Bernoulli,
    Binned,
    Categorical,
    Gaussian,
    Multinomial,
    Multivariate,
)
from streamnb.naive_bayes.event_models.smoothing import Laplace
from streamnb.naive_bayes.features.field_tokens import field_of, token_of, value_of
from streamnb.naive_bayes.features.message import Message
from streamnb.naive_bayes.features.readers import (
    Block,
    Categories,
    Category,
    Flags,
    Number,
    Numbers,
    Words,
)
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.message_features import read_message
from streamnb.naive_bayes.model.view import EVERY_FIELD, TEXT_ONLY, View

VALUE = st.one_of(
    st.text(), st.integers(-(2**62), 2**62), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)


@given(st.text(), VALUE)
def test_a_token_names_its_field_and_its_value(field: str, value: Any) -> None:  # noqa: ANN401
    """`field_of` and `value_of` return both, whatever characters they contain."""
    try:
        token = token_of(field, value)
    except TypeError:
        assert any("\ud800" <= letter <= "\udfff" for letter in f"{value}")
        return
    assert field_of(token) == field
    assert value_of(token) == value
    assert type(value_of(token)) is type(value)


@given(st.tuples(st.text(), VALUE), st.tuples(st.text(), VALUE))
def test_two_pairs_have_two_tokens(first: tuple[str, Any], second: tuple[str, Any]) -> None:
    """1, "1" and true are three different values."""
    try:
        same = token_of(*first) == token_of(*second)
    except TypeError:
        return
    assert same == (
        first[0] == second[0] and type(first[1]) is type(second[1]) and repr(first[1]) == repr(second[1])
    )


def test_the_type_of_a_value_says_who_reads_it() -> None:
    """The field `text` is read as words; text in any other field is a category."""
    x: dict[str, Any] = {
        "text": "Win money",
        "country": "no",
        "amount": 3,
        "rate": np.float32(0.5),
        "sold": True,
        "new": np.False_,
        "gone": None,
        "unknown": math.nan,
    }
    model = NaiveBayes()
    words, categories, flags, numbers = read_message(
        model.state.views, model.state.tokenizer, {name: [value] for name, value in x.items()}, 0
    ).features
    assert words == {"win": 1.0, "money": 1.0}
    assert categories == {'country="no"': 1.0}
    assert flags == {"sold=true": 1.0, "new=false": 1.0}
    assert numbers == {"amount": 3.0, "rate": 0.5}


def test_every_field_in_one_posterior_is_the_product_of_its_parts() -> None:
    """One model of words, categories, flags and numbers equals four models of one kind each, the prior
    counted once.
    """
    stream = [
        ({"text": f"{word} mail", "kind": kind, "sold": sold, "size": size}, y)
        for word, kind, sold, size, y in [
            ("win", "a", True, 3.0, "spam"),
            ("lunch", "b", False, 1.0, "ham"),
            ("win", "a", False, 2.5, "spam"),
            ("noon", "a", True, 0.5, "ham"),
            ("cash", "c", True, 4.0, "spam"),
        ]
    ]
    whole = NaiveBayes()
    parts = [NaiveBayes([view], head="product") for view in EVERY_FIELD[:1]]
    parts += [NaiveBayes([View("c", Category("kind"))]), NaiveBayes([View("f", Flags(fields=("sold",)))])]
    parts += [NaiveBayes([View("n", Number("size"))])]
    for x, y in stream:
        for model in (whole, *parts):
            model.learn_one(x, y)
    query = {"text": "win lunch", "kind": "a", "sold": True, "size": 2.0}
    prior = math.log(3 / 2)
    expected = prior + math.fsum(model.log_odds_one(query)["spam"] - prior for model in parts)
    assert whole.log_odds_one(query)["spam"] == pytest.approx(expected, rel=1e-12)
    assert whole.predict_one(query) == "spam"


def test_a_model_without_views_has_the_product_head() -> None:
    """A text view alone has the calibrated head."""
    assert NaiveBayes().state.head_kind == "product"
    assert NaiveBayes(TEXT_ONLY).state.head_kind == "calibrated"
    assert NaiveBayes(EVERY_FIELD).state.head_kind == "calibrated"
    assert NaiveBayes([View("n", Numbers())]).state.head_kind == "product"
    assert NaiveBayes(head="calibrated").state.views == (*TEXT_ONLY, *EVERY_FIELD[1:])


@pytest.mark.parametrize("value", [[1], {"a": 1}, b"bytes", 1j, object()])
def test_what_is_none_of_these_is_refused_by_name(value: object) -> None:
    """The alternative would be to ignore the field silently."""
    model = NaiveBayes()
    with pytest.raises(ValueError, match="field `odd` holds"):
        model.learn_one({"odd": value, "text": "hi"}, "ham")
    assert model.digest() == NaiveBayes().digest()


def test_fields_may_change_their_type_and_come_and_go() -> None:
    """New categories, unseen fields and mixed types never raise an exception."""
    model = NaiveBayes()
    values: list[Any] = [1, "one", True, None, 2.5, math.nan, "two", 10**30, -0.0, "", np.int64(4)]
    for i, value in enumerate(values * 3):
        x = {"mixed": value, f"only{i}": value}
        assert math.isclose(math.fsum(model.predict_proba_one(x).values()), 1.0) or i == 0
        model.learn_one(x, "ab"[i % 2])
    assert model.learned_ == 33


@pytest.mark.parametrize("missing", [None, math.nan, np.nan, np.float32("nan")])
@pytest.mark.parametrize("view", EVERY_FIELD[1:], ids=lambda view: view.name)
def test_a_missing_value_drops_out_of_learning_and_scoring(view: View, missing: object) -> None:
    """A missing value has the same effect as an absent name."""
    values: dict[str, dict[str, Any]] = {
        "categories": {"a": "x", "b": "y"},
        "flags": {"a": True, "b": False},
        "numbers": {"a": 1.0, "b": 2},
    }
    good = values[view.name]
    model, other = NaiveBayes([view]), NaiveBayes([view])
    gaps: list[tuple[NaiveBayes, dict[str, object]]] = [(model, {"a": missing}), (other, {})]
    for learner, gap in gaps:
        learner.learn_one(good, "one")
        learner.learn_one({**good, "a": good["b"]}, "two")
        learner.learn_one(gap, "one")
    assert model.digest() == other.digest()
    assert model.predict_proba_one({"a": missing}) == other.predict_proba_one({})


def found(reader: Block, values: dict[str, object]) -> dict[str, float]:
    """Return the features that a block reader of the field x finds in a mapping."""
    return reader.features(Message({"x": [values]}, 0, Tokenizer()))


def test_one_number_is_one_category_however_it_is_written() -> None:
    """1 and 1.0 are the same category; "1" and true are others."""
    reader = Categories("x")
    assert found(reader, {"a": 1}) == found(reader, {"a": 1.0}) == {"a=1": 1.0}
    assert found(reader, {"a": "1"}) == {'a="1"': 1.0}
    assert found(reader, {"a": True}) == {"a=true": 1.0}
    assert found(reader, {"a": 2.5}) == {"a=2.5": 1.0}


def test_a_flag_is_no_text() -> None:
    """Python's truth of the text ``"false"`` would be true."""
    with pytest.raises(ValueError, match="field `a` must hold a truth value, not str"):
        found(Flags("x"), {"a": "false"})
    assert found(Flags("x"), {"a": 0, "b": np.True_}) == {"a=false": 1.0, "b=true": 1.0}


@pytest.mark.parametrize(
    ("reader", "event_model"),
    [
        (Numbers(), Categorical()),
        (Numbers(), Multinomial()),
        (Categories(), Bernoulli()),
        (Categories(), Gaussian()),
        (Flags(), Categorical()),
        (Words(), Gaussian()),
        (Words(), Categorical()),
        (Category("a"), Bernoulli()),
        (Number("a"), Bernoulli()),
    ],
)
def test_readers_and_event_models_must_suit(reader: Any, event_model: Any) -> None:  # noqa: ANN401
    """The error names the view and states which event model the reader needs."""
    with pytest.raises(ValueError, match=r"view `v`: the reader \w+ needs the event model .*, not "):
        View("v", reader, event_model)


def test_a_block_reads_a_mapping_or_columns() -> None:
    """Giving both is refused."""
    with pytest.raises(ValueError, match="not both"):
        Numbers(field="x", fields=("a",))
    with pytest.raises(ValueError, match="field `x` must map names to values"):
        NaiveBayes([View("n", Numbers("x"))]).learn_one({"x": 3.0}, "a")


@pytest.mark.parametrize(
    "event_model", [Bernoulli(), Multinomial(Laplace(1.0), complement=True)], ids=["bernoulli", "complement"]
)
def test_the_calibrated_head_reads_draws(event_model: Any) -> None:  # noqa: ANN401
    """Bernoulli and complement views work with the product head only, and get it by default."""
    view = View("words", Words(), event_model)
    assert NaiveBayes([view]).state.head_kind == "product"
    with pytest.raises(ValueError, match="the calibrated head needs the event model Multinomial"):
        NaiveBayes([view], head="calibrated")


def test_what_has_no_twin_runs_on_the_plain_driver() -> None:
    """Asking for the compiled driver is refused with the reason."""
    for view in (
        View("d", Numbers(), Multivariate()),
        View("r", Numbers(), Binned((0.0, 1.0))),
        View("w", Words(), Multinomial(complement=True)),
    ):
        assert not NaiveBayes([view]).state.compiled
        with pytest.raises(
            ValueError, match=rf"in compiled code: .*(view `{view.name}`|STREAMNB_PURE|not built)"
        ):
            NaiveBayes([view], compiled=True)


def test_columns_of_a_batch_are_read_row_by_row() -> None:
    """A field whose column is ``None`` in a row is missing in that row."""
    model = NaiveBayes()
    scores = model.step(
        Batch({"text": ["win", None, "win"], "amount": [1.0, None, 9.0]}, ["spam", "ham", None])
    )
    assert scores.n_classes.tolist() == [0, 1, 2]
    assert model.state.counts["words"].rows == {"win": [1.0, 0.0]}
    assert scores.posterior[2].tolist() == [0.5, 0.5]  # the only word is unknown
