"""A watchdog that ends the process when a poll does not return: nothing else would notice a stuck client."""

from __future__ import annotations

import threading
import time
from typing import Self

from streamnb.engine.signals import end_process
from streamnb.errors import TransportError

PAUSE_S_MAX = 60.0  # a wait past `threading.TIMEOUT_MAX` would end the watchdog's own thread


class Watchdog:
    """A context in which every poll must return in time.

    A thread checks this, and ends the process if one does not: a call that never returns cannot be ended in
    another way. The last snapshot stays in force.

    Parameters
    ----------
    limit_s : float
        How long a poll may take.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since_s: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="streamnb-watchdog", daemon=True)

    def poll_begins(self) -> None:
        """Note that a poll begins."""
        self._since_s = time.monotonic()

    def poll_ends(self) -> None:
        """Note that the poll returned."""
        self._since_s = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _look(self) -> None:
        pause_s = min(self._limit_s / 10, PAUSE_S_MAX)
        last_s = time.monotonic()
        while not self._over.wait(pause_s):
            now_s, since_s = time.monotonic(), self._since_s
            stood_still = now_s - last_s > 2 * pause_s + 1.0  # the whole process was stopped (SIGSTOP)
            last_s = now_s
            if since_s is not None and stood_still:
                self._since_s = now_s
            elif since_s is not None and now_s - since_s > self._limit_s:
                self._end(now_s - since_s)

    def _end(self, seconds: float) -> None:
        error = TransportError(
            f"A poll has not returned for {seconds:.0f} s: the client is stuck at a record or a broker.",
            "Restart: the engine resumes from its last snapshot.",
        )
        end_process(error)
