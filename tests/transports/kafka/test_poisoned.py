"""Small poisoned topics, read by engines that are killed; `tests.bench.poisoned` has the campaign."""

from __future__ import annotations

import pytest

from tests.bench.poisoned import campaign
from tests.transports.kafka.test_kafka_transport import pytestmark  # noqa: F401  holds here too


@pytest.mark.parametrize(
    ("topic", "client"),
    [
        ("nothing", "kafka"),
        ("nothing", "confluent"),
        ("odd-labels", "kafka"),
        ("millions-of-headers", "kafka"),
    ],
)
def test_a_poisoned_topic_stops_no_engine_and_each_record_is_accounted_for(
    broker: str, topic: str, client: str
) -> None:
    """Whatever ends an engine, the next one gets further, within the documented memory."""
    (row,) = campaign(broker, [topic], ["spam"], [client], 400)

    assert row.faults == (), row
