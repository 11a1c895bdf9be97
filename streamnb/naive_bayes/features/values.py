"""The values of a message's fields, checked and converted before any state changes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

import mmh3
import numpy as np
import orjson

from streamnb.base import NUMBER_MAX

TERM_COUNT_MAX = 1e9
CATEGORY_BYTES_MAX = 256  # as long as the longest token of a text
EXACT_BELOW = 2.0**53  # below this every integer has a float of its own
_NULLS = {"NAType", "NaTType"}  # of pandas, which need not be installed


def text_of(
    names: Sequence[str], fields: Mapping[str, Sequence[object]], i: int, characters: dict[str, int]
) -> str:
    """Return the named fields of message i as one text, one line per field.

    Parameters
    ----------
    names : sequence of str
    fields : mapping of str to sequence
        The columns of the batch.
    i : int
    characters : dict of str to int
        The length of each named field, in code points, is stored here.

    Raises
    ------
    ValueError
        A field holds a value that is not text, or text with half of a surrogate pair.
    """
    parts = []
    for field in names:
        value = value_at(fields, field, i)
        if not isinstance(value, str):
            if not is_missing(value):
                raise ValueError(f"field `{field}` must hold text, not {type(value).__name__}")
            value = ""
        characters[field] = len(value)
        parts.append(_whole(value, field))
    return "\n".join(parts) if len(parts) > 1 else parts[0] if parts else ""


def _whole(text: str, field: str) -> str:
    """Return `text`; raise ``ValueError`` if it holds half of a surrogate pair.

    UTF-8 cannot encode that, so once it were counted, no snapshot could be written.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"field `{field}` holds half of a surrogate pair; text must be encodable as UTF-8"
            ) from error
    return text


def value_at(fields: Mapping[str, Sequence[object]], field: str, i: int) -> object:
    """Return the value of message i in a field; ``None`` if the batch has no such field."""
    column = fields.get(field)
    return None if column is None else column[i]


def term_counts(value: object, field: str, above: float | None = None) -> dict[str, float]:
    """Return a checked mapping of terms to counts, without the terms whose count is 0 or missing.

    Parameters
    ----------
    value : mapping of term to number, or None
    field : str
        The field's name, for error messages.
    above : float, optional
        If given, any finite number is allowed, and a term counts 1 if its number is above this threshold and
        is absent otherwise.

    Raises
    ------
    ValueError
        A count is not a number from 0 to 1e9, a term holds half of a surrogate pair, or two terms are equal
        as text.
    """
    counts: dict[str, float] = {}
    for term, count in _mapping(value, field, "terms to counts").items():
        if above is not None and type(count) is int:  # the common case first
            m = 1.0 if count > above else 0.0
        elif type(count) is int and 0 <= count <= TERM_COUNT_MAX:
            m = float(count)
        elif is_missing(count):
            continue
        elif above is not None:
            m = 1.0 if number(_plain(count), str(term)) > above else 0.0
        else:
            try:
                m = math.nan if isinstance(count, str | bytes) else float(count)  # type: ignore[arg-type]
            except (TypeError, ValueError, OverflowError):
                m = math.nan
            if not 0 <= m <= TERM_COUNT_MAX:
                raise ValueError(f"the count of {term!r} must be a number from 0 to 1e9, not {count!r}")
        if m:
            counts[_name(term, field, counts)] = m
    return counts


def _mapping(value: object, field: str, what: str) -> Mapping[object, object]:
    if is_missing(value):
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"field `{field}` must map {what}, not hold {type(value).__name__}")
    return value


def _name(key: object, field: str, others: Mapping[str, object]) -> str:
    """Return a key of a mapping as text; raise ``ValueError`` if another key is the same text."""
    name = key if type(key) is str and key.isascii() else _whole(str(key), field)
    if name in others:
        raise ValueError(
            f"field `{field}` holds two names that are equal as text, {name!r}; keep one of them"
        )
    return name


def mapping_of(value: object, field: str = "") -> Iterator[tuple[str, object]]:
    """Return the names and values of a mapping, without the missing values; ``None`` is an empty mapping.

    Raises
    ------
    ValueError
        The value of the field is not a mapping, two names are equal as text, or a name holds half of a
        surrogate pair.
    """
    found: dict[str, object] = {}
    for key, each in _mapping(value, field, "names to values").items():
        found[_name(key, field, found)] = each
    return _present(found)


