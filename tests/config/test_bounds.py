"""The bounds of settings, from both sides: the last value that is accepted and the first that is refused."""

from __future__ import annotations

import pytest

from streamnb.config import Settings, decode_settings
from streamnb.config.buffers import SCORES_MAX, records_per_poll
from streamnb.config.endpoints import DELIVERY_TIMEOUT_MS_MAX
from streamnb.config.settings import ModelSettings
from streamnb.errors import SettingsError
from streamnb.naive_bayes import BYTES_MAX, BYTES_MIN

SINK = {"kind": "kafka", "topic": "scores"}


@pytest.mark.parametrize(
    ("table", "name", "good", "bad"),
    [
        ("model", "bytes_max", BYTES_MIN, BYTES_MIN - 1),
        ("model", "bytes_max", BYTES_MAX, BYTES_MAX + 1),
        ("model", "max_tokens", 16, 15),
        ("model", "max_tokens", 1 << 40, (1 << 40) + 1),
        ("model", "classes_max", 1, 0),
        ("sink", "delivery_timeout_ms", 1, 0),
        ("sink", "delivery_timeout_ms", DELIVERY_TIMEOUT_MS_MAX, DELIVERY_TIMEOUT_MS_MAX + 1),
        ("sink", "in_flight_bytes_max", 1, 0),
        ("kafka", "retry_backoff_ms", 1 << 53, (1 << 53) + 1),
        ("kafka", "retry_backoff_ms", -(1 << 53), -(1 << 53) - 1),
        ("guard", "quota", 1, 0),
        ("guard", "learn_below", 1.0, 1.0000001),
        ("dead_letters", "ratio_max", 1.0, 1.0000001),
        ("output", "bytes_max", 131_072, 131_071),
        ("output", "top_classes", 1, 0),
        ("message", "bytes_max", 1, 0),
    ],
)
def test_a_bound_is_where_it_is_said_to_be(table: str, name: str, good: float, bad: float) -> None:
    """A value beside it is refused, by its name."""
    others = SINK if table == "sink" else {}
    decode_settings({table: {**others, name: good}}, "test")
    with pytest.raises(SettingsError, match=name):
        decode_settings({table: {**others, name: bad}}, "test")


def test_as_many_classes_may_be_declared_as_there_may_be() -> None:
    """And not one more."""
    decode_settings({"model": {"classes": ["a", "b"], "classes_max": 2}}, "test")
    with pytest.raises(SettingsError, match="classes_max"):
        decode_settings({"model": {"classes": ["a", "b", "c"], "classes_max": 2}}, "test")


@pytest.mark.parametrize("classes", [1, 32, 263, 1000, SCORES_MAX, 2 * SCORES_MAX])
def test_the_scores_of_a_batch_take_bounded_memory(classes: int) -> None:
    """A poll has fewer records where each has the scores of many classes, and at least one."""
    settings = Settings(model=ModelSettings(classes_max=classes))
    records = records_per_poll(settings)
    assert 1 <= records <= settings.engine.batch_records_max
    assert records * classes <= max(SCORES_MAX, classes)
    assert (records + 1) * classes > SCORES_MAX or records == settings.engine.batch_records_max
