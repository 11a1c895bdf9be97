"""Published scores match the shipped schema, for every option and in every extreme state of a model."""

from __future__ import annotations

import functools
import json
import math
import operator
from importlib.resources import files
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from numpy.typing import NDArray

from streamnb.base.batch import Batch, Flag, Floats, Scores, likeliest
from streamnb.base.record import Partition, RecordBatch
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.priors import LearnedPrior
from streamnb.naive_bayes.event_models.smoothing import Laplace, NoSmoothing
from streamnb.naive_bayes.features.readers import Number, WordPairs, Words
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.view import TEXT_ONLY, View
from streamnb.wire.message import Decoder, MessageFields
from streamnb.wire.score import encode_scores

SOURCE = Partition("mail", 3)
WORDS = View("words", Words())
LIKELIHOOD = View("words", Words(), Multinomial(NoSmoothing(), weight="counts", unknown="smooth"))
AMOUNT = View("amount", Number("amount"))

ADDED = ("id", "model", "source", "state")  # what the engine adds to the score of a model

Fields = dict[str, Any]


def schema(name: str) -> dict[str, Any]:
    """Return a schema from the package's files."""
    loaded: dict[str, Any] = orjson.loads(
        (files("streamnb.wire") / "schemas" / f"{name}.schema.json").read_bytes()
    )
    return loaded


SCORE = Draft202012Validator(schema("score"))
MESSAGE = Draft202012Validator(schema("message"))


def refuse(constant: str) -> None:
    """Fail on NaN and Infinity, which Python's parser accepts and JSON does not have."""
    raise AssertionError(constant)


def published(model: NaiveBayes, fields: Fields, label: str | None = None, **also: Any) -> Fields:  # noqa: ANN401
    """Return the published score of one message, after validation against the schema."""
    scores = model.step(Batch({name: [value] for name, value in fields.items()}, [label]))
    whole: Fields = {"ids": [None], "model": "test", "partition": SOURCE, "offsets": [7]} | also
    (data,) = encode_scores(scores, **whole)
    assert b"\n" not in data
    score: Fields = json.loads(data, parse_constant=refuse)
    SCORE.validate(score)
    (plain,) = scores.to_dicts()  # which lists all classes
    assert "top_classes" in also or plain == {
        name: value for name, value in score.items() if name not in ADDED
    }
    return score


def taught(**settings_of_model: Any) -> NaiveBayes:  # noqa: ANN401
    """Return a model that has learned three messages of two classes."""
    model = NaiveBayes(**{"views": TEXT_ONLY, **settings_of_model})
    for text, amount, label in (
        ("win money", 1.0, "spam"),
        ("lunch at noon", 3.0, "ham"),
        ("win", 2.0, "spam"),
    ):
        model.learn_one({"text": text, "amount": amount}, label)
    return model


def test_the_schemas_are_schemas() -> None:
    """Both are valid JSON Schemas (2020-12), and every field has a description."""
    for validator in (SCORE, MESSAGE):
        assert validator.schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        Draft202012Validator.check_schema(validator.schema)
        for name, field in validator.schema["properties"].items():
            assert field["description"], name


