"""`streamnb snapshot inspect`: print what a snapshot holds."""

from __future__ import annotations

import orjson

from streamnb.cli.options import (
    JsonOption,
    SnapshotArgument,
    readable,
    visible,
)


def inspect(snapshot: SnapshotArgument, json: JsonOption = False) -> None:
    """Print what a snapshot holds.

    Prints number, time, classes, digests, offsets and sections. Every byte is checked while it is read.
    """
    from streamnb.base import fingerprint, to_rows
    from streamnb.storage import read_snapshot

    held = read_snapshot(snapshot)
    facts: dict[str, object] = {
        "sequence": held.sequence,
        "written_ms": held.written_ms,
        "streamnb": held.streamnb,
        "learned": held.values.get("learned"),
        "classes": held.values.get("classes"),
        "digest": held.digest,
        "statistics": fingerprint(held.statistics),
        "reading": fingerprint(held.reading),
        "source": held.source,
        "accounts": to_rows(held.accounts),
        "lineage": held.lineage,
        "sections": {name: [*array.shape] for name, array in held.sections.items()},
    }
    if json:
        print(orjson.dumps(facts).decode())
        return
    for name, value in facts.items():
        print(f"{name:>12}  {visible(readable(value))}")
