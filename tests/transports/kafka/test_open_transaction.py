"""An upstream transaction that nobody ends holds records back; the engine says so instead of looking idle."""

from __future__ import annotations

import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer

from deploy.kafka.broker import free_port
from tests.transports.kafka.accidents import CLIENTS, Child
from tests.transports.kafka.test_pipeline import Pipeline, pipeline

HELD_BACK = 100


@pytest.fixture
def pipe(broker: str, tmp_path: Path) -> Iterator[Pipeline]:
    """A pipeline with an open transaction behind its records."""
    made = pipeline(broker, tmp_path, "mailbox", 1)
    producer = KafkaProducer(bootstrap_servers=broker, transactional_id=f"open-{made.run}")
    producer.init_transactions()
    producer.begin_transaction()
    for _ in range(HELD_BACK):
        producer.send(f"{made.run}-mail", b'{"text": "held back"}', partition=0)
    producer.flush()
    yield made
    producer.abort_transaction()
    producer.close()


def gauge(port: int, name: str) -> float | None:
    """Return the value of a gauge on the metrics page now, or None before it is there."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
            found = re.search(rf"^{name}\{{.*\}} (.+)$", page.read().decode(), re.MULTILINE)
    except OSError:
        return None
    return float(found[1]) if found else None


@pytest.mark.parametrize("client", CLIENTS)
def test_F18_a_hanging_transaction_is_named_by_a_run_until_the_end(
    starter: subprocess.Popen[str], pipe: Pipeline, client: str
) -> None:
    """It ends where committed records end, and warns of the others, with their number and offset."""
    child = Child(starter, pipe.config, pipe.broker, client, until_end=True)
    n = len(pipe.lines)

    assert child.ended() == 0
    assert f"{HELD_BACK} records of {pipe.run}-mail-0 from offset {n} on are not read" in "".join(child.said)
    assert len(pipe.scores()[0]) == n


@pytest.mark.parametrize("client", CLIENTS)
def test_F18_a_hanging_transaction_is_a_metric_of_its_own(
    starter: subprocess.Popen[str], pipe: Pipeline, client: str
) -> None:
    """The lag is 0, because nothing can be read; beside it stands how much was written."""
    port, deadline_s = free_port(), time.monotonic() + 30
    child = Child(starter, pipe.config, pipe.broker, client, f"metrics.port={port}")
    while (gauge(port, "streamnb_lag_records"), gauge(port, "streamnb_lag_written_records")) != (
        0,
        HELD_BACK,
    ):
        assert time.monotonic() < deadline_s, "".join(child.said)
        time.sleep(0.1)
    child.kill()
