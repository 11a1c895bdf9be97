"""Commands of snapshots: look into them, check, compare, add, export; keep them and go back to them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from streamnb.cli.shared import JsonOption, SnapshotArgument, readable
from streamnb.errors import SettingsError

OutputOption = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")]
DirectoryArgument = Annotated[Path, typer.Argument(metavar="DIRECTORY", help="Where an engine keeps them.")]
SequenceArgument = Annotated[int, typer.Argument(metavar="NUMBER", help="As in the file's name.", min=1)]


def inspect(snapshot: SnapshotArgument, json: JsonOption = False) -> None:
    """Show what a snapshot holds; every byte of it is checked on the way."""
    from streamnb.base.offsets import to_rows
    from streamnb.base.snapshot import fingerprint
    from streamnb.storage import directory as snapshots

    held = snapshots.read(snapshot)
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
        print(f"{name:>12}  {readable(value)}")


def verify(snapshot: SnapshotArgument) -> None:
    """Check every byte, restore the state, and compute its digest again."""
    from streamnb.config import assembly

    print(f"{snapshot}: whole; digest {assembly.verify(snapshot)}")


def diff(
    before: SnapshotArgument,
    after: SnapshotArgument,
    top: Annotated[int, typer.Option(help="Counts to name.", min=0)] = 10,
    json: JsonOption = False,
) -> None:
    """Say what differs between two snapshots: settings, offsets, classes, the counts that changed most."""
    from streamnb.cli.snapshot_diff import difference
    from streamnb.storage import directory as snapshots

    found = difference(snapshots.read(before), snapshots.read(after), top)
    if json:
        most = [change._asdict() for change in found.most_changed]
        print(orjson.dumps({**found._asdict(), "most_changed": most}).decode())
        return
    print("the same state" if found.same_state else "another state")
    for line in (*found.settings, *found.offsets, *(f"class {line}" for line in found.classes)):
        print(f"  {line}")
    print(f"{found.tokens_changed} tokens with other counts")
    for view, token, label, was, now in found.most_changed:
        print(f"  {view}: {token!r} in {label}: {was:.6g} -> {now:.6g}")


def merge(
    first: SnapshotArgument,
    second: SnapshotArgument,
    output: OutputOption,
    statistics_only: Annotated[
        bool, typer.Option("--statistics-only", help="Leave the offsets out, for `run --from`.")
    ] = False,
) -> None:
    """Add what two snapshots have learned; refused where both have read the same partition."""
    from streamnb.cli.snapshot_diff import merged
    from streamnb.storage import directory as snapshots

    both = merged(snapshots.read(first), snapshots.read(second), statistics_only=statistics_only)
    size = snapshots.write(output, both)
    kept = "without offsets" if statistics_only else f"offsets of {len(both.accounts)} partitions"
    learned = both.values["learned"]
    print(f"{output}: {learned} messages, {kept}, {size} bytes, digest {both.digest['all']}")


def export(
    snapshot: SnapshotArgument,
    output: OutputOption,
    weights: Annotated[bool, typer.Option("--weights", help="Of the straight boundary.")] = False,
    classes: Annotated[
        str | None, typer.Option(metavar="FIRST,SECOND", help="Between which; needed where there are more.")
    ] = None,
) -> None:
    """Write a snapshot's counts, or linear weights, as CSV or Parquet, by the ending of the name."""
    from streamnb.cli import export as tables
    from streamnb.config import assembly

    held = assembly.snapshot_at(snapshot)
    if weights:
        size = tables.write(output, tables.WEIGHTS, tables.weights(held, _pair(classes)))
    else:
        _, model = assembly.restored(held)
        size = tables.write(output, tables.COUNTS, tables.counts(model))
    print(f"{output}: {size} bytes")


def _pair(classes: str | None) -> tuple[str, str] | None:
    if classes is None:
        return None
    first, comma, second = classes.partition(",")
    if not comma:
        raise SettingsError(f"--classes {classes!r} is not two classes.", "Write --classes spam,ham.")
    return first, second


def pin(directory: DirectoryArgument, sequence: SequenceArgument) -> None:
    """Keep a snapshot whatever comes after it."""
    from streamnb.storage import directory as snapshots

    snapshots.pin(directory, sequence)
    print(f"snapshot {sequence} stays until it is unpinned")


def unpin(directory: DirectoryArgument, sequence: SequenceArgument) -> None:
    """Let a pinned snapshot go when its time has come."""
    from streamnb.storage import directory as snapshots

    snapshots.unpin(directory, sequence)
    print(f"snapshot {sequence} is no longer pinned")


def rollback(directory: DirectoryArgument, sequence: SequenceArgument) -> None:
    """Go back to a snapshot; the engine must be stopped. Newer ones are set aside, and none is deleted."""
    from streamnb.storage.directory import SET_ASIDE, SnapshotDirectory

    if not directory.is_dir():
        raise SettingsError(f"{directory} is not a directory.", "Name the engine's `snapshots.directory`.")
    store = SnapshotDirectory(directory)
    try:
        now = store.roll_back(sequence)
    finally:
        store.close()
    print(f"snapshot {now} is {sequence} again and in force; newer ones are in {directory / SET_ASIDE}")
