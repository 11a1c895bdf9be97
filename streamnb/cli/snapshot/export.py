"""`streamnb snapshot export`: write a snapshot's counts or linear weights to a CSV or Parquet file."""

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
        bool,
        typer.Option("--weights", help="Export the weights of the linear decision boundary, not the counts."),
    ] = False,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="FIRST,SECOND",
            help="With --weights: the two classes to separate; required if the model has more than two.",
        ),
    ] = None,
) -> None:
    """Export counts or linear weights to a .csv or .parquet file."""
    from streamnb.cli.snapshot import export_tables
    from streamnb.config import load_snapshot, restore_model

    export_tables.check_format(output)
    held = load_snapshot(snapshot)
    if weights:
        size = export_tables.write(output, export_tables.WEIGHTS, export_tables.weights(held, _pair(classes)))
    else:
        _, model = restore_model(held)
        size = export_tables.write(output, export_tables.COUNTS, export_tables.counts(model))
    print(f"{output}: {size} bytes")


def _pair(classes: str | None) -> tuple[str, str] | None:
    if classes is None:
        return None
    first, comma, second = classes.partition(",")
    if not comma:
        raise SettingsError(
            f"--classes {classes!r} does not name two classes.",
            "Separate them by a comma: --classes spam,ham.",
        )
    return first, second
