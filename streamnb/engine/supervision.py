"""Restarts inside the process: after an unknown outcome of a transaction, only a new producer can find it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, cast

from streamnb.base import RecordBatch, Snapshot, Source
from streamnb.engine.engine import Engine
from streamnb.engine.settings import Summary
from streamnb.engine.signals import StopOnSignals
from streamnb.engine.watchdog import Watchdog
from streamnb.errors import TransactionError, TransportError

BUDGET_S = 120.0
PAUSE_S = 1.0
_log = logging.getLogger("streamnb.supervision")


def supervise(build: Callable[[], Engine], begin_from: Snapshot | None = None) -> Summary:
    """Run an engine until it is stopped by a signal or the source has ended.

    When the outcome of a transaction is not known, a new engine with a new producer replaces this one and
    resumes from the last snapshot. If no broker answers it, further engines are tried, for 120 s.

    Parameters
    ----------
    build : callable
        Returns a new engine that shares no state with an earlier one.
    begin_from : Snapshot, optional
        As in `Engine.run`, for the first engine.

    Returns
    -------
    Summary
        What the last engine did.

    Raises
    ------
    StreamnbError
        Whatever an operator can act on. The last snapshot stays in force.
    """
    failing_since_s: float | None = None
    while True:
        try:
            engine = build()
            # Closing waits for the disk, so signals are handled until it returns.
            watchdog = Watchdog(engine.pace.poll_stalled_s)
            engine.source = cast("Source", _Watched(engine.source, watchdog))
            with StopOnSignals(engine.stop, engine.settings.stop_deadline_s), watchdog:
                try:
                    return engine.run(begin_from)
                finally:
                    engine.close()
                    if engine.summary.records:
                        failing_since_s = None
        except TransportError as error:
            lost = isinstance(error, TransactionError)
            if not lost and (failing_since_s is None or type(error) is not TransportError):
                raise
            failing_since_s = failing_since_s or time.monotonic()
            if time.monotonic() - failing_since_s > BUDGET_S or (lost and engine.stopping):
                raise
            _log.warning("starting again from the last snapshot: %s", error)
            begin_from = None
            time.sleep(PAUSE_S)


class _Watched:
    """A source that tells the watchdog when a poll begins and ends."""

    def __init__(self, source: Source, watchdog: Watchdog) -> None:
        self._source = source
        self._watchdog = watchdog

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        self._watchdog.poll_begins()
        try:
            return self._source.poll(records_max, timeout_ms)
        finally:
            self._watchdog.poll_ends()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any other method of a source
        return getattr(self._source, name)
