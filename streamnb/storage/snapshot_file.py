"""A snapshot as the bytes of one file, and back: a header of JSON, and sections, in a `container`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from streamnb.base import HINT, Accounts, Snapshot, from_rows, to_rows
from streamnb.errors import SnapshotError
from streamnb.storage import container
from streamnb.storage.migrations import migrated
from streamnb.storage.newer_minor import with_required, without_unknown

FORMAT = "streamnb snapshot"


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON header of a snapshot; see `Snapshot` for its fields."""

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


def encode(snapshot: Snapshot) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a snapshot's file, piece by piece.

    Raises
    ------
    SnapshotError
        `read` would refuse the file; nothing was yielded.
    """
    header = msgspec.to_builtins(
        _Header(
            format=FORMAT,
            sequence=snapshot.sequence,
            written_ms=snapshot.written_ms,
            streamnb=snapshot.streamnb,
            digest=snapshot.digest,
            statistics=snapshot.statistics,
            reading=snapshot.reading,
            settings=snapshot.settings,
            values=snapshot.values,
            source=snapshot.source,
            accounts=list(to_rows(snapshot.accounts)),
            lineage=snapshot.lineage,
        )
    )
    _checked(header)
    return container.encode(with_required(header, snapshot.sections), snapshot.sections)


def decode(data: bytes) -> Snapshot:
    """Return the snapshot in a file's bytes.

    Raises
    ------
    SnapshotError
        The bytes are not a container, or the container does not hold a snapshot.
    """
    return _snapshot_of(container.decode(data), "a snapshot")


def read(file: container.File, allocate: container.Allocate, name: str) -> Snapshot:
    """Return the snapshot in an open file.

    Parameters
    ----------
    file : File
    allocate : Allocate
        Provides the memory that the sections are read into.
    name : str
        The file's name, for a warning.

    Raises
    ------
    SnapshotError
        As `decode`.
    """
    return _snapshot_of(container.read(file, allocate), name)


def _snapshot_of(contents: container.Contents, name: str) -> Snapshot:
    contents = without_unknown(migrated(contents), _Header.__struct_fields__, name)
    header, accounts = _checked(contents.header)
    return Snapshot(
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


def _checked(tables: object) -> tuple[_Header, Accounts]:
    """Return a header and its accounts, as the writer and the reader of a file both demand them."""
    try:
        header = msgspec.convert(tables, _Header)
        accounts = from_rows(header.accounts)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"Its header is not that of a snapshot: {error}.", HINT) from error
    if header.format != FORMAT or any(account.balance() for account in accounts.values()):
        raise SnapshotError("Its header is not that of a snapshot, or its accounts do not balance.", HINT)
    return header, accounts