def test_a_plain_score_holds_what_is_always_there() -> None:
    """It has the required fields and no others."""
    score = published(taught(), {"text": "win a prize"})
    assert score.keys() == set(SCORE.schema["required"])
    assert score["id"] == "mail-3-7"
    assert score["source"] == {"topic": "mail", "partition": 3, "offset": 7}
    assert score["model"] == "test"
    assert score["prediction"] == "spam"
    assert (score["known_tokens"], score["unknown_tokens"], score["learned"]) == (1, 2, 3)
    assert sum(score["posterior"].values()) == pytest.approx(1.0, abs=1e-15)
    for label, p in score["posterior"].items():
        assert score["log_odds"][label] == pytest.approx(math.log(p / (1 - p)), abs=1e-9)


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("explain", [0, 1, 99])
@pytest.mark.parametrize("state", [None, {}, {"mail-0": 9, "mail-3": 7}])
@pytest.mark.parametrize("message_id", [None, "m-1", 7, -7, 2**53])
@pytest.mark.parametrize(
    "model",
    [
        {},
        {"head": "product"},
        {"views": [LIKELIHOOD], "head": "product"},
        {"views": [WORDS, View("pairs", WordPairs()), AMOUNT]},
        {"views": [AMOUNT]},
    ],
    ids=["calibrated", "product", "likelihood", "mixed", "number"],
)
def test_every_option_is_in_the_schema(
    model: Fields, raw: bool, explain: int, state: dict[str, int] | None, message_id: str | int | None
) -> None:
    """A score has an optional field if and only if it was requested."""
    learned = taught(raw=raw, explain=explain, **model)
    score = published(
        learned,
        {"text": "win a lunch neurips", "amount": 2.5},
        ids=[message_id],
        states=None if state is None else [state],
    )
    asked = {"raw_posterior": raw, "explanation": explain > 0, "state": state is not None}
    assert score.keys() - set(SCORE.schema["required"]) == {
        name for name, is_asked in asked.items() if is_asked
    }
    assert score["id"] == ("mail-3-7" if message_id is None else message_id)
    assert score.get("state") == state
    if raw:
        assert sum(score["raw_posterior"].values()) == pytest.approx(1.0, abs=1e-12)
    if explain:
        assert len(score["explanation"]["tokens"]) <= explain


@pytest.mark.parametrize("head", ["calibrated", "product"])
def test_a_published_explanation_adds_up(head: str) -> None:
    """Start, tokens, other tokens and others sum to the difference, however many tokens are listed."""
    for explain in (1, 2, 99):
        why = published(taught(head=head, explain=explain), {"text": "win at noon"})["explanation"]
        parts = [part for _, _, part in why["tokens"]]
        total = why["start"] + sum(parts) + why["other_tokens"] + sum(why["others"].values())
        assert total == pytest.approx(why["difference"], abs=1e-9)
        assert {why["for"], why["against"]} == {"spam", "ham"}


def test_a_model_that_knows_nothing_says_nothing() -> None:
    """Without classes there is no prediction, posterior or log odds."""
    score = published(NaiveBayes(TEXT_ONLY, raw=True, explain=3), {"text": "a"})
    assert (score["prediction"], score["posterior"], score["log_odds"]) == (None, {}, {})


def test_the_log_odds_of_an_only_class_are_null() -> None:
    """They are infinite, which JSON cannot represent."""
    model = NaiveBayes(TEXT_ONLY)
    model.learn_one({"text": "a"}, "ham")
    score = published(model, {"text": "a"})
    assert score["posterior"] == {"ham": 1.0}
    assert score["log_odds"] == {"ham": None}


def test_a_declared_class_is_there_before_it_was_labelled() -> None:
    """It is in the posterior before anything was learned and after another class was."""
    model = NaiveBayes(TEXT_ONLY, classes=("ham", "spam"))
    assert published(model, {"text": "a"})["posterior"].keys() == {"ham", "spam"}
    model.learn_one({"text": "a"}, "ham")
    assert published(model, {"text": "a"})["posterior"].keys() == {"ham", "spam"}


def test_maximum_likelihoods_infinities_are_null() -> None:
    """Words that one class never had, and words that no class had."""
    model = taught(views=[LIKELIHOOD], head="product", explain=9, prior=LearnedPrior())
    one_sided = published(model, {"text": "win money"})
    assert one_sided["posterior"] == {"spam": 1.0, "ham": 0.0}
    assert one_sided["log_odds"] == {"spam": None, "ham": None}
    assert one_sided["explanation"]["difference"] is None
    assert published(model, {"text": "neurips"})["posterior"] == {"spam": 2 / 3, "ham": 1 / 3}
    assert published(model, {"text": "win lunch"})["posterior"] == {"spam": 2 / 3, "ham": 1 / 3}


