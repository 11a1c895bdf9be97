"""A message as the views read it: weighted tokens and numbers, checked, before any state has part in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from streamnb.columns import Flag
from streamnb.tokens import Category, Counts, Terms, Text, Tokenizer, parts_of
from streamnb.view import View, fields_of, reads_text

TERM_COUNT_MAX = 1e9
NUMBER_MAX = 1e100  # its square, summed over a stream, stays finite

Features = dict[str, float] | float
"""What a view reads in a message: weighted distinct tokens, or a number (NaN: missing)."""


class Reading(NamedTuple):
    """One message, read.

    Parameters
    ----------
    features : list of Features
        One a view.
    length : float
        ``ln(1 + code points)`` of the text fields together.
    flags : Flag
    """

    features: list[Features]
    length: float
    flags: Flag


def read(
    views: Sequence[View], tokenizer: Tokenizer, fields: Mapping[str, Sequence[object]], i: int
) -> Reading:
    """Read message i of a batch.

    Raises
    ------
    ValueError
        A field holds what its view cannot read.
    """
    texts: dict[tuple[str, ...], Text] = {}
    characters: dict[str, int] = {}
    features: list[Features] = []
    flags = Flag(0)
    for view in views:
        reader = view.reader
        if reads_text(reader):
            counts: Counts = {}
            for prefix, names in parts_of(reader):
                text = texts.get(names)
                if text is None:
                    text = texts[names] = tokenizer.read(text_of(names, fields, i, characters))
                if text.truncated:
                    flags |= Flag.TRUNCATED
                for token, n in reader.read(text, tokenizer).items():
                    counts[prefix + token] = counts.get(prefix + token, 0.0) + n
            features.append(view.multinomial.features(counts))
            continue
        field = fields_of(reader)[0]
        value = _value(fields, field, i)
        if isinstance(reader, Terms):
            features.append(view.multinomial.features(term_counts(value, field)))
        elif isinstance(reader, Category):
            features.append(view.multinomial.features(category_counts(value, field)))
        else:
            features.append(number(value, field))
    if texts and not any(text.tokens for text in texts.values()):
        flags |= Flag.EMPTY
    return Reading(features, math.log(1.0 + sum(characters.values())), flags)


def text_of(
    names: Sequence[str], fields: Mapping[str, Sequence[object]], i: int, characters: dict[str, int]
) -> str:
    """The named fields of message i as one text, a line each; their lengths are added to `characters`.

    Raises
    ------
    ValueError
        A field holds something else than text, or half of a surrogate pair.
    """
    parts = []
    for field in names:
        value = _value(fields, field, i)
        if value is None:
            value = ""
        if not isinstance(value, str):
            raise ValueError(f"field `{field}` must hold text, not {type(value).__name__}")
        characters[field] = len(value)
        parts.append(_whole(value, field))
    return "\n".join(parts) if len(parts) > 1 else parts[0] if parts else ""


def _whole(text: str, field: str) -> str:
    """`text`, unless it holds half of a surrogate pair: once counted, no snapshot could be written."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"field `{field}` holds half of a surrogate pair") from error
    return text


def _value(fields: Mapping[str, Sequence[object]], field: str, i: int) -> object:
    column = fields.get(field)
    return None if column is None else column[i]


def term_counts(value: object, field: str) -> dict[str, float]:
    """A mapping of terms to counts, checked; a count of 0 is an absent term.

    Raises
    ------
    ValueError
        A count is not a number from 0 to 1e9, or a term holds half of a surrogate pair.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"field `{field}` must map terms to counts, not hold {type(value).__name__}")
    counts = {}
    for term, count in value.items():
        try:
            m = math.nan if isinstance(count, str | bytes) else float(count)
        except (TypeError, ValueError):
            m = math.nan
        if not 0 <= m <= TERM_COUNT_MAX:
            raise ValueError(f"the count of {term!r} must be a number from 0 to 1e9, not {count!r}")
        if m:
            counts[_whole(str(term), field)] = m
    return counts


def category_counts(value: object, field: str) -> dict[str, float]:
    """A category as one token: its JSON. ``None`` and NaN are missing.

    Raises
    ------
    ValueError
        The value is not a string, a number or a truth value, or JSON cannot hold it.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return {}
    if not isinstance(value, str | int | float | bool):
        raise ValueError(f"field `{field}` must hold a category, not {type(value).__name__}")
    if isinstance(value, float) and math.isinf(value):
        raise ValueError(f"field `{field}` must hold a finite number, not {value!r}")
    try:
        return {orjson.dumps(value).decode(): 1.0}
    except orjson.JSONEncodeError as error:
        raise ValueError(f"field `{field}` holds {value!r}: {error}") from error


def number(value: object, field: str) -> float:
    """A number; ``None``, NaN and infinities are missing, that is NaN.

    Raises
    ------
    ValueError
        The value is not a number, or its size is above 1e100.
    """
    if value is None:
        return math.nan
    if isinstance(value, bool | str) or not isinstance(value, int | float):
        raise ValueError(f"field `{field}` must hold a number, not {type(value).__name__}")
    try:
        x = float(value)
    except OverflowError:
        x = math.inf
    if not math.isfinite(x):
        return math.nan
    if abs(x) > NUMBER_MAX:
        raise ValueError(f"field `{field}` must stay within 1e100, not {value!r}")
    return x
