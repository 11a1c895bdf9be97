"""The peers' traps, by number: what other libraries did, and what this one does instead."""

import math
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import cast

import numpy as np
import pytest

from streamnb.base.batch import Batch, Label
from streamnb.base.record import Partition, RecordBatch
from streamnb.config import build_model as build
from streamnb.config import load_settings
from streamnb.errors import RecordError
from streamnb.evaluation import predictions
from streamnb.naive_bayes.estimators import MultinomialNB
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.smoothing import Dirichlet, Laplace
from streamnb.naive_bayes.features.readers import Category, Number, Words
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.scoring import evidence_of
from streamnb.naive_bayes.model.view import TEXT_ONLY, View
from streamnb.naive_bayes.statistics.moments import Moments
from streamnb.naive_bayes.statistics.number_block import NumberBlock
from streamnb.wire.message import Decoder, MessageFields

CONFIGS = Path(__file__).parents[2] / "configs"
NUMBER = View("x", Number("x"))
COUNTED = View("words", Words(), Multinomial(Laplace(1.0), "counts", "smooth"))


def _t1_corpus(seed: int = 0, rare_at: int = 0) -> list[tuple[str, str]]:
    """1,000 ham and 10 spam of 10 words each; every hundredth is spam."""
    random = Random(seed)
    words = ["".join(random.choices("abcdefghijklmnop", k=8)) for _ in range(2100)]
    ham, spam = words[:2000], words[2000:]
    corpus = [
        (
            " ".join(random.choices(spam if i % 101 == rare_at else ham, k=10)),
            "spam" if i % 101 == rare_at else "ham",
        )
        for i in range(1010)
    ]
    assert sum(label == "spam" for _, label in corpus) == 10
    return corpus


def _unknown_words(n: int, length: int = 8) -> str:
    return " ".join(f"q{'xz'[i % 2] * (length - 3)}{i:02d}" for i in range(n))


# ---- C.1 unseen words, empties, smoothing


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 10, 20, 1000])
def test_T1_unknown_words_leave_the_prior(n: int) -> None:
    """Product head, unknown skipped: the posterior is the prior, exactly, whatever their number."""
    model = NaiveBayes(TEXT_ONLY, head="product")
    every = NaiveBayes()
    classic = MultinomialNB(unknown="skip")
    for text, label in _t1_corpus():
        model.learn_one({"text": text}, label)
        every.learn_one({"text": text}, label)
        classic.learn_one(text, label)
    for p in (
        model.predict_proba_one({"text": _unknown_words(n)}),
        every.predict_proba_one({"text": _unknown_words(n)}),
        classic.predict_proba_one(_unknown_words(n)),
    ):
        assert p == pytest.approx({"ham": 1000 / 1010, "spam": 10 / 1010}, rel=1e-13)
    assert p == classic.predict_proba_one("")


def test_T1_smoothed_they_vote_as_the_peers_have_it() -> None:
    """The classic class by default: the trap itself, so that the test above tests something."""
    classic = MultinomialNB()
    for text, label in _t1_corpus():
        classic.learn_one(text, label)
    spam = [classic.predict_proba_one(_unknown_words(n))["spam"] for n in (0, 1, 2, 3, 5, 10)]
    assert spam[0] == pytest.approx(10 / 1010)
    assert spam == sorted(spam)
    assert spam[-1] > 0.999