def test_flags_say_what_was_odd() -> None:
    """Flags are published as words, and left out if there are none."""
    model = taught(tokenizer=Tokenizer(token_length_max=8))
    assert published(model, {"text": " "})["flags"] == ["empty"]
    assert published(model, {"text": "x" * 9})["flags"] == ["truncated"]
    assert "flags" not in published(model, {"text": "x" * 8})


def test_of_equal_posteriors_the_first_in_the_alphabet_is_predicted() -> None:
    """The order in which classes appeared does not matter."""
    model = NaiveBayes(TEXT_ONLY, classes=("spam", "ham"))
    assert published(model, {"text": "a"})["prediction"] == "ham"


TEXTS = st.lists(st.sampled_from(["win", "money", "lunch", "", "😀", "\0", "x" * 70]), max_size=5).map(
    " ".join
)


@settings(max_examples=100, deadline=None)
@example([("", 1.5, "a"), ("", 0.0, None)], (WORDS, AMOUNT), 1e-9)
@example([("", 0.0, "a"), ("", 1e-160, "b"), ("", 1e100, None)] * 4, (AMOUNT,), 1e9)
@given(
    messages=st.lists(
        st.tuples(
            TEXTS, st.one_of(st.none(), st.floats(-1e100, 1e100)), st.sampled_from([None, "a", "b", 'ü\n"\0'])
        ),
        max_size=12,
    ),
    views=st.sampled_from([(WORDS,), (LIKELIHOOD,), (WORDS, AMOUNT), (AMOUNT,)]),
    weight=st.sampled_from([1.0, 1e-9, 1e9, 0.1]),
)
def test_no_stream_gives_a_score_outside_the_schema(
    messages: list[tuple[str, float | None, str | None]], views: tuple[View, ...], weight: float
) -> None:
    """Any numbers, weights, labels and orders give posteriors that sum to 1, and no NaN."""
    head = "product" if LIKELIHOOD in views or WORDS not in views else None
    model = NaiveBayes(views, head=head, raw=True, explain=2)  # type: ignore[arg-type]
    for text, amount, label in messages:
        score = published(model, {"text": text, "amount": amount}, states=[{"mail-3": 7}])
        for posterior in (score["posterior"], score["raw_posterior"]):
            assert not posterior or sum(posterior.values()) == pytest.approx(1.0, abs=1e-9)
        model.learn_one({"text": text, "amount": amount}, label, weight)


def row_by_row(
    scores: Scores,
    ids: list[str | int | None],
    offsets: list[int],
    states: list[dict[str, int]] | None,
    top_classes: int,
) -> list[bytes]:
    """Return what `encode_scores` must return, built with one dict and one call of orjson per row."""

    def named(classes: list[str], row: list[float]) -> dict[str, float | None]:
        by_class = dict(zip(classes, row, strict=False))
        return {
            label: value if math.isfinite(value) else None
            for label, value in by_class.items()
            if label in listed
        }

    rows = []
    for i in range(len(scores)):
        classes = [str(label) for label in scores.classes[: scores.n_classes[i]]]
        posterior = dict(zip(classes, scores.posterior[i].tolist(), strict=False))
        listed = sorted(classes, key=lambda label: (-posterior[label], label))[:top_classes]
        others = [p for label, p in posterior.items() if label not in listed]
        row: Fields = {
            "id": f"{SOURCE}-{offsets[i]}" if ids[i] is None else ids[i],
            "prediction": likeliest(posterior),
            "posterior": named(classes, scores.posterior[i].tolist()),
            **({"other_classes": functools.reduce(operator.add, others, 0.0)} if others else {}),
            "log_odds": named(classes, scores.log_odds[i].tolist()),
            "known_tokens": int(scores.known_tokens[i]),
            "unknown_tokens": int(scores.unknown_tokens[i]),
            "learned": int(scores.learned[i]),
            "learned_by_class": {
                label: int(n) if n.is_integer() and n < 2**53 else n
                for label, n in zip(classes, scores.learned_by_class[i].tolist(), strict=False)
                if label in listed
            },
            "model": "100 %d",
            "source": {"topic": SOURCE.topic, "partition": SOURCE.number, "offset": offsets[i]},
        }
        if scores.flags[i]:
            row["flags"] = [str(flag.name).lower() for flag in Flag(int(scores.flags[i]))]
        if scores.raw_posterior is not None:
            row["raw_posterior"] = named(classes, scores.raw_posterior[i].tolist())
        if scores.explanations is not None and scores.explanations[i] is not None:
            row["explanation"] = scores.explanations[i]
        if states is not None:
            row["state"] = states[i]
        rows.append(orjson.dumps(row))
    return rows


