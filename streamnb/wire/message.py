"""Decoding of records into messages: id, fields, label, weight. Unusable records are refused with a reason.

The parser (orjson) refuses NaN, infinities, lone surrogates, byte order marks and nesting past 1,024. If a
key occurs twice, the last value counts. Values are not converted to text, so 1, "1" and true do not become
the same class by accident.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from types import NoneType
from typing import Any

import msgspec
import orjson

from streamnb.base import TIME_MAX_S, Batch, RecordBatch, twins
from streamnb.errors import RecordError
from streamnb.wire.field_values import (
    ID_CHARACTERS_MAX,
    Id,
    check_label,
    json_kind,
    read_category,
    read_flag,
    read_id,
    read_number,
    read_text,
    read_weight,
)
from streamnb.wire.fields import column_at, read_fields
from streamnb.wire.json_faults import json_fault

OWN = "streamnb."  # prefix of the headers that streamnb adds to dead letters
KEY_BYTES_MAX = 65_536  # a score carries its record's key, and a larger one could exceed the broker's limit
PARSED_BYTES = 2 << 20  # of a poll that are parsed at a time; a record is at most `message.bytes_max`
HEADERS_MAX = 1_000  # no header is needed to score a record, and a dead letter carries them all

_compiled = twins.load("streamnb.wire._fields")
_read_fields = _compiled.read_fields if _compiled else read_fields

_ABSENT = frozenset({NoneType})
_STRINGS = _ABSENT | {str}
_FLAGS = _ABSENT | {bool}
_CATEGORIES = _ABSENT | {str, int, float, bool}

Read = Callable[[object, str], object]
"""Checks the value at a path and returns it, or raises a `RecordError`."""
Refusal = tuple[int, RecordError]
"""A row of the record batch, and why it is refused."""
Faults = dict[int, RecordError]
"""Why records are refused, by index: among the parsed messages, or by row in `Decoder._envelopes`."""


class MessageFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where in the JSON a message's parts are; a dot steps into an object.

    Parameters
    ----------
    id, label : str
        Both may be absent from a message: the id is then its source address, and it is scored only.
    weight : str
        A number from 1e-9 to 1e9 by which the label counts; "" for none.
    text, category, number, flag : tuple of str
        The fields the views read, by type. A message needs at least one of its text fields (without text
        fields: at least one field).
    label_values : dict of str to str
        The class that a label's JSON means: ``{"true": "spam"}``. A string without an entry is the class
        itself; any other label needs an entry.
    bytes_max : int
        A larger record is refused before it is parsed.
    """

    id: str = "id"
    label: str = "label"
    weight: str = ""
    text: tuple[str, ...] = ("text",)
    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    flag: tuple[str, ...] = ()
    label_values: dict[str, str] = {}
    bytes_max: int = 1_048_576

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a limit below 1."""
        if self.bytes_max < 1:
            raise ValueError("`bytes_max` must be at least 1")


@dataclass(slots=True)
class Messages:
    """The usable messages of a record batch, as columns, and why the other records were refused.

    Parameters
    ----------
    rows : list of int
        The row of each message in the record batch.
    ids : list of str, int or None
    batch : Batch
    refused : list of (int, RecordError)
        The rows without a usable message, and the reasons.
    """

    rows: list[int]
    ids: list[Id | None]
    batch: Batch
    refused: list[Refusal]


class Decoder:
    """Decodes records into messages.

    Parameters
    ----------
    fields : MessageFields
    timed : bool
        Whether messages get their records' timestamps, which only a model that forgets by time reads; then
        a record whose timestamp no model takes is refused.
    key_bytes_max, headers_max : int
        A record with a larger key or more headers is refused before it is parsed.

    Examples
    --------
    >>> from streamnb.base.record import Partition
    >>> value = b'{"id": "m-1", "text": "hello", "label": true}'
    >>> records = RecordBatch(Partition("mail", 0), [0], [value], [None], [-1], [()], 1)
    >>> messages = Decoder(MessageFields(label_values={"true": "spam"})).decode(records)
    >>> messages.ids, messages.batch.labels, messages.batch.fields["text"]
    (['m-1'], ['spam'], ['hello'])
    """

    def __init__(
        self,
        fields: MessageFields,
        *,
        timed: bool = False,
        key_bytes_max: int = KEY_BYTES_MAX,
        headers_max: int = HEADERS_MAX,
    ) -> None:
        self.fields = fields
        self._key_bytes_max = key_bytes_max
        self._headers_max = headers_max
        self.timed = timed
        self._readers: dict[str, tuple[Read, frozenset[type]]] = {
            **dict.fromkeys(fields.text, (read_text, _STRINGS)),
            **dict.fromkeys(fields.category, (read_category, _CATEGORIES)),
            **dict.fromkeys(fields.number, (read_number, _ABSENT)),
            **dict.fromkeys(fields.flag, (read_flag, _FLAGS)),
        }
        self._needed = fields.text or tuple(self._readers)
        weight = (fields.weight,) if fields.weight else ()
        self._paths = tuple(dict.fromkeys((fields.id, fields.label, *weight, *self._readers)))

    def state_settings(self) -> dict[str, object]:
        """Return the settings that the statistics depend on: all but the limit and the path of the id.

        Snapshots of container version 1.0 hold the same form, so it does not follow the names of settings.
        """
        fields = msgspec.to_builtins(self.fields)
        for limit_or_name in ("bytes_max", "id"):
            del fields[limit_or_name]
        labels = fields.pop("label_values")
        return {"fields": fields, "labels": labels}

    def decode(self, records: RecordBatch) -> Messages:
        """Return the messages of a batch; no content of a record raises an error.

        The result is as if each record were parsed and its id, label, weight and fields were read in turn, up
        to the first fault. Parsed JSON may take forty times the memory of its bytes, so no more than
        `PARSED_BYTES` of a batch are parsed at a time, and only the fields that are read are kept.
        """
        bounds = _bounds(records.values)
        if len(bounds) == 2:
            return self._decode(records)
        parts = [self._decode(records.part(start, end)) for start, end in pairwise(bounds)]
        return _joined(parts, bounds)

    def _decode(self, records: RecordBatch) -> Messages:
        """Return the messages of a batch that is parsed as a whole.

        For speed the code works column by column, and returns a column unchanged if none of its values has a
        type that needs a check.
        """
        columns, rows, refused = self._parse(records.values, self._envelopes(records))
        faults: Faults = {}
        ids = self._ids(columns[self.fields.id], faults)
        labels = self._labels(columns[self.fields.label], faults)
        weights: list[Any] | None = None
        if self.fields.weight:
            column = columns[self.fields.weight]
            weights = _read(column, self.fields.weight, read_weight, frozenset(), faults)
        fields = {
            path: _read(columns[path], path, read, as_they_are, faults)
            for path, (read, as_they_are) in self._readers.items()
        }
        self._refuse_own(records, rows, labels, faults)
        self._refuse_empty(fields, len(rows), faults)
        if faults:
            kept = [i for i in range(len(rows)) if i not in faults]
            refused += [(rows[i], error) for i, error in faults.items()]
            refused.sort(key=itemgetter(0))
            rows, ids, labels = ([column[i] for i in kept] for column in (rows, ids, labels))
            fields = {path: [column[i] for i in kept] for path, column in fields.items()}
            weights = None if weights is None else [weights[i] for i in kept]
        batch = Batch(fields, labels, weights)
        if self.timed:
            batch.times, batch.partition = _times(records, rows), str(records.partition)
        return Messages(rows, ids, batch, refused)

    def _envelopes(self, records: RecordBatch) -> Faults:
        """Return the rows that are refused for their key, headers or timestamp, whatever their value."""
        refused: Faults = {}
        keys_max, headers_max = self._key_bytes_max, self._headers_max
        if any(records.keys) and max(len(key or b"") for key in records.keys) > keys_max:
            for row, key in enumerate(records.keys):
                if (size := len(key or b"")) > keys_max:
                    what = f"The key has {size} bytes, more than {keys_max}."
                    refused[row] = RecordError("oversized", what)
        if any(records.headers):
            for row, headers in enumerate(records.headers):
                if len(headers) > headers_max:
                    what = f"The record has {len(headers)} headers, more than {headers_max}."
                    refused.setdefault(row, RecordError("headers", what))
        if self.timed and max(records.timestamps_ms, default=0) > TIME_MAX_S * 1000:
            for row, stamp in enumerate(records.timestamps_ms):
                if stamp > TIME_MAX_S * 1000:
                    what = f"The record's timestamp, {stamp} ms since 1970, is past the year 33,000."
                    refused.setdefault(row, RecordError("number_range", what))
        return refused

    @staticmethod
    def _refuse_own(records: RecordBatch, rows: list[int], labels: list[Any], faults: Faults) -> None:
        """Refuse labelled records that streamnb wrote, from which a model could learn its own output."""
        if not any(records.headers):
            return
        for i, row in enumerate(rows):
            if labels[i] is not None and any(name.startswith(OWN) for name, _ in records.headers[row]):
                what = (
                    f"The record has a label and a header `{OWN}*`, so it is a dead letter that "
                    "streamnb wrote earlier."
                )
                faults.setdefault(i, RecordError("own_output", what))

    def _refuse_empty(self, fields: Mapping[str, list[Any]], n: int, faults: Faults) -> None:
        empty: Iterable[int] = range(n)
        for path in self._needed:
            column = fields[path]
            empty = [i for i in empty if column[i] is None]
        what = f"The record has none of the fields {list(self._needed)}."
        for i in empty:
            faults.setdefault(i, RecordError("missing_text", what))

    def _parse(
        self, values: list[bytes | None], envelopes: Faults
    ) -> tuple[dict[str, list[Any]], list[int], list[Refusal]]:
        """Return the JSON values at each path that is read, the row of each message, and the refused rows.

        Most records are read together; what is left of them is parsed one by one, or refused with the reason.
        """
        readable = values
        if envelopes:
            readable = [None if row in envelopes else value for row, value in enumerate(values)]
        columns, left = _read_fields(readable, self._paths, self.fields.bytes_max)
        rows = list(range(len(values)))
        parsed: dict[int, dict[str, object]] = {}
        refused: Faults = {}
        for row in left:
            found = self._parse_record(values[row], envelopes.get(row))
            if isinstance(found, RecordError):
                refused[row] = found
            else:
                parsed[row] = found
        objects = list(parsed.values())
        for path, column in zip(self._paths, columns, strict=True):
            for row, value in zip(parsed, column_at(objects, path), strict=True):
                column[row] = value
        if refused:
            rows = [row for row in rows if row not in refused]
            columns = [[column[row] for row in rows] for column in columns]
        return dict(zip(self._paths, columns, strict=True)), rows, list(refused.items())

    def _parse_record(
        self, value: bytes | None, envelope: RecordError | None
    ) -> dict[str, object] | RecordError:
        """Return a record's JSON object, or why the record is refused."""
        bytes_max = self.fields.bytes_max
        if value is None:
            return RecordError("tombstone", "The record has no value.")
        if envelope is not None:
            return envelope
        if len(value) > bytes_max:
            what = f"The record has {len(value)} bytes, more than `message.bytes_max` = {bytes_max}."
            return RecordError("oversized", what)
        try:
            message = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            return json_fault(value, error)
        if isinstance(message, dict):
            return message
        return RecordError("schema", f"The record is {json_kind(message)}, not a JSON object.")

    def _ids(self, column: list[Any], faults: Faults) -> list[Any]:
        if set(map(type, column)) == {str}:
            lengths = set(map(len, column))
            if min(lengths) > 0 and max(lengths) <= ID_CHARACTERS_MAX:
                return column
        return _read(column, self.fields.id, read_id, _ABSENT, faults)

    def _labels(self, column: list[Any], faults: Faults) -> list[Any]:
        """Return the labels of a column; each distinct string is read once, because labels are few."""
        path = self.fields.label
        if _STRINGS.issuperset(map(type, column)):
            given, refused = list(set(column)), Faults()
            meant = dict(zip(given, _read(given, path, self._label, _ABSENT, refused), strict=True))
            if not refused:
                return [meant[label] for label in column]
        return _read(column, path, self._label, _ABSENT, faults)

    def _label(self, value: object, path: str) -> str | None:
        if value is None:
            return None
        if isinstance(value, list | dict):
            raise RecordError("label", f"The label `{path}` must not be a list or an object.")
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        label = self.fields.label_values.get(text, value)
        if not isinstance(label, str):
            what = f"The label {text} is not a string and not in `[message.label_values]`."
            raise RecordError("label", what)
        check_label(label)
        return label


