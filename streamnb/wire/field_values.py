"""Readers of one field's JSON value: each accepts a value unchanged or refuses the record with a reason."""

from __future__ import annotations

import math
import unicodedata

import orjson

from streamnb.base import NUMBER_MAX, WEIGHT_MAX, WEIGHT_MIN
from streamnb.errors import RecordError

ID_MAX = 1 << 53  # JSON parsers that read numbers as doubles change larger integers
ID_CHARACTERS_MAX = 1024
LABEL_BYTES_MAX = 256  # as JSON: every score lists every class, so a long label lengthens all later scores
Id = str | int

_JSON_KINDS = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}


def json_kind(value: object) -> str:
    """Return how an error sentence names a JSON value: by its kind, or as it is written for true and null.

    Examples
    --------
    >>> json_kind({}), json_kind(1.5), json_kind(True), json_kind(None)
    ('an object', 'a number', 'true', 'null')
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _JSON_KINDS[type(value)]


def read_id(value: object, path: str) -> Id | None:
    """Return an id, a string or an integer, or ``None``; raise ``RecordError`` for anything else."""
    if isinstance(value, int | float) and abs(value) > ID_MAX:
        raise RecordError("number_range", f"The id {value} is past 2^53; write it as a string.")
    if value == "":
        raise RecordError("schema", f"The id `{path}` is empty; leave it out of a message without an id.")
    if isinstance(value, bool | float | list | dict):
        raise RecordError("schema", f"The id `{path}` must be a string or an integer.")
    if isinstance(value, str) and len(value) > ID_CHARACTERS_MAX:
        raise RecordError("schema", f"The id has {len(value)} characters, more than {ID_CHARACTERS_MAX}.")
    return value if isinstance(value, str | int) else None


def read_weight(value: object, path: str) -> float:
    """Return a weight from 1e-9 to 1e9, or 1 for ``None``; raise ``RecordError`` for others."""
    if value is None:
        return 1.0
    weight = read_number(value, path)
    if weight is None or not WEIGHT_MIN <= weight <= WEIGHT_MAX:
        raise RecordError("number_range", f"The weight must be from 1e-9 to 1e9, not {value!r}.")
    return weight


def check_label(label: str) -> None:
    """Raise ``RecordError`` for a text that is no class: empty, without a visible character, or too long.

    A control character has six bytes in JSON and acts on the terminals that print it, so it is refused too.
    """
    if not label:
        raise RecordError("label", "The label is empty; leave it out of a message without a label.")
    if not label.strip():
        raise RecordError("label", "The label is white space; leave it out of a message without a label.")
    if any(unicodedata.category(character) == "Cc" for character in label):
        raise RecordError("label", f"The label {label[:40]!r} holds a control character.")
    if (size := len(orjson.dumps(label)) - 2) > LABEL_BYTES_MAX:
        raise RecordError("label", f"The label has {size} bytes as JSON, more than {LABEL_BYTES_MAX}.")


def read_text(value: object, path: str) -> str | None:
    """Return a string, or ``None``; raise ``RecordError`` for anything else."""
    if value is None or isinstance(value, str):
        return value
    raise RecordError("schema", f"Field `{path}` must be a string, not {json_kind(value)}.")


def read_category(value: object, path: str) -> str | int | float | bool | None:
    """Return a string, number or truth value, or ``None``; raise ``RecordError`` for anything else."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    what = f"Field `{path}` must be a string, a number, true or false, not {json_kind(value)}."
    raise RecordError("schema", what)


def read_number(value: object, path: str) -> float | None:
    """Return a number from -1e100 to 1e100, or ``None``; raise ``RecordError`` for anything else."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RecordError("schema", f"Field `{path}` must be a number, not {json_kind(value)}.")
    number = float(value)
    if not math.isfinite(number) or abs(number) > NUMBER_MAX:
        raise RecordError("number_range", f"Field `{path}` must stay within 1e100.")
    return number


def read_flag(value: object, path: str) -> bool | None:
    """Return true, false or ``None``; raise ``RecordError`` for anything else."""
    if value is None or isinstance(value, bool):
        return value
    raise RecordError("schema", f"Field `{path}` must be true or false, not {json_kind(value)}.")
