"""A snapshot: a model's state and the offsets that go with it, in one value and one file.

What makes learning exactly once is that both are in the same file, which is there whole or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import orjson

from streamnb.base.frozen import Section
from streamnb.base.offsets import Accounts


@dataclass(slots=True)
class Snapshot:
    """State and offsets, together.

    Parameters
    ----------
    values, sections
        Of the state that `Classifier.freeze` gave.
    digest : dict of str to str
        Of that state.
    statistics : dict
        The settings the state depends on: another value, another state. Must match on load.
    reading : dict
        The settings that only say how the state is read. May differ on load.
    settings : dict
        What builds the model and reads its messages again, without a configuration file.
    source : dict of str to str
        What log the offsets belong to: `Source.identity`.
    accounts : Accounts
        Positions, and what became of the records before them.
    lineage : list of dict
        What an auditor should know: where it was begun from, which readings changed, oldest first.
    written_ms : int
        Milliseconds since 1970; for people, nothing depends on it.
    streamnb : str
        The version that wrote it.
    sequence : int
        Rises by one with each snapshot of a directory.
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
        """The same snapshot under a number."""
        return replace(self, sequence=sequence)


def fingerprint(settings: Mapping[str, object]) -> str:
    """A short name for settings: 16 hexadecimal digits of the BLAKE2 hash of their canonical JSON.

    Examples
    --------
    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    text = orjson.dumps(settings, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def differences(then: object, now: object, path: str = "") -> list[str]:
    """Where two settings differ, a line each: ``model.tokenizer.rule: "words" -> "unicode"``.

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
