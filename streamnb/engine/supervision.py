"""Restarts inside the process: after an unknown outcome of a transaction, only a new producer can find it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from streamnb.base import Partition, RecordBatch, Snapshot, Source
from streamnb.engine.engine import Engine
from streamnb.engine.settings import Summary
from streamnb.engine.signals import StopOnSignals
from streamnb.engine.watchdog import Watchdog
from streamnb.errors import MissingTopicError, PositionLostError, TransactionError, TransportError

BUDGET_S = 120.0
PAUSE_S = 1.0
_PASSING = (TransportError, MissingTopicError)  # of a broker that starts: not their other subclasses
_log = logging.getLogger("streamnb.supervision")


def supervise(build: Callable[[], Engine], begin_from: Snapshot | None = None) -> Summary:
    """Run an engine until it is stopped by a signal or the source has ended.

    When the outcome of a transaction is not known, a new engine with a new producer replaces this one and
    resumes from the last snapshot. If no broker answers it, or it cannot deliver the records that the failed
    transaction held either, further engines are tried, for 120 s.

    When the log drops records before they are read and `engine.on_data_loss` allows it, a new engine notes
    what was lost and continues behind it.

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
    budget = _Budget()
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
                    budget.note_progress(engine.delivery.confirmed)
        except PositionLostError as error:
            # An engine that read nothing lost its position at once: another one would do the same.
            allowed = engine.settings.on_data_loss == "skip" and engine.summary.records
            if engine.stopping or not allowed:
                raise
            _log.warning("continuing after the missing records: %s", error.what)
        except TransportError as error:
            lost = isinstance(error, TransactionError)
            if not lost and (not budget.is_running() or type(error) not in _PASSING):
                raise
            if lost:
                budget.note_failure(engine.delivery.unconfirmed)
            if lost and engine.stopping:
                raise
            if budget.is_spent():
                raise type(error)(f"{error.what} {budget}", error.hint) from error
            _log.warning("starting again from the last snapshot: %s", error)
        begin_from = None
        time.sleep(PAUSE_S)


class _Budget:
    """The time that restarts may take until the records of the transaction that failed are delivered.

    An engine that reads records has not made progress: each one reads again those after the snapshot. Only
    the offsets of the failed transaction, once they are committed, show that its failure has passed.
    """

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._failed: dict[Partition, int] = {}

    def is_running(self) -> bool:
        """Return whether a failure has not passed yet."""
        return self._since_s is not None

    def is_spent(self) -> bool:
        """Return whether the first failure that has not passed is older than the budget."""
        return self._since_s is not None and time.monotonic() - self._since_s > BUDGET_S

    def note_progress(self, confirmed: Mapping[Partition, int]) -> None:
        """End the failure if every offset that it concerned is committed now."""
        if confirmed and all(confirmed.get(one, at) >= at for one, at in self._failed.items()):
            self._since_s = None

    def note_failure(self, unconfirmed: Mapping[Partition, int]) -> None:
        """Begin the time with the first failure; `unconfirmed` holds the ends of its open transaction."""
        if self._since_s is None:
            self._since_s, self._failed = time.monotonic(), dict(unconfirmed)

    def __str__(self) -> str:
        places = ", ".join(f"{one} @ {at}" for one, at in sorted(self._failed.items()))
        return f"Restarts for {BUDGET_S:.0f} s did not get past {places}." if places else ""


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
