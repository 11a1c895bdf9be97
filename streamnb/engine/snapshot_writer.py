"""A thread that writes snapshots while the stream goes on: one in flight, the next when it is due.

The engine freezes the state between two batches and hands it over; the digest, the bytes and the disk are
the thread's. What became of a snapshot the engine asks between two later batches: everything else that goes
with one (offsets committed, failures counted, errors raised) stays on the engine's own thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent import futures
from dataclasses import replace
from typing import NamedTuple

from streamnb.base import Accounts, Clock, Snapshot, SnapshotStore
from streamnb.engine.metrics import Metrics
from streamnb.engine.settings import SnapshotSettings
from streamnb.errors import StorageError

_log = logging.getLogger("streamnb.snapshot_writer")


class Kept(NamedTuple):
    """A snapshot that is in force.

    Parameters
    ----------
    sequence : int
        Its number.
    accounts : Accounts
        The positions in it.
    """

    sequence: int
    accounts: Accounts


class SnapshotWriter:
    """Keeps snapshots by a thread of its own.

    Parameters
    ----------
    store : SnapshotStore
        Only the thread writes to it.
    settings : SnapshotSettings
    clock : Clock
    metrics : Metrics
    """

    def __init__(
        self, store: SnapshotStore, settings: SnapshotSettings, clock: Clock, metrics: Metrics
    ) -> None:
        self.store = store
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._thread = futures.ThreadPoolExecutor(1, "streamnb-snapshot")
        self._in_flight: tuple[Accounts, futures.Future[int]] | None = None
        self._due_s = 0.0
        self._failures = 0  # in a row

    def schedule(self) -> None:
        """Let the next one be due a whole interval from now."""
        self._due_s = self._clock.monotonic_s() + self._settings.interval_s

    def is_due(self, records: int) -> bool:
        """Whether one should be begun, so many records after the last; never while one is in flight."""
        late = self._clock.monotonic_s() >= self._due_s or records >= self._settings.interval_records
        return late and self._in_flight is None

    def begin(self, snapshot: Snapshot, digest: Callable[[], dict[str, str]]) -> None:
        """Hand a snapshot over; the interval to the next one begins.

        Parameters
        ----------
        snapshot : Snapshot
            Whole but for its digest. Nobody changes any part of it from now on.
        digest : callable
            Gives that digest; called by the thread.
        """
        assert self._in_flight is None, "one snapshot at a time"
        self._in_flight = snapshot.accounts, self._thread.submit(self._write, snapshot, digest)
        self.schedule()

    def wait(self) -> None:
        """Return when none is being written any more."""
        if self._in_flight is not None:
            futures.wait([self._in_flight[1]])

    def collect(self) -> Kept | None:
        """The snapshot that was in flight, once it is kept; ``None`` until then, or if there was none.

        Raises
        ------
        StorageError
            It could not be kept; the one before stays in force.
        Exception
            Whatever else went wrong in the thread.
        """
        if self._in_flight is None or not self._in_flight[1].done():
            return None
        (accounts, future), self._in_flight = self._in_flight, None
        sequence = future.result()
        self._failures = 0
        self._metrics.snapshots.labels("kept").inc()
        return Kept(sequence, accounts)

    def forgive(self, error: StorageError) -> None:
        """Count a failure: a disk that refuses once may take the next one, a whole interval later.

        Raises
        ------
        StorageError
            The error, when it is the last of `failures_max` in a row.
        """
        self._failures += 1
        self._metrics.snapshots.labels("failed").inc()
        if self._failures >= self._settings.failures_max:
            raise error
        _log.error("%s The stream goes on; failure %d.", error, self._failures)
        self.schedule()

    def close(self) -> None:
        """Let what is in flight come to its end, and the thread too. Closing twice does nothing."""
        self._thread.shutdown()
        if self._in_flight is not None and (error := self._in_flight[1].exception()) is not None:
            _log.error("the snapshot in flight was not kept: %s", error)
        self._in_flight = None

    def _write(self, snapshot: Snapshot, digest: Callable[[], dict[str, str]]) -> int:
        return self.store.write(replace(snapshot, digest=digest()))
