"""Checks of arguments against annotations: a wrong one is one ``ValueError`` that names what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

_PLAIN = {bool: "True or False", int: "a whole number", float: "a number", str: "a text", NoneType: "None"}
_ALL_OF = {Sequence: "a list", tuple: "a tuple", frozenset: "a set"}
_MANY = {str: "texts", float: "numbers", int: "whole numbers"}


def check_argument(name: str, value: object, hint: Any) -> None:  # noqa: ANN401 - an annotation
    """Check one argument against its annotation.

    Raises
    ------
    ValueError
        The value has another type; the error names what is allowed.
    """
    try:
        if isinstance(value, Mapping) and not any(
            get_origin(each) is Mapping for each in (hint, *get_args(hint))
        ):
            raise msgspec.ValidationError("only settings files describe a parameter by a table")
        msgspec.convert(value.item() if isinstance(value, np.generic) else value, hint)
    except msgspec.ValidationError as error:
        raise ValueError(f"`{name}` must be {_allowed(hint)}, not {value!r}") from error


def check_fields(part: msgspec.Struct) -> None:
    """Check every field of a settings struct against its annotation.

    Raises
    ------
    ValueError
        A value has another type.
    """
    hints = _hints(type(part))
    for name in part.__struct_fields__:
        value = getattr(part, name)
        # A list may stand for a tuple, and numpy's numbers for Python's; a view replaces them.
        if isinstance(value, list | tuple):
            value = tuple(map(_plain, value))
        elif isinstance(value, Mapping):
            value = {_plain(key): _plain(each) for key, each in value.items()}
        check_argument(name, value, hints[name])


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


@cache
def _hints(made: type) -> Mapping[str, Any]:
    return get_type_hints(made)


def _allowed(hint: Any) -> str:  # noqa: ANN401 - an annotation
    """Return an annotation in words."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return f"a {hint.__name__}(...)"
    if get_origin(hint) is Literal:
        return " or ".join(f'"{value}"' for value in get_args(hint))
    if get_origin(hint) in _ALL_OF:
        item = get_args(hint)[0]
        return f"{_ALL_OF[get_origin(hint)]} of {_MANY.get(item) or _allowed(item)}"
    if get_origin(hint) is Mapping:
        return f"a mapping of names to {_MANY[get_args(hint)[1]]}"
    return " or ".join(map(_allowed, get_args(hint)))
