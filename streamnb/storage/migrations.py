"""Steps that turn the contents of an older minor version into those of the next one, up to the newest.

A reader knows the newest form only. A release that changes the form within a major version adds a step for
the version before it, in a module of its own, and a golden file of that version tests the step for as long as
the major version lives. The names in a step are history: they do not follow later changes of the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streamnb.storage.container import MINOR, Contents
from streamnb.storage.migration_1_1 import to_1_1
from streamnb.storage.migration_1_2 import to_1_2
from streamnb.storage.migration_1_3 import to_1_3

Step = Callable[[Contents], Contents]
"""Contents of one minor version in; out those of the next, in new dicts."""


def to_1_4(old: Contents) -> Contents:
    """Return contents of version 1.3 as they are: 1.4 adds trust, and a model without it starts with none."""
    return old


STEPS: Mapping[int, Step] = {0: to_1_1, 1: to_1_2, 2: to_1_3, 3: to_1_4}
"""By the version that a step takes in: one for every minor version before the newest."""


def migrated(contents: Contents, newest: int = MINOR, steps: Mapping[int, Step] = STEPS) -> Contents:
    """Return contents in the newest form; those of a newer minor version are left as they are.

    Raises
    ------
    SnapshotError
        The contents are damaged in a way that a step notices.

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
