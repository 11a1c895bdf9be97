"""`streamnb snapshot export`: counts or weights as a table."""

from __future__ import annotations

from typing import Annotated

import typer

from streamnb.cli.options import (
    OutputOption,
    SnapshotArgument,
)
from streamnb.errors import SettingsError


def export(
    snapshot: SnapshotArgument,
    output: OutputOption,
    weights: Annotated[
        bool, typer.Option("--weights", help="Export the weights of the linear boundary.")
    ] = False,
    classes: Annotated[
        str | None, typer.Option(metavar="FIRST,SECOND", help="Between which; needed where there are more.")
    ] = None,
) -> None:
    """Write a snapshot's counts, or linear weights, as CSV or Parquet, by the ending of the name."""
    from streamnb.cli.snapshot import tables
    from streamnb.config import load_snapshot, restore_model

    held = load_snapshot(snapshot)
    if weights:
        size = tables.write(output, tables.WEIGHTS, tables.weights(held, _pair(classes)))
    else:
        _, model = restore_model(held)
        size = tables.write(output, tables.COUNTS, tables.counts(model))
    print(f"{output}: {size} bytes")


def _pair(classes: str | None) -> tuple[str, str] | None:
    if classes is None:
        return None
    first, comma, second = classes.partition(",")
    if not comma:
        raise SettingsError(f"--classes {classes!r} is not two classes.", "Write --classes spam,ham.")
    return first, second
