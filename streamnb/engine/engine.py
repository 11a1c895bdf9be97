"""The engine: records in, scores out, a state that learns each label exactly once.

It knows neither which mathematics nor which world it drives. What makes a restart safe is the order of
things in `Engine.run` and `Engine.snapshot`: state and offsets are kept in one file, and that file is
published only after everything computed from earlier offsets was acknowledged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from streamnb.base import (
    Account,
    Accounts,
    Classifier,
    Clock,
    Partition,
    RecordBatch,
    Sink,
    Snapshot,
    SnapshotStore,
    Source,
    Transactions,
    check_accounts,
    differences,
    positions,
)
from streamnb.engine.dead_letters import DeadLetters
from streamnb.engine.delivery import delivery_noted, published_before
from streamnb.engine.guard import Guard
from streamnb.engine.metrics import Metrics
from streamnb.engine.processing import Processing
from streamnb.engine.recovery import CatchUp, check_identity, check_statistics, skip, starting_point
from streamnb.engine.settings import EngineSettings, SnapshotSettings, Summary
from streamnb.engine.snapshot_writer import Kept, SnapshotWriter
from streamnb.errors import (
    DeliveryError,
    FencedError,
    PositionError,
    StorageError,
    TransactionError,
)
from streamnb.evaluation import DriftWatch, EvaluationSettings, LiveEvaluation
from streamnb.wire import Decoder, Output

GUARD = "guard"  # its place in a snapshot's values, beside the model's
_log = logging.getLogger("streamnb.engine")


class Engine:
    """Drives one classifier over one source.

    Parameters
    ----------
    name : str
        The model's, in every score.
    classifier, decoder, source, sink, dead_letters, store, clock, metrics
        What it stands between.
    settings : EngineSettings
    snapshots : SnapshotSettings
    output : Output
    evaluation : EvaluationSettings
    drift : DriftWatch, optional
        Told of every mistake; what it sees is reported, and changes nothing.
    description : mapping
        The settings that rebuild the model, for the snapshot.
    version : str
        Of streamnb, for the snapshot.
    transactions : Transactions, optional
        For scores that are published exactly once; the sinks publish into them.
    guard : Guard, optional
        What may not be learned.
    until_end : bool
        Stop at the ends the partitions have when the engine starts, instead of waiting for more.
    lineage : sequence of dict
        What an auditor should know of a beginning without a snapshot.
    """

    def __init__(
        self,
        *,
        name: str,
        classifier: Classifier,
        decoder: Decoder,
        source: Source,
        sink: Sink,
        dead_letters: DeadLetters,
        store: SnapshotStore,
        settings: EngineSettings,
        snapshots: SnapshotSettings,
        output: Output,
        clock: Clock,
        metrics: Metrics,
        evaluation: EvaluationSettings | None = None,
        drift: DriftWatch | None = None,
        description: Mapping[str, object] | None = None,
        version: str = "",
        transactions: Transactions | None = None,
        guard: Guard | None = None,
        until_end: bool = False,
        lineage: Sequence[dict[str, object]] = (),
    ) -> None:
        self.classifier = classifier
        self.decoder = decoder
        self.source = source
        self.sink = sink
        self.dead_letters = dead_letters
        self.store = store
        self.settings = settings
        self.writer = SnapshotWriter(store, snapshots, clock, metrics)
        self.clock = clock
        self.metrics = metrics
        self.evaluation = LiveEvaluation(evaluation, drift)
        metrics.show(self.evaluation)
        self.description = dict(description or {})
        self.version = version
        self.transactions = transactions
        self.until_end = until_end
        self.accounts: Accounts = {}
        self.summary = Summary(accounts=self.accounts)
        self.processing = Processing(
            name=name,
            classifier=classifier,
            decoder=decoder,
            sink=sink,
            dead_letters=dead_letters,
            output=output,
            evaluation=self.evaluation,
            clock=clock,
            metrics=metrics,
            summary=self.summary,
            guard=guard,
        )
        self.guard = guard
        self._catch_up = CatchUp()
        self._identity: dict[str, str] = {}
        self._lineage = list(lineage)
        self._stopping = False
        self._transaction_began_s: float | None = None  # of the one that is open
        self._records_since_snapshot = 0
        self._changed = False  # since the newest snapshot, or the one in flight

    def stop(self) -> None:
        """Ask the loop to end after the batch in hand; safe from a signal handler."""
        self._stopping = True

    @property
    def stopping(self) -> bool:
        """Whether a stop was asked for."""
        return self._stopping

    def run(self, begin_from: Snapshot | None = None) -> Summary:
        """Recover, then loop until stopped or the source has ended:

        1. **Poll** at most `batch_records_max` records.
        2. **Decode** each to a message; what cannot be used becomes a dead letter and the batch goes on.
        3. **Score** each message with the model as it stands, and
        4. **learn** it if it has a label: one step of the classifier, message by message.
        5. **Publish** scores and dead letters, and account for every offset.
        6. **Snapshot** when due: state and offsets together, written by a thread; see `snapshot`.
        7. **Commit** the offsets of one that was written meanwhile, as advice for lag tools.

        Parameters
        ----------
        begin_from : Snapshot, optional
            Statistics to begin a first start with; its offsets are dropped.

        Raises
        ------
        StreamnbError
            Whatever an operator can act on. The last snapshot stays in force.
        """
        began_s, pace = self.clock.monotonic_s(), self.settings
        self._recover(begin_from)
        while not self._stopping:
            self._take_added()
            batches = self.source.poll(pace.batch_records_max, pace.poll_timeout_ms)  # 1. Poll
            self._pass(batches)  # 2. to 5.
            if self._transaction_began_s is None:
                self._tend_snapshots()  # 6. and 7.
            self._note_caught_up(began_s)
            if self._is_finished():
                break
        self._commit_transaction()
        self.snapshot()
        self.summary.seconds = self.clock.monotonic_s() - began_s
        self.summary.digest = self.classifier.digest()
        return self.summary

    def _pass(self, batches: Sequence[RecordBatch]) -> None:
        """The batches of one poll, into a transaction if there are any.

        It is committed when no more records wait or it has become old: a slow stream's scores are seen poll
        by poll, and a fast one does not wait for the brokers at each.
        """
        emitted, n = self.processing.emitted, sum(map(len, batches))
        new = any(records.next_offset > emitted.get(records.partition, 0) for records in batches)
        if new and self.transactions is not None and self._transaction_began_s is None:
            self.transactions.begin()
            self._transaction_began_s = self.clock.monotonic_s()
        try:
            for records in batches:
                self._records_since_snapshot += self.processing.process(records)
                self._changed = True
        except DeliveryError as error:
            if self.transactions is None or isinstance(error, FencedError):
                raise
            raise TransactionError(error.what, error.hint) from error
        if n < self.settings.batch_records_max or self._transaction_is_old():
            self._commit_transaction()

    def _transaction_is_old(self) -> bool:
        began_s, interval_s = self._transaction_began_s, self.settings.transaction_interval_ms / 1000
        return began_s is not None and self.clock.monotonic_s() >= began_s + interval_s

    def _commit_transaction(self) -> None:
        if self.transactions is not None and self._transaction_began_s is not None:
            emitted, passed = self.processing.emitted, self._next_offsets()
            self.transactions.commit({one: max(at, emitted.get(one, 0)) for one, at in passed.items()})
            self._transaction_began_s = None

    def close(self) -> None:
        """Let go of source, sinks and snapshots, whatever happened before; what is in flight ends first."""
        self.writer.close()
        for part in (self.source, self.sink, self.dead_letters.sink, self.transactions, self.store):
            if part is not None:
                part.close()

    # ---- snapshots

    def snapshot(self) -> None:
        """Keep state and offsets together, now, if anything was read since the last time.

        One that is in flight is waited for first. The order of things is what makes a restart safe:

        1. **Freeze** state and offsets, between two batches.
        2. **Flush**: every score and dead letter up to those offsets was acknowledged.
        3. **Write** temporary, sync, publish under a new name, sync the directory, prune: by a thread.
        4. **Commit** the offsets, as advice for lag tools.

        Raises
        ------
        DeliveryError
            Something was not acknowledged; the last snapshot stays in force.
        StorageError
            It could not be written; likewise.
        """
        self.writer.wait()
        self._tend_snapshots()
        if self._changed:
            self._begin_snapshot()
        self.writer.wait()
        self._note_kept(self.writer.collect())

    def _tend_snapshots(self) -> None:
        """See what became of the one in flight, and begin the next if it is due; the stream goes on."""
        try:
            self._note_kept(self.writer.collect())
            if self._changed and self.writer.is_due(self._records_since_snapshot):
                self._begin_snapshot()
        except StorageError as error:
            self._changed, self._records_since_snapshot = True, 0
            self.writer.forgive(error)

    def _begin_snapshot(self) -> None:
        began_s = self.clock.monotonic_s()
        self.metrics.note_balance(self.accounts)
        check_accounts(self.accounts)
        frozen = self.classifier.freeze()  # 1. Freeze
        snapshot = Snapshot(
            values=frozen.values if self.guard is None else {**frozen.values, GUARD: self.guard.values()},
            sections=frozen.sections,
            digest={},
            statistics=self._statistics(),
            reading=self.classifier.reading_settings(),
            settings=self.description,
            source=self._identity,
            accounts={partition: replace(account) for partition, account in self.accounts.items()},
            lineage=list(self._lineage),
            written_ms=self.clock.wall_ms(),
            streamnb=self.version,
        )
        self.sink.flush(self.settings.flush_timeout_ms)  # 2. Flush
        self.dead_letters.sink.flush(self.settings.flush_timeout_ms)
        self.writer.begin(snapshot, frozen.digest)  # 3. Write
        self._changed, self._records_since_snapshot = False, 0
        self.metrics.snapshot_seconds.observe(self.clock.monotonic_s() - began_s)

    def _note_kept(self, kept: Kept | None) -> None:
        if kept is None:
            return
        if self.transactions is None:  # which commit offsets themselves, and further ones by now
            self.source.commit({p: account.next_offset for p, account in kept.accounts.items()})  # 4. Commit
        self.summary.snapshots += 1
        self.metrics.note_lag(self.source, self.accounts)
        _log.info("snapshot %d holds %s", kept.sequence, positions(kept.accounts))
        worth = self.evaluation.sentence()
        if worth:
            _log.info("%s", worth)

    def _statistics(self) -> dict[str, object]:
        return {"message": self.decoder.state_settings(), "model": self.classifier.state_settings()}

    # ---- recovery

    def _recover(self, begin_from: Snapshot | None) -> None:
        """Newest whole snapshot, then the log it belongs to, then the positions in it."""
        self._identity = dict(self.source.identity())
        snapshot = starting_point(self.store.newest(), begin_from, self.settings.start)
        if snapshot is not None:
            check_statistics(snapshot, self._statistics())
            self.classifier.restore(snapshot.values, snapshot.sections)
            if self.guard is not None and snapshot is not begin_from:
                self.guard.restore(snapshot.values.get(GUARD))
            self._lineage = list(snapshot.lineage)
        if snapshot is not None and snapshot is begin_from:
            self._note({"event": "begun from a snapshot", "digest": snapshot.digest["all"]})
        elif snapshot is not None:
            check_identity(snapshot.source, self._identity, f"snapshot {snapshot.sequence}")
            self.accounts.update(snapshot.accounts)
        if snapshot is not None:
            changes = differences(snapshot.reading, self.classifier.reading_settings())
            if changes:
                self._note({"event": "reading changed", "after": snapshot.sequence, "changes": changes})
        self._begin_accounts(self._open())
        self._catch_up = CatchUp(self.source.end_offsets())
        self.writer.schedule()
        self._resume_transactions()
        _log.info("ready at %s", positions(self.accounts))

    def _begin_accounts(self, opened: Mapping[Partition, int]) -> None:
        for partition, offset in opened.items():
            if partition not in self.accounts:
                self.accounts[partition] = Account(offset, offset)
                self._changed = True

    def _take_added(self) -> None:
        """Partitions that came into being meanwhile, unless the whole topic did."""
        if added := self.source.added():
            check_identity(self._identity, self.source.identity(), "what is being read")
            self._begin_accounts(added)
            _log.info("added: %s", positions({one: self.accounts[one] for one in added}))

    def _open(self) -> Mapping[Partition, int]:
        """Take the partitions; where records are missing, stop or, if that was allowed, note it and go on."""
        start = "earliest" if self.settings.start is None else self.settings.start
        try:
            return self.source.open(self._next_offsets(), start)
        except PositionError as error:
            if self.settings.on_data_loss == "stop" or not error.resume:
                raise
            _log.error("%s", error.what)
            for event in skip(self.accounts, {Partition(*one): at for one, at in error.resume.items()}):
                self._note(event)
        return self.source.open(self._next_offsets(), start)

    def _resume_transactions(self) -> None:
        """Find out what was published already; kept with the state, so that a later start can rely on it."""
        if self.transactions is None:
            change = delivery_noted(self._lineage, None)
        else:
            committed = self.transactions.recover(self.accounts)  # shuts earlier learners out first
            self.processing.emitted, change = published_before(
                self._lineage, self.transactions.name, self._next_offsets(), committed, self._catch_up.ends
            )
            if change is not None:
                self.transactions.begin()
                self.transactions.commit(self._next_offsets())
        if change is not None:
            self._note(change)
        if self.transactions is not None and self._changed:
            self.snapshot()

    def _next_offsets(self) -> dict[Partition, int]:
        return {partition: account.next_offset for partition, account in self.accounts.items()}

    def _note(self, event: dict[str, object]) -> None:
        self._lineage.append(event)
        self._changed = True
        _log.info("noted in the lineage: %s", event)

    def _is_finished(self) -> bool:
        if self.source.finished():
            return True
        return self.until_end and self._catch_up.is_known() and self._catch_up.is_done(self.accounts)

    def _note_caught_up(self, began_s: float) -> None:
        if not self._catch_up.done and self._catch_up.is_done(self.accounts):
            self.metrics.ready.set(1)
            self.metrics.replayed.inc(self.summary.records)
            took_s = self.clock.monotonic_s() - began_s
            _log.info("caught up with %d records in %.1f s", self.summary.records, took_s)
