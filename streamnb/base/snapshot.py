"""A snapshot: a model's state and the matching offsets in one value, stored in one file.

Learning is exactly once because state and offsets share a file, which is published whole or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import orjson

from streamnb.base.frozen import Section
from streamnb.base.offsets import Accounts
from streamnb.errors import SnapshotError

INDEX_SECTIONS = frozenset({"index", "index_before", "index_state"})
"""The hash table of the tokens, which is in a snapshot only so that it need not be built again."""


@dataclass(slots=True)
class Snapshot:
    """A model's state and the offsets of the records that it has learned.

    Parameters
    ----------
    values, sections
        The state, as in `FrozenState`.
    digest : dict of str to str
        The state's digest.
    statistics : dict
        The settings that the state depends on. They must be the same when the snapshot is loaded.
    reading : dict
        The settings that affect only how scores are computed from the state. They may change on load.
    settings : dict
        Everything needed to build the model and decode its messages without a configuration file.
    source : dict of str to str
        The log that the offsets belong to, from `Source.identity`.
    accounts : Accounts
        Positions, and the outcomes of the records before them.
    lineage : list of dict
        Events for an audit, oldest first: which snapshot this one began from, which settings changed,
        which records were lost.
    written_ms : int
        When it was written, in milliseconds since 1970; for people only, nothing depends on it.
    streamnb : str
        The version of streamnb that wrote it.
    sequence : int
        Its number in the directory; each snapshot's is one more than the last.
    """

    values: dict[str, object]
    sections: dict[str, Section]
    digest: dict[str, str]
    statistics: dict[str, object]
    reading: dict[str, object]
    settings: dict[str, object]
    source: dict[str, str] = field(default_factory=dict)
    accounts: Accounts = field(default_factory=dict)
    lineage: list[dict[str, object]] = field(default_factory=list)
    written_ms: int = 0
    streamnb: str = ""
    sequence: int = 0

    def numbered(self, sequence: int) -> Self:
        """Return a copy of the snapshot with this sequence number."""
        return replace(self, sequence=sequence)

    def without_index(self) -> Self:
        """Return a copy without the hash table of the tokens; a store that restores it builds another.

        The table's key is in the file, and who knows it can choose words that collide. So the table is kept
        where an engine resumes, and left out where a model begins from a file that others may have read.
        """
        return replace(self, sections={k: v for k, v in self.sections.items() if k not in INDEX_SECTIONS})


def fingerprint(settings: Mapping[str, object]) -> str:
    """Return a short name for settings: 16 hexadecimal digits of the BLAKE2 hash of their canonical JSON.

    Examples
    --------
    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    text = orjson.dumps(settings, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def differences(then: object, now: object, path: str = "") -> list[str]:
    """Return one line per value that differs, such as ``model.tokenizer.rule: "words" -> "unicode"``.

    Examples
    --------
    >>> differences({"a": {"b": 1}}, {"a": {"b": 2}})
    ['a.b: 1 -> 2']
    """
    if isinstance(then, dict) and isinstance(now, dict):
        lines = []
        for key in sorted(then.keys() | now.keys()):
            lines += differences(then.get(key), now.get(key), f"{path}.{key}" if path else key)
        return lines
    was, becomes = (orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode() for value in (then, now))
    return [] if was == becomes else [f"{path}: {was} -> {becomes}"]


def check_unicode(snapshot: Snapshot, statistics: Mapping[str, object], name: str) -> None:
    """Check that a snapshot's tokens were counted by the Unicode table of this streamnb.

    Parameters
    ----------
    snapshot : Snapshot
    statistics : mapping of str to object
        The settings that the statistics depend on now; ``model.unicode`` has the table's version and hash.
    name : str
        The snapshot's name, for the error.

    Raises
    ------
    SnapshotError
        The tables differ.
    """
    then, now = _unicode_of(snapshot.statistics), _unicode_of(statistics)
    if then is None or now is None or then == now:
        return
    tables = [orjson.dumps(table, option=orjson.OPT_SORT_KEYS).decode() for table in (then, now)]
    raise SnapshotError(
        f"{name} counted tokens by the Unicode table {tables[0]}; this streamnb has the table {tables[1]}, "
        "which splits some texts into other tokens.",
        f"Use the version of streamnb that wrote it ({snapshot.streamnb}), or learn the messages again.",
    )


def _unicode_of(statistics: Mapping[str, object]) -> object:
    model = statistics.get("model")
    return model.get("unicode") if isinstance(model, dict) else None
