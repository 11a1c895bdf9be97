"""`streamnb check`: try settings, model, snapshot directory, broker and topics."""

from __future__ import annotations

from typing import Annotated

import typer

from streamnb.cli.options import (
    ConfigArgument,
    SetOption,
)
from streamnb.errors import StreamnbError


def check(
    config: ConfigArgument,
    changes: SetOption = None,
    create: Annotated[
        int,
        typer.Option(metavar="PARTITIONS", help="Make the topics that are missing, with so many partitions."),
    ] = 0,
) -> None:
    """Try settings, model, snapshot directory, broker and topics: ready, or why not."""
    from streamnb.config import checks, load_settings

    settings = load_settings(config, changes or ())
    failure: StreamnbError | None = None
    for name, attempt in checks(settings, create):
        try:
            print(f"ok    {name}: {attempt()}")
        except StreamnbError as error:
            print(f"FAIL  {name}: {error}")
            failure = failure or error
    if failure is not None:
        raise typer.Exit(failure.exit_code)
    print("ready")
