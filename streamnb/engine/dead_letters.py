"""Dead letters: records that cannot be used, published to a sink of their own with the reason.

Value, key and headers are the record's, unchanged. These headers, all UTF-8, come before them:

    streamnb.reason           one word of `RecordError.REASONS`
    streamnb.detail           one sentence, cut at 500 characters
    streamnb.topic, streamnb.partition, streamnb.offset      the record's source address
    streamnb.timestamp_ms     the record's timestamp
    streamnb.dead_lettered_ms when the dead letter was made
    streamnb.cut              only if the record was too large: the size and SHA-256 of its value; key and
                              value are then cut and the record's own headers left out
"""

from __future__ import annotations

import hashlib

import msgspec

from streamnb.base import Accounts, Clock, Headers, RecordBatch, Sink, Unreadable
from streamnb.engine.notices import Notices
from streamnb.errors import DataError, RecordError

CUT_BYTES = 4096
HEADERS_MAX = 1000
DETAIL_CHARACTERS = 500  # a detail may quote a label, and a label comes from outside

# Enough to tell a stream that is mostly refused from a short run of bad records, and few enough to stop soon.
RATIO_WINDOW_RECORDS = 10_000

# A stream of another format is refused from its first record on: few enough to stop within a second.
FIRST_RECORDS = 100

_HINT = (
    "`streamnb check` reads the newest records and names what they lack. Correct `[message]`, or look at the "
    "dead letters."
)


class DeadLetterLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits on the size and the number of dead letters.

    Parameters
    ----------
    bytes_max : int
        If a record (key, value and headers) is larger, only the first 4,096 bytes of its value are kept,
        with the value's size and SHA-256.
    ratio_max : float
        The engine stops when more than this share of a window's records became dead letters, and when the
        first 100 records of the stream all did; with 1 it never stops.
    """

    bytes_max: int = 900_000
    ratio_max: float = 0.5

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a share outside 0 to 1 or a limit below 1."""
        if not 0 <= self.ratio_max <= 1 or self.bytes_max < 1:
            raise ValueError("`ratio_max` must be from 0 to 1 and `bytes_max` at least 1")


