"""The engine: records in, scores out, a state that learns each label exactly once.

It knows neither which mathematics nor which world it drives. A restart is safe because of the order of things
in `Engine.run`, `Snapshots.take` and `Recovery.run`: state and offsets are kept in one file, and that file is
published only after everything computed from earlier offsets was acknowledged.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from streamnb.base import Clock, RecordBatch, Snapshot, Source, positions
from streamnb.engine.dead_letters import any_message
from streamnb.engine.delivery import Delivery
from streamnb.engine.lag import Lag
from streamnb.engine.metrics import Metrics
from streamnb.engine.preconditions import is_same_log
from streamnb.engine.processing import Processing
from streamnb.engine.progress import Progress
from streamnb.engine.recovery import CatchUp, Recovery
from streamnb.engine.settings import EngineSettings, Pace, Summary
from streamnb.engine.snapshots import Snapshots
from streamnb.errors import DataError, PositionError, PositionLostError

_log = logging.getLogger("streamnb.engine")


@dataclass(kw_only=True, eq=False, repr=False)
class Engine:
    """Drives one model over one source.

    Parameters
    ----------
    source : Source
    recovery : Recovery
    processing : Processing
    delivery : Delivery
    snapshots : Snapshots
    lag : Lag
    progress : Progress
        The one that the other parts share.
    settings : EngineSettings
    pace : Pace
    clock : Clock
    metrics : Metrics
    until_end : bool
        Stop at the ends that the partitions have when the engine starts, instead of waiting for more.
    """

    source: Source
    recovery: Recovery
    processing: Processing
    delivery: Delivery
    snapshots: Snapshots
    lag: Lag
    progress: Progress
    settings: EngineSettings
    pace: Pace
    clock: Clock
    metrics: Metrics
    until_end: bool = False
    _catch_up: CatchUp = field(default_factory=CatchUp, init=False)
    _stopping: bool = field(default=False, init=False)

    @property
    def summary(self) -> Summary:
        """The figures of this run, so far."""
        return self.progress.summary

    def stop(self) -> None:
        """Ask the loop to end after the current batch; safe to call from a signal handler."""
        self._stopping = True

    @property
    def stopping(self) -> bool:
        """Whether a stop was asked for."""
        return self._stopping

    def run(self, begin_from: Snapshot | None = None) -> Summary:
        """Recover, then loop until stopped or the source has ended:

        1. **Poll** at most `batch_records_max` records.
        2. **Decode** each to a message; a record that cannot be used becomes a dead letter.
        3. **Score** each message with the model as it is, and
        4. **learn** it if it has a label: one step of the classifier, message by message.
        5. **Publish** scores and dead letters, and account for every offset.
        6. **Snapshot** when due: state and offsets together, written by a thread; see `Snapshots.take`.
        7. **Commit** the offsets of a snapshot that was written since, as advice for lag tools.

        Parameters
        ----------
        begin_from : Snapshot, optional
            Statistics to begin a first start with; its offsets are dropped.

        Returns
        -------
        Summary
            What this run did.

        Raises
        ------
        StreamnbError
            Whatever an operator can act on. The newest snapshot stays in force.
        """
        began_s, delivery = self.clock.monotonic_s(), self.delivery
        self._catch_up = self.recovery.run(begin_from)
        while not self._stopping:
            self._take_added()
            n = self._process_all(self._poll())  # 1. to 5.
            # Scores of a slow stream are committed after each poll; a fast one waits less often for brokers.
            if n < self.settings.batch_records_max or delivery.is_old():
                self._commit()
            if not delivery.is_open():
                self.snapshots.tend()  # 6. and 7.
            self.lag.tend(self.progress.next_offsets)
            self.processing.tend()
            self._note_caught_up(began_s)
            if self._is_finished():
                break
        failure = self._finish()
        self.summary.seconds = self.clock.monotonic_s() - began_s
        self.summary.digest = self.processing.model.classifier.digest()
        if failure is not None:
            raise failure
        return self.summary

    def close(self) -> None:
        """Close source, sinks and snapshot store, after a snapshot that is being written was finished."""
        writer = self.snapshots.writer
        writer.close()
        self.lag.close()
        self.source.close()
        self.delivery.close()
        writer.store.close()

    def _take_added(self) -> None:
        """Read partitions that were added to the topic too."""
        if added := self.source.added():
            self.progress.open_accounts(added)
            _log.info(
                "new partitions are read: %s", positions({one: self.progress.accounts[one] for one in added})
            )

    def _poll(self) -> list[RecordBatch]:
        """Poll; if the log does not hold the position, name the cause, which may be a re-created topic.

        Where that loss is allowed, a snapshot is taken, with which the next engine continues behind it.
        """
        try:
            return self.source.poll(self.settings.batch_records_max, self.settings.poll_timeout_ms)
        except PositionError as error:
            is_same_log(self.source, self.progress.identity)
            if isinstance(error, PositionLostError) and self.settings.on_data_loss == "skip":
                self._commit()
                self.snapshots.take()
            raise

    def _commit(self) -> None:
        """Commit the open transaction, if there is one and no topic was re-created."""
        if self.delivery.is_open():
            # If the source cannot be asked now, the snapshot that follows asks again.
            is_same_log(self.source, self.progress.identity)
        self.delivery.commit()

    def _process_all(self, batches: list[RecordBatch]) -> int:
        """Process what a poll returned, and return the number of records.

        The records are not kept: a variable of the loop would hold them beside those of the next poll.
        """
        with self.delivery.transaction(batches):
            for records in batches:
                self._process(records)
        return sum(map(len, batches))

    def _process(self, records: RecordBatch) -> None:
        try:
            self.processing.process(records)
        except DataError:
            if self.delivery.transactions is None:
                self.delivery.flush()  # an operator will look at the dead letters
            raise

    def _finish(self) -> DataError | None:
        """Keep what was read; return the error of a run that was not stopped and read no message.

        A stream without any message so far was probably read under wrong settings. No snapshot is kept of it,
        so that the next start reads it again; a transaction has its snapshot, and is committed.
        """
        self.processing.tend(at_end=True)
        summary, letters, accounts = self.summary, self.delivery.dead_letters, self.progress.all_accounts()
        failure = None if self._stopping else letters.failure(summary.records, summary.dead_letters)
        if failure is None or any_message(accounts) or self.delivery.transactions is not None:
            self._commit()
            self.snapshots.take()
        else:
            self.delivery.flush()
        self.lag.finish(self.progress.next_offsets(), at_end=not self._stopping)
        return failure

    def _is_finished(self) -> bool:
        if self.source.finished():
            return True
        return self.until_end and self._catch_up.is_known() and self._catch_up.is_done(self.progress.accounts)

    def _note_caught_up(self, began_s: float) -> None:
        if not self._catch_up.done and self._catch_up.is_done(self.progress.accounts):
            self.metrics.ready.set(1)
            self.metrics.replayed.inc(self.summary.records)
            took_s = self.clock.monotonic_s() - began_s
            _log.info("caught up with %d records in %.1f s", self.summary.records, took_s)