PROBABILITIES = st.sampled_from([0.0, 0.5, 1.0, 5e-324, 1e-5, 1e16, 0.1 + 0.2, 2 / 3])
NUMBERS = st.one_of(PROBABILITIES, st.floats())
COUNTS = st.sampled_from([0.0, 1.0, 5573.0, 0.1 + 0.2, 2.0**53 - 1, 1e21])
CLASSES = ["spam", "ham", "", "%", "%d%%b", 'ü\n"\0', "{}", "a" * 30]


@st.composite
def any_scores(draw: st.DrawFn) -> Scores:
    """Draw scores with any numbers; classes appear from row to row, and posteriors are often equal."""
    n_classes = sorted(draw(st.lists(st.integers(0, len(CLASSES)), max_size=8)))
    n, width = len(n_classes), max(n_classes, default=0)

    def table(numbers: st.SearchStrategy[float]) -> Floats:
        flat = draw(st.lists(numbers, min_size=n * width, max_size=n * width))
        return np.array(flat, np.float64).reshape(n, width)

    def column(least: int, most: int) -> NDArray[np.int64]:
        return np.array(draw(st.lists(st.integers(least, most), min_size=n, max_size=n)), np.int64)

    why = st.lists(
        st.sampled_from([None, {"start": 0.5, "tokens": [["%", '"\n', 1]]}]), min_size=n, max_size=n
    )
    return Scores(
        classes=tuple(draw(st.permutations(CLASSES))[:width]),
        n_classes=np.array(n_classes, np.int64),
        posterior=table(PROBABILITIES),
        log_odds=table(NUMBERS),
        u=np.zeros((n, width)),
        raw_posterior=draw(st.one_of(st.none(), st.just(table(NUMBERS)))),
        known_tokens=column(0, 2**40),
        unknown_tokens=column(0, 3),
        learned=column(0, 2**62),
        learned_by_class=table(COUNTS),
        flags=column(0, 3),
        explanations=draw(st.one_of(st.none(), why)),
    )


IDS = st.one_of(
    st.none(), st.integers(-(2**53), 2**53), st.text(st.sampled_from('a",\n\\ %\u2028\0ü'), max_size=6)
)


@settings(max_examples=300, deadline=None)
@given(scores=any_scores(), data=st.data())
def test_a_batch_is_encoded_as_its_rows_are(scores: Scores, data: st.DataObject) -> None:
    """A batch, and any selection of its rows, gives the same bytes as encoding row by row, and `to_dicts` the
    same values.
    """
    n = len(scores)
    ids = data.draw(st.lists(IDS, min_size=n, max_size=n))
    offsets = data.draw(st.lists(st.integers(0, 2**62), min_size=n, max_size=n))
    states = [{"mail-0": 7, str(SOURCE): offset} for offset in offsets] if data.draw(st.booleans()) else None
    top_classes = data.draw(st.integers(1, len(CLASSES)))
    told = {"model": "100 %d", "partition": SOURCE, "top_classes": top_classes}
    whole = row_by_row(scores, ids, offsets, states, len(CLASSES))
    plain = [{name: x for name, x in orjson.loads(row).items() if name not in ADDED} for row in whole]
    assert json.loads(json.dumps(scores.to_dicts())) == plain
    expected = row_by_row(scores, ids, offsets, states, top_classes)
    assert encode_scores(scores, ids=ids, offsets=offsets, states=states, **told) == expected  # type: ignore[arg-type]
    rows = sorted(data.draw(st.sets(st.integers(0, n - 1)))) if n else []
    taken = encode_scores(
        scores.take(rows),
        ids=[ids[i] for i in rows],
        offsets=[offsets[i] for i in rows],
        states=None if states is None else [states[i] for i in rows],
        **told,  # type: ignore[arg-type]
    )
    assert taken == [expected[i] for i in rows]


