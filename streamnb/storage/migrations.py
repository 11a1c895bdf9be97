"""Steps that turn the contents of an older minor version into those of the next one, up to the newest.

A reader knows the newest form only. A release that changes the form within a major version adds a step here
for the version before it, and a golden file of that version tests the step for as long as the major version
lives. The names in a step are history: they do not follow later changes of the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streamnb.storage.container import MINOR, Contents

Step = Callable[[Contents], Contents]
"""Contents of one minor version in; out those of the next, in new dicts."""

Tables = dict[str, Any]


def _to_1_1(old: Contents) -> Contents:
    """Give the settings in the header the names of version 1.1.

    `labels` is `message.label_values`, `tokens.whole` is `tokens.keep_whole`, and the reader ``edges`` is
    ``ends``. The last two are in the statistics too.
    """
    header = _changed(old.header, "settings", _settings_1_1)
    header = _changed(header, "statistics", lambda statistics: _changed(statistics, "model", _model_1_1))
    return old._replace(header=header)


def _settings_1_1(settings: Tables) -> Tables:
    labels = settings.get("labels", {})
    new = {name: value for name, value in settings.items() if name != "labels"}
    new = _changed({"message": {}} | new, "message", lambda message: message | {"label_values": labels})
    return _views_1_1(_changed(new, "tokens", _tokenizer_1_1))


def _model_1_1(model: Tables) -> Tables:
    return _views_1_1(_changed(model, "tokenizer", _tokenizer_1_1))


def _tokenizer_1_1(tokenizer: Tables) -> Tables:
    return {"keep_whole" if name == "whole" else name: value for name, value in tokenizer.items()}


def _views_1_1(tables: Tables) -> Tables:
    views = tables.get("views")
    if not isinstance(views, list):
        return tables
    changed = [_changed(view, "reader", _reader_1_1) if isinstance(view, dict) else view for view in views]
    return tables | {"views": changed}


def _reader_1_1(reader: Tables) -> Tables:
    return reader | {"kind": "ends"} if reader.get("kind") == "edges" else reader


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
