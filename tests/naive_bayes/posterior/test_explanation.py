"""Explanations as plain values and as words in a notebook."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from streamnb.naive_bayes import NaiveBayes, View, Words
from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.smoothing import NoSmoothing
from streamnb.naive_bayes.model.view import TEXT_ONLY
from streamnb.naive_bayes.posterior.explanation import SHOWN_MAX, Explanation, Part
from tests.support.markup import Markup

HOSTILE = '<script>alert("1")</script>'


def taught(**settings: Any) -> NaiveBayes:  # noqa: ANN401 - the parameters
    """Return a model of two classes."""
    model = NaiveBayes(**{"views": TEXT_ONLY, **settings})
    for text, label in [("win money now", "spam"), ("lunch at noon", "ham"), ("win a prize", "spam")]:
        model.learn_one({"text": text}, label)
    return model


def explained(model: NaiveBayes, text: str) -> Explanation:
    """Return the explanation of a text."""
    why = model.explain_one({"text": text})
    assert why is not None
    return why


@pytest.mark.parametrize("head", ["calibrated", "product"])
def test_an_explanation_is_the_dict_that_its_score_carries(head: str) -> None:
    """To the bit, with all tokens; with the largest only, up to the rounding of their sum."""
    x = {"text": "win a lunch with money"}
    (score,) = taught(head=head, explain=99).score_one(x).to_dicts()
    why = explained(taught(head=head), x["text"])
    assert why.to_dict() == score["explanation"]
    assert json.loads(json.dumps(why.to_dict(), allow_nan=False)) == why.to_dict()
    (score,) = taught(head=head, explain=2).score_one(x).to_dicts()
    published, shortened = score["explanation"], why.top(2).to_dict()
    assert isinstance(published, dict)
    assert shortened.pop("difference") == pytest.approx(published.pop("difference"), abs=1e-12)
    assert shortened == published


def test_shortening_twice_is_shortening_once() -> None:
    """The tokens that were summed first stay in the sum."""
    why = explained(taught(), "win a lunch with money")
    assert why.top(3).top(1).tokens == why.top(1).tokens
    assert why.top(3).top(1).total == pytest.approx(why.total, abs=1e-12)
    assert why.top(3).published(1)["other_tokens"] == pytest.approx(why.published(1)["other_tokens"])


def test_an_infinite_contribution_is_none_in_a_dict_and_is_shown() -> None:
    """Maximum likelihood gives a word that only one class had infinite evidence."""
    views = [View("words", Words(), Multinomial(NoSmoothing(), weight="counts"))]
    why = explained(taught(views=views, head="product"), "win win money")
    values = [value for _, _, value in why.to_dict()["tokens"]]  # type: ignore[attr-defined]
    assert None in values
    assert Explanation(("a", "b"), -math.inf, [], {}).to_dict()["start"] is None
    page = Markup(why._repr_html_())
    assert page.text.startswith("spam against ham: +inf")
    assert {given["title"] for _, given in page.spans} == {"words: +inf"}


def test_words_are_listed_by_size_and_tinted_by_their_contributions() -> None:
    """The hue is the sign, the opacity the share of the largest; the exact number is in the title."""
    why = Explanation(
        ("spam", "ham"),
        -0.5,
        [Part("words", "win", 2.0), Part("pairs", "at noon", -1.0), Part("words", "a", 0.0)],
        {"length": 0.25},
    )
    page = Markup(why._repr_html_())
    assert [word for word, _ in page.spans] == ["win", "at noon", "a"]
    assert [given["title"] for _, given in page.spans] == ["words: +2.000", "pairs: -1.000", "words: +0.000"]
    colors = [given["style"].partition("rgba(")[2].partition(")")[0] for _, given in page.spans]
    hues, opacities = zip(*(color.rsplit(", ", 1) for color in colors), strict=True)
    assert hues[0] == hues[2] != hues[1]
    assert opacities == ("0.60", "0.30", "0.00")
    assert page.rows[1:] == [["start", "-0.500"], ["length", "+0.250"], ["total", "+0.750"]]
    assert page.text.startswith("spam against ham: +0.750")


def test_hostile_labels_and_tokens_are_shown_as_text() -> None:
    """No tag, attribute or half a character of them reaches the browser."""
    why = Explanation(
        (HOSTILE, "ham"),
        1.0,
        [Part('"><b', f'" onclick="{HOSTILE}', 2.0), Part("words", "\ud800", math.nan)],
        {HOSTILE: -math.inf},
    )
    markup = why._repr_html_()
    markup.encode()
    assert "<script" not in markup
    assert HOSTILE in Markup(markup).text
    assert Markup(markup).spans[0][0] == f'" onclick="{HOSTILE}'


def test_a_long_explanation_sums_the_smallest_words() -> None:
    """A text of a thousand words does not fill the page."""
    parts = [Part("words", f"w{i}", 1000.0 - i) for i in range(SHOWN_MAX + 50)]
    page = Markup(Explanation(("a", "b"), 0.0, parts, {})._repr_html_())
    assert len(page.spans) == SHOWN_MAX
    assert ["other tokens", f"{sum(part.value for part in parts[SHOWN_MAX:]):+.3f}"] in page.rows
    assert len(Markup(Explanation(("a", "b"), 0.0, parts[:SHOWN_MAX], {})._repr_html_()).rows) == 3


def test_an_explanation_without_words_shows_the_other_parts() -> None:
    """Such as the class prior of an empty message."""
    page = Markup(explained(taught(head="product"), "")._repr_html_())
    assert page.spans == []
    assert [name for name, _ in page.rows] == ["part", "start", "total"]