def _bounds(values: list[bytes | None]) -> list[int]:
    """Return where to cut a batch so that no part but a single record has more than `PARSED_BYTES`."""
    sizes = [len(value or b"") for value in values]
    if sum(sizes) <= PARSED_BYTES:
        return [0, len(values)]
    bounds, held = [0], 0
    for row, size in enumerate(sizes):
        if held and held + size > PARSED_BYTES:
            bounds.append(row)
            held = 0
        held += size
    return [*bounds, len(values)]


def _joined(parts: list[Messages], bounds: list[int]) -> Messages:
    """Return the messages of the parts of a batch as those of the whole."""
    rows = [start + row for start, part in zip(bounds, parts, strict=False) for row in part.rows]
    refused = [
        (start + row, why) for start, part in zip(bounds, parts, strict=False) for row, why in part.refused
    ]
    batches = [part.batch for part in parts]
    batch = Batch(
        {path: [value for one in batches for value in one.fields[path]] for path in batches[0].fields},
        [label for one in batches for label in one.labels],
        None if batches[0].weights is None else [w for one in batches for w in one.weights or ()],
        None if batches[0].times is None else [time for one in batches for time in one.times or ()],
        batches[0].partition,
    )
    return Messages(rows, [id_ for part in parts for id_ in part.ids], batch, refused)


def _times(records: RecordBatch, rows: Sequence[int]) -> list[float | None]:
    """Return the timestamps of these rows in seconds; ``None`` where the log has none."""
    stamps = records.timestamps_ms
    return [stamps[row] / 1000.0 if stamps[row] >= 0 else None for row in rows]


def _read(
    column: list[Any], path: str, read: Read, as_they_are: frozenset[type], faults: Faults
) -> list[Any]:
    """Return the values of a column as `read` returns them, and add refusals to `faults`.

    A row keeps the first fault that was found in it. `as_they_are` lists the types whose values `read` always
    returns unchanged.
    """
    if as_they_are.issuperset(map(type, column)):
        return column
    values: list[object] = []
    for i, value in enumerate(column):
        try:
            values.append(read(value, path))
        except RecordError as error:
            faults.setdefault(i, error)
            values.append(None)
    return values
