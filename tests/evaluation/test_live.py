"""Live evaluation: metrics and a log line about the labelled messages, which are not part of the state."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from itertools import accumulate, cycle, islice, pairwise
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from streamnb.base.batch import Batch, Label
from streamnb.evaluation import Prequential
from streamnb.evaluation.live import CLASSES_MAX, LiveEvaluation
from streamnb.evaluation.outcomes import Outcomes, outcomes_of
from streamnb.evaluation.tally import Tally
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.model.view import TEXT_ONLY
from tests.engine.test_engine import rig, stream

TEXTS = ["free cash", "lunch noon", "free lunch", "cash", "noon", "free noon cash"] * 20
LABELS: list[Label | None] = ["spam", "ham", None, "spam", "ham", "spam"] * 20


def test_the_metrics_are_the_figures_of_an_evaluation() -> None:
    """Every metric equals the figure of an evaluation: over all, over the window, and per class."""
    live, judgement = LiveEvaluation(window_messages=30), Prequential(30, warm_up=0)
    registry, model = CollectorRegistry(), NaiveBayes(TEXT_ONLY)
    registry.register(live)
    for begin in range(0, len(TEXTS), 17):
        batch = Batch({"text": TEXTS[begin : begin + 17]}, LABELS[begin : begin + 17])
        scores = model.step(batch)
        live.add(scores, batch.labels)
        judgement.add(scores, batch.labels)
    figures = judgement.figures(model.classes_)
    for over, expected in (("all", figures), ("window", figures.window)):
        for name in ("accuracy", "log_loss", "brier", "ece"):
            assert registry.get_sample_value(f"streamnb_{name}", {"over": over}) == getattr(expected, name)
        for name in ("recall", "precision"):
            found = {
                label: registry.get_sample_value(f"streamnb_{name}", {"class": label, "over": over})
                for label in ("spam", "ham")
            }
            assert found == getattr(expected, name)
    for over, expected in (("all", figures), ("window", figures.window)):
        assert registry.get_sample_value("streamnb_lam_pct", {"over": over}) == expected.lam_pct
    for label, row in figures.confusion.items():
        for predicted, n in row.items():
            pair = {"class": label, "predicted": predicted}
            assert registry.get_sample_value("streamnb_confusion_total", pair) == n
    messages, said, right = (
        [
            registry.get_sample_value(f"streamnb_reliability_{name}_total", {"le": f"{i / 15:.3f}"}) or 0.0
            for i in range(1, 16)
        ]
        for name in ("messages", "said", "right")
    )
    curve = [(n, p / n, k / n) for n, p, k in zip(messages, said, right, strict=True) if n]
    assert curve == [(one.n, one.p, one.accuracy) for one in figures.reliability]
    assert registry.get_sample_value("streamnb_roca_loss_pct") == figures.window_roca_loss_pct
    assert registry.get_sample_value("streamnb_judged_total", {"outcome": "new_class"}) == 2
    assert registry.get_sample_value("streamnb_judged_total", {"outcome": "judged"}) == 98


def test_the_window_is_the_newest_judged_messages_one_by_one() -> None:
    """Its figures, those of all and the sentence equal sums over the scores, whatever the size of a batch.

    The test above compares two users of the same window, which a fault in it would not tell apart.
    """
    for sizes in ([1], [7], [30], [75], [120], [62, 45, 10, 3]):
        live, registry, model = LiveEvaluation(window_messages=30), CollectorRegistry(), NaiveBayes(TEXT_ONLY)
        registry.register(live)
        judged: list[tuple[str, dict[str, float]]] = []
        begins = [0, *accumulate(islice(cycle(sizes), len(TEXTS)))]
        for begin, end in pairwise(begins):
            batch = Batch({"text": TEXTS[begin:end]}, LABELS[begin:end])
            scores = model.step(batch)
            live.add(scores, batch.labels)
            for label, score in zip(batch.labels, scores.to_dicts(), strict=True):
                posterior: Any = score["posterior"]
                if label in posterior:
                    judged.append((str(label), posterior))
        for over, those in (("all", judged), ("window", judged[-30:])):
            n, expected = len(those), _sums(those)
            for name, total in expected.items():
                found = registry.get_sample_value(f"streamnb_{name}", {"over": over})
                assert found == pytest.approx(total / n, rel=1e-12), (sizes, over, name)
        all_, window = (f"{_sums(those)['accuracy'] / len(those):.4f}" for those in (judged, judged[-30:]))
        assert f"98 labelled messages judged: accuracy {all_}" in live.sentence()
        assert f"the last 30: {window}" in live.sentence()


def test_the_calibration_error_leaves_out_the_messages_of_the_warm_up() -> None:
    """As many as it says, in batches of any size."""
    for sizes in ([120], [10, 110], [1] * 120, [25, 5, 90]):
        tally, rest, model = Tally(warm_up=30), Tally(), NaiveBayes(TEXT_ONLY)
        begin = judged = 0
        for size in sizes:
            batch = Batch({"text": TEXTS[begin : begin + size]}, LABELS[begin : begin + size])
            outcomes = outcomes_of(model.step(batch), batch.labels)
            tally.add(outcomes)
            for row in range(len(outcomes)):
                judged += 1
                if judged > 30:
                    columns = ("truth", "predicted", "loss", "brier", "top", "margin")
                    one = {name: getattr(outcomes, name)[row : row + 1] for name in columns}
                    rest.add(Outcomes(labelled=1, new_class=0, **one))
            begin += size
        found, expected = tally.figures(["spam", "ham"]), rest.figures(["spam", "ham"])
        assert (found.n, expected.n) == (98, 68)
        assert found.ece == pytest.approx(expected.ece, rel=1e-12)
        assert sum(one.n for one in found.reliability) == 68


def _sums(judged: list[tuple[str, dict[str, float]]]) -> dict[str, float]:
    """Return the sums of right predictions, of log losses and of Brier scores."""
    return {
        "accuracy": sum(max(sorted(p), key=p.__getitem__) == label for label, p in judged),
        "log_loss": math.fsum(-math.log(p[label]) for label, p in judged),
        "brier": math.fsum((p[c] - (c == label)) ** 2 for label, p in judged for c in p),
    }


def test_without_a_judged_message_the_sentence_is_empty() -> None:
    """No message has a label, or the window is 0."""
    model = NaiveBayes(TEXT_ONLY)
    quiet, off = LiveEvaluation(), LiveEvaluation(window_messages=0)
    quiet.add(model.step(Batch({"text": ["a"]}, [None])), [None])
    batch = Batch({"text": TEXTS}, LABELS)
    off.add(model.step(batch), batch.labels)
    assert quiet.sentence() == off.sentence() == ""


def test_with_many_classes_the_metrics_omit_the_confusion_matrix() -> None:
    """It would have a line for each pair of classes."""
    labels: list[Label | None] = [f"class {i % 21}" for i in range(42)]
    batch, live, registry = Batch({"text": ["a"] * 42}, labels), LiveEvaluation(), CollectorRegistry()
    registry.register(live)
    live.add(NaiveBayes(TEXT_ONLY).step(batch), batch.labels)
    page = generate_latest(registry).decode()
    assert "streamnb_recall{" in page
    assert "streamnb_confusion_total{" not in page


def test_a_stream_that_invents_labels_does_not_make_the_metrics_page_larger() -> None:
    """With 300 labels it had 836 lines; a class of the name of the sum is part of it, so no line is twice."""
    pages = []
    for n in (22, 300):
        live, registry = LiveEvaluation(), CollectorRegistry()
        registry.register(live)
        labels: list[Label | None] = ["other", *(f"class {i}" for i in range(n))] * 2
        batch = Batch({"text": ["a"] * len(labels)}, labels)
        live.add(NaiveBayes(TEXT_ONLY).step(batch), batch.labels)
        pages.append(generate_latest(registry).decode().splitlines())

    assert len(pages[0]) == len(pages[1])
    assert sum('streamnb_recall{class="other",over="all"}' in line for line in pages[1]) == 1


def test_the_engine_judges_what_it_scored(caplog: pytest.LogCaptureFixture) -> None:
    """Metrics and a log line at each snapshot show the figures; the state does not depend on them."""
    judged, plain = rig(stream(80)), rig(stream(80))
    with caplog.at_level(logging.INFO, "streamnb.engine"):
        summary = judged.run()
    plain.run(evaluation=LiveEvaluation(window_messages=0))
    found = [
        judged.metrics.registry.get_sample_value("streamnb_judged_total", {"outcome": outcome}) or 0
        for outcome in ("judged", "new_class")
    ]
    assert sum(found) == summary.learned
    assert found[1] == len(judged.model.classes_)
    assert any("labelled messages judged: accuracy 0." in record.message for record in caplog.records)
    assert judged.model.digest() == plain.model.digest()
    assert judged.published() == plain.published()


def test_F20_a_look_at_the_metrics_takes_time_linear_in_the_classes() -> None:
    """Ten times the classes take far less than a hundred times as long; the stream waits for a look."""

    def seconds(n: int) -> float:
        live, labels = LiveEvaluation(), [f"class {i}" for i in range(n)]
        batch = Batch({"text": ["win"] * 2 * n}, labels * 2)
        live.add(NaiveBayes(TEXT_ONLY, head="product").step(batch), batch.labels)
        took = []
        for _ in range(5):
            began = time.thread_time()  # of the processor: other programs do not lengthen it
            metrics = {metric.name: metric for metric in live.collect()}
            took.append(time.thread_time() - began)
        assert not metrics["streamnb_confusion"].samples
        assert len(metrics["streamnb_recall"].samples) <= 2 * (CLASSES_MAX + 1)
        return min(took)

    assert seconds(2000) < 40 * seconds(200)


def test_F20_sparse_counts_give_the_figures_of_a_matrix() -> None:
    """Over batches in which classes appear, with and without a limit of classes."""
    draw = np.random.default_rng(1)
    limited, whole, matrix = Tally(classes_max=20), Tally(), np.zeros((40, 40), np.int64)
    for classes in (3, 10, 40, 40):
        truth, predicted = draw.integers(0, classes, (2, 300))
        np.add.at(matrix, (truth, predicted), 1)
        column = np.full(300, 0.5)
        outcomes = Outcomes(300, 0, truth, predicted, column, column, column, column)
        limited.add(outcomes)
        whole.add(outcomes)
    names = [str(i) for i in range(40)]
    figures, fewer = whole.figures(names), limited.figures(names)
    right = np.diag(matrix)
    assert figures.confusion == {
        name: dict(zip(names, row, strict=True)) for name, row in zip(names, matrix.tolist(), strict=True)
    }
    assert list(figures.recall.values()) == (right / matrix.sum(axis=1)).tolist()
    assert list(figures.precision.values()) == (right / matrix.sum(axis=0)).tolist()
    assert figures.accuracy == right.sum() / 1200
    rest = right[20:].sum()
    assert fewer == replace(
        figures,
        confusion={},
        recall=dict(list(figures.recall.items())[:20]) | {"other": rest / matrix[20:].sum()},
        precision=dict(list(figures.precision.items())[:20]) | {"other": rest / matrix[:, 20:].sum()},
    )
