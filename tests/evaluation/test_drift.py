"""Drift detection: river's detectors get every outcome in order, and their findings are only reported."""

from __future__ import annotations

import inspect
import logging
import random
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson
import pytest
from river import base, drift
from river.drift import binary

from streamnb.base.batch import Label, Scores
from streamnb.cli.tables import print_evaluation
from streamnb.config import Settings, build_drift_watch, decode_settings
from streamnb.errors import SettingsError
from streamnb.evaluation import DETECTORS, Change, DriftWatch, Prequential
from streamnb.evaluation.live import LiveEvaluation
from streamnb.evaluation.outcomes import outcomes_of
from streamnb.transports.memory import MemoryLog
from tests.cli.test_cli import SPAM, streamnb
from tests.engine.test_engine import MemoryStore, Rig, message

NEVER_LOOK = {"DummyDriftDetector", "NoDrift"}


def mistakes(*parts: tuple[int, float], seed: int = 1) -> list[bool]:
    """Return whether each message was wrong, for parts of (number of messages, error rate)."""
    draw = random.Random(seed)
    return [draw.random() < share for n, share in parts for _ in range(n)]


def scored(wrong: list[bool]) -> tuple[Scores, list[Label | None]]:
    """Return scores and labels of two classes; the label is predicted unless the message is to be wrong."""
    n = len(wrong)
    posterior = np.array([[0.2, 0.8] if one else [0.8, 0.2] for one in wrong]).reshape(n, 2)
    zeros, known = np.zeros(n, np.int64), np.full(n, 2)
    odds = np.zeros((n, 2))
    return (
        Scores(("a", "b"), known, posterior, odds, odds, None, zeros, zeros, zeros, posterior, zeros),
        ["a"] * n,
    )


def seen(watch: DriftWatch, wrong: list[bool], size: int = 100) -> list[Change]:
    """Return the changes that a watch reports when the outcomes come in batches."""
    found = []
    for begin in range(0, len(wrong), size):
        scores, labels = scored(wrong[begin : begin + size])
        found += [change for _, change in watch.add(scores, labels, outcomes_of(scores, labels))]
    return found


# ---- the detectors


def test_every_detector_of_rivers_can_be_named() -> None:
    """Every detector but the two baselines that ignore their input."""
    kinds = (base.DriftDetector, base.BinaryDriftDetector)
    there = {
        name
        for module in (drift, binary)
        for name, one in inspect.getmembers(module, inspect.isclass)
        if issubclass(one, kinds)
    }
    assert there - NEVER_LOOK == set(DETECTORS)


@pytest.mark.parametrize("name", DETECTORS)
def test_mistakes_that_become_frequent_are_seen_by_every_detector(name: str) -> None:
    """The error rate rises from 2 % to 80 %, and the report gives a low rate before and a higher one now."""
    calm = 400 if name == "KSWIN" else 1500  # KSWIN takes a millisecond per message
    found = seen(DriftWatch(name), mistakes((calm, 0.02), (200, 0.8)))
    first = next(change for change in found if change.message > calm)
    assert (first.detector, first.labelled) == (name, first.message)
    assert first.before < first.recent
    assert first.before < 0.15


def test_a_change_is_seen_where_river_sees_it() -> None:
    """The watch reports the same messages as river's own detector, for any size of batch."""
    wrong = mistakes((700, 0.1), (700, 0.4), (700, 0.1))
    plain: Any = cast("Any", drift).ADWIN()
    expected = []
    for i, one in enumerate(wrong, 1):
        plain.update(one)
        if plain.drift_detected:
            expected.append(i)
    assert len(expected) >= 2
    for size in (1, 100, 4000):
        found = seen(DriftWatch("ADWIN"), wrong, size)
        assert [change.message for change in found] == expected


def test_error_rates_are_since_the_last_change_and_of_the_newest_hundred() -> None:
    """Both rates are counted by hand, from the place of each change."""
    wrong, begin = mistakes((700, 0.1), (700, 0.6), (700, 0.1)), 0
    for change in seen(DriftWatch("ADWIN"), wrong):
        since, newest = wrong[begin : change.message], wrong[max(0, change.message - 100) : change.message]
        assert change.before == sum(since) / len(since)
        assert change.recent == sum(newest) / len(newest)
        begin = change.message
    assert begin > 1400


def test_a_detector_that_samples_is_seeded() -> None:
    """KSWIN draws random samples; its seed is 0 unless it is set, so two runs agree."""
    wrong = mistakes((150, 0.1), (150, 0.6))
    once, again = (seen(DriftWatch("KSWIN"), wrong) for _ in range(2))
    assert once == again != []


def test_all_messages_are_counted_but_only_judged_ones_reach_the_detector() -> None:
    """A message without a label, or of a class never learned, has no outcome."""
    wrong = mistakes((400, 0.02), (200, 0.7))
    scores, labels = scored([one for one in wrong for _ in range(3)])
    thirds: list[Label | None] = [(None, "never", "a")[i % 3] for i in range(len(labels))]
    watch, plain = DriftWatch("DDM"), DriftWatch("DDM")
    expected = seen(plain, wrong)
    found = []
    for begin in range(0, len(thirds), 90):
        rows = list(range(begin, min(begin + 90, len(thirds))))
        part, given = scores.take(rows), [thirds[i] for i in rows]
        for row, change in watch.add(part, given, outcomes_of(part, given)):
            assert begin + row + 1 == change.message
            found.append(change)
    assert [change.message for change in found] == [3 * change.message for change in expected] != []
    assert [change.labelled for change in found] == [2 * change.message for change in expected]
    assert [change.before for change in found] == [change.before for change in expected]