@pytest.mark.parametrize("config", ["spam.toml", "spam-accurate.toml"])
@pytest.mark.parametrize("rare_at", [0, 50, 100])
def test_T1_the_shipped_configurations_do_not_fall(config: str, rare_at: int) -> None:
    """Unknown words add exactly nothing to any text view; length and unknown share are shown apart.

    They may move the posterior, and do not move it past the other class: no message of 0 to 40 unknown
    words, of 3 to 60 characters each, is called spam.
    """
    model = build(load_settings(CONFIGS / config))
    assert isinstance(model, NaiveBayes)
    for text, label in _t1_corpus(seed=1, rare_at=rare_at):
        model.learn_one({"text": text}, label)
    texts = [_unknown_words(n, length) for n in range(41) for length in (3, 8, 12, 60)]
    scores = model.step(Batch({"text": texts}, [None] * len(texts)))
    assert not scores.known_tokens.any()
    assert scores.unknown_tokens[-1] == 40
    assert predictions(scores) == ["ham"] * len(texts)
    spam = model.classes_.index("spam")
    assert scores.posterior[:, spam].max() < 0.5
    for text in texts[::7]:
        explanation = model.explain_one({"text": text}, ("ham", "spam"))
        assert explanation is not None
        assert explanation.tokens == []
        assert explanation.others.keys() == {"length", "unknown_share"}


@pytest.mark.parametrize("n", [1, 7, 40])
def test_T1_unknown_words_are_nothing_to_every_text_view(n: int) -> None:
    """The rows of phi of words, pairs, characters and ends are 0; a shape is known in any script."""
    from streamnb.naive_bayes.model.message_features import read_message

    model = build(load_settings(CONFIGS / "spam-accurate.toml"))
    assert isinstance(model, NaiveBayes)
    for text, label in _t1_corpus():
        model.learn_one({"text": text}, label)
    letters = "ыжщюэ"  # shares no character run with the corpus, digits included
    text = " ".join(letters[i % 5] * (5 + i) for i in range(n))
    reading = read_message(model.state.views, model.state.tokenizer, {"text": [text]}, 0)
    phi = evidence_of(model.state, reading, model.state.active()).phi
    assert len(phi) == 5 * 4 + 2 + 1
    assert phi[:16] == [[0.0, 0.0]] * 16
    assert all(abs(value) <= 2.0 for row in phi[20:22] for value in row)
    explanation = model.explain_one({"text": text})
    assert explanation is not None
    assert {part.view for part in explanation.tokens} == {"shapes"}
    parts = [part.value for part in explanation.tokens] + [*explanation.others.values()]
    assert explanation.total == pytest.approx(explanation.start + sum(parts), abs=1e-12)


@pytest.mark.parametrize("smoothing", [Laplace(1.0), Laplace(0.1), Dirichlet(10.0), Dirichlet(1000.0)])
def test_T2_what_a_class_gives_out_is_one(smoothing: Laplace | Dirichlet) -> None:
    """Over the vocabulary; with the unknown word, for Dirichlet, which keeps a share for it."""
    model = MultinomialNB(smoothing=smoothing)
    for text, label in _t1_corpus():
        model.learn_one(text, label)
    counts = model.state.counts["terms"]
    prior = {"ham": math.log(1000 / 1010), "spam": math.log(10 / 1010)}
    words = [*counts.rows, "neurips"] if isinstance(smoothing, Dirichlet) else [*counts.rows]
    for label in ("ham", "spam"):
        given = math.fsum(
            math.exp(model.joint_log_likelihood({word: 1})[label] - prior[label]) for word in words
        )
        assert given == pytest.approx(1.0, abs=1e-11)


@pytest.mark.parametrize("head", ["calibrated", "product"])
@pytest.mark.parametrize("unknown", ["skip", "smooth"])
def test_T3_only_empty_messages_then_a_word(head: str, unknown: str) -> None:
    """The prior, or for the calibrated head what it learned of the shares; no division by nothing."""
    view = View("words", Words(), Multinomial(Laplace(1.0), "counts", unknown))  # type: ignore[arg-type]
    model = NaiveBayes([view], head=head)  # type: ignore[arg-type]
    for label in ("ham", "ham", "spam"):
        model.learn_one({"text": ""}, label)
    p = model.predict_proba_one({"text": "neurips"})
    if head == "product":
        assert p == pytest.approx({"ham": 2 / 3, "spam": 1 / 3})
    assert math.fsum(p.values()) == pytest.approx(1.0, abs=1e-12)
    assert all(0 < value < 1 for value in p.values())


