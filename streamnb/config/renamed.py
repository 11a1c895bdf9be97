"""Settings that were renamed or fixed: a file with one is refused, with the new name or the fixed value.

A former name is never read as the new one, because a file must mean what the reference of this version says,
and a table may now have a name that another table had.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence

from streamnb.errors import SettingsError

RENAMED: Mapping[str, str] = {
    "labels": "[message.label_values]",
    "tokens.whole": "tokens.keep_whole",
    "source.kafka": "source.client",
    "source.confluent": "source.client",
    "sink.kafka": "sink.client",
    "sink.confluent": "sink.client",
    "dead_letters.sink.kafka": "dead_letters.sink.client",
    "dead_letters.sink.confluent": "dead_letters.sink.client",
}
"""The path of a former setting, without list indices, to the setting that took its place."""

RENAMED_VALUES: Mapping[tuple[str, str], str] = {
    ("views.reader.kind", "edges"): "ends",  # "edges" are the borders of bins
}
"""A setting and a former value of it, to the value that took its place."""

FIXED: Mapping[str, object] = {
    "message.key_bytes_max": 65_536,
    "message.headers_max": 1_000,
    "dead_letters.ratio_window_records": 10_000,
    "engine.poll_stalled_s": 60.0,
    "engine.flush_timeout_ms": "120000, or the `delivery_timeout_ms` of a sink if that is more",
    "engine.transaction_interval_ms": 250,
    "snapshots.interval_records": 100_000,
    "snapshots.failures_max": 3,
    "sink.in_flight_max": 20_000,
    "dead_letters.sink.in_flight_max": 20_000,
    "source.decompressed_bytes_max": 32 << 20,
    "source.line_bytes_max": 64 << 20,
    "guard.window_records": 10_000,
    "evaluation.window_messages": 1_000,
    "drift.parameters": "river's defaults",
    # these can still be set in Python, but not in a file:
    "tokens.message_tokens_max": 65_536,
    "views.reader.characters_max": 3_000,
    "views.event_model.messages_per_coordinate": 1.0,
    "views.event_model.warm_up": 200,
    "prior.smoothing": 0.0,
    "forgetting.time_skew_max_s": 3_600.0,
}
"""The path of a former setting to the constant that took its place; the code gives the reason beside it."""


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
        The setting has another name now, or is fixed.
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
    for setting, fixed in FIXED.items():
        for path, _ in _found(tables, setting.split(".")):
            raise SettingsError(
                f"{where}: `{path}` can no longer be set; it is always {fixed}.",
                "Leave it out. A snapshot with another value can be read only by the version that wrote it.",
            )


def without_fixed(tables: Mapping[str, object]) -> dict[str, object]:
    """Return a model's settings without those that a file cannot set, as long as they have their fixed value.

    A model that was built in Python with another value keeps it in its snapshot, whose reader refuses it.
    """
    kept: dict[str, object] = copy.deepcopy(dict(tables))
    for setting, fixed in FIXED.items():
        *way, last = setting.split(".")
        for table in _tables(kept, way):
            if table.get(last) == fixed:
                del table[last]
    return kept


def _tables(tables: object, way: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield the tables at a path, in place; one per item of a list on the way."""
    if isinstance(tables, list | tuple):
        for inner in tables:
            yield from _tables(inner, way)
    elif isinstance(tables, dict) and not way:
        yield tables
    elif isinstance(tables, dict):
        yield from _tables(tables.get(way[0]), way[1:])


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
