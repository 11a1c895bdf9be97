"""With a slow broker the engine is slow too, and nothing is lost or doubled."""

from __future__ import annotations

import re
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from deploy.kafka.broker import Broker, free_port
from tests.transports.kafka.accidents import CLIENTS, Child
from tests.transports.kafka.proxy import Proxy
from tests.transports.kafka.test_pipeline import (
    Pipeline,
    assert_every_message_is_scored_in_order,
    pipeline,
    plain_loop,
)

SLOWLY = {"kafka": "kafka.request_timeout_ms=1000", "confluent": "confluent.socket.timeout.ms=1000"}


def peak_bytes(child: Child) -> int:
    """Return the peak memory of the process so far, or 0 if it has ended."""
    try:
        status = Path(f"/proc/{child.pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0


def lag(port: int) -> float:
    """Return the lag on the metrics page now, or 0 before the page is up."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
            return sum(float(line) for line in re.findall(rb"streamnb_lag_records\{.*\} (.+)", page.read()))
    except OSError:
        return 0.0


def assert_nothing_is_lost_or_doubled(pipe: Pipeline) -> None:
    """Check that every score equals the plain loop's, in order, and that the state does too."""
    expected, model = plain_loop(pipe.config)
    assert_every_message_is_scored_in_order(pipe)
    assert all(value == expected[offset] for offset, value in pipe.scores()[0])
    assert pipe.digest() == model.digest()


@pytest.mark.parametrize("client", CLIENTS)
def test_B4_a_slow_broker_is_waited_for(
    proxied: tuple[Broker, Proxy, str], starter: subprocess.Popen[str], tmp_path: Path, client: str
) -> None:
    """At 20 ms each way and 1.6 MB/s: each score once, the lag is visible, and memory stays bounded."""
    broker, proxy, address = proxied
    pipe = pipeline(broker.address, tmp_path, "mailbox", 1, batch_records_max=100)
    port, peak, lags = free_port(), 0, {0.0}
    proxy.slow(0.02, 1 << 15)
    child = Child(starter, pipe.config, address, client, f"metrics.port={port}", until_end=True)
    child.wait_until_ready()
    while child.is_alive():
        peak = max(peak, peak_bytes(child))
        lags.add(lag(port))
        time.sleep(0.1)

    assert child.ended() == 0, child.said
    assert [offset for offset, _ in pipe.scores()[0]] == list(range(len(pipe.lines)))
    assert_nothing_is_lost_or_doubled(pipe)
    assert max(lags) > 0
    assert 0 < peak < 200 << 20


@pytest.mark.parametrize("client", CLIENTS)
def test_B4_answers_that_come_too_late_are_answers_that_never_came(
    proxied: tuple[Broker, Proxy, str], starter: subprocess.Popen[str], tmp_path: Path, client: str
) -> None:
    """Requests that time out for a while are retried, without a restart of the engine."""
    broker, proxy, address = proxied
    pipe = pipeline(broker.address, tmp_path, "mailbox", 1, batch_records_max=20)
    child = Child(starter, pipe.config, address, client, SLOWLY[client], until_end=True)
    child.wait_until_ready()
    proxy.slow(1.5)
    time.sleep(3.5)
    assert child.is_alive(), child.said
    proxy.fast()
    assert child.ended() == 0, child.said
    assert_nothing_is_lost_or_doubled(pipe)
