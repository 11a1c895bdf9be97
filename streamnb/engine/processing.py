"""One batch of records: decoded, scored, learned, published, accounted for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from streamnb.base import Classifier, Clock, Flag, Partition, RecordBatch, Scores, Sink
from streamnb.engine.dead_letters import DeadLetters
from streamnb.engine.guard import Guard
from streamnb.engine.metrics import Metrics
from streamnb.engine.settings import Summary
from streamnb.errors import RecordError
from streamnb.evaluation import Change, LiveEvaluation
from streamnb.wire import Decoder, Messages, Output, encode_scores

T = TypeVar("T")
_log = logging.getLogger("streamnb.engine")


class Processing:
    """What the engine does with each batch.

    Parameters
    ----------
    name : str
        The model's, in every score.
    classifier, decoder, sink, dead_letters, output, evaluation, clock, metrics
        What a batch passes through.
    summary : Summary
        Of the run; its accounts are kept here.
    guard : Guard, optional
        What may not be learned.
    """

    def __init__(
        self,
        *,
        name: str,
        classifier: Classifier,
        decoder: Decoder,
        sink: Sink,
        dead_letters: DeadLetters,
        output: Output,
        evaluation: LiveEvaluation,
        clock: Clock,
        metrics: Metrics,
        summary: Summary,
        guard: Guard | None = None,
    ) -> None:
        self.name = name
        self.classifier = classifier
        self.decoder = decoder
        self.sink = sink
        self.dead_letters = dead_letters
        self.output = output
        self.evaluation = evaluation
        self.clock = clock
        self.metrics = metrics
        self.summary = summary
        self.guard = guard
        self.accounts = summary.accounts
        self.emitted: dict[Partition, int] = {}  # offsets below were published in a committed transaction

    def process(self, records: RecordBatch) -> int:
        """One batch, from its bytes to its account; returns how many offsets held a record."""
        began_s = self.clock.monotonic_s()
        messages = self.decoder.decode(records)  # 2. Decode
        if self.guard is None:
            scores = self.classifier.step(messages.batch)  # 3. Score, 4. Learn
        else:
            offsets = [records.offsets[row] for row in messages.rows]
            scores = self.guard.step(self.classifier, records.partition, offsets, messages.batch)
        for i, change in self.evaluation.add(scores, messages.batch.labels):
            self._report(change, records, messages.rows[i])
        for i in np.flatnonzero(scores.flags & Flag.CLASS_LIMIT).tolist():
            what = f"The label {messages.batch.labels[i]!r} would be one class more than `classes_max`."
            messages.refused.append((messages.rows[i], RecordError("class_limit", what)))
        published, learned = self._publish(records, messages, scores)  # 5. Publish
        self._account(records, messages, published, learned)
        self.metrics.batch_seconds.observe(self.clock.monotonic_s() - began_s)
        return len(records) + sum(span.next_offset - span.first_offset for span in records.unreadable)

    def _report(self, change: Change, records: RecordBatch, row: int) -> None:
        """Say where the share of mistakes changed. Nothing else is done: the model goes on as it is."""
        at_ms = records.timestamps_ms[row]
        _log.log(
            logging.WARNING if change.recent > change.before else logging.INFO,
            "drift seen by %s at %s @ %d%s: %.3f of the newest labelled messages were wrong, %.3f before",
            change.detector,
            records.partition,
            records.offsets[row],
            ""
            if at_ms < 0
            else f", {np.datetime64(at_ms, 'ms')} UTC",  # of any year: records say what they like
            change.recent,
            change.before,
        )

    def _publish(self, records: RecordBatch, messages: Messages, scores: Scores) -> tuple[int, int]:
        """Publish a batch; returns how many scores there are, and how many messages were learned.

        What an earlier process published in a committed transaction is learned again and not published.
        """
        partition, labels = records.partition, messages.batch.labels
        refused = set(np.flatnonzero(scores.flags & Flag.CLASS_LIMIT).tolist())
        kept: Sequence[int] = range(len(labels))
        if refused:
            kept = [i for i in kept if i not in refused]
        unlabelled = [i for i in kept if labels[i] is None]
        learned = len(kept) - len(unlabelled) - self._count_guarded(scores)
        if self.output.emit == "unlabelled":
            kept = unlabelled
        scored, emitted = len(kept), self.emitted.get(partition, 0)
        if records.offsets and records.offsets[0] < emitted:
            kept = [i for i in kept if records.offsets[messages.rows[i]] >= emitted]
        rows = _taken(messages.rows, kept)
        offsets = _taken(records.offsets, rows)
        states = None
        if self.output.state:
            state = {str(p): account.next_offset for p, account in self.accounts.items()}
            states = [{**state, str(partition): offset} for offset in offsets]
        if len(kept) < len(scores):
            scores = scores.take(kept)
        abstained = self.output.abstain.reasons(scores)
        values = encode_scores(
            scores,
            ids=_taken(messages.ids, kept),
            model=self.name,
            partition=partition,
            offsets=offsets,
            states=states,
            abstained=abstained,
        )
        if abstained is not None:
            self.metrics.abstain(abstained)
        if values:
            self.sink.publish(partition.number, values, _taken(records.keys, rows), [()] * len(values))
        self.dead_letters.publish(records, messages.refused, emitted)
        return scored, learned

    def _count_guarded(self, scores: Scores) -> int:
        """How many labels the guard kept from being learned."""
        if self.guard is None:
            return 0
        counts = {flag: int(np.count_nonzero(scores.flags & flag)) for flag in (Flag.QUOTA, Flag.CERTAIN)}
        for flag, n in counts.items():
            self.metrics.guarded.labels(str(flag.name).lower()).inc(n)
        return sum(counts.values())

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
        self.dead_letters.check_ratio(len(records) + unreadable, put_aside)


def _taken(column: Sequence[T], rows: Sequence[int]) -> Sequence[T]:
    """What stands in those rows, which ascend: of as many as there are, the column itself."""
    return column if len(rows) == len(column) else [column[row] for row in rows]
