"""A poll that does not return ends the process with one sentence; polls that return do not."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from streamnb.engine import watchdog
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


class _EndedError(Exception):
    """In place of the end of the process."""


@pytest.mark.parametrize("limit_s", [0.5, 60.0, 7200.0])
def test_A17_the_process_ends_soon_after_the_limit_and_not_before(
    limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that only the waits of the watchdog move on: at most one wait is added to the limit."""
    clock, waits = SimpleNamespace(now_s=1000.0), []
    clock.monotonic = lambda: clock.now_s

    def wait(pause_s: float) -> bool:
        waits.append(pause_s)
        clock.now_s += pause_s
        return False

    def end(error: TransportError) -> None:
        raise _EndedError(error.what)

    monkeypatch.setattr(watchdog, "time", clock)
    monkeypatch.setattr(watchdog, "end_process", end)
    watched = Watchdog(limit_s)
    monkeypatch.setattr(watched, "_over", SimpleNamespace(wait=wait))
    watched.poll_begins()
    with pytest.raises(_EndedError, match="A poll has not returned for"):
        watched._look()

    assert limit_s < clock.now_s - 1000.0 <= limit_s + max(waits) * 1.001
    assert max(waits) <= limit_s / 10


def test_polls_that_return_in_time_go_on() -> None:
    """Neither their total time nor the time between them counts."""
    with Watchdog(0.3) as watched:
        for _ in range(3):
            watched.poll_begins()
            time.sleep(0.15)
            watched.poll_ends()
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
    with Watchdog(limit_s) as watched:
        time.sleep(0.1)
        assert watched._thread.is_alive()
