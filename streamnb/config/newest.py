"""A look at the newest records of a source, for `streamnb check`: how many are messages, and of which labels.

A configuration can be valid and still not fit the records: another format, another field, no label. Only the
records show that.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from streamnb.base import RecordBatch, Source
from streamnb.config.endpoints import InputSettings, LinesInput
from streamnb.config.engines import build_source
from streamnb.config.models import build_decoder
from streamnb.config.settings import Settings
from streamnb.errors import DataError

RECORDS = 20  # of each partition, or lines of a file: as many as a person would look at
TIMEOUT_S = 10.0  # a hanging broker must not hold the check up
LABELS = 5  # are named, the most frequent first


def newest_records(settings: Settings, endpoint: InputSettings) -> str:
    """Read the newest records of each partition, or the first lines of a file, and return what they are.

    Raises
    ------
    DataError
        There are records, and none of them is a message.
    StreamnbError
        The source cannot be read.
    """
    is_file = isinstance(endpoint, LinesInput)
    source, looked = build_source(settings, endpoint), _Looked(settings, of_lines=is_file)
    try:
        for records in _read(source):
            looked.add(records)
    finally:
        source.close()
    return looked.sentence("first" if is_file else "newest")


def _read(source: Source) -> Iterator[RecordBatch]:
    """Yield the newest records of each partition of a log that has an end, else its first ones."""
    positions = dict(source.open({}, "earliest"))
    ends = source.end_offsets()
    if ends is None:
        yield from source.poll(RECORDS, 200)
        return
    positions = {one: max(begin, ends[one] - RECORDS) for one, begin in positions.items()}
    source.open(positions, "earliest")
    deadline_s = time.monotonic() + TIMEOUT_S
    while any(at < ends[one] for one, at in positions.items()) and time.monotonic() < deadline_s:
        for records in source.poll(RECORDS * len(positions), 200):
            positions[records.partition] = records.next_offset
            yield records


class _Looked:
    """Counts of what some records are; `of_lines` gives them the addresses of a file's lines."""

    def __init__(self, settings: Settings, *, of_lines: bool) -> None:
        self._of_lines = of_lines
        self._decoder = build_decoder(settings)
        self._refused: Counter[str] = Counter()
        self._firsts: dict[str, str] = {}
        self._lacking: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()
        self._messages = 0

    def add(self, records: RecordBatch) -> None:
        """Count the records of a batch."""
        messages = self._decoder.decode(records)
        faults = [(records.offsets[row], error.reason, error.what) for row, error in messages.refused]
        faults += [(span.first_offset, "unreadable", f"{span.cause}.") for span in records.unreadable]
        for offset, reason, what in faults:
            self._refused[reason] += 1
            topic = records.partition.topic
            where = f"{topic}:{offset + 1}" if self._of_lines else f"{records.partition} @ {offset}"
            self._firsts.setdefault(reason, f"{where}: {what}")
        self._messages += len(messages.rows)
        for field, column in messages.batch.fields.items():
            self._lacking[field] += list(column).count(None)
        self._labels.update(str(label) for label in messages.batch.labels if label is not None)

    def sentence(self, which: str) -> str:
        """Return what the records are, in one line.

        Raises
        ------
        DataError
            None is a message.
        """
        read = self._messages + self._refused.total()
        refused = [
            f"{n} {reason} (first {self._firsts[reason]})" for reason, n in self._refused.most_common()
        ]
        if not read:
            return "no records yet"
        if not self._messages:
            raise DataError(
                f"None of the {which} {read} records is a message: {'; '.join(refused)}.",
                "Correct `[message]`, or the topic or file of `[source]`.",
            )
        lacking = [f"{n} lack `{field}`" for field, n in self._lacking.most_common() if n]
        label, total = self._decoder.fields.label, self._labels.total()
        names = [f"{name} ({n})" for name, n in self._labels.most_common(LABELS)]
        names += ["..."] * (len(self._labels) > LABELS)
        labelled = (
            f"{total} have a label: {', '.join(names)}"
            if total
            else f"none has a label in the field `{label}`"
        )
        return "; ".join(
            [f"{self._messages} of the {which} {read} records are messages", *refused, *lacking, labelled]
        )
