"""A category that is new in most messages is text or an id, and a warning names it."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from streamnb import Categories, NaiveBayes, View
from streamnb.base import Batch
from streamnb.naive_bayes.model.free_text import MESSAGES


def mail(i: int) -> dict[str, object]:
    """Return a message with a subject of its own, one of 50 senders, and a flag."""
    return {"subject": f"about {i}", "from": f"sender {i % 50}", "read": i % 2 == 0}


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("way", ["learn_one", "learn_many", "step"])
def test_N5_a_category_that_is_new_in_most_messages_is_warned_of_once(
    way: str, *, compiled: bool | None
) -> None:
    """When the first hundred were learned, one by one or at once; a sender who writes twice is none."""
    model = NaiveBayes(compiled=compiled)
    rows = [mail(i) for i in range(3 * MESSAGES)]

    def learn(begin: int, end: int) -> None:
        labels: Any = ["ham", "spam"] * ((end - begin) // 2)
        if way == "learn_one":
            for x, y in zip(rows[begin:end], labels, strict=True):
                model.learn_one(x, y)
        elif way == "learn_many":
            model.learn_many(rows[begin:end], labels)
        else:
            columns = {name: [row[name] for row in rows[begin:end]] for name in rows[0]}
            model.step(Batch(columns, labels))

    learn(0, MESSAGES - 2)
    with pytest.warns(
        UserWarning, match=r"the category `subject` has 100 different values in 100 messages.*text="
    ) as found:
        learn(MESSAGES - 2, MESSAGES)
    assert len(found) == 1
    learn(MESSAGES, 3 * MESSAGES)


def test_N5_text_fields_are_named_in_one_argument() -> None:
    """Then the field is no category, and nothing is warned of; nor is a category of few values."""
    model = NaiveBayes(text=["subject", "body"])
    of_senders = NaiveBayes([View("who", Categories(fields=("from",)))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(2 * MESSAGES):
            model.learn_one(mail(i), "ham")
            of_senders.learn_one(mail(i), "ham")
    assert "subject" not in model.state.token_statistics()["categories"].tally.fields
