"""During a broker outage the engine waits, and continues in the same process.

``pytest tests/transports/kafka/test_outage.py --away 60`` makes the outage last a minute.
"""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from deploy.kafka.broker import Broker
from tests.transports.kafka.accidents import Child
from tests.transports.kafka.test_crash import newest_of
from tests.transports.kafka.test_pipeline import (
    Pipeline,
    assert_every_message_is_scored_in_order,
    order_free_digest,
    pipeline,
)


def passed(pipe: Pipeline) -> int:
    """Return the number of records that the newest snapshot has passed."""
    newest = newest_of(pipe.directory)
    return sum(account.next_offset for account in newest.accounts.values()) if newest is not None else 0


def wait_until_passed(pipe: Pipeline, child: Child, n: int, timeout_s: float) -> None:
    """Wait until a snapshot has passed `n` records."""
    deadline_s = time.monotonic() + timeout_s
    while passed(pipe) < n:
        assert child.is_alive(), "".join(child.said)
        assert time.monotonic() < deadline_s, f"{passed(pipe)} of {n}: {''.join(child.said)}"
        time.sleep(0.1)


def assert_gone_through(pipe: Pipeline, child: Child) -> None:
    """Check that this process reads the whole stream without a restart, and then ends at SIGTERM."""
    wait_until_passed(pipe, child, len(pipe.lines), 120)
    child.signal(signal.SIGTERM)

    assert child.ended() == 0, "".join(child.said)
    assert "starting again" not in "".join(child.said)
    assert_every_message_is_scored_in_order(pipe)
    assert order_free_digest(pipe) == pipe.digest()["order_free"]


@pytest.mark.timeout(0)
def test_B2_a_broker_that_was_away_is_gone_on_with_until_nothing_waits(
    own_broker: Broker, starter: subprocess.Popen[str], tmp_path: Path, away_s: float
) -> None:
    """Neither the engine nor a supervisor restarts, and every record is scored."""
    pipe = pipeline(own_broker.address, tmp_path, "mailbox", 3, times=2, batch_records_max=20)
    child = Child(starter, pipe.config, own_broker.address, "kafka")
    wait_until_passed(pipe, child, 1, 60)
    own_broker.kill()
    before = passed(pipe)
    time.sleep(away_s)
    own_broker.start()

    assert before < len(pipe.lines)
    assert_gone_through(pipe, child)
