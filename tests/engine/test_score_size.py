"""No label makes a score that cannot be delivered."""

from __future__ import annotations

import logging

import msgspec
import pytest

from streamnb import TEXT_ONLY, NaiveBayes
from streamnb.wire.abstention import Abstain
from streamnb.wire.score import Output
from tests.engine.test_engine import Rig, assert_everything_is_accounted_for, message, plain_loop, rig

KAFKA_MAX = 1_000_000  # the smaller of the defaults of brokers and clients


def largest(it: Rig) -> int:
    """Return the size of the largest published score."""
    return max(len(one.value or b"") + len(one.key or b"") for one in it.scores.records(0))


def test_F8_labels_of_control_characters_do_not_make_scores_too_large() -> None:
    """Each becomes a dead letter with a reason, and the scores stay small."""
    poison = [message(i, "lunch", chr(i % 31 + 1) * 255 + chr(i // 31 + 65)) for i in range(260)]
    it = rig([message(900, "lunch", "ham"), message(901, "win", "spam"), *poison, message(902, "win", None)])
    summary = it.run()
    assert_everything_is_accounted_for(it, summary)
    reasons = {dict(one.headers)["streamnb.reason"] for one in it.aside.records(0)}
    assert (summary.scored, summary.dead_letters, reasons) == (3, 260, {b"label"})
    assert largest(it) < 500


def test_F8_the_longest_labels_that_are_allowed_fit_into_a_score() -> None:
    """As many as `classes_max`, with every optional table."""
    labels = ["\u65e5" * 83 + f"{i:04}" for i in range(256)]
    it = rig([message(i, "lunch", label) for i, label in enumerate(labels)])
    model = NaiveBayes(TEXT_ONLY, raw=True)
    summary = it.run(classifier=model, output=Output(raw_posterior=True, top_classes=256))
    assert (summary.learned, summary.dead_letters) == (256, 0)
    assert 200_000 < largest(it) < Output().bytes_max < KAFKA_MAX
    assert "flags" not in it.published()[-1]


def test_F10_scores_stay_small_however_many_classes_there_are() -> None:
    """255 invented labels made each score 16 kB and more."""
    it = rig([message(i, f"lunch {i}", f"invented-label-{i}") for i in range(255)])
    it.run()
    assert largest(it) < 3_500
    assert len(it.published()[-1]["posterior"]) == 20


def test_F8_a_score_that_is_too_large_lists_only_the_likeliest_class(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is published, warned of once and counted; learning is not affected."""
    classes = ["spam", *(f"{i:05}" + "x" * 1000 for i in range(300))]
    it = rig([*(message(i, "win money", "spam") for i in range(3)), message(3, "win", None)])
    with caplog.at_level(logging.WARNING):
        summary = it.run(
            classifier=NaiveBayes(TEXT_ONLY, classes=classes, classes_max=400), output=Output(top_classes=301)
        )
    scores = it.published()
    assert largest(it) < 5_000
    assert [score["flags"] for score in scores] == [["cut"]] * 4
    assert (scores[-1]["prediction"], list(scores[-1]["posterior"])) == ("spam", ["spam"])
    assert scores[-1]["learned_by_class"] == {"spam": 3}
    assert scores[-1]["other_classes"] == pytest.approx(1 - scores[-1]["posterior"]["spam"], abs=1e-12)
    (warning,) = [record.getMessage() for record in caplog.records if "bytes_max" in record.getMessage()]
    assert "memory-0 @ 0: It has" in warning
    assert it.metrics.registry.get_sample_value("streamnb_cut_scores_total") == 4
    expected = plain_loop(it.log, NaiveBayes(TEXT_ONLY, classes=classes, classes_max=400))
    assert summary.digest == expected.digest()


def test_a_cut_score_can_abstain() -> None:
    """It names no class and gives the reason, as every score does."""
    classes = ["spam", *(f"{i:05}" + "x" * 1000 for i in range(300))]
    it = rig([message(0, "win money", "spam")])
    it.run(
        classifier=NaiveBayes(TEXT_ONLY, classes=classes, classes_max=400),
        output=Output(abstain=Abstain(learned_min=1), top_classes=301),
    )
    (score,) = it.published()
    assert (score["prediction"], score["abstained"], score["flags"]) == (None, "too_few_learned", ["cut"])


def test_each_cut_score_abstains_for_its_own_reason() -> None:
    """A message without a known token does, and those before and behind it do not."""
    classes = ["spam", *(f"{i:05}" + "x" * 1000 for i in range(300))]
    texts = ["win money", "win money", "lunch", "win money", "noon"]
    it = rig([message(i, text, "spam" if i == 0 else None) for i, text in enumerate(texts)])
    it.run(
        classifier=NaiveBayes(TEXT_ONLY, classes=classes, classes_max=400),
        output=Output(abstain=Abstain(known_tokens_min=1), top_classes=301),
    )
    scores = it.published()
    assert all(score["flags"] == ["cut"] for score in scores)
    found = [score.get("abstained") for score in scores]
    assert found == ["too_few_known_tokens", None, "too_few_known_tokens", None, "too_few_known_tokens"]


def test_a_limit_that_a_cut_score_could_exceed_is_refused() -> None:
    """A key may have 65,536 bytes."""
    with pytest.raises(msgspec.ValidationError, match="`bytes_max` must be at least 131072"):
        msgspec.convert({"bytes_max": 100_000}, Output)


def test_a_score_that_lists_no_class_is_refused() -> None:
    """It could not hold the posterior of its prediction."""
    with pytest.raises(msgspec.ValidationError, match="`top_classes` must be at least 1"):
        msgspec.convert({"top_classes": 0}, Output)
