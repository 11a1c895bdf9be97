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
from streamnb.engine.selection import Selection, select
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
        batch, offsets = messages.batch, _taken(records.offsets, messages.rows)
        if self.guard is None:
            scores = self.classifier.step(batch)  # 3. Score, 4. Learn
        else:
            scores = self.guard.step(self.classifier, records.partition, offsets, batch)
        for i, change in self.evaluation.add(scores, batch.labels):
            self._report(change, records, messages.rows[i])
        published_before = self.emitted.get(records.partition, 0)
        selection = select(
            scores, batch.labels, offsets, output=self.output, published_before=published_before
        )
        for i in selection.over_limit:
            what = f"The label {batch.labels[i]!r} would be one class more than `classes_max`."
            messages.refused.append((messages.rows[i], RecordError("class_limit", what)))
        self._publish(records, messages, scores, selection.published)  # 5. Publish
        self.dead_letters.publish(records, messages.refused, published_before)
        self._account(records, messages, scores, selection)
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

    def _publish(
        self, records: RecordBatch, messages: Messages, scores: Scores, published: Sequence[int]
    ) -> None:
        """Publish the scores of some messages, by their indices."""
        partition, rows = records.partition, _taken(messages.rows, published)
        offsets = _taken(records.offsets, rows)
        states = None
        if self.output.state:
            state = {str(p): account.next_offset for p, account in self.accounts.items()}
            states = [{**state, str(partition): offset} for offset in offsets]
        if len(published) < len(scores):
            scores = scores.take(published)
        abstained = self.output.abstain.reasons(scores)
        values = encode_scores(
            scores,
            ids=_taken(messages.ids, published),
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

    def _account(
        self, records: RecordBatch, messages: Messages, scores: Scores, selection: Selection
    ) -> None:
        unreadable = sum(span.next_offset - span.first_offset for span in records.unreadable)
        tombstones = sum(error.reason == "tombstone" for _, error in messages.refused)
        outcome = self.accounts[records.partition].advance(
            records.next_offset,
            read=len(records),
            scored=selection.scored,
            dead_lettered=len(messages.refused) - tombstones,
            tombstones=tombstones,
            unreadable=unreadable,
        )
        for name, n in outcome.items():
            self.metrics.records.labels(name).inc(n)
        for _, error in messages.refused:
            self.metrics.dead_letters.labels(error.reason).inc()
        if self.guard is not None:
            for flag in (Flag.QUOTA, Flag.CERTAIN):
                n = int(np.count_nonzero(scores.flags & flag))
                self.metrics.guarded.labels(str(flag.name).lower()).inc(n)
        put_aside = len(messages.refused) + unreadable
        self.metrics.learned.inc(selection.learned)
        self.summary.records += len(records) + unreadable
        self.summary.scored += selection.scored
        self.summary.learned += selection.learned
        self.summary.dead_letters += put_aside
        self.dead_letters.check_ratio(len(records) + unreadable, put_aside)


def _taken(column: Sequence[T], rows: Sequence[int]) -> Sequence[T]:
    """What stands in those rows, which ascend: of as many as there are, the column itself."""
    return column if len(rows) == len(column) else [column[row] for row in rows]
