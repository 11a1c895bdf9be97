"""Snapshots while the stream goes on: frozen between two batches, written by a thread, committed later."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from streamnb.base import Clock, Snapshot, Source, check_accounts, positions
from streamnb.engine.delivery import Delivery
from streamnb.engine.lag import Lag
from streamnb.engine.metrics import Metrics
from streamnb.engine.model import Model
from streamnb.engine.preconditions import is_same_log
from streamnb.engine.progress import Progress
from streamnb.engine.snapshot_writer import SnapshotWriter, UnconfirmedError
from streamnb.errors import StorageError
from streamnb.evaluation import LiveEvaluation

_log = logging.getLogger("streamnb.engine")


@dataclass(kw_only=True, eq=False, repr=False)
class Snapshots:
    """Takes snapshots of a model and its progress.

    Parameters
    ----------
    model : Model
    progress : Progress
    source : Source
        Asked whether its log is still the same before each snapshot is written.
    lag : Lag
        Told how far each snapshot reaches.
    delivery : Delivery
        Flushed before each snapshot is written.
    writer : SnapshotWriter
    evaluation : LiveEvaluation
        Its figures are logged with each snapshot.
    clock : Clock
    metrics : Metrics
    version : str
        The version of streamnb, for the snapshot.
    """

    model: Model
    progress: Progress
    source: Source
    lag: Lag
    delivery: Delivery
    writer: SnapshotWriter
    evaluation: LiveEvaluation
    clock: Clock
    metrics: Metrics
    version: str = ""

    def take(self) -> None:
        """Keep state and offsets together, now, if anything changed since the newest snapshot.

        A snapshot that is still being written is waited for first. This order makes a restart safe:

        1. **Freeze** state and offsets, between two batches.
        2. **Flush**: every score and dead letter up to those offsets was acknowledged.
        3. **Confirm** that the log is still the one that was opened. A thread does this and the next step.
        4. **Write** a temporary file, sync it, publish it under a new name, sync the directory, prune old
           snapshots.
        5. **Commit** the offsets, as advice for lag tools.

        Raises
        ------
        DeliveryError
            Something was not acknowledged; the newest snapshot stays in force.
        PositionError
            A topic was re-created, so the offsets of this snapshot number records of two logs.
        UnconfirmedError
            The source cannot be asked for the identity of its log.
        StorageError
            The snapshot could not be written; the newest one stays in force.
        """
        self.writer.wait()
        self.tend()
        if self.progress.changed:
            self._begin()
        self.writer.wait()
        self._finish()

    def tend(self) -> None:
        """Finish the snapshot in flight if it was written, and begin the next if it is due; never wait.

        While the source cannot be asked for the identity of its log, nothing is written, and the stream
        goes on.

        Raises
        ------
        PositionError
            A topic was re-created.
        StorageError
            `Pace.snapshot_failures_max` in a row could not be written.
        """
        try:
            self._finish()
            if self.progress.changed and self.writer.is_due(self.progress.records):
                self._begin()
        except UnconfirmedError:
            self.progress.mark(changed=True)
            self.writer.schedule()
        except StorageError as error:
            self.progress.mark(changed=True)
            self.writer.forgive(error)

    def _begin(self) -> None:
        began_s = self.clock.monotonic_s()
        self.metrics.note_balance(self.progress.accounts)
        check_accounts(self.progress.all_accounts())
        snapshot, digest = self._freeze()  # 1. Freeze
        self.delivery.flush()  # 2. Flush
        identity = self.progress.identity
        self.writer.begin(snapshot, digest, lambda: is_same_log(self.source, identity))  # 3., 4.
        self.progress.mark(changed=False)
        self.metrics.snapshot_seconds.observe(self.clock.monotonic_s() - began_s)

    def _freeze(self) -> tuple[Snapshot, Callable[[], dict[str, str]]]:
        """Return a snapshot without its digest, and the function that computes it."""
        frozen, progress = self.model.freeze(), self.progress
        snapshot = Snapshot(
            values=frozen.values,
            sections=frozen.sections,
            digest={},
            statistics=self.model.state_settings(),
            reading=self.model.classifier.reading_settings(),
            settings=dict(self.model.description),
            source=progress.identity,
            accounts={one: replace(account) for one, account in progress.all_accounts().items()},
            lineage=list(progress.lineage),
            written_ms=self.clock.wall_ms(),
            streamnb=self.version,
        )
        return snapshot, frozen.digest

    def _finish(self) -> None:
        """Commit the offsets of the snapshot in flight, once it is written."""
        kept, progress = self.writer.collect(), self.progress
        if kept is None:
            return
        if self.delivery.transactions is None:  # transactions commit offsets themselves, and higher ones
            read = kept.accounts.keys() - progress.resting.keys()  # others may read what rests here
            offsets = {one: kept.accounts[one].next_offset for one in read}
            self.lag.commit(offsets, progress.next_offsets())  # 5. Commit
        progress.summary.snapshots += 1
        _log.info("snapshot %d holds %s", kept.sequence, positions(kept.accounts))
        if figures := self.evaluation.sentence():
            _log.info("%s", figures)
