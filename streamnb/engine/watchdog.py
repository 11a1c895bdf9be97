"""Ends a process whose poll does not return: a client that spins would look alive for ever."""

from __future__ import annotations

import os
import threading
import time
from typing import Self

from streamnb.errors import TransportError


class Watchdog:
    """A block in which every poll must return in time; a thread looks.

    The thread ends the process, as nothing else can end a call that does not come back. The last snapshot
    stays in force.

    Parameters
    ----------
    limit_s : float
        How long a poll may take, beyond what it was asked to wait.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since_s: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="streamnb-watchdog", daemon=True)

    def poll_begins(self) -> None:
        """Begin to wait for a poll."""
        self._since_s = time.monotonic()

    def poll_ends(self) -> None:
        """It returned."""
        self._since_s = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _look(self) -> None:
        pause_s = self._limit_s / 10
        last_s = time.monotonic()
        while not self._over.wait(pause_s):
            now_s, since_s = time.monotonic(), self._since_s
            stood_still = now_s - last_s > 2 * pause_s + 1.0  # the whole process did, and the poll with it
            last_s = now_s
            if since_s is not None and stood_still:
                self._since_s = now_s
            elif since_s is not None and now_s - since_s > self._limit_s:
                self._end(now_s - since_s)

    def _end(self, seconds: float) -> None:
        error = TransportError(
            f"A poll has not returned for {seconds:.0f} s: the client is stuck at a record or a broker.",
            "Start again: the engine resumes from its last snapshot. See `engine.poll_stalled_s`.",
        )
        os.write(2, f"streamnb: {error}\n".encode())
        os._exit(error.exit_code)