def test_T4_before_anything_was_learned() -> None:
    """None and {}, as river has it; the share of a class is 0."""
    model = MultinomialNB()
    assert model.predict_one({"a": 1}) is None
    assert model.predict_proba_one({"a": 1}) == {}
    assert model.joint_log_likelihood({"a": 1}) == {}
    assert model.p_class("ham") == 0.0
    assert model.explain_one({"a": 1}) is None
    scores = NaiveBayes(TEXT_ONLY).score_one({"text": "a"})
    assert (scores.n_classes.tolist(), scores.posterior.shape) == ([0], (1, 0))
    assert predictions(scores) == [None]


@pytest.mark.parametrize("text", ["free", "neurips", "free lunch", "free neurips"])
def test_T6_no_smoothing_is_defined(text: str) -> None:
    """Minus infinity, 0 and 1, or the prior: no exception, no hidden constant, no NaN."""
    model = MultinomialNB(alpha=0)
    model.learn_one("free cash", "spam")
    model.learn_one("lunch noon", "ham")
    expected = {"free": {"ham": 0.0, "spam": 1.0}}.get(text, {"ham": 0.5, "spam": 0.5})
    assert model.predict_proba_one(text) == expected


@pytest.mark.parametrize("alpha", [-1.0, -1e-9, math.nan, math.inf])
def test_T8_alpha_below_nothing_is_refused(alpha: float) -> None:
    """At construction."""
    with pytest.raises(ValueError, match="above 0"):
        MultinomialNB(alpha)


def test_T9_joints_are_exact() -> None:
    """To 1e-12 of exact fractions: nothing is added to keep a logarithm from 0."""
    model = MultinomialNB(alpha=0.5)
    model.learn_one({"a": 3, "b": 1}, "x")
    model.learn_one({"b": 2, "c": 5}, "y")
    half = Fraction(1, 2)
    for label, (a, b, total) in {"x": (3, 1, 4), "y": (0, 2, 7)}.items():
        n = total + 3 * half
        joint = half * ((a + half) / n) ** 2 * ((b + half) / n)
        found = model.joint_log_likelihood({"a": 2, "b": 1})[label]
        assert found == pytest.approx(math.log(joint), rel=1e-12)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"a": 1, "b": -1}, id="T12 negative"),
        pytest.param({"a": 1, "b": 1e308}, id="T14 too large"),
        pytest.param({"a": 1, "b": math.inf}, id="T15 infinite"),
        pytest.param({"a": 1, "b": "oops"}, id="T16 text"),
    ],
)
def test_T12_T14_T15_T16_a_bad_count_refuses_the_message_whole(bad: dict[str, float]) -> None:
    """Neither its class nor its good words are counted, and it cannot be scored either."""
    model = MultinomialNB()
    model.learn_one({"a": 1, "b": 2}, "ham")
    model.learn_one({"b": 1, "c": 1}, "spam")
    before = model.digest()
    for attempt in range(2):
        with pytest.raises(ValueError, match="count of 'b'"):
            model.learn_one(bad, ("ham", "new")[attempt])
        with pytest.raises(ValueError, match="count of 'b'"):
            model.predict_proba_one(bad)
    assert model.digest() == before
    assert model.class_counts == {"ham": 1.0, "spam": 1.0}


def test_T14_the_largest_counts_and_weights_stay_finite() -> None:
    """The bound on both leaves room for a stream of them."""
    model = MultinomialNB()
    for _ in range(1000):
        model.learn_one({"a": 1e9}, "ham", w=1e9)
        model.learn_one({"b": 1e9}, "spam", w=1e9)
    p = model.predict_proba_one({"a": 1e9})
    assert p == {"ham": 1.0, "spam": 0.0}
    assert all(map(math.isfinite, model.joint_log_likelihood({"a": 1e9, "b": 1}).values()))


