"""How the contents of an older minor version become those of the newest, one version at a time.

A reader knows the newest form only. What a release changes within a major version it undoes here: a step for
the version before it, which the golden file of that version tests for as long as the major version lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streamnb.storage.container import MINOR, Contents

Step = Callable[[Contents], Contents]
"""Contents of one minor version in; out those of the next, in new dicts."""

STEPS: Mapping[int, Step] = {}
"""By the version that a step takes in: one for every minor version before the newest."""


def migrated(contents: Contents, newest: int = MINOR, steps: Mapping[int, Step] = STEPS) -> Contents:
    """Contents in the newest form; those of a newer minor version are left as they are.

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