def test_F10_a_score_lists_the_likeliest_classes_and_the_rest_in_one_figure() -> None:
    """In the model's order, with the predicted class among them; every table lists the same classes."""
    model = taught(raw=True)
    for i in range(30):
        model.learn_one({"text": f"word{i}"}, f"class {29 - i:02}")
    score = published(model, {"text": "word7 win"}, top_classes=5)
    whole = published(model, {"text": "word7 win"}, top_classes=100)
    posterior = whole["posterior"]
    assert len(posterior) == 32
    assert "other_classes" not in whole
    listed = sorted(posterior, key=lambda name: (-posterior[name], name))[:5]
    assert list(score["posterior"]) == [name for name in posterior if name in listed]
    assert score["prediction"] == whole["prediction"] == listed[0]
    for table in ("posterior", "log_odds", "learned_by_class", "raw_posterior"):
        assert score[table] == {name: whole[table][name] for name in score["posterior"]}
    assert score["other_classes"] == pytest.approx(1 - sum(score["posterior"].values()), abs=1e-12)


def test_of_equal_classes_those_with_the_smallest_names_are_listed() -> None:
    """As in a prediction: a model without labels predicts a class that its score lists."""
    model = NaiveBayes(classes=[f"{i:02}" for i in reversed(range(30))])
    score = published(model, {"text": "win"}, top_classes=3)
    assert (score["prediction"], list(score["posterior"])) == ("00", ["02", "01", "00"])
    assert score["other_classes"] == pytest.approx(27 / 30)


# ---- the schema of messages


@pytest.mark.parametrize(
    "value",
    [
        {"text": "hello"},
        {"text": ""},
        {"id": "m-1", "text": "hello", "label": "spam"},
        {"id": 7, "text": "hello", "label": None},
        {"id": None, "text": "hello", "label": True, "more": [1, {}]},
        {"id": 2**53, "text": "hello", "label": 1.5},
        {"text": 7},
        {"text": None},
        {"label": "spam"},
        {"text": "hello", "label": ""},
        {"text": "hello", "label": []},
        {"text": "hello", "label": "x" * 257},
        {"text": "hello", "id": ""},
        {"text": "hello", "id": 1.5},
        {"text": "hello", "id": True},
        {"text": "hello", "id": 2**53 + 1},
        {"text": "hello", "id": "x" * 1025},
        [],
        "hello",
        None,
    ],
)
def test_the_schema_of_messages_says_what_is_a_message(value: object) -> None:
    """The decoder accepts what the schema allows and refuses what it forbids."""
    batch = RecordBatch(SOURCE, [0], [orjson.dumps(value)], [None], [-1], [()], 1)
    decoder = Decoder(MessageFields(label_values={"true": "spam", "1.5": "spam"}))
    assert MESSAGE.is_valid(value) == (decoder.decode(batch).rows == [0])


def test_a_pseudo_count_does_not_change_the_form() -> None:
    """The scores of a view with another smoothing have the same form."""
    view = View("words", Words(), Multinomial(Laplace(1.0), weight="boolean", unknown="smooth"))
    assert published(taught(views=[view]), {"text": "win"})["prediction"] == "spam"
