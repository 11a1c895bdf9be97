"""Steps that turn the contents of an older minor version into those of the next one, up to the newest.

A reader knows the newest form only. A release that changes the form within a major version adds a step here
for the version before it, and a golden file of that version tests the step for as long as the major version
lives. The names in a step are history: they do not follow later changes of the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from streamnb.storage.container import MINOR, Contents

Step = Callable[[Contents], Contents]
"""Contents of one minor version in; out those of the next, in new dicts."""

Tables = dict[str, Any]

_ANY = object()  # in place of a value: no state depends on the setting
_CONSTANTS: Mapping[str, Tables] = {
    "message": {"key_bytes_max": _ANY, "headers_max": _ANY},
    "tokens": {"message_tokens_max": 65_536},
    "prior": {"smoothing": _ANY},
    "forgetting": {"time_skew_max_s": 3600.0},
}
_CONSTANTS_OF_A_VIEW: Mapping[str, Tables] = {
    "reader": {"characters_max": 3000},
    "event_model": {"messages_per_coordinate": _ANY, "warm_up": 200},
}
"""Settings of version 1.0 that are constants in 1.1, and their values."""


def _to_1_1(old: Contents) -> Contents:
    """Give the settings in the header the names of version 1.1.

    `labels` is `message.label_values`, `tokens.whole` is `tokens.keep_whole`, and the reader ``edges`` is
    ``ends``. The last two are in the statistics too. A setting that is a constant now is left out, unless
    the model has learned with another value: then its reader refuses it by name. One that changes only how
    the statistics are read is left out with a note in the lineage.
    """
    header = _changed(old.header, "settings", _settings_1_1)
    header = _changed(header, "statistics", lambda statistics: _changed(statistics, "model", _model_1_1))
    changes = _read_otherwise(old.header.get("settings"))
    if changes and isinstance(header.get("lineage"), list):
        header["lineage"] = [*header["lineage"], {"event": "settings fixed", "changes": changes}]
    return old._replace(header=header)


def _settings_1_1(settings: Tables) -> Tables:
    labels = settings.get("labels", {})
    new = {name: value for name, value in settings.items() if name != "labels"}
    new = _changed({"message": {}} | new, "message", lambda message: message | {"label_values": labels})
    for name, constants in _CONSTANTS.items():
        new = _changed(new, name, partial(_without, constants))
    return _each_view(_changed(new, "tokens", _tokenizer_1_1), _view_1_1)


def _without(constants: Tables, table: Tables) -> Tables:
    """Return a table without the constants in it; another value stays if the state depends on it."""
    unused = {
        "time_skew_max_s": table.get("half_life_s") is None,  # there is no time that could be wrong
        "warm_up": bool(table.get("edges")),  # there is nothing to wait for
    }
    dropped = {
        name
        for name, value in constants.items()
        if value is _ANY or table.get(name) == value or unused.get(name, False)
    }
    return {name: value for name, value in table.items() if name not in dropped}


def _read_otherwise(settings: object) -> list[str]:
    """Return a line for each setting whose value changed the reading of the statistics, and is lost."""
    found = []
    if isinstance(settings, dict):
        prior = settings.get("prior")
        if isinstance(prior, dict) and prior.get("smoothing", 0.0) != 0.0:
            found.append(f"prior.smoothing: {prior['smoothing']} -> 0.0")
        views = settings.get("views")
        for view in views if isinstance(views, list) else ():
            model = view.get("event_model") if isinstance(view, dict) else None
            if isinstance(model, dict) and (was := model.get("messages_per_coordinate", 1.0)) != 1.0:
                found.append(f"event_models.{view.get('name')}.messages_per_coordinate: {was} -> 1.0")
    return found


def _model_1_1(model: Tables) -> Tables:
    model = _changed(model, "tokenizer", _tokenizer_1_1)
    return _each_view(model, lambda view: _changed(view, "reader", _reader_1_1))


def _tokenizer_1_1(tokenizer: Tables) -> Tables:
    return {"keep_whole" if name == "whole" else name: value for name, value in tokenizer.items()}


def _view_1_1(view: Tables) -> Tables:
    for part, constants in _CONSTANTS_OF_A_VIEW.items():
        view = _changed(view, part, partial(_without, constants))
    return _changed(view, "reader", _reader_1_1)


def _reader_1_1(reader: Tables) -> Tables:
    return reader | {"kind": "ends"} if reader.get("kind") == "edges" else reader


def _each_view(tables: Tables, change: Callable[[Tables], Tables]) -> Tables:
    """Return a copy with every view changed."""
    views = tables.get("views")
    if not isinstance(views, list):
        return tables
    return tables | {"views": [change(view) if isinstance(view, dict) else view for view in views]}


def _changed(tables: Tables, name: str, change: Callable[[Tables], Tables]) -> Tables:
    """Return a copy with one inner table changed; a header that holds no such table is left to its reader."""
    inner = tables.get(name)
    return tables | {name: change(inner)} if isinstance(inner, dict) else tables


STEPS: Mapping[int, Step] = {0: _to_1_1}
"""By the version that a step takes in: one for every minor version before the newest."""


def migrated(contents: Contents, newest: int = MINOR, steps: Mapping[int, Step] = STEPS) -> Contents:
    """Return contents in the newest form; those of a newer minor version are left as they are.

    Examples
    --------
    >>> def renamed(old: Contents) -> Contents:
    ...     header = {"mail" if key == "letters" else key: value for key, value in old.header.items()}
    ...     return old._replace(header=header)
    >>> migrated(Contents({"letters": 3}, {}, minor=0), newest=1, steps={0: renamed})
    Contents(header={'mail': 3}, sections={}, minor=1)
    """
    for minor in range(contents.minor, newest):
        contents = steps[minor](contents)._replace(minor=minor + 1)
    return contents
