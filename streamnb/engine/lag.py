"""A thread that commits offsets for lag tools and looks up the lag, neither of which the stream needs.

Each of these requests may take its whole timeout while a broker is away, and the stream must not wait for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from streamnb.base import Clock, Partition, Source
from streamnb.engine.metrics import Metrics
from streamnb.errors import MissingTopicError, TransportError

LOOK_INTERVAL_S = 10.0
WARN_INTERVAL_S = 60.0  # while the lag stays unknown: a broker may be away, or a topic deleted, for days
GONE_S = 60.0  # a broker that has just started may not know a topic that exists
WAIT_S = 5.0  # at the end of a run: a stop has 20 s for everything
Offsets = Mapping[Partition, int]
_log = logging.getLogger("streamnb.engine")


class Lag:
    """Commits offsets and shows the lag of a source, in a thread of its own.

    Parameters
    ----------
    source : Source
    clock : Clock
    metrics : Metrics
    """

    def __init__(self, source: Source, clock: Clock, metrics: Metrics) -> None:
        self._source = source
        self._clock = clock
        self._metrics = metrics
        self._turn = threading.Condition()
        self._work: tuple[Offsets | None, Offsets, bool] | None = None
        self._busy = self._closed = False
        self._thread: threading.Thread | None = None
        self._due_s = 0.0
        self._since: dict[Partition, tuple[int, float]] = {}  # each end, and when it was first seen
        self._warned: dict[Partition, int] = {}
        self._failures = 0  # since the last time that the lag was known
        self._failure_logged_s = 0.0
        self._missing_since_s: float | None = None
        self._gone: MissingTopicError | None = None

    def tend(self, next_offsets: Callable[[], Offsets]) -> None:
        """Begin to look up the lag, if `LOOK_INTERVAL_S` have passed since the last time; never wait.

        Raises
        ------
        MissingTopicError
            For `GONE_S` the brokers have answered that a topic does not exist: nothing will arrive any more.
        """
        if self._gone is not None:
            raise self._gone
        if self._clock.monotonic_s() >= self._due_s:
            self._ask(None, next_offsets())

    def commit(self, kept: Offsets, next_offsets: Offsets) -> None:
        """Begin to commit the offsets of a snapshot, and then to look up the lag; never wait."""
        self._ask(kept, next_offsets)

    def finish(self, next_offsets: Offsets, *, at_end: bool) -> None:
        """Look up the lag a last time, and wait `WAIT_S` at most until that and the last commit are done.

        With `at_end` the run ends because all was read; then what an open transaction holds back is reported
        even if it was not seen before.
        """
        self._ask(None, next_offsets, at_end=at_end)
        with self._turn:
            if not self._turn.wait_for(lambda: self._work is None and not self._busy, WAIT_S):
                _log.warning(
                    "the last offsets were not committed within %.0f s; only lag tools need them",
                    WAIT_S,
                )

    def close(self) -> None:
        """Drop what was not begun, and wait `WAIT_S` at most for the rest. Closing twice does nothing."""
        with self._turn:
            self._closed, self._work = True, None
            self._turn.notify_all()
        if self._thread is not None:
            self._thread.join(WAIT_S)

    def _ask(self, kept: Offsets | None, next_offsets: Offsets, *, at_end: bool = False) -> None:
        self._due_s = self._clock.monotonic_s() + LOOK_INTERVAL_S
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="streamnb-lag", daemon=True)
            self._thread.start()
        with self._turn:
            waiting = self._work[0] if self._work is not None else None
            self._work = (kept if kept is not None else waiting, dict(next_offsets), at_end)
            self._turn.notify_all()

    def _run(self) -> None:
        while True:
            with self._turn:
                self._busy = False
                self._turn.notify_all()
                self._turn.wait_for(lambda: self._work is not None or self._closed)
                if self._work is None:
                    return
                (kept, next_offsets, at_end), self._work, self._busy = self._work, None, True
            try:
                if kept is not None:
                    self._source.commit(kept)
                self._look(next_offsets, at_end=at_end)
                self._failures, self._missing_since_s = 0, None
            except TransportError as error:
                self._note(error)
            except Exception:  # noqa: BLE001 - a defect in what is only shown must not end the stream
                if not self._closed:  # the source may be closed under a request that takes too long
                    _log.exception("the lag is not known")

    def _note(self, error: TransportError) -> None:
        """Log the first of several failures, and then one per minute: a poll will raise if it matters.

        For a topic that was deleted, a client's poll waits and never raises.
        """
        self._failures += 1
        now_s = self._clock.monotonic_s()
        if not isinstance(error, MissingTopicError):
            self._missing_since_s = None
        elif self._missing_since_s is None:
            self._missing_since_s = now_s
        elif now_s >= self._missing_since_s + GONE_S:
            self._gone = error
        if self._failures == 1:
            _log.warning("the lag is not known: %s", error)
        elif now_s >= self._failure_logged_s + WARN_INTERVAL_S:
            _log.warning("the lag is still not known, after %d requests: %s", self._failures, error)
        else:
            return
        self._failure_logged_s = now_s

    def _look(self, next_offsets: Offsets, *, at_end: bool) -> None:
        ends = self._source.end_offsets() or {}
        written = self._source.written_offsets() or {}
        self._metrics.note_lag(next_offsets, ends, written)
        for partition, end in ends.items():
            held_back, now_s = written.get(partition, end) - end, self._clock.monotonic_s()
            if held_back <= 0 or self._since.get(partition, (-1, 0.0))[0] != end:
                self._since[partition] = end, now_s
            stuck = at_end or now_s - self._since[partition][1] >= LOOK_INTERVAL_S
            if held_back > 0 and stuck and self._warned.get(partition) != end:
                self._warned[partition] = end
                _log.warning(
                    "%d records of %s from offset %d on are not read: the transaction at that offset is "
                    "still open; `kafka-transactions.sh find-hanging` names its producer",
                    held_back,
                    partition,
                    end,
                )
