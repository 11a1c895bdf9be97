"""`streamnb check`: check settings, model, snapshot directory, broker and topics before `run`."""

from __future__ import annotations

import typer

from streamnb.cli.options import (
    ConfigArgument,
    CreateOption,
    SetOption,
    visible,
)
from streamnb.errors import StreamnbError


def check(
    config: ConfigArgument,
    changes: SetOption = None,
    create: CreateOption = 0,
) -> None:
    """Check settings, snapshot directory, broker and topics.

    Prints one line per check, then `ready` if all passed. Run it before `streamnb run`.
    """
    from streamnb.config import checks, load_settings

    settings = load_settings(config, changes or ())
    failure: StreamnbError | None = None
    for name, attempt in checks(settings, create):
        try:
            print(f"ok    {name}: {visible(attempt())}")  # names labels of the records
        except StreamnbError as error:
            print(f"FAIL  {name}: {visible(error)}")
            failure = failure or error
    if failure is not None:
        raise typer.Exit(failure.exit_code)
    print("ready")
