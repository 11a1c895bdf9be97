"""The parameters of estimators, checked against the annotations of their constructors.

One mechanism serves both a constructor, which is given objects, and a file, which holds plain settings.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

_CHECKED_BY_STATE = frozenset({"views", "classes"})  # may hold readers of the user's own, or be an array
_PLAIN = {bool: "True or False", int: "a whole number", float: "a number", str: "a text", NoneType: "None"}


def typed_parameters(made: type, given: Mapping[str, object]) -> dict[str, Any]:
    """Return plain parameters as arguments of a constructor.

    Raises
    ------
    ValueError
        The class has no such parameter, or a value has another type.
    """
    hints, known = _hints(made), inspect.signature(made).parameters
    found = {}
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"{made.__name__} has no parameter `{name}`")
        try:
            found[name] = msgspec.convert(value, hints[name])
        except msgspec.ValidationError as error:
            raise ValueError(f"`{name}`: {error}") from error
    return found


def check_parameter(made: type, name: str, value: object) -> None:
    """Check one argument of a constructor; a name that is no parameter is not checked.

    Raises
    ------
    ValueError
        The value has another type; the error names what is allowed.
    """
    hint = None if name in _CHECKED_BY_STATE else _hints(made).get(name)
    if hint is None:
        return
    try:
        if isinstance(value, Mapping) and not any(get_origin(each) is Mapping for each in get_args(hint)):
            raise msgspec.ValidationError("a file may describe a parameter by a table, an argument may not")
        msgspec.convert(value.item() if isinstance(value, np.generic) else value, hint)
    except msgspec.ValidationError as error:
        raise ValueError(f"`{name}` must be {_allowed(hint)}, not {value!r}") from error


@cache
def _hints(made: type) -> Mapping[str, Any]:
    return get_type_hints(made.__init__)  # type: ignore[misc]


def _allowed(hint: Any) -> str:  # noqa: ANN401 - an annotation
    """Return an annotation in words."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return f"a {hint.__name__}(...)"
    if get_origin(hint) is Literal:
        return " or ".join(f'"{value}"' for value in get_args(hint))
    if get_origin(hint) is Sequence:
        return "a list of texts"  # the only one that is checked here
    if get_origin(hint) is Mapping:
        return "a mapping of names to whole numbers"  # likewise
    return " or ".join(map(_allowed, get_args(hint)))
