"""Why a record's bytes are not one JSON document, in words that help the sender to correct them."""

from __future__ import annotations

import re

import orjson

from streamnb.errors import RecordError

_UTF_16 = re.compile(rb"(?:[\t-~]\x00){2}|(?:\x00[\t-~]){2}")


def json_fault(value: bytes, error: orjson.JSONDecodeError) -> RecordError:
    """Return the refusal of a record that the JSON parser rejected, with the likely cause.

    Examples
    --------
    >>> try:
    ...     orjson.loads(b'{"id": NaN}')
    ... except orjson.JSONDecodeError as error:
    ...     print(json_fault(b'{"id": NaN}', error))
    NaN and Infinity are not JSON numbers.
    """
    what = error.msg
    if _UTF_16.match(value):
        return RecordError("encoding", "The record looks like UTF-16, not UTF-8.")
    if value[:1] == b"\x00" and len(value) > 5:
        schema = int.from_bytes(value[1:5], "big")
        return RecordError(
            "schema_registry",
            f"The record is framed for schema {schema} of a schema registry, not plain JSON.",
        )
    try:
        text = value.decode()
    except UnicodeDecodeError as fault:
        return RecordError("encoding", f"Byte {fault.start} is not UTF-8.")
    if "BOM" in what:
        return RecordError("encoding", "The record begins with a byte order mark.")
    if "surrogate" in what:
        return RecordError("lone_surrogate", f"A string holds half of a surrogate pair: {what}.")
    if "depth" in what or "ecursion" in what:
        return RecordError("too_deep", "The JSON is nested more than 1,024 levels deep.")
    if text.startswith(("NaN", "Infinity"), error.pos):
        return RecordError("number_range", "NaN and Infinity are not JSON numbers.")
    if "infinity" in what:
        return RecordError("number_range", f"A number is too large: {what}.")
    return RecordError("json_syntax", f"The record is not one JSON document: {what}.")
