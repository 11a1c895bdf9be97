"""Settings of earlier versions: a file that uses one is refused with a sentence that names the new setting.

A former name is never read as the new one: a file must mean the same to whoever reads it with the reference
beside it, and a table of today may bear a name that another table had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streamnb.errors import SettingsError

RENAMED: Mapping[str, str] = {
    "labels": "[message.label_values]",
    "tokens.whole": "tokens.keep_whole",
}
"""The path of a former setting, without list indices, to the setting that took its place."""

RENAMED_VALUES: Mapping[tuple[str, str], str] = {
    ("views.reader.kind", "edges"): "ends",  # "edges" are the borders of bins
}
"""A setting and a former value of it, to the value that took its place."""


def refuse_former(tables: Mapping[str, object], where: str) -> None:
    """Raise if a table holds a setting of an earlier version.

    Parameters
    ----------
    tables : mapping of str to object
        As TOML gives them.
    where : str
        The file, for the error.

    Raises
    ------
    SettingsError
        The setting has another name now.
    """
    for former, new in RENAMED.items():
        for path, _ in _found(tables, former.split(".")):
            written = f"[{path}]" if new.startswith("[") else path
            raise SettingsError(f"{where}: `{written}` is now `{new}`.", f"Write `{new}` instead.")
    for (setting, former), new in RENAMED_VALUES.items():
        for path, value in _found(tables, setting.split(".")):
            if value == former:
                what = f'{where}: `{path} = "{former}"` is now `{path} = "{new}"`.'
                raise SettingsError(what, f'Write "{new}" instead.')


def _found(tables: object, keys: Sequence[str], path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the path, as ``views[0].reader.n``, and the value of a setting wherever the tables hold it."""
    if not isinstance(tables, Mapping) or keys[0] not in tables:
        return
    value, path = tables[keys[0]], f"{path}.{keys[0]}" if path else keys[0]
    if len(keys) == 1:
        yield path, value
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from _found(inner, keys[1:], f"{path}[{i}]")
    else:
        yield from _found(value, keys[1:], path)
