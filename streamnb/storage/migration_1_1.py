"""The step from version 1.0 to 1.1 of a snapshot: settings get new names, and some become constants."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from streamnb.storage.container import Contents
from streamnb.storage.tables import Tables, changed, each_view

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


def to_1_1(old: Contents) -> Contents:
    """Give the settings in the header the names of version 1.1.

    `labels` is `message.label_values`, `tokens.whole` is `tokens.keep_whole`, and the reader ``edges`` is
    ``ends``. The last two are in the statistics too. A setting that is a constant now is left out, unless
    the model has learned with another value: then its reader refuses it by name. One that changes only how
    the statistics are read is left out with a note in the lineage.
    """
    header = changed(old.header, "settings", _settings_1_1)
    header = changed(header, "statistics", lambda statistics: changed(statistics, "model", _model_1_1))
    changes = _read_otherwise(old.header.get("settings"))
    if changes and isinstance(header.get("lineage"), list):
        header["lineage"] = [*header["lineage"], {"event": "settings fixed", "changes": changes}]
    return old._replace(header=header)


def _settings_1_1(settings: Tables) -> Tables:
    labels = settings.get("labels", {})
    new = {name: value for name, value in settings.items() if name != "labels"}
    new = changed({"message": {}} | new, "message", lambda message: message | {"label_values": labels})
    for name, constants in _CONSTANTS.items():
        new = changed(new, name, partial(_without, constants))
    return each_view(changed(new, "tokens", _tokenizer_1_1), _view_1_1)


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
    model = changed(model, "tokenizer", _tokenizer_1_1)
    return each_view(model, lambda view: changed(view, "reader", _reader_1_1))


def _tokenizer_1_1(tokenizer: Tables) -> Tables:
    return {"keep_whole" if name == "whole" else name: value for name, value in tokenizer.items()}


def _view_1_1(view: Tables) -> Tables:
    for part, constants in _CONSTANTS_OF_A_VIEW.items():
        view = changed(view, part, partial(_without, constants))
    return changed(view, "reader", _reader_1_1)


def _reader_1_1(reader: Tables) -> Tables:
    return reader | {"kind": "ends"} if reader.get("kind") == "edges" else reader
