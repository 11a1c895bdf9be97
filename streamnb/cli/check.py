"""`streamnb check`: check settings, model, snapshot directory, broker and topics before `run`."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor, wait

import typer

from streamnb.cli.options import (
    ConfigArgument,
    CreateOption,
    SetOption,
    visible,
)
from streamnb.errors import StreamnbError

LONG_S = 0.5  # a check that takes longer is named on standard error


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
    with ThreadPoolExecutor() as pool:  # each may wait for a broker that does not answer
        begun = [(name, pool.submit(attempt)) for name, attempt in checks(settings, create)]
        for name, found in begun:
            if not wait([found], LONG_S).done:
                print(f"      {name}: still being checked", file=sys.stderr)
            try:
                print(f"ok    {name}: {visible(found.result())}", flush=True)  # names labels of the records
            except StreamnbError as error:
                print(f"FAIL  {name}: {visible(error)}", flush=True)
                failure = failure or error
    if failure is not None:
        raise typer.Exit(failure.exit_code)
    print("ready")
