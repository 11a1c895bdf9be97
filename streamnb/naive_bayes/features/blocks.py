"""Readers of a block of named values: categories, flags or numbers, whose names need not be known before.

Each reads one of three things: the columns it names (`fields`), one column that holds a mapping of names to
values (`field`, as an estimator has its `x`), or, if it names neither, every column of the message that no
other view names, where the type of each value says which block reads it: a truth value is a flag, a number a
number, a text a category.

A name that is no string is known by ``str(name)``. A value that is missing (an absent name, ``None``, NaN) is
neither learned nor scored.
"""

from __future__ import annotations

import msgspec
import orjson

from streamnb.naive_bayes.features.tokenizer import Reader


class _Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the block readers have in common."""

    field: str = ""
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises ``ValueError`` if a block reads a mapping and columns at once."""
        if self.field and self.fields:
            raise ValueError("a block reads either `field`, which holds a mapping, or `fields`, not both")


class Categories(_Block, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="categories"):
    """Names to one of several values each: strings, numbers or truth values; 1, "1" and true differ."""


class Flags(_Block, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="flags"):
    """Names to truth values."""


class Numbers(_Block, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="numbers"):
    """Names to real numbers; an infinity is missing."""


Block = Categories | Flags | Numbers
AnyReader = Reader | Categories | Flags | Numbers


def token_of(field: str, value: str | float) -> str:
    """The token that stands for a value of a field.

    No two pairs share one: the JSON of a value holds no ``="`` but at its beginning.

    Examples
    --------
    >>> token_of("colour", "red"), token_of("rooms", 3), token_of("sold", True)
    ('colour="red"', 'rooms=3', 'sold=true')
    """
    return f"{field}={orjson.dumps(value).decode()}"


def field_of(token: str) -> str:
    """The field of a token that `token_of` made.

    Examples
    --------
    >>> field_of('a="b="c="'), field_of("a=b=1"), field_of('a=""')
    ('a="b', 'a=b', 'a')
    """
    return token[: token.rfind('="', 0, -1) if token.endswith('"') else token.rfind("=")]


def value_of(token: str) -> str | float:
    """The value of a token that `token_of` made.

    Examples
    --------
    >>> value_of('colour="red"'), value_of("rooms=3"), value_of("sold=true")
    ('red', 3, True)
    """
    value: str | float = orjson.loads(token[len(field_of(token)) + 1 :])
    return value