def test_T17_certainty_has_log_odds() -> None:
    """100,000 copies of a token: p is 1.0 and 0.0, its log odds are finite and keep ranking."""
    model = NaiveBayes([COUNTED], head="product", tokenizer=Tokenizer(message_tokens_max=10**6))
    for text, label in (("free cash", "spam"), ("lunch noon", "ham")):
        model.learn_one({"text": text}, label)
    odds = [model.score_one({"text": "free " * n}).log_odds[0, 0] for n in (1_000, 10_000, 100_000)]
    assert model.predict_proba_one({"text": "free " * 100_000}) == {"spam": 1.0, "ham": 0.0}
    assert odds == pytest.approx([n * math.log(2) for n in (1_000, 10_000, 100_000)], rel=1e-9)


@pytest.mark.parametrize("order", [("ham", "spam"), ("spam", "ham")])
def test_T18_ties_are_broken_by_label(order: tuple[str, str]) -> None:
    """Whichever came first."""
    model = MultinomialNB()
    for label in order:
        model.learn_one("the same words", label)
    assert model.predict_one("the same words") == "ham"


# ---- C.2 labels


@pytest.mark.parametrize("first", [True, 1, "1"])
@pytest.mark.parametrize("second", [True, 1, 1.0, "1"])
def test_T19_labels_of_two_types_never_merge(first: Label, second: object) -> None:
    """A model's labels are of one type; another is refused, not merged."""
    model = MultinomialNB()
    model.learn_one({"a": 1}, first)
    if type(second) is type(first):
        model.learn_one({"a": 1}, first)
        assert model.class_counts == {first: 2.0}
    else:
        with pytest.raises(ValueError, match=r"a label of this model must be|cannot be a label"):
            model.learn_one({"a": 1}, second)  # type: ignore[arg-type]
        assert model.class_counts == {first: 1.0}


def test_T20_a_label_that_is_not_a_number_is_refused() -> None:
    """It is equal to nothing, not even to itself."""
    model = MultinomialNB()
    with pytest.raises(ValueError, match="cannot be a label"):
        model.learn_one({"a": 1}, math.nan)  # type: ignore[arg-type]
    assert model.class_counts == {}


def test_T21_no_label_is_not_a_class() -> None:
    """The message is scored, and nothing is learned."""
    model = NaiveBayes(TEXT_ONLY)
    scores = model.step(Batch({"text": ["a", "b"]}, [None, None]))
    assert (model.classes_, model.learned_, scores.learned.tolist()) == ([], 0, [0, 0])
    assert model.digest() == NaiveBayes(TEXT_ONLY).digest()


# ---- C.3 batches


@pytest.mark.parametrize("head", ["calibrated", "product"])
def test_T24_many_is_one_to_the_bit(head: str) -> None:
    """1,010 messages in one batch, or one by one: the same posteriors and state."""
    corpus = _t1_corpus()
    one, many = NaiveBayes(TEXT_ONLY, head=head), NaiveBayes(TEXT_ONLY, head=head)  # type: ignore[arg-type]
    scores = many.step(Batch({"text": [text for text, _ in corpus]}, [label for _, label in corpus]))
    for i, (text, label) in enumerate(corpus):
        n = int(scores.n_classes[i])
        assert [*one.predict_proba_one({"text": text}).values()] == scores.posterior[i, :n].tolist()
        one.learn_one({"text": text}, label)
    assert one.digest() == many.digest()


def test_T25_a_class_known_from_empty_messages_alone() -> None:
    """It has a prior and no words: smoothed, it takes part."""
    model = MultinomialNB()
    model.learn_one("free cash", "spam")
    model.learn_one("", "ham")
    p = model.predict_proba_one("free")
    assert p == pytest.approx({"spam": (1 / 2) / (1 / 2 + 1 / 2), "ham": 0.5})  # 2/4 against 1/2
    both = NaiveBayes(TEXT_ONLY).step(Batch({"text": ["free", "", "free"]}, ["spam", "ham", None]))
    assert np.isfinite(both.posterior).all()


# ---- C.4 numbers, through the whole model


