"""The engine: records in, scores out, a state that learns each label exactly once.

It knows neither which mathematics nor which world it drives. What makes a restart safe is the order of
things in `Engine.run` and `Engine.snapshot`: state and offsets are kept in one file, and that file is
published only after everything computed from earlier offsets was acknowledged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np
from msgspec.structs import replace

from streamnb.columns import Flag, Scores
from streamnb.dead_letters import DeadLetters
from streamnb.errors import RecordError, StorageError, TransportError
from streamnb.evaluation.live import EvaluationSettings, LiveEvaluation
from streamnb.message import Decoder, Messages
from streamnb.metrics import Metrics
from streamnb.offsets import Account, Accounts
from streamnb.protocols import Classifier, Clock, Sink, SnapshotStore, Source, Start
from streamnb.record import Partition, RecordBatch
from streamnb.recovery import check_identity, check_statistics, starting_point
from streamnb.score import Output, encode
from streamnb.snapshot import Snapshot, differences
from streamnb.snapshot_writer import Kept, SnapshotWriter
from streamnb.snapshots import SnapshotSettings

_log = logging.getLogger("streamnb.engine")


class EngineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The loop's pace.

    Parameters
    ----------
    start : "earliest", "latest", int (milliseconds since 1970) or None
        Where a first start begins; it must be said.
    batch_records_max : int
        Records of one poll.
    poll_timeout_ms : int
        How long a poll waits for the first; also how soon a stop is noticed.
    flush_timeout_ms : int
        How long a snapshot waits for the sinks.
    stop_deadline_s : float
        A stop that takes longer ends the process; the last snapshot stays in force.
    """

    start: Start | None = None
    batch_records_max: int = 2000
    poll_timeout_ms: int = 200
    flush_timeout_ms: int = 60_000
    stop_deadline_s: float = 20.0

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a batch without records, a time below 0 or no time to stop."""
        if self.batch_records_max < 1 or not self.stop_deadline_s > 0:
            raise ValueError("`batch_records_max` must be at least 1 and `stop_deadline_s` above 0")
        start = self.start if isinstance(self.start, int) else 0
        if min(self.poll_timeout_ms, self.flush_timeout_ms, start) < 0:
            raise ValueError("`start`, `poll_timeout_ms` and `flush_timeout_ms` must not be below 0")


@dataclass(slots=True)
class Summary:
    """What one run of the engine did.

    Parameters
    ----------
    records, scored, learned, dead_letters, snapshots : int
        Of this run alone.
    seconds : float
    accounts : Accounts
        Since the first start.
    digest : dict of str to str
        Of the state at the end.
    """

    records: int = 0
    scored: int = 0
    learned: int = 0
    dead_letters: int = 0
    snapshots: int = 0
    seconds: float = 0.0
    accounts: Accounts = field(default_factory=dict)
    digest: dict[str, str] = field(default_factory=dict)


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
    description : mapping
        The settings that rebuild the model, for the snapshot.
    version : str
        Of streamnb, for the snapshot.
    until_end : bool
        Stop at the ends the partitions have when the engine starts, instead of waiting for more.
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
        description: Mapping[str, object] | None = None,
        version: str = "",
        until_end: bool = False,
    ) -> None:
        self.name = name
        self.classifier = classifier
        self.decoder = decoder
        self.source = source
        self.sink = sink
        self.dead_letters = dead_letters
        self.store = store
        self.settings = settings
        self.writer = SnapshotWriter(store, snapshots, clock, metrics)
        self.output = output
        self.clock = clock
        self.metrics = metrics
        self.evaluation = LiveEvaluation(evaluation)
        metrics.registry.register(self.evaluation)
        self.description = dict(description or {})
        self.version = version
        self.until_end = until_end
        self.accounts: Accounts = {}
        self.summary = Summary(accounts=self.accounts)
        self._ends: Mapping[Partition, int] | None = None
        self._identity: dict[str, str] = {}
        self._lineage: list[dict[str, object]] = []
        self._stopping = False
        self._records_since_snapshot = 0
        self._changed = False  # since the newest snapshot, or the one in flight

    def stop(self) -> None:
        """Ask the loop to end after the batch in hand; safe from a signal handler."""
        self._stopping = True

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
            batches = self.source.poll(pace.batch_records_max, pace.poll_timeout_ms)  # 1. Poll
            for records in batches:
                self._process(records)  # 2. to 5.
            self._tend_snapshots()  # 6. and 7.
            if self._is_finished():
                break
        self.snapshot()
        self.summary.seconds = self.clock.monotonic_s() - began_s
        self.summary.digest = self.classifier.digest()
        return self.summary

    def close(self) -> None:
        """Let go of source, sinks and snapshots, whatever happened before; what is in flight ends first."""
        self.writer.close()
        for part in (self.source, self.sink, self.dead_letters.sink, self.store):
            part.close()

    # ---- one batch

    def _process(self, records: RecordBatch) -> None:
        began_s = self.clock.monotonic_s()
        messages = self.decoder.decode(records)  # 2. Decode
        scores = self.classifier.step(messages.batch)  # 3. Score, 4. Learn
        self.evaluation.add(scores, messages.batch.labels)
        for i in np.flatnonzero(scores.flags & Flag.CLASS_LIMIT).tolist():
            what = f"The label {messages.batch.labels[i]!r} would be one class more than `classes_max`."
            messages.refused.append((messages.rows[i], RecordError("class_limit", what)))
        published, learned = self._publish(records, messages, scores)  # 5. Publish
        self._account(records, messages, published, learned)
        self.metrics.batch_seconds.observe(self.clock.monotonic_s() - began_s)

    def _publish(self, records: RecordBatch, messages: Messages, scores: Scores) -> tuple[int, int]:
        """Publish a batch; returns how many scores were, and how many messages were learned."""
        partition, labels = records.partition, messages.batch.labels
        refused = set(np.flatnonzero(scores.flags & Flag.CLASS_LIMIT).tolist())
        kept = [i for i in range(len(labels)) if i not in refused]
        unlabelled = [i for i in kept if labels[i] is None]
        learned = len(kept) - len(unlabelled)
        if self.output.emit == "unlabelled":
            kept = unlabelled
        rows = [messages.rows[i] for i in kept]
        offsets = [records.offsets[row] for row in rows]
        states = None
        if self.output.state:
            state = {str(p): account.next_offset for p, account in self.accounts.items()}
            states = [{**state, str(partition): offset} for offset in offsets]
        values = encode(
            scores if len(kept) == len(scores) else scores.take(kept),
            ids=[messages.ids[i] for i in kept],
            model=self.name,
            partition=partition,
            offsets=offsets,
            states=states,
        )
        if values:
            keys = [records.keys[row] for row in rows]
            self.sink.publish(partition.number, values, keys, [()] * len(values))
        self.dead_letters.publish(records, messages.refused)
        return len(values), learned

    def _account(self, records: RecordBatch, messages: Messages, published: int, learned: int) -> None:
        account = self.accounts[records.partition]
        unreadable = sum(span.next_offset - span.first_offset for span in records.unreadable)
        tombstones = sum(error.reason == "tombstone" for _, error in messages.refused)
        outcome = account.advance(
            records.next_offset,
            read=len(records),
            scored=published,
            dead_lettered=len(messages.refused) - tombstones,
            tombstones=tombstones,
            unreadable=unreadable,
        )
        for name, n in outcome.items():
            self.metrics.records.labels(name).inc(n)
        for _, error in messages.refused:
            self.metrics.dead_letters.labels(error.reason).inc()
        put_aside = len(messages.refused) + unreadable
        self.metrics.learned.inc(learned)
        self.summary.records += len(records) + unreadable
        self.summary.scored += published
        self.summary.learned += learned
        self.summary.dead_letters += put_aside
        self._records_since_snapshot += len(records) + unreadable
        self._changed = True
        self.dead_letters.check_ratio(len(records) + unreadable, put_aside)

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
        frozen = self.classifier.freeze()  # 1. Freeze
        snapshot = Snapshot(
            values=frozen.values,
            sections=frozen.sections,
            digest={},
            statistics=self._statistics(),
            reading=self.classifier.reading(),
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
        self.source.commit({p: account.next_offset for p, account in kept.accounts.items()})  # 4. Commit
        self.summary.snapshots += 1
        self._note_lag()
        _log.info("snapshot %d holds %s", kept.sequence, _positions(kept.accounts))
        worth = self.evaluation.sentence()
        if worth:
            _log.info("%s", worth)

    def _statistics(self) -> dict[str, object]:
        return {"message": self.decoder.statistics(), "model": self.classifier.statistics()}

    # ---- recovery

    def _recover(self, begin_from: Snapshot | None) -> None:
        """Newest whole snapshot, then the log it belongs to, then the positions in it."""
        self._identity = dict(self.source.identity())
        snapshot = starting_point(self.store.newest(), begin_from, self.settings.start)
        if snapshot is not None:
            check_statistics(snapshot, self._statistics())
            self.classifier.restore(snapshot.values, snapshot.sections)
            self._lineage = list(snapshot.lineage)
        if snapshot is not None and snapshot is begin_from:
            self._note({"event": "begun from a snapshot", "digest": snapshot.digest["all"]})
        elif snapshot is not None:
            check_identity(snapshot, self._identity)
            self.accounts.update(snapshot.accounts)
        if snapshot is not None:
            changes = differences(snapshot.reading, self.classifier.reading())
            if changes:
                self._note({"event": "reading changed", "after": snapshot.sequence, "changes": changes})
        next_offsets = {partition: account.next_offset for partition, account in self.accounts.items()}
        start = "earliest" if self.settings.start is None else self.settings.start
        opened = self.source.open(next_offsets, start)
        for partition, offset in opened.items():
            if partition not in self.accounts:
                self.accounts[partition] = Account(offset, offset)
                self._changed = True
        self._ends = self.source.end_offsets()
        self.writer.schedule()
        _log.info("ready at %s", _positions(self.accounts))

    def _note(self, event: dict[str, object]) -> None:
        self._lineage.append(event)
        self._changed = True
        _log.info("noted in the lineage: %s", event)

    def _is_finished(self) -> bool:
        if self.source.finished():
            return True
        if not self.until_end or self._ends is None:
            return False
        return all(self.accounts[partition].next_offset >= end for partition, end in self._ends.items())

    def _note_lag(self) -> None:
        try:
            ends = self.source.end_offsets() or {}
        except TransportError as error:  # a figure for people; the stream itself will say if it is cut off
            _log.warning("the lag is not known: %s", error)
            return
        for partition, account in self.accounts.items():
            self.metrics.stand(partition, account.next_offset, ends.get(partition))


def _positions(accounts: Accounts) -> str:
    return ", ".join(f"{p} @ {account.next_offset}" for p, account in sorted(accounts.items()))
