"""Stop an engine by signals.

After SIGTERM or SIGINT the engine finishes its current batch, takes a snapshot, closes and exits with 0. A
second signal, or the deadline, ends the process at once. That is safe: the last snapshot is intact, and the
records after it are read again.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from streamnb.errors import DeadlineError, StreamnbError


class StopOnSignals:
    """A context in which SIGTERM and SIGINT stop an engine.

    Parameters
    ----------
    stop : callable
        Asks the engine to stop; called once, from the signal handler.
    deadline_s : float
        How long the stop may take.
    """

    def __init__(self, stop: Callable[[], None], deadline_s: float) -> None:
        self._stop = stop
        self._deadline_s = deadline_s
        self._signals = 0
        self._timer: threading.Timer | None = None

    def __enter__(self) -> None:
        numbers = (signal.SIGTERM, signal.SIGINT)
        self._before = {number: signal.signal(number, self._handle) for number in numbers}

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals > 1:
            os._exit(128 + number)
        self._stop()
        self._timer = threading.Timer(self._deadline_s, self._late)
        self._timer.daemon = True
        self._timer.start()

    def _late(self) -> None:
        error = DeadlineError(
            f"The engine did not stop within {self._deadline_s:g} s; the last snapshot stays in force.",
            "Check whether the broker and the disk respond, or raise `engine.stop_deadline_s`.",
        )
        end_process(error)


def end_process(error: StreamnbError) -> NoReturn:
    """End the process at once with the error's exit code, from any thread, even if nothing can be printed."""
    try:
        os.write(2, f"streamnb: {error}\n".encode())
    finally:
        os._exit(error.exit_code)
