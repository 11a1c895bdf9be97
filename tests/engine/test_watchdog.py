"""A poll that does not return ends the process with one sentence; polls that return do not."""

from __future__ import annotations

import math
import subprocess
import sys
import time

import pytest

from streamnb.engine.watchdog import Watchdog
from streamnb.errors import TransportError


def test_A17_a_poll_that_spins_ends_the_process() -> None:
    """kafka-python 3.0.12 does this after some errors: it loops forever at full speed."""
    program = (
        "from streamnb.engine.watchdog import Watchdog\n"
        "with Watchdog(0.3) as watchdog:\n"
        "    watchdog.poll_begins()\n"
        "    while True: pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )

    assert done.returncode == TransportError.exit_code
    assert done.stderr.startswith("streamnb: A poll has not returned for")
    assert done.stderr.count("\n") == 1


def test_polls_that_return_in_time_go_on() -> None:
    """Neither their total time nor the time between them counts."""
    with Watchdog(0.3) as watchdog:
        for _ in range(3):
            watchdog.poll_begins()
            time.sleep(0.15)
            watchdog.poll_ends()
        time.sleep(0.5)


def test_a_process_that_stood_still_is_given_its_time_again() -> None:
    """After SIGSTOP and SIGCONT the client is not stuck, so the limit starts again."""
    program = (
        "import os, time\nfrom streamnb.engine.watchdog import Watchdog\n"
        "with Watchdog(1.0) as watchdog:\n"
        "    watchdog.poll_begins()\n"
        "    print('polling', flush=True)\n"
        "    time.sleep(0.6)\n"
        "    watchdog.poll_ends()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "polling\n"
        process.send_signal(19)
        time.sleep(2.5)
        process.send_signal(18)

        assert process.wait(timeout=10) == 0


@pytest.mark.parametrize("limit_s", [math.inf, 1e12, 1e300])
def test_F15_a_limit_past_what_a_thread_can_wait_does_not_end_the_watchdog(limit_s: float) -> None:
    """Its thread waits in pieces; it died of an OverflowError, without a word, and watched nothing."""
    with Watchdog(limit_s) as watchdog:
        time.sleep(0.1)
        assert watchdog._thread.is_alive()
