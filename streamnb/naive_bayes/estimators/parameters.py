"""The parameters of estimators, checked against the annotations of their constructors.

One mechanism serves both a constructor, which is given objects, and a file, which holds plain settings.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints

import msgspec

from streamnb.naive_bayes.features.arguments import check_argument

_CHECKED_BY_STATE = frozenset({"views", "classes"})  # may hold readers of the user's own, or be an array


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
    if hint is not None:
        check_argument(name, value, hint)


@cache
def _hints(made: type) -> Mapping[str, Any]:
    return get_type_hints(made.__init__)  # type: ignore[misc]
