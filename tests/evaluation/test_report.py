"""The HTML report: it has every plot, needs no network, and escapes what comes from the stream."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamnb.base.batch import Batch, Label
from streamnb.errors import SettingsError
from streamnb.evaluation import Prequential, check_plotly, evaluate, render_report
from streamnb.evaluation import report as page
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.model.informative import most_informative_tokens
from streamnb.naive_bayes.model.view import TEXT_ONLY
from tests.cli.test_cli import SPAM, streamnb
from tests.support.streams import lines_of

HOSTILE = "</script><script>alert(1)</script>"


def drawn(labels: list[Label | None]) -> tuple[str, page.Course]:
    """Return the report of a short stream, and the course that it plots."""
    model, judgement, course = NaiveBayes(TEXT_ONLY), Prequential(), page.Course()
    texts = [f"word{i % 7} {label} {HOSTILE}" for i, label in enumerate(labels)]
    batches = [Batch({"text": texts[i : i + 10]}, labels[i : i + 10]) for i in range(0, len(texts), 10)]
    for _ in evaluate(model, batches, judgement=judgement):
        course.note(judgement, model.classes_, len(model.state.counts["words"].rows))
    figures = judgement.figures(model.classes_)
    tokens = most_informative_tokens(model.state)
    return render_report("a & b", course, figures, judgement.outcomes(), tokens), course


def test_the_page_shows_every_drawing() -> None:
    """There is a ROC curve with two classes, and none with three."""
    two, course = drawn(["ham", "spam"] * 30)
    three, _ = drawn(["ham", "spam", "list"] * 20)
    for title in ("Learning", "Reliability", "Most informative words", "Vocabulary"):
        assert title in two
        assert title in three
    assert "ROC of spam" in two
    assert "ROC of" not in three
    assert course.n == [10, 20, 30, 40, 50, 60]
    assert course.accuracy[-1] == 1.0
    assert course.vocabulary == sorted(course.vocabulary)


def test_the_page_needs_no_network() -> None:
    """The page refers to no other file: no script source, no style sheet, no import."""
    html, _ = drawn(["ham", "spam"] * 30)
    assert re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=|<link\b|@import", html.partition("<h1>")[0]) == []
    assert re.findall(r"<script[^>]*\ssrc=", html) == []


def test_G5_a_stream_cannot_write_into_the_page() -> None:
    """Class names and words that hold HTML are escaped."""
    html, _ = drawn([HOSTILE, "ham"] * 30)
    assert HOSTILE not in html
    assert "<script>alert" not in html


def test_without_plotly_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is a function of its own, so that it can run before the evaluation."""

    def missing(module: str) -> None:
        raise ImportError(module)

    monkeypatch.setattr("streamnb.evaluation.report.import_module", missing)
    with pytest.raises(SettingsError, match=r"pip install 'streamnb\[plot\]'"):
        check_plotly()


def test_evaluate_draws_the_page(tmp_path: Path) -> None:
    """The report is written to the given path; a missing folder is an error of one sentence."""
    path = tmp_path / "mail.jsonl"
    path.write_bytes(b"\n".join(lines_of("mailbox")[:300]))
    out = tmp_path / "page.html"
    done = streamnb("evaluate", str(path), "--config", SPAM, "--plot", str(out))
    assert done.returncode == 0, done.stderr
    assert "mail.jsonl, spam.toml" in out.read_text()
    lost = streamnb("evaluate", str(path), "--config", SPAM, "--plot", str(tmp_path / "no" / "page.html"))
    assert lost.returncode == 2
    assert lost.stderr.count(b"\n") == 1


def test_the_most_informative_words_are_common_in_one_class_and_absent_in_the_others() -> None:
    """A frequent word comes before a rare one; a model without classes has none."""
    model = NaiveBayes(TEXT_ONLY)
    for _ in range(20):
        model.learn_one({"text": "the lunch"}, "ham")
        model.learn_one({"text": "the prize"}, "spam")
    assert most_informative_tokens(NaiveBayes(TEXT_ONLY).state) == {}
    model.learn_one({"text": "once"}, "spam")
    found = most_informative_tokens(model.state)
    assert found["ham"][0][0] == "lunch"
    words = [word for word, _ in found["spam"]]
    assert words.index("prize") < words.index("once")
    assert "the" not in words[:2]
    assert most_informative_tokens(model.state, top=1)["spam"] == found["spam"][:1]
