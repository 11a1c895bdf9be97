"""Tokens that represent the value of a field: its name, ``=`` and the value's JSON."""

from __future__ import annotations

import orjson


def token_of(field: str, value: str | float) -> str:
    """Return the token that represents one value of a field: the field's name, ``=`` and the value's JSON.

    Different pairs of field and value have different tokens, because `field_of` finds the separating ``=``
    again: JSON escapes the quotes inside a string, and a number or a truth value contains no ``=``.

    Examples
    --------
    >>> token_of("colour", "red"), token_of("rooms", 3), token_of("sold", True)
    ('colour="red"', 'rooms=3', 'sold=true')
    """
    return f"{field}={orjson.dumps(value).decode()}"


def field_of(token: str) -> str:
    """Return the field of a token that `token_of` made.

    Examples
    --------
    >>> field_of('a="b="c="'), field_of("a=b=1"), field_of('a=""')
    ('a="b', 'a=b', 'a')
    """
    return token[: token.rfind('="', 0, -1) if token.endswith('"') else token.rfind("=")]


def value_of(token: str) -> str | float:
    """Return the value of a token that `token_of` made.

    Examples
    --------
    >>> value_of('colour="red"'), value_of("rooms=3"), value_of("sold=true")
    ('red', 3, True)
    """
    value: str | float = orjson.loads(token[len(field_of(token)) + 1 :])
    return value