# ---- settings


@pytest.mark.parametrize(
    ("tables", "what", "hint"),
    [
        ({"detector": "ADWINN"}, "no detector `ADWINN`", "ADWIN, KSWIN, PageHinkley, DDM"),
        ({"detector": "NoDrift"}, "no detector `NoDrift`", "ADWIN"),
    ],
)
def test_bad_drift_settings_are_refused_with_the_valid_ones(
    tables: dict[str, object], what: str, hint: str
) -> None:
    """The error names the setting, and comes before any message is read."""
    with pytest.raises(SettingsError) as caught:
        build_drift_watch(decode_settings({"drift": tables}, "here"))
    assert what in caught.value.what
    assert hint in caught.value.hint


def test_without_a_detector_changes_are_none_rather_than_an_empty_list() -> None:
    """No detector is the default; an empty list would claim that there was no drift."""
    assert build_drift_watch(Settings()) is None
    assert Prequential().figures(()).changes is None
    assert Prequential(drift=DriftWatch("DDM")).figures(()).changes == []


# ---- in the engine


def breaking(n: int, at: int, timestamp_ms: int = 0) -> MemoryLog:
    """Return a log whose labels are independent of the words from message `at` on."""
    log, draw = MemoryLog(), random.Random(3)
    for i in range(n):
        label, other = draw.choices(["spam", "ham"], k=2)
        text = "win" if (label if i < at else other) == "spam" else "lunch"
        log.append(message(i, text, label), timestamp_ms=timestamp_ms + 1000 * i)
    return log


def test_the_engine_logs_and_counts_each_change(caplog: pytest.LogCaptureFixture) -> None:
    """A log line gives topic, offset and time, a metric counts by detector; the model is not affected."""
    ran = Rig(breaking(600, 300), MemoryStore)
    with caplog.at_level(logging.INFO, "streamnb.engine"):
        ran.run(evaluation=LiveEvaluation(window_messages=0, drift=DriftWatch("ADWIN")))
    said = [record for record in caplog.records if record.getMessage().startswith("drift seen by ADWIN")]
    count = ran.metrics.registry.get_sample_value("streamnb_drift_total", {"detector": "ADWIN"})
    assert len(said) == count
    assert count
    worse = [record for record in said if record.levelno == logging.WARNING]
    assert worse[0].getMessage().startswith("drift seen by ADWIN at memory-0 @ 3")
    assert ", 1970-01-01T00:05:" in worse[0].getMessage()
    plain = Rig(breaking(600, 300), MemoryStore)
    plain.run()
    assert plain.metrics.registry.get_sample_value("streamnb_drift_total", {"detector": "ADWIN"}) is None
    assert ran.model.digest() == plain.model.digest()
    assert ran.published() == plain.published()


@pytest.mark.parametrize("timestamp_ms", [-(10**6), 2**62])
def test_a_change_at_a_record_of_any_timestamp_is_logged(
    timestamp_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Timestamps come from producers, so a year far out of range must not break the log line."""
    with caplog.at_level(logging.INFO, "streamnb.engine"):
        Rig(breaking(600, 300, timestamp_ms), MemoryStore).run(
            evaluation=LiveEvaluation(drift=DriftWatch("ADWIN"))
        )
    assert "drift seen by ADWIN" in caplog.text


# ---- over a file


def test_evaluate_lists_the_changes(tmp_path: Path) -> None:
    """They are in the JSON object, and dotted lines in the report."""
    path, html = tmp_path / "mail.jsonl", tmp_path / "mail.html"
    path.write_bytes(b"\n".join(record.value or b"" for record in breaking(600, 300).records(0)))
    words = ("--config", SPAM, "--set", "drift.detector=ADWIN", "--json", "--plot", str(html))
    found = orjson.loads(streamnb("evaluate", str(path), *words).stdout)["changes"]
    worse = [change for change in found if change["recent"] > change["before"]]
    assert 300 < worse[0]["message"] < 400
    assert "dotted: drift seen" in html.read_text(encoding="utf-8")


def test_the_table_lists_the_changes_or_says_that_there_was_none(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the first of very many changes are listed; without a detector, drift is not mentioned."""
    for shares, expected in (
        ([0.02, 0.7], "drift seen by"),
        ([0.02, 0.7] * 20, "the table shows the first 20"),
        ([0.02], "No drift was seen."),
    ):
        judgement = Prequential(drift=DriftWatch("ADWIN"))
        judgement.add(*scored(mistakes(*((200, share) for share in shares))))
        print_evaluation(judgement.figures("ab"), 0, 0)
        assert expected in capsys.readouterr().out
    print_evaluation(Prequential().figures("ab"), 0, 0)
    assert "rift" not in capsys.readouterr().out
