"""The settings that there are, from the types of the settings tables: for hints in errors."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import inspect

_KINDS: Mapping[type[inspect.Type], str] = {
    inspect.IntType: "an integer",
    inspect.FloatType: "a number",
    inspect.StrType: "text",
    inspect.BoolType: "true or false",
    inspect.VarTupleType: "a list",
    inspect.DictType: "a table",
}


def known_settings(settings: type[msgspec.Struct]) -> dict[str, list[str]]:
    """Return the dotted path of every setting, those of unions included, with what its value may be."""
    found: dict[str, list[str]] = {}
    _walk(inspect.type_info(settings), "", found)
    return found


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the known path that was most likely meant: one that begins with `name`, else the most alike.

    Examples
    --------
    >>> nearest("engine.batch", ["engine.start", "engine.batch_records_max"])
    'engine.batch_records_max'
    """
    others = [path for path in known if path != name]
    longer = [path for path in others if path.startswith(name)]
    return difflib.get_close_matches(name, longer or others, n=1, cutoff=0.0)[0]


def allowed(path: str, known: Mapping[str, Sequence[str]]) -> str:
    """Return a hint with what the value of a setting may be.

    Examples
    --------
    >>> allowed("head", {"head": ['"calibrated"', '"product"']})
    'It may be "calibrated" or "product".'
    """
    *others, last = known.get(path) or ["a table of settings"]
    return f"It may be {', '.join(others)} or {last}." if others else f"It may be {last}."


def _walk(info: inspect.Type, path: str, found: dict[str, list[str]]) -> None:
    if path:
        values = found.setdefault(path, [])
        shown = [f'"{value}"' for value in info.values] if isinstance(info, inspect.LiteralType) else []
        shown += [_KINDS[type(info)]] if type(info) in _KINDS else []
        values += [value for value in shown if value not in values]
    if isinstance(info, inspect.UnionType):
        for option in info.types:
            _walk(option, path, found)
    elif isinstance(info, inspect.VarTupleType):
        _walk_items(info.item_type, path, found)
    elif isinstance(info, inspect.StructType):
        _walk_items(info, path, found)


def _walk_items(info: inspect.Type, path: str, found: dict[str, list[str]]) -> None:
    """Find the settings of a table, or of the tables of a list."""
    if isinstance(info, inspect.UnionType):
        for option in info.types:
            _walk_items(option, path, found)
    elif isinstance(info, inspect.StructType):
        if info.tag_field is not None:
            tags = found.setdefault(f"{path}.{info.tag_field}", [])
            if f'"{info.tag}"' not in tags:
                tags.append(f'"{info.tag}"')
        for field in info.fields:
            _walk(field.type, f"{path}.{field.encode_name}" if path else field.encode_name, found)