def unnamed_values(
    columns: Mapping[str, Sequence[object]], i: int, named: Collection[str], kind: str
) -> Iterator[tuple[str, object]]:
    """Return the fields of message i that hold a value of one kind, without those that a reader names.

    Parameters
    ----------
    columns : mapping of str to sequence
        The fields of the batch.
    i : int
    named : collection of str
    kind : {"category", "flag", "number"}

    Raises
    ------
    ValueError
        Two names are equal as text, a name holds half of a surrogate pair, or no block reads the type of a
        value.
    """
    found: dict[str, object] = {}
    for key, column in columns.items():
        if key not in named and _kind_of(column[i], key) == kind:
            found[_name(key, "the message", found)] = column[i]
    return _present(found)


def _present(values: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    return ((name, value) for name, value in values.items() if type(value) is str or not is_missing(value))


def _kind_of(value: object, field: str) -> str | None:
    """Return the kind of a value, decided by its type; ``None`` for a missing value."""
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "flag"
    if isinstance(value, int | float | np.integer | np.floating | Decimal):
        return "number"
    if isinstance(value, str):
        return "category"
    raise ValueError(
        f"field `{field}` holds {type(value).__name__}; only numbers, truth values and text can be read"
    )


def is_missing(value: object) -> bool:
    """Return whether a value is missing: ``None``, NaN of any type, or a null of pandas.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), Decimal("NaN"), 0, "")]
    [True, True, True, False, False]
    """
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    if isinstance(value, Decimal):
        return value.is_nan()
    return value is None or type(value).__name__ in _NULLS


def numbers(values: Iterable[tuple[str, object]]) -> dict[str, float]:
    """Return named numbers, without the missing ones.

    Raises
    ------
    ValueError
        A value is not a number, or its absolute value is above 1e100.
    """
    found = {}
    for name, value in values:
        # The common case first: a finite float needs no conversion.
        x = value if type(value) is float and abs(value) <= NUMBER_MAX else number(_plain(value), name)
        if x == x:  # noqa: PLR0124 - NaN is missing
            found[name] = x
    return found


def _plain(value: object) -> object:
    """Return a truth value as the number 1 or 0, a decimal as a float, and any other value unchanged."""
    return float(value) if isinstance(value, bool | np.bool_ | Decimal) else value


def truth(value: object, field: str) -> bool:
    """Return a truth value.

    Raises
    ------
    ValueError
        The value is text, or has no truth value.
    """
    if isinstance(value, str | bytes) or not hasattr(value, "__bool__"):
        raise ValueError(f"field `{field}` must hold a truth value, not {type(value).__name__}")
    return bool(value)


def category(value: object, field: str) -> str:
    """Return a category as JSON.

    Raises
    ------
    ValueError
        The value is not a string, a number or a truth value, or JSON cannot represent it.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):
        value = float(value)
    if not isinstance(value, str | int | float | bool):
        raise ValueError(f"field `{field}` must hold a category, not {type(value).__name__}")
    if isinstance(value, float):
        if math.isinf(value):
            raise ValueError(f"field `{field}` must hold a finite number, not {value!r}")
        if value.is_integer() and abs(value) < EXACT_BELOW:
            value = int(value)  # 1.0 is the category 1: data frames store integers with gaps as floats
    try:
        return orjson.dumps(value if not isinstance(value, str) else shortened(value)).decode()
    except (orjson.JSONEncodeError, UnicodeEncodeError) as error:
        raise ValueError(f"field `{field}` holds {value!r}: {error}") from error


def shortened(text: str) -> str:
    """Return a category's text or, if that is longer than `CATEGORY_BYTES_MAX`, its beginning and its hash.

    So a value of any length is one short token, and different values stay different categories.

    Examples
    --------
    >>> shortened("red"), shortened("ab" * 200)
    ('red', 'abababababababababababababababab... #938f9f6d79fa1a265f6d9f5e33d904db')
    """
    if len(text) * 4 <= CATEGORY_BYTES_MAX or len(data := text.encode()) <= CATEGORY_BYTES_MAX:
        return text
    return f"{text[:32]}... #{mmh3.hash128(data):032x}"


def number(value: object, field: str) -> float:
    """Return a number as a float; ``None``, NaN and infinities are missing and give NaN.

    Raises
    ------
    ValueError
        The value is not a number, or its absolute value is above 1e100.
    """
    if value is None:
        return math.nan
    if isinstance(value, bool | str) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"field `{field}` must hold a number, not {type(value).__name__}")
    try:
        x = float(value)
    except OverflowError:
        x = math.inf
    if not math.isfinite(x):
        return math.nan
    if abs(x) > NUMBER_MAX:
        raise ValueError(f"field `{field}` must hold a number from -1e100 to 1e100, not {value!r}")
    return x
