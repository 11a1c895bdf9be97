"""Processing of one batch of records: decode, score, learn, publish, account."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from streamnb.base import Clock, Flag, Label, RecordBatch, Scores
from streamnb.engine.class_budget import CLASSES_BYTES_MAX
from streamnb.engine.delivery import Delivery
from streamnb.engine.metrics import Metrics
from streamnb.engine.model import Model
from streamnb.engine.notices import Notices
from streamnb.engine.progress import Progress
from streamnb.engine.row_selection import Selection, select
from streamnb.errors import RecordError
from streamnb.evaluation import Change, LiveEvaluation
from streamnb.wire import Messages, Output, cut, encode_scores, too_large

T = TypeVar("T")
_log = logging.getLogger("streamnb.engine")
UNLABELLED_MESSAGES = 1_000  # labels may be rare, but where there are any, one of so many has one

_DETAILS = {
    Flag.TRUNCATED: "Its text was cut: it has too many tokens, or one longer than `tokens.token_length_max`.",
    Flag.QUOTA: "Its label was not learned: its source has used up `guard.quota`.",
    Flag.CERTAIN: "Its label was not learned: its probability was `guard.learn_below` or more already.",
}
_EVICTED = (
    "The counts have reached `model.bytes_max` or `model.max_tokens`, so {n:,} of the rarest tokens were "
    "forgotten. Raise the limit if they are missed; this goes on as long as new tokens come."
)
_CUT = (
    "and lists only the likeliest class. Shorten the class names, set a lower `output.top_classes`, or raise "
    "`output.bytes_max` together with the limits of the topic and of the client."
)


@dataclass(kw_only=True, eq=False, repr=False)
class Processing:
    """Takes batches of records, one after the other.

    Parameters
    ----------
    model : Model
    delivery : Delivery
    output : Output
    evaluation : LiveEvaluation
        Judges the scores of labelled messages; shown on the metrics page.
    progress : Progress
    clock : Clock
    metrics : Metrics
    """

    model: Model
    delivery: Delivery
    output: Output
    evaluation: LiveEvaluation
    progress: Progress
    clock: Clock
    metrics: Metrics
    _flags: Notices = field(init=False)
    _tokens: Notices = field(init=False)
    _without_label: int | None = field(default=0, init=False)  # None once a label came or the log said so

    def __post_init__(self) -> None:
        self._flags = Notices("scores with a flag", self.clock)
        self._tokens = Notices("tokens", self.clock)
        self.metrics.show(self.evaluation)

    def process(self, records: RecordBatch) -> None:
        """Decode, score, learn, publish and account for one batch."""
        began_s, delivery = self.clock.monotonic_s(), self.delivery
        messages = self.model.decoder.decode(records)  # 2. Decode
        batch, offsets = messages.batch, _taken(records.offsets, messages.rows)
        self._look_for_labels(batch.labels)
        evicted_before = self.model.classifier.evicted_tokens
        scores = self.model.step(records.partition, offsets, batch)  # 3. Score, 4. Learn
        self._note_evicted(records, self.model.classifier.evicted_tokens - evicted_before)
        for i, change in self.evaluation.add(scores, batch.labels):
            self._report(change, records, messages.rows[i])
        published_before = delivery.published.get(records.partition, 0)
        selection = select(
            scores, batch.labels, offsets, output=self.output, published_before=published_before
        )
        for i in selection.over_limit:
            what = (
                f"The label {batch.labels[i]!r} is a new class, and the model has no room for it: "
                "there can be at most `model.classes_max` classes, which together take at most "
                f"{CLASSES_BYTES_MAX:,} bytes of a score."
            )
            messages.refused.append((messages.rows[i], RecordError("class_limit", what)))
        self._publish(records, messages, scores, selection.published)  # 5. Publish
        delivery.dead_letters.publish(records, messages.refused, published_before)
        self._account(records, messages, scores, selection)
        self.metrics.batch_seconds.observe(self.clock.monotonic_s() - began_s)

    def tend(self, *, at_end: bool = False) -> None:
        """Log the counts of what was refused, cut or not learned, once a minute and at the end of a run."""
        if at_end:
            self._warn_of_no_label()
        for notices in (self.delivery.dead_letters.notices, self._flags, self._tokens):
            if at_end:
                notices.finish()
            else:
                notices.tend()

    def _look_for_labels(self, labels: Sequence[Label | None]) -> None:
        """Warn once if none of the first messages has a label: the name of its field may be misspelt."""
        if self._without_label is None:
            return
        if any(label is not None for label in labels):
            self._without_label = None
            return
        self._without_label += len(labels)
        if self._without_label >= UNLABELLED_MESSAGES:
            self._warn_of_no_label()

    def _warn_of_no_label(self) -> None:
        if self._without_label:
            _log.warning(
                "none of the first %d messages has a label in the field `%s`, so nothing was learned. "
                "If they should have one, correct `message.label`",
                self._without_label,
                self.model.decoder.fields.label,
            )
        self._without_label = None

    def _report(self, change: Change, records: RecordBatch, row: int) -> None:
        """Log where the share of mistakes changed. The model is not touched."""
        at_ms = records.timestamps_ms[row]
        _log.log(
            logging.WARNING if change.recent > change.before else logging.INFO,
            "drift seen by %s at %s @ %d%s: %.3f of the newest labelled messages were wrong, %.3f before",
            change.detector,
            records.partition,
            records.offsets[row],
            ""
            if at_ms < 0
            else f", {np.datetime64(at_ms, 'ms')} UTC",  # datetime would refuse years past 9999
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
            state = {str(p): account.next_offset for p, account in self.progress.all_accounts().items()}
            states = [{**state, str(partition): offset} for offset in offsets]
        if len(published) < len(scores):
            scores = scores.take(published)
        abstained, ids = self.output.abstain.reasons(scores), _taken(messages.ids, published)
        values = encode_scores(
            scores,
            ids=ids,
            model=self.model.name,
            partition=partition,
            offsets=offsets,
            states=states,
            abstained=abstained,
            top_classes=self.output.top_classes,
        )
        if abstained is not None:
            self.metrics.abstain(abstained)
        keys = _taken(records.keys, rows)
        large = too_large(values, keys, self.output.bytes_max)
        for i in large:
            what = (
                f"It has {len(values[i])} bytes, too many for `output.bytes_max` = {self.output.bytes_max}, "
            )
            self._flags.note("cut", f"{partition} @ {offsets[i]}", what + _CUT)
            self.metrics.cut_scores.inc()
            [values[i]] = encode_scores(
                cut(scores, i),
                ids=[ids[i]],
                model=self.model.name,
                partition=partition,
                offsets=[offsets[i]],
                abstained=None if abstained is None else abstained[i : i + 1],
                top_classes=1,
            )
        if values:
            self.delivery.sink.publish(partition.number, values, keys, [()] * len(values))

    def _note_evicted(self, records: RecordBatch, n: int) -> None:
        """Count the rare tokens that were forgotten while a batch was learned, and log the first ones."""
        self.metrics.evicted.inc(n)
        if n:
            where = f"{records.partition} @ {records.offsets[0]}"
            self._tokens.note("evicted", where, _EVICTED.format(n=n), n)

    def _note_flags(self, records: RecordBatch, messages: Messages, scores: Scores) -> None:
        """Count the texts that were cut and the labels that were not learned, and log the first of each."""
        for flag, detail in _DETAILS.items():
            flagged, name = np.flatnonzero(scores.flags & flag), str(flag.name).lower()
            if flag is Flag.TRUNCATED:
                self.metrics.truncated.inc(len(flagged))
            elif self.model.guard is not None:
                self.metrics.guarded.labels(name).inc(len(flagged))
            if len(flagged):
                where = f"{records.partition} @ {records.offsets[messages.rows[flagged[0]]]}"
                self._flags.note(name, where, detail, len(flagged))

    def _account(
        self, records: RecordBatch, messages: Messages, scores: Scores, selection: Selection
    ) -> None:
        unreadable = sum(span.next_offset - span.first_offset for span in records.unreadable)
        tombstones = sum(error.reason == "tombstone" for _, error in messages.refused)
        outcome = self.progress.accounts[records.partition].advance(
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
        self.delivery.dead_letters.note(records, messages.refused)
        self._note_flags(records, messages, scores)
        read, put_aside = len(records) + unreadable, len(messages.refused) + unreadable
        self.metrics.learned.inc(selection.learned)
        progress, summary = self.progress, self.progress.summary
        progress.changed = True
        progress.records += read
        summary.records += read
        summary.scored += selection.scored
        summary.learned += selection.learned
        summary.dead_letters += put_aside
        self.delivery.dead_letters.check_first(progress.all_accounts())
        self.delivery.dead_letters.check_ratio(read, put_aside)


def _taken(column: Sequence[T], rows: Sequence[int]) -> Sequence[T]:
    """Return the column's values at ascending rows; the column itself if these are all of its rows."""
    return column if len(rows) == len(column) else [column[row] for row in rows]
