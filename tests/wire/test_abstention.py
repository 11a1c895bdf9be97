"""A score with too little evidence names no class and gives the reason; its posterior is still published."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb.base.batch import Batch, Scores
from streamnb.base.record import Partition
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.model.view import TEXT_ONLY
from streamnb.wire.abstention import PREDICTED, REASONS, Abstain
from streamnb.wire.score import encode_scores

TOO_FEW_LEARNED, TOO_FEW_KNOWN, UNSURE = range(len(REASONS))


def scores_of(
    posterior: Sequence[Sequence[float]],
    learned: Sequence[Sequence[float]] | None = None,
    known: Sequence[int] | None = None,
    n_classes: Sequence[int] | None = None,
) -> Scores:
    """Return scores of the classes ham, spam and eggs, by default with plenty of evidence."""
    p = np.array(posterior, np.float64)
    n, width = p.shape
    zeros = np.zeros(n, np.int64)
    return Scores(
        classes=("ham", "spam", "eggs")[:width],
        n_classes=zeros + width if n_classes is None else np.array(n_classes),
        posterior=p,
        log_odds=p,
        u=p,
        raw_posterior=None,
        known_tokens=zeros + 99 if known is None else np.array(known),
        unknown_tokens=zeros,
        learned=zeros,
        learned_by_class=np.full(p.shape, 99.0) if learned is None else np.array(learned, np.float64),
        flags=zeros,
    )


def reasons(rule: Abstain, scores: Scores) -> list[int]:
    """Return the rule's reason for each row."""
    found = rule.reasons(scores)
    assert found is not None
    return [int(reason) for reason in found]


def test_a_rule_that_is_off_costs_nothing() -> None:
    """The default rule returns None without reading any column."""
    assert Abstain().reasons(scores_of([[0.5, 0.5]], [[0, 0]], [0])) is None


def test_the_class_with_fewest_messages_decides() -> None:
    """A declared class without labels counts with 0; a class that had not appeared yet does not count."""
    scores = scores_of(
        [[0.6, 0.4, 0.0]] * 4,
        learned=[[50, 9.5, 50], [50, 10, 50], [50, 50, 0], [50, 50, 0]],
        n_classes=[3, 3, 3, 2],
    )
    assert reasons(Abstain(learned_min=10), scores) == [
        TOO_FEW_LEARNED,
        PREDICTED,
        TOO_FEW_LEARNED,
        PREDICTED,
    ]


def test_a_model_without_classes_has_learned_too_few() -> None:
    """A score without classes fails every bound that is above 0."""
    nothing = NaiveBayes(TEXT_ONLY).score_one({"text": "win"})
    assert reasons(Abstain(learned_min=1e-9), nothing) == [TOO_FEW_LEARNED]
    assert reasons(Abstain(known_tokens_min=1), nothing) == [TOO_FEW_KNOWN]
    assert reasons(Abstain(posterior_min=0.1), nothing) == [UNSURE]


def test_a_text_of_unknown_words_names_no_class() -> None:
    """A text with exactly `known_tokens_min` known tokens is enough."""
    scores = scores_of([[0.9, 0.1]] * 3, known=[1, 2, 3])
    assert reasons(Abstain(known_tokens_min=2), scores) == [TOO_FEW_KNOWN, PREDICTED, PREDICTED]


def test_below_the_least_posterior_and_between_the_bounds_of_a_class_a_score_is_unsure() -> None:
    """A posterior that equals a bound is not unsure."""
    scores = scores_of([[0.95, 0.05], [0.8, 0.2], [0.5, 0.5], [0.01, 0.99]])
    assert reasons(Abstain(posterior_min=0.8), scores) == [PREDICTED, PREDICTED, UNSURE, PREDICTED]
    rule = Abstain(between={"spam": (0.05, 0.99), "nobody": (0.0, 1.0)})
    assert reasons(rule, scores) == [PREDICTED, UNSURE, UNSURE, PREDICTED]


def test_of_several_reasons_the_first_is_told() -> None:
    """A reason of the model comes before a reason of the message."""
    rule = Abstain(learned_min=10, known_tokens_min=2, posterior_min=0.9)
    scores = scores_of([[0.5, 0.5]] * 3, learned=[[9, 9], [10, 10], [10, 10]], known=[1, 1, 2])
    assert reasons(rule, scores) == [TOO_FEW_LEARNED, TOO_FEW_KNOWN, UNSURE]


@pytest.mark.parametrize(
    "wrong",
    [
        {"learned_min": -1},
        {"learned_min": float("inf")},
        {"learned_min": float("nan")},
        {"known_tokens_min": -1},
        {"posterior_min": 1.5},
        {"posterior_min": float("nan")},
        {"between": {"spam": (0.9, 0.2)}},
        {"between": {"spam": (0.2, 1.1)}},
        {"between": {"spam": (0.2, float("nan"))}},
        {"between": {"spam": (0.2,)}},
        {"sure": 0.5},
    ],
)
def test_a_bound_that_no_score_can_be_held_to_is_refused(wrong: dict[str, object]) -> None:
    """Wrong bounds are refused when the settings are read, not in the middle of a stream."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, Abstain)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)),
        min_size=1,
        max_size=8,
    ),
    rule=st.builds(
        Abstain,
        learned_min=st.integers(0, 4),
        known_tokens_min=st.integers(0, 4),
        posterior_min=st.sampled_from([0.0, 0.6, 0.9]),
        between=st.sampled_from([{}, {"spam": (0.25, 0.75)}]),
    ),
)
def test_only_the_prediction_is_withheld(rows: list[tuple[float, int, int, int]], rule: Abstain) -> None:
    """A row that abstains differs only in its prediction and its reason, and the other rows not at all."""
    scores = scores_of(
        [[p, 1 - p] for p, *_ in rows], [[a, b] for _, a, b, _ in rows], [known for *_, known in rows]
    )
    told = {"ids": [None] * len(rows), "model": "m", "partition": Partition("mail", 0)}
    offsets = list(range(len(rows)))
    plain = encode_scores(scores, offsets=offsets, **told)  # type: ignore[arg-type]
    found = rule.reasons(scores)
    ruled = encode_scores(scores, offsets=offsets, abstained=found, **told)  # type: ignore[arg-type]
    for i, (before, after) in enumerate(zip(plain, ruled, strict=True)):
        if found is None or found[i] == PREDICTED:
            assert after == before
            continue
        score = orjson.loads(after)
        assert score.pop("abstained") == REASONS[found[i]]
        assert score == orjson.loads(before) | {"prediction": None}


@pytest.mark.parametrize("compiled", [False, None])
def test_learned_by_class_adds_up_the_weights_from_before_the_message(compiled: bool | None) -> None:
    """Both twins agree, and a class that appears in the middle of a batch begins with 0."""
    model = NaiveBayes(TEXT_ONLY, classes=("ham",), compiled=compiled)
    texts, labels = ["a", "b", "c", "d"], ["spam", None, "ham", "spam"]
    scores = model.step(Batch({"text": texts}, [*labels], [2.0, 1.0, 0.5, 1.0]))
    assert scores.learned_by_class.tolist() == [[0.0, 0.0], [0.0, 2.0], [0.0, 2.0], [0.5, 2.0]]
    assert model.score_one({"text": "a"}).learned_by_class.tolist() == [[0.5, 3.0]]
