"""What an older reader does with a file of a newer minor version: ignore what it does not know, or refuse.

A newer minor version may add keys of the header, keys of `values`, and sections. A reader that does not know
them leaves them out, with one warning. If the rest would mean something else without them, the writer names
them in the header's list `required`, and such a reader refuses the file. Every part that the digest covers
must be named there, because without it the digest would not be that of the state.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping, Sequence

from streamnb.base import HINT
from streamnb.errors import SnapshotError
from streamnb.storage.container import MAJOR, MINOR, Contents

_log = logging.getLogger("streamnb.snapshots")

REQUIRED = "required"
"""The key of the header with the names of the parts that a reader must know."""

NAMES_MAX = 8  # of parts in a sentence; a header has room for a million

VALUES = ("classes", "learned", "forgetting", "evicted_tokens", "evicted_mass", "fell_short", "guard")
"""The keys of `values` that this version knows."""

COVERED = ("head_trust", "token_trust")
"""Sections that the digest covers and that version 1.3 does not know."""

_SECTION = re.compile(
    r"token_bytes|token_bounds|counts|cell_bounds|cell_classes|cell_counts|totals|class_counts|head_weights|head_offsets|head_noise|length"
    r"|unknown_share|head_trust|token_trust|block\d+_.*|guard_sources|index|index_before|index_state"
)


def is_known_section(name: str) -> bool:
    """Return whether this version knows a section of this name; docs/formats/snapshot.md lists them."""
    return _SECTION.fullmatch(name) is not None


def with_required(header: Mapping[str, object], sections: Collection[str]) -> dict[str, object]:
    """Return a header that names the sections without which an older reader must refuse the file."""
    required = [name for name in COVERED if name in sections]
    return {**header, REQUIRED: required} if required else dict(header)


def without_unknown(contents: Contents, keys: Collection[str], name: str) -> Contents:
    """Return contents without the parts that a newer minor version has added, and warn if there are any.

    Parameters
    ----------
    contents : Contents
        Of this minor version, whose parts are all known, or of a newer one.
    keys : collection of str
        The keys of the header that this version knows.
    name : str
        The file, for the warning.

    Raises
    ------
    SnapshotError
        The header names a part as required that this version does not know.
    """
    header, sections = contents.header, contents.sections
    required, values = header.get(REQUIRED, []), header.get("values")
    if not isinstance(required, list) or not all(isinstance(part, str) for part in required):
        raise SnapshotError(f"Its header's `{REQUIRED}` is not a list of names.", HINT)
    version = f"container version {MAJOR}.{contents.minor}"
    known = {*keys, *(f"values.{value}" for value in VALUES)}
    if needed := [part for part in required if part not in known and not is_known_section(part)]:
        raise SnapshotError(
            f"It has {version}, and {MAJOR}.{MINOR} is the newest that this streamnb reads. Without "
            f"{_names(needed)}, which this one does not know, the rest would mean something else.",
            "Use the version of streamnb that wrote it, or a newer one; the file was not changed.",
        )
    if contents.minor <= MINOR:  # whatever else is not known is damage, and its reader refuses it
        return contents._replace(header={key: value for key, value in header.items() if key != REQUIRED})
    added = [key for key in header if key not in keys and key != REQUIRED]
    later = [section for section in sections if not is_known_section(section)]
    if isinstance(values, dict):
        added += [f"values.{key}" for key in values if key not in VALUES]
        header = header | {"values": {key: value for key, value in values.items() if key in VALUES}}
    if added or later:
        _log.warning(
            "%s has %s, newer than %d.%d of this streamnb; ignored: %s",
            *(name, version, MAJOR, MINOR, _names([*added, *later])),
        )
    return contents._replace(
        header={key: value for key, value in header.items() if key in keys},
        sections={section: array for section, array in sections.items() if section not in later},
    )


def _names(parts: Sequence[str]) -> str:
    """Return names as text, escaped, because they come from a file."""
    more = [f"{len(parts) - NAMES_MAX} more"] if len(parts) > NAMES_MAX else []
    return ", ".join([*map(repr, parts[:NAMES_MAX]), *more])
