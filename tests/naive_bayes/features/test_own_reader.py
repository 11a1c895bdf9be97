"""A reader of the user's own: it learns, unlearns, merges, is restored and enters the calibrated head."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from streamnb.base.batch import Batch
from streamnb.errors import SnapshotError
from streamnb.naive_bayes import (
    Gaussian,
    Laplace,
    Message,
    Multinomial,
    NaiveBayes,
    Numbers,
    View,
    Words,
)


@dataclass(frozen=True)
class Endings:
    """Counts the last letters of each word."""

    field: str = "text"
    n: int = 2

    @property
    def named_fields(self) -> tuple[str, ...]:
        """The one field."""
        return (self.field,)

    def features(self, message: Message) -> dict[str, float]:
        """Return the endings with their counts."""
        tokens = message.text((self.field,)).tokens
        return {ending: float(n) for ending, n in Counter(token[-self.n :] for token in tokens).items()}


@dataclass(frozen=True)
class Shape:
    """Measures a text: its length and its number of capitals."""

    @property
    def named_fields(self) -> tuple[str, ...]:
        """The one field."""
        return ("text",)

    def features(self, message: Message) -> dict[str, float]:
        """Return two numbers."""
        text = message.value("text")
        if not isinstance(text, str):
            raise ValueError("field `text` must hold text")
        return {"length": float(len(text)), "capitals": float(sum(map(str.isupper, text)))}


ENDINGS = View("endings", Endings(), Multinomial(Laplace(1.0), weight="counts"))
STREAM = [("running jumping", "verbs"), ("house garden", "nouns"), ("walking talking", "verbs")]


def learned(*views: View) -> NaiveBayes:
    """Return a model of these views that has learned the stream."""
    model = NaiveBayes(views, head="product")
    for text, label in STREAM:
        model.learn_one({"text": text}, label)
    return model


def test_its_features_are_counted_and_scored() -> None:
    """A word never seen has an ending that was."""
    model = learned(ENDINGS)
    assert model.state.counts["endings"].rows["ng"] == [4.0, 0.0]
    assert model.predict_one({"text": "swimming"}) == "verbs"
    explanation = model.explain_one({"text": "swimming"})
    assert explanation is not None
    assert explanation.tokens[0].token == "ng"


def test_one_and_many_are_equal_to_the_bit() -> None:
    """It runs on the plain driver, which takes a batch message by message."""
    model = NaiveBayes([ENDINGS], head="product")
    model.step(Batch({"text": [text for text, _ in STREAM]}, [label for _, label in STREAM]))
    assert model.digest() == learned(ENDINGS).digest()
    assert not model.state.compiled


def test_it_unlearns_and_merges() -> None:
    """What it found in a message, it finds again."""
    model, other = learned(ENDINGS), learned(ENDINGS)
    model.merge(other)
    for text, label in STREAM:
        model.unlearn_one({"text": text}, label)
    assert model.digest() == other.digest()


def test_a_state_is_restored_only_into_the_same_reader() -> None:
    """The name of its class and its settings are in the fingerprint."""
    frozen = learned(ENDINGS).freeze()
    again = NaiveBayes([ENDINGS], head="product")
    again.restore(frozen.values, frozen.sections)
    assert again.digest() == frozen.digest()
    other = NaiveBayes([View("endings", Endings(n=3), ENDINGS.event_model)], head="product")
    assert other.state_settings() != again.state_settings()
    with pytest.raises(ValueError, match="settings that their counts depend on"):
        other.merge(again)
    with pytest.raises(SnapshotError):
        NaiveBayes([View("words", Words()), ENDINGS], head="product").restore(frozen.values, frozen.sections)


def test_numbers_go_to_an_event_model_of_numbers() -> None:
    """Each name has moments of its own."""
    model = learned(View("shape", Shape(), Gaussian(variance="shared")))
    assert model.predict_one({"text": "running jumping"}) == "verbs"
    intercept, weights = model.linear_weights()
    assert {name for _, name in weights} == {"length", "capitals"}
    assert intercept != 0.0


def test_beside_words_it_enters_the_calibrated_head() -> None:
    """As one feature with a weight of its own; a block of all other fields leaves its field out."""
    model = NaiveBayes([View("words", Words(("subject",))), ENDINGS, View("n", Numbers())])
    assert model.state.head is not None
    for text, label in STREAM * 3:
        model.learn_one({"subject": "a word", "text": text, "size": 3.0}, label)
    assert model.predict_one({"subject": "a word", "text": "singing", "size": 3.0}) == "verbs"


def test_a_message_that_it_refuses_changes_nothing() -> None:
    """Nothing of the batch is learned."""
    model = learned(View("shape", Shape(), Gaussian()))
    before = model.digest()
    with pytest.raises(ValueError, match="must hold text"):
        model.step(Batch({"text": ["fine", 3]}, ["verbs", "verbs"]))
    assert model.digest() == before


def test_it_needs_an_event_model() -> None:
    """Nothing says which one suits it."""
    with pytest.raises(ValueError, match="view `v`: a reader of your own needs an `event_model`"):
        View("v", Shape())


def test_it_cannot_be_sampled() -> None:
    """It has no way back from features to fields."""
    with pytest.raises(ValueError, match="cannot turn features back into fields"):
        list(learned(ENDINGS).sample(1))
