"""A thread that writes snapshots while the stream goes on, one at a time.

`Snapshots` freezes the state between two batches and passes it to this thread, which computes the digest,
encodes the file and writes it. Between later batches `Snapshots` asks for the result: offsets are committed,
failures counted and errors raised on the engine's own thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent import futures
from dataclasses import replace
from typing import NamedTuple

from streamnb.base import Accounts, Clock, Snapshot, SnapshotStore
from streamnb.engine.metrics import Metrics
from streamnb.engine.settings import Pace, SnapshotSettings
from streamnb.errors import PathError, StorageError, TransportError

_log = logging.getLogger("streamnb.snapshot_writer")


class Kept(NamedTuple):
    """A snapshot that was written.

    Parameters
    ----------
    sequence : int
        The snapshot's number.
    accounts : Accounts
        The positions in the snapshot.
    """

    sequence: int
    accounts: Accounts


class UnconfirmedError(TransportError):
    """It could not be confirmed that a snapshot may be kept; the one before stays in force."""


class SnapshotWriter:
    """Writes snapshots in a thread of its own.

    Parameters
    ----------
    store : SnapshotStore
        Only the thread writes to it.
    settings : SnapshotSettings
    pace : Pace
    clock : Clock
    metrics : Metrics
    """

    def __init__(
        self, store: SnapshotStore, settings: SnapshotSettings, pace: Pace, clock: Clock, metrics: Metrics
    ) -> None:
        self.store = store
        self._interval_s = settings.interval_s
        self._pace = pace
        self._clock = clock
        self._metrics = metrics
        self._thread = futures.ThreadPoolExecutor(1, "streamnb-snapshot")
        self._in_flight: tuple[Accounts, futures.Future[int]] | None = None
        self._due_s = 0.0
        self._failures = 0  # in a row

    def schedule(self) -> None:
        """Set the next snapshot due a whole interval from now."""
        self._due_s = self._clock.monotonic_s() + self._interval_s

    def is_due(self, records: int) -> bool:
        """Return whether to begin a snapshot, given the number of records since the last one began.

        While one is being written, none is due.
        """
        late = self._clock.monotonic_s() >= self._due_s or records >= self._pace.snapshot_interval_records
        return late and self._in_flight is None

    def begin(
        self, snapshot: Snapshot, digest: Callable[[], dict[str, str]], confirm: Callable[[], bool]
    ) -> None:
        """Begin to write a snapshot; the interval to the next one begins too.

        Parameters
        ----------
        snapshot : Snapshot
            Complete except for its digest. No part of it may change from now on.
        digest : callable
            Returns the digest; called by the thread.
        confirm : callable
            Returns whether the snapshot may be kept; called by the thread before it writes.
        """
        assert self._in_flight is None, "one snapshot at a time"
        self._in_flight = snapshot.accounts, self._thread.submit(self._write, snapshot, digest, confirm)
        self.schedule()

    def wait(self) -> None:
        """Wait until no snapshot is being written."""
        if self._in_flight is not None:
            futures.wait([self._in_flight[1]])

    def collect(self) -> Kept | None:
        """Return the snapshot in flight once it is written, and only once; else ``None``.

        Raises
        ------
        StorageError
            It could not be written; the one before stays in force.
        UnconfirmedError
            It was not written, because it could not be confirmed that it may be.
        Exception
            Any other error in the thread.
        """
        if self._in_flight is None or not self._in_flight[1].done():
            return None
        (accounts, future), self._in_flight = self._in_flight, None
        try:
            sequence = future.result()
        except PathError as error:
            # The path was right at the start, so the disk behind it has changed, not the settings.
            raise StorageError(error.what, error.hint) from error
        self._failures = 0
        self._metrics.snapshots.labels("kept").inc()
        return Kept(sequence, accounts)

    def forgive(self, error: StorageError) -> None:
        """Count a failure and try again a whole interval later: the disk may have space by then.

        Raises
        ------
        StorageError
            `error`, if it is the last of `Pace.snapshot_failures_max` in a row.
        """
        self._failures += 1
        self._metrics.snapshots.labels("failed").inc()
        if self._failures >= self._pace.snapshot_failures_max:
            raise error
        _log.error("%s The stream goes on; failure %d.", error, self._failures)
        self.schedule()

    def close(self) -> None:
        """Wait for the snapshot in flight, then end the thread. Closing twice does nothing."""
        self._thread.shutdown()
        if self._in_flight is not None and (error := self._in_flight[1].exception()) is not None:
            _log.error("the snapshot in flight was not kept: %s", error)
        self._in_flight = None

    def _write(
        self, snapshot: Snapshot, digest: Callable[[], dict[str, str]], confirm: Callable[[], bool]
    ) -> int:
        if not confirm():
            raise UnconfirmedError(
                "No snapshot was written: no broker confirmed that cluster and topics are still the same.",
                "Check that its brokers run; the last snapshot stays in force.",
            )
        return self.store.write(replace(snapshot, digest=digest()))
