"""Scores as plain values, and scores of one batch from those of its pieces."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from streamnb.base import Batch, Flag, Label, ScoreRows, Scores
from streamnb.naive_bayes import NaiveBayes, Tokenizer

ALWAYS = [
    "prediction",
    "posterior",
    "log_odds",
    "known_tokens",
    "unknown_tokens",
    "learned",
    "learned_by_class",
]


def scored(labels: list[Label | None], **settings: Any) -> Scores:  # noqa: ANN401 - the parameters
    """Return the scores of a batch of different texts, learned in order."""
    texts = [f"win {i} money" for i in range(len(labels))]
    return NaiveBayes(**settings).step(Batch({"text": texts}, labels))


def types_in(value: object) -> set[type]:
    """The types of a value and of everything inside it."""
    inside: list[object] = []
    if isinstance(value, dict):
        inside = [*value, *value.values()]
    elif isinstance(value, list):
        inside = value
    return {type(value)}.union(*map(types_in, inside))


@pytest.mark.parametrize("labels", [["spam", "ham"], [7, 12], [True, False]], ids=["str", "int", "bool"])
@pytest.mark.parametrize("compiled", [None, False], ids=["compiled", "plain"])
def test_scores_become_plain_values_and_json(labels: list[Label | None], compiled: bool | None) -> None:
    """No number is numpy's, and JSON gives the same dicts back."""
    dicts = scored([*labels, None] * 3, raw=True, explain=2, compiled=compiled).to_dicts()
    assert types_in(dicts) <= {list, dict, str, int, float, bool, type(None)}
    assert json.loads(json.dumps(dicts, allow_nan=False)) == dicts
    assert list(dicts[-1]) == [*ALWAYS, "raw_posterior", "explanation"]


def test_a_score_has_an_optional_field_only_where_there_is_one() -> None:
    """The first two messages were scored before there were two classes to compare."""
    assert [list(row) for row in scored(["spam", "ham", None]).to_dicts()] == [ALWAYS] * 3
    explained = scored(["spam", "ham", None], explain=1).to_dicts()
    assert ["explanation" in row for row in explained] == [False, False, True]


def test_a_class_is_in_the_scores_after_its_first_message() -> None:
    """Columns of later classes are left out."""
    dicts = scored(["spam", "ham", None]).to_dicts()
    assert [row["posterior"] for row in dicts[:2]] == [{}, {"spam": 1.0}]
    assert [row["prediction"] for row in dicts] == [None, "spam", "ham"]
    assert [row["learned_by_class"] for row in dicts] == [{}, {"spam": 1}, {"spam": 1, "ham": 1}]


def test_a_number_that_json_cannot_hold_is_none() -> None:
    """The log odds of an only class are infinite."""
    scores = scored(["spam", None])
    assert scores.log_odds[1, 0] == math.inf
    assert scores.to_dicts()[1]["log_odds"] == {"spam": None}


def test_flags_are_names() -> None:
    """A score without one has no such field."""
    model = NaiveBayes(tokenizer=Tokenizer(token_length_max=8))
    batch = Batch({"text": ["", "x" * 9, "win"]}, [None] * 3)
    assert [row.get("flags") for row in model.step(batch).to_dicts()] == [["empty"], ["truncated"], None]
    assert Flag(0).names == []


def test_a_batch_that_was_not_scored_has_dicts_without_a_posterior() -> None:
    """It has one for each message, also if raw posteriors were requested."""
    scores = NaiveBayes(raw=True).step(Batch({"text": ["win", "lunch"]}, ["spam", "ham"]), score=False)
    assert [(row["prediction"], row["posterior"]) for row in scores.to_dicts()] == [(None, {})] * 2
    assert ScoreRows().scores(()).to_dicts() == []


def test_joined_scores_keep_the_explanation_of_each_message() -> None:
    """Also if all messages of the first piece came before there was anything to explain."""
    model = NaiveBayes(explain=1)
    batches = [Batch({"text": ["win"] * 2}, labels) for labels in (["spam", "ham"], [None, None])]
    parts = [model.step(batch) for batch in batches]
    assert parts[0].explanations is None
    why = Scores.joined(parts).explanations
    assert why is not None
    assert why == [None, None, *(parts[1].explanations or [])]
    assert None not in why[2:]
    last_first = Scores.joined(parts[::-1]).explanations
    assert last_first == [*why[2:], None, None]
