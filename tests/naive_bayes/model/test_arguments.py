"""Wrong arguments are refused by one sentence that says what is allowed, before anything is learned."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import Any

import pytest

from streamnb import (
    TEXT_ONLY,
    Bernoulli,
    BernoulliNB,
    Beta,
    Binned,
    Categorical,
    CategoricalNB,
    Categories,
    Category,
    CharacterGrams,
    ComplementNB,
    Dirichlet,
    Ends,
    FixedPrior,
    Flags,
    Gaussian,
    GaussianDiscriminant,
    GaussianNB,
    Laplace,
    LaplacePerToken,
    Multinomial,
    MultinomialNB,
    Multivariate,
    NaiveBayes,
    Numbers,
    Tokenizer,
    UniformPrior,
    View,
    WordPairs,
    Words,
)

any_model: Any = NaiveBayes
any_view: Any = View
any_words: Any = Words
any_pairs: Any = WordPairs
any_flags: Any = Flags
any_numbers: Any = Numbers
any_multinomial: Any = MultinomialNB
any_bernoulli: Any = BernoulliNB
any_tokenizer: Any = Tokenizer

WRONG: dict[str, tuple[Any, str]] = {
    "a head that is none": (
        lambda: any_model(TEXT_ONLY, head="calibrate"),
        '`head` must be "calib',
    ),
    "a reader as a view": (lambda: any_model([any_words()]), r"`views` must be a list of View\("),
    "a tuple as a view": (lambda: any_model([("w", any_words())]), r"`views` must be a list of View\("),
    "a view as the views": (
        lambda: any_model(any_view("w", any_words())),
        r"`views` must be a list of View\(",
    ),
    "a dict as a prior": (lambda: any_model(prior={"a": 0.5}), r"`prior` must be a LearnedPrior\(...\) or "),
    "no room for a class": (
        lambda: any_model(classes_max=0),
        "`classes_max` must be at least 1",
    ),
    "more classes than room": (
        lambda: any_model(classes=[*"abc"], classes_max=2),
        "`classes_max` must be at least 3, not 2",
    ),
    "a text as the classes": (lambda: any_model(classes="ab"), "`classes` must be a list of labels"),
    "one name as fields": (lambda: any_words("subject"), "`fields` must be a tuple of names"),
    "one name as fields of pairs": (lambda: any_pairs(fields="subject"), "`fields` must be a tuple of names"),
    "fields as one name": (lambda: any_flags(("urgent",)), r"for several write fields=\('urgent',\)"),
    "fields of a block that are a text": (
        lambda: any_numbers(fields="a"),
        "`fields` must be a tuple of names",
    ),
    "a class as an event model": (lambda: any_view("w", any_words(), Multinomial), "must be an instance"),
    "a class as a reader": (lambda: any_view("w", Words), "`reader` must be an instance"),
    "a text as a reader": (lambda: any_view("w", "words"), "`reader` must be an instance"),
    "a column's name as labels": (
        lambda: any_model().learn_many([{"a": 1.0}] * 5, "queue"),
        "`y` must be the labels themselves",
    ),
    "a class that was never learned": (
        lambda: any_model(TEXT_ONLY).unlearn_one({"text": "a"}, "x"),
        "no message of 'x' was ever learned",
    ),
    "a category that counts logarithms": (
        lambda: any_view("c", Category("kind"), Multinomial(weight="log")),
        "use the event model Categorical",
    ),
    "a text as raw": (lambda: any_model(raw=1), "`raw` must be True or False, not 1"),
    "half a class": (
        lambda: any_model(classes_max=2.5),
        "`classes_max` must be a whole number or None, not 2.5",
    ),
    "half a token": (lambda: any_model(max_tokens=17.5), "`max_tokens` must be a whole number or None"),
    "a number as a text": (lambda: any_model(max_tokens="x"), "`max_tokens` must be a whole number or None"),
    "a flag that is a text": (lambda: any_model(compiled="x"), "`compiled` must be True or False or None"),
    "true as a number of tokens": (lambda: any_model(explain=True), "`explain` must be a whole number"),
    "fewer tokens than none": (lambda: any_model(explain=-1), "`explain` must be at least 0, not -1"),
    "a number as text fields": (
        lambda: any_model(text=5),
        "`text` must be a text or a list of texts or None",
    ),
    "a number as a tokenizer": (
        lambda: any_model(tokenizer=3),
        r"`tokenizer` must be a Tokenizer\(...\) or None",
    ),
    "a table as a tokenizer": (
        lambda: any_model(tokenizer={}),
        r"`tokenizer` must be a Tokenizer\(...\) or None",
    ),
    "a text as a time": (
        lambda: any_model(time_skew_max_s="x"),
        "`time_skew_max_s` must be a number, not 'x'",
    ),
    "a number as classes": (lambda: any_model(classes=5), "`classes` must be a list of labels, not 5"),
    "a word for unknown words": (
        lambda: any_multinomial(unknown="bogus"),
        '`unknown` must be "smooth" or "skip", not \'bogus\'',
    ),
    "a weight that is none": (
        lambda: any_multinomial(weight="tfidf"),
        '`weight` must be "counts" or "boolean" or "log", not',
    ),
    "a text as a pseudo-count": (lambda: any_multinomial(alpha="x"), "`alpha` must be a number, not 'x'"),
    "a smoothing of draws for coins": (
        lambda: any_bernoulli(smoothing=Dirichlet(3.0)),
        r"`smoothing` must be a Beta\(...\) or None, not Dirichlet",
    ),
    "a list of stop words": (
        lambda: any_tokenizer(stop_words=["en"]),
        r"`stop_words` must be a tuple of texts, not \['en'\]",
    ),
}


@pytest.mark.parametrize(("act", "what"), WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_one_sentence(act: Any, what: str) -> None:  # noqa: ANN401
    """A ValueError, whatever its type; never an AttributeError from inside."""
    with pytest.raises(ValueError, match=what):
        act()


def test_an_argument_may_be_a_number_of_numpy_or_a_subclass_a_parameter_of_its_own() -> None:
    """Grids of settings come from arrays; only the arguments of our own classes are checked."""
    import numpy as np

    class Own(NaiveBayes):
        def __init__(self, explain: str = "words") -> None:
            super().__init__(TEXT_ONLY)
            self.note = explain

    assert MultinomialNB(alpha=np.float64(0.5), max_tokens=np.int64(100)).max_tokens == 100  # type: ignore[arg-type]
    assert Own().note == "words"
    with pytest.raises(ValueError, match="`raw` must be True or False, not 1"):
        NaiveBayes(TEXT_ONLY).raw = 1  # type: ignore[assignment]


@dataclass(frozen=True)
class Nonsense:
    """An event model that gives what it was told to."""

    values: tuple[float, ...]

    def statistic(self) -> Any:  # noqa: ANN401 - its own
        """Return moments."""
        return Gaussian().statistic()

    def parts(self, features: Any, statistic: Any, active: Any) -> Any:  # noqa: ANN401, ARG002 - its own
        """Return the same for every number."""
        return dict.fromkeys(features, self.values)


@pytest.mark.parametrize("values", [(0.5,), (0.1, 0.2, 0.3), (0.1, float("nan"))])
def test_an_own_event_model_must_give_a_number_per_class(values: tuple[float, ...]) -> None:
    """Neither fewer nor more, and no NaN: the posterior would be wrong in silence."""
    model = NaiveBayes([View("n", Numbers(), Nonsense(values))])
    for x, y in ((1.0, "a"), (2.0, "b")):
        model.learn_one({"n": x}, y)
    with pytest.raises(ValueError, match=r"Nonsense gave .* one number per active class, here 2, and no NaN"):
        model.predict_proba_one({"n": 1.0})


def test_a_parameter_that_cannot_change_is_named() -> None:
    """With the way to a new model; nothing changes."""
    model = NaiveBayes(TEXT_ONLY)
    model.learn_one({"text": "win"}, "spam")
    for name, value in (("head", "product"), ("half_life_messages", 5.0), ("views", None)):
        with pytest.raises(ValueError, match=rf"`{name}` cannot change after learning.*clone"):
            setattr(model, name, value)
    assert (model.head, model.half_life_messages, model.views) == (None, None, TEXT_ONLY)


def test_weights_of_classes_are_those_of_now() -> None:
    """With a half-life: what is left of the messages, whatever the landmark is."""
    model = NaiveBayes(TEXT_ONLY, half_life_messages=1.0)
    for label in "aab":
        model.learn_one({"text": "x"}, label)
    assert model.class_counts_ == {"a": 0.375, "b": 0.5}
    assert str(model) == repr(model)


JUNK: list[Any] = [
    *("nonsense", -5, -0.5, math.nan, math.inf, 10**30, [], {}, object(), b"x", [1, 2], {"a": 1}),
    *(Laplace(1.0), Beta(1.0, 1.0), UniformPrior(), Gaussian(), Words(), Laplace, UniformPrior),
]
ESTIMATORS: list[Any] = [
    *(NaiveBayes, MultinomialNB, ComplementNB, BernoulliNB, CategoricalNB, GaussianNB, GaussianDiscriminant)
]
SETTINGS: list[Any] = [Tokenizer, Laplace, LaplacePerToken, Beta, Dirichlet, FixedPrior, CharacterGrams, Ends]
NEEDED: dict[Any, Any] = {LaplacePerToken: {"alphas": {}}}
EVENT_MODELS: dict[Any, Any] = {
    **dict.fromkeys((Multinomial, Bernoulli), Words()),
    **dict.fromkeys((Gaussian, Binned, Multivariate), Numbers(fields=("a",))),
    Categorical: Categories(fields=("a",)),
}


@pytest.mark.parametrize("made", [*ESTIMATORS, *SETTINGS, *EVENT_MODELS], ids=lambda made: made.__name__)
def test_N6_a_wrong_argument_is_a_value_error_that_names_it(made: Any) -> None:  # noqa: ANN401
    """Whatever it is: an AttributeError later, in learning, named neither the argument nor the remedy."""
    for name in inspect.signature(made).parameters:
        said = []
        for value in JUNK:
            try:
                part = made(**{**NEEDED.get(made, {}), name: value})
                if made in EVENT_MODELS:
                    any_view("v", EVENT_MODELS[made], part)
            except ValueError as error:
                said.append(str(error))
        assert len(said) >= 5, name
        assert name == "views" or all("must " in one for one in said), said


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: any_multinomial(prior="uniform"), r"`prior` must be a LearnedPrior\(...\) or "),
        (lambda: any_multinomial(smoothing=Beta(1, 1)), r"`smoothing` must be a NoSmoothing\(...\) or "),
        (lambda: any_multinomial(max_tokens=10**30), "`max_tokens` must be from 16 to "),
        (lambda: any_bernoulli(-1), "`alpha` must be 0 or above and finite, not -1"),
        (lambda: any_bernoulli(true_threshold=math.nan), "`true_threshold` must be finite, not nan"),
        (lambda: any_tokenizer(rule="word"), '`rule` must be "unicode" or "words", not \'word\''),
        (lambda: any_tokenizer(token_length_max="x"), "`token_length_max` must be a whole number, not 'x'"),
        (
            lambda: Multinomial(weight="tfidf"),  # type: ignore[arg-type]
            '`weight` must be "counts" or "boolean" or "log", not \'tfidf\'',
        ),
        (
            lambda: any_view("w", any_words(vocabulary="win")),
            "view `w`: Words: `vocabulary` must be a set of texts, not 'win'",
        ),
        (
            lambda: LaplacePerToken({"win": "x"}),  # type: ignore[dict-item]
            "`alphas` must be a mapping of names to numbers, not {'win': 'x'}",
        ),
        (
            lambda: Categorical(values_min={"kind": 2.5}),  # type: ignore[dict-item]
            "`values_min` must be a whole number or a mapping of names to whole numbers, not ",
        ),
        (lambda: Bernoulli(vocabulary_min="x"), "`vocabulary_min` must be a whole number, not 'x'"),  # type: ignore[arg-type]
    ],
)
def test_N6_the_error_names_what_is_allowed(make: Any, sentence: str) -> None:  # noqa: ANN401
    """One sentence each."""
    with pytest.raises(ValueError, match=sentence):
        make()
