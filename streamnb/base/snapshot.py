"""A snapshot: a model's state and the offsets that go with it, in one value and one file.

What makes learning exactly once is that both are in the same file, which is there whole or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import msgspec
import orjson

from streamnb.base.frozen import HINT, Section
from streamnb.base.offsets import Accounts, from_rows, to_rows
from streamnb.errors import SnapshotError
from streamnb.storage import container
from streamnb.storage.migrations import migrated

FORMAT = "streamnb snapshot"


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON of a snapshot's header; see `Snapshot` for the parts."""

    format: str
    sequence: int
    written_ms: int
    streamnb: str
    digest: dict[str, str]
    statistics: dict[str, object]
    reading: dict[str, object]
    settings: dict[str, object]
    values: dict[str, object]
    source: dict[str, str]
    accounts: list[object]
    lineage: list[dict[str, object]]


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

    def encode(self) -> Iterator[bytes | memoryview]:
        """The file, piece by piece."""
        header = _Header(
            format=FORMAT,
            sequence=self.sequence,
            written_ms=self.written_ms,
            streamnb=self.streamnb,
            digest=self.digest,
            statistics=self.statistics,
            reading=self.reading,
            settings=self.settings,
            values=self.values,
            source=self.source,
            accounts=list(to_rows(self.accounts)),
            lineage=self.lineage,
        )
        return container.encode(msgspec.to_builtins(header), self.sections)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The snapshot in a file's bytes.

        Raises
        ------
        SnapshotError
            It is not a container, or not one of a snapshot.
        """
        return cls._of(migrated(container.decode(data)))

    @classmethod
    def read(cls, file: container.File, allocate: container.Allocate) -> Self:
        """The snapshot in a file; see `container.read`.

        Raises
        ------
        SnapshotError
            As `decode`.
        """
        return cls._of(migrated(container.read(file, allocate)))

    @classmethod
    def _of(cls, contents: container.Contents) -> Self:
        try:
            header = msgspec.convert(contents.header, _Header)
            accounts = from_rows(header.accounts)
        except msgspec.ValidationError as error:
            raise SnapshotError(f"Its header is not a snapshot's: {error}.", HINT) from error
        if header.format != FORMAT or any(account.balance() for account in accounts.values()):
            raise SnapshotError("Its header is not a snapshot's, or its accounts do not balance.", HINT)
        return cls(
            values=header.values,
            sections=contents.sections,
            digest=header.digest,
            statistics=header.statistics,
            reading=header.reading,
            settings=header.settings,
            source=header.source,
            accounts=accounts,
            lineage=header.lineage,
            written_ms=header.written_ms,
            streamnb=header.streamnb,
            sequence=header.sequence,
        )


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
