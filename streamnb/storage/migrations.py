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

    `labels` is `message.label_values`.
    """
    header: Tables = dict(old.header)
    settings = header.get("settings")
    if isinstance(settings, dict):
        header["settings"] = _settings_1_1(settings)
    return old._replace(header=header)


def _settings_1_1(settings: Tables) -> Tables:
    new = {name: value for name, value in settings.items() if name != "labels"}
    message = new.get("message", {})
    if isinstance(message, dict) and "labels" in settings:
        new["message"] = message | {"label_values": settings["labels"]}
    return new


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