def _numbers(rows: list[tuple[float | None, str]]) -> NaiveBayes:
    model = NaiveBayes([NUMBER])
    model.step(Batch({"x": [x for x, _ in rows]}, [label for _, label in rows]), score=False)
    return model


def _normals(a: float, b: float, n: int = 1000) -> list[tuple[float | None, str]]:
    """As many of each, of the same spread: each number of a is one of b, moved."""
    random = Random(0)
    drawn = [random.gauss(0.0, 1.0) for _ in range(n // 2)]
    return [row for x in drawn for row in ((a + x, "a"), (b + x, "b"))]


@pytest.mark.parametrize(("x", "label"), [(8, "a"), (30, "a"), (40, "a"), (-1e6, "a"), (60, "b"), (1e6, "b")])
def test_T29_far_numbers_keep_their_order(x: float, label: str) -> None:
    """A = N(0, 1), B = N(100, 1): the nearer class, with certainty."""
    model = _numbers(_normals(0.0, 100.0))
    assert model.predict_proba_one({"x": x})[label] > 1 - 1e-3
    assert np.isfinite(model.score_one({"x": x}).log_odds).all()


def test_T30_a_constant_class_wins_where_it_is() -> None:
    """Zero variance is no reason to lose at the very value."""
    model = _numbers(
        [(5.0, "constant") for _ in range(50)] + [(x, "spread") for x, _ in _normals(5.0, 5.0, 50)]
    )
    assert model.predict_one({"x": 5.0}) == "constant"


def test_T31_one_observation_a_class() -> None:
    """The nearest wins."""
    model = _numbers([(1.0, "a"), (2.0, "b")])
    assert [model.predict_one({"x": x}) for x in (-5.0, 1.0, 1.4, 1.6, 2.0, 9.0)] == [
        "a",
        "a",
        "a",
        "b",
        "b",
        "b",
    ]


@pytest.mark.parametrize("unit", [1e6, 1e9, 1e12])
def test_T32_units_do_not_matter(unit: float) -> None:
    """Posteriors equal to 1e-9 in any unit, within the calibrated head too."""
    rows = _normals(0.0, 2.0, 200)
    scaled: list[tuple[float | None, str]] = [(x * unit, label) for x, label in rows if x is not None]
    for views in ([NUMBER], [View("words", Words()), NUMBER]):
        plain, other = NaiveBayes(views), NaiveBayes(views)
        for model, stream in ((plain, rows), (other, scaled)):
            model.step(Batch({"x": [x for x, _ in stream]}, [label for _, label in stream]))
        for x in (-2.0, 0.5, 1.0, 3.0, 50.0):
            expected = plain.predict_proba_one({"x": x})
            assert other.predict_proba_one({"x": x * unit}) == pytest.approx(expected, abs=1e-9)


def _moments(model: NaiveBayes) -> Moments:
    """The moments of the number x."""
    return cast("NumberBlock", model.state.statistics["x"]).numbers["x"]


@pytest.mark.parametrize("missing", [math.nan, math.inf, -math.inf, None])
def test_T33_a_missing_number_is_learned_as_missing(missing: float | None) -> None:
    """The class is counted, the number is not; one by one as in a batch."""
    rows = _normals(0.0, 3.0, 100)
    with_it, without = _numbers([*rows, (missing, "a")]), _numbers(rows)
    assert _moments(with_it).freeze().tolist() == _moments(without).freeze().tolist()
    assert with_it.state.class_counts == [51.0, 50.0] if with_it.classes_[0] == "a" else [50.0, 51.0]
    one = _numbers(rows)
    one.learn_one({"x": missing}, "a")
    assert one.digest() == with_it.digest()


@pytest.mark.parametrize("missing", [math.nan, math.inf, None])
def test_T34_a_missing_number_is_skipped(missing: float | None) -> None:
    """The posterior is the prior, not NaN; so it is where the field is absent."""
    model = _numbers(_normals(0.0, 3.0, 100))
    assert model.predict_proba_one({"x": missing}) == pytest.approx({"a": 0.5, "b": 0.5})
    assert model.predict_proba_one({}) == pytest.approx({"a": 0.5, "b": 0.5})


def test_T35_a_class_without_the_number_is_not_charged_a_constant() -> None:
    """The pooled density stands in for it."""
    model = NaiveBayes([View("kind", Category("kind")), NUMBER])
    for x, _ in _normals(0.0, 0.0, 50):
        model.learn_one({"kind": "k", "x": x}, "a")
        model.learn_one({"kind": "k"}, "b")
    near = model.predict_proba_one({"kind": "k", "x": 0.0})
    assert near == pytest.approx({"a": 0.5, "b": 0.5}, abs=0.01)  # nobody else gave numbers: pooled is a's


def test_T36_a_noisy_column_does_not_drown_another() -> None:
    """Each number has its own units: a column of scale 1e6 changes nothing for one of scale 1."""
    random = Random(1)
    model = NaiveBayes([NUMBER, View("noise", Number("noise"))])
    correct = 0
    for i in range(400):
        label = "ab"[i % 2]
        message = {"x": random.gauss(4.0 * (i % 2), 1.0), "noise": random.gauss(0.0, 1e6)}
        correct += model.predict_one(message) == label and i >= 200
        model.learn_one(message, label)
    assert correct / 200 > 0.95


def test_T38_a_large_offset_keeps_the_variance() -> None:
    """1e9 + N(0, 1)."""
    rows = [(x + 1e9, label) for x, label in _normals(0.0, 3.0) if x is not None]
    model = _numbers([*rows])
    moments = _moments(model)
    for c in (0, 1):
        assert moments.squares[c] / moments.n[c] == pytest.approx(1.0, rel=0.1)
    assert model.predict_one({"x": 1e9}) == "a"
    assert model.predict_one({"x": 1e9 + 3}) == "b"


# ---- C.6 tokens and fields


def test_T54_the_default_reads_what_the_peers_lose() -> None:
    """Marks, scripts without spaces, emoji and one-letter words are learned and told apart."""
    model = NaiveBayes(TEXT_ONLY)
    pairs = [("कमल", "कमला"), ("दिन", "दीन"), ("C++", "C#"), ("👍🏽", "👎🏽"), ("I", "a"), ("你好", "再见")]
    for first, second in pairs:
        for _ in range(3):
            model.learn_one({"text": first}, "first")
            model.learn_one({"text": second}, "second")
    for first, second in pairs:
        assert model.predict_one({"text": first}) == "first"
        assert model.predict_one({"text": second}) == "second"


@pytest.mark.parametrize("text", [b"free", 5, ["free"], {"a": 1}])
def test_T55_what_is_not_text_is_refused(text: object) -> None:
    """With a ValueError that names the field, and nothing learned."""
    model = NaiveBayes(TEXT_ONLY)
    with pytest.raises(ValueError, match="field `text` must hold text"):
        model.learn_one({"text": text}, "spam")
    assert model.digest() == NaiveBayes(TEXT_ONLY).digest()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "tombstone"),
        (b"\xff\xfe", "encoding"),
        (b'{"text": 5}', "schema"),
        (b'{"text": null}', "missing_text"),
        (b'{"label": "spam"}', "missing_text"),
        (b'{"text": "\\ud800"}', "lone_surrogate"),
        (b"free", "json_syntax"),
    ],
)
def test_T55_on_the_stream_it_is_a_dead_letter_with_a_reason(value: bytes | None, reason: str) -> None:
    """The good record beside it is read."""
    good = b'{"text": "hi", "label": "ham"}'
    records = RecordBatch(Partition("mail", 0), [0, 1], [value, good], [None, None], [-1, -1], [(), ()], 2)
    messages = Decoder(MessageFields()).decode(records)
    ((row, error),) = messages.refused
    assert isinstance(error, RecordError)
    assert (row, error.reason, messages.rows, messages.batch.labels) == (0, reason, [1], ["ham"])
