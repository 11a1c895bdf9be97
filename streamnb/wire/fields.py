"""The values at some paths of JSON records, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import orjson


def read_fields(
    values: list[bytes | None], paths: Sequence[str], bytes_max: int
) -> tuple[list[list[Any]], list[int]]:
    """Return the columns of the records that are surely JSON objects, and the rows that were left.

    Whoever calls this parses each record that was left by itself, which also tells why it is refused.

    Parameters
    ----------
    values : list of bytes or None
        The records.
    paths : sequence of str
        Where a column's values are, each path once; a dot steps into an object.
    bytes_max : int
        A larger record is left.

    Returns
    -------
    columns : list of list
        One per path: what orjson reads at the path in each record; ``None`` where there is no such path, and
        in the rows that were left.
    left : list of int
        Rising. A reader may leave any record.

    Notes
    -----
    This is the specification of its compiled twin `_fields.read_fields`. The twin leaves each record that it
    does not surely understand; this one leaves all records if it cannot read one of them.

    Examples
    --------
    >>> read_fields([b'{"id": 1, "mail": {"text": "a"}}', b'{"id": null}'], ["id", "mail.text"], 100)
    ([[1, None], ['a', None]], [])
    >>> read_fields([b'{"id": 1}', b"[]"], ["id"], 100)
    ([[None, None]], [0, 1])
    """
    parsed = _all_objects(values, bytes_max)
    if parsed is None:
        return [[None] * len(values) for _ in paths], list(range(len(values)))
    return [column_at(parsed, path) for path in paths], []


def _all_objects(values: list[bytes | None], bytes_max: int) -> list[dict[str, object]] | None:
    """Return the JSON objects of a batch without faults, the usual case, or ``None`` if there is a fault."""
    there = [value for value in values if value is not None]
    if len(there) < len(values) or max(map(len, there), default=0) > bytes_max:
        return None
    try:
        parsed = list(map(orjson.loads, there))
    except orjson.JSONDecodeError:
        return None
    return parsed if {dict}.issuperset(map(type, parsed)) else None


def column_at(parsed: list[dict[str, object]], path: str) -> list[Any]:
    """Return the value at a path in each JSON object, ``None`` where the path does not exist.

    Examples
    --------
    >>> column_at([{"mail": {"text": "a"}}, {"mail": 7}, {}], "mail.text")
    ['a', None, None]
    """
    first, *others = path.split(".")
    column: list[Any]
    try:
        column = list(map(itemgetter(first), parsed))  # the fast way, if every message has the key
    except KeyError:
        column = [message.get(first) for message in parsed]
    for key in others:
        column = [value.get(key) if isinstance(value, dict) else None for value in column]
    return column