class DeadLetters:
    """Publishes dead letters, and stops the engine when there are too many.

    Parameters
    ----------
    sink : Sink
    clock : Clock
    limits : DeadLetterLimits
    ratio_window_records : int
        The number of records in a window.

    Attributes
    ----------
    notices : Notices
        The reasons in this run.
    """

    def __init__(
        self,
        sink: Sink,
        clock: Clock,
        limits: DeadLetterLimits,
        *,
        ratio_window_records: int = RATIO_WINDOW_RECORDS,
    ) -> None:
        self.sink = sink
        self.limits = limits
        self.notices = Notices("dead letters", clock)
        self._ratio_window_records = ratio_window_records
        self._clock = clock
        self._seen = 0
        self._put_aside = 0

    def publish(
        self, records: RecordBatch, refused: list[tuple[int, RecordError]], first_offset: int = 0
    ) -> None:
        """Publish rows of a batch as dead letters, and a stub without bytes for each unreadable range.

        Parameters
        ----------
        records : RecordBatch
        refused : list of (int, RecordError)
            The rows, and why each cannot be used.
        first_offset : int
            Rows of lower offsets were published already and are left out.
        """
        values: list[bytes | None] = []
        keys: list[bytes | None] = []
        headers: list[Headers] = []
        for row, error in refused:
            if records.offsets[row] < first_offset:
                continue
            value, key, own = records.values[row], records.keys[row], records.headers[row]
            added = self._headers(records, records.offsets[row], records.timestamps_ms[row], error)
            if _size(value, key, own) > self.limits.bytes_max or len(own) > HEADERS_MAX:
                whole = value or b""
                cut = f"{len(whole)} bytes, SHA-256 {hashlib.sha256(whole).hexdigest()}"
                added.append(("streamnb.cut", cut.encode()))
                value, key, own = _cut(value), _cut(key), ()
            values.append(value)
            keys.append(key)
            headers.append([*added, *own])
        for span in records.unreadable:
            if span.first_offset < first_offset:
                continue
            values.append(None)
            keys.append(None)
            headers.append(self._headers(records, span.first_offset, -1, _unreadable(span)))
        if values:
            self.sink.publish(records.partition.number, values, keys, headers)

    def note(self, records: RecordBatch, refused: list[tuple[int, RecordError]]) -> None:
        """Count the dead letters of a batch by reason, and log the first of each reason."""
        for row, error in refused:
            self.notices.note(error.reason, f"{records.partition} @ {records.offsets[row]}", error.what)
        for span in records.unreadable:
            error, n = _unreadable(span), span.next_offset - span.first_offset
            self.notices.note(error.reason, f"{records.partition} @ {span.first_offset}", error.what, n)

    def check_ratio(self, records: int, put_aside: int) -> None:
        """Count a batch, and stop the engine if most of the stream cannot be used.

        Parameters
        ----------
        records : int
            Number of records in the batch.
        put_aside : int
            Number of them that became dead letters.

        Raises
        ------
        DataError
            More than `ratio_max` of a window's records became dead letters.
        """
        self._seen += records
        self._put_aside += put_aside
        if self._seen < self._ratio_window_records:
            return
        seen, put_aside, self._seen, self._put_aside = self._seen, self._put_aside, 0, 0
        if put_aside > self.limits.ratio_max * seen:
            raise DataError(
                f"{put_aside} of the last {seen} records became dead letters. In this run: {self.notices}",
                "Look at their header `streamnb.reason`; raise `dead_letters.ratio_max` to accept this.",
            )

    def check_first(self, accounts: Accounts) -> None:
        """Stop the engine if the stream has had 100 records and no message.

        Parameters
        ----------
        accounts : Accounts
            Of all records since the first start, so that a restart among bad records is not a first start.

        Raises
        ------
        DataError
            All of the first records became dead letters.
        """
        refused = sum(account.dead_lettered + account.unreadable for account in accounts.values())
        if refused >= FIRST_RECORDS and self.limits.ratio_max < 1 and not any_message(accounts):
            raise DataError(f"All of the first {refused} records became dead letters: {self.notices}", _HINT)

    def failure(self, records: int, put_aside: int) -> DataError | None:
        """Return the error of a run that read records and found no message among them, else ``None``.

        Parameters
        ----------
        records : int
            Number of records in the run.
        put_aside : int
            Number of them that became dead letters. A record without a value is no fault by itself.
        """
        if put_aside < records or set(self.notices.totals) <= {"tombstone"}:
            return None
        return DataError(f"None of the {records} records read is a message: {self.notices}", _HINT)

    def _headers(
        self, records: RecordBatch, offset: int, timestamp_ms: int, error: RecordError
    ) -> list[tuple[str, bytes]]:
        texts = {
            "streamnb.reason": error.reason,
            "streamnb.detail": error.what[:DETAIL_CHARACTERS],
            "streamnb.topic": records.partition.topic,
            "streamnb.partition": str(records.partition.number),
            "streamnb.offset": str(offset),
            "streamnb.timestamp_ms": str(timestamp_ms),
            "streamnb.dead_lettered_ms": str(self._clock.wall_ms()),
        }
        return [(name, text.encode("utf-8", "backslashreplace")) for name, text in texts.items()]


def any_message(accounts: Accounts) -> bool:
    """Return whether any record since the first start was a message."""
    return any(account.scored or account.learned_only for account in accounts.values())


def _size(value: bytes | None, key: bytes | None, headers: Headers) -> int:
    of_headers = sum(len(name.encode("utf-8", "backslashreplace")) + len(data) for name, data in headers)
    return len(value or b"") + len(key or b"") + of_headers


def _cut(data: bytes | None) -> bytes | None:
    return None if data is None else data[:CUT_BYTES]


def _unreadable(span: Unreadable) -> RecordError:
    last = span.next_offset - 1
    return RecordError("unreadable", f"Offsets {span.first_offset} to {last}: {span.cause}")
