"""`streamnb snapshot`: look into snapshots, compare and add them, keep them, go back."""

from __future__ import annotations

import typer

from streamnb.cli.snapshot.diff import diff
from streamnb.cli.snapshot.export import export
from streamnb.cli.snapshot.inspect import inspect
from streamnb.cli.snapshot.merge import merge
from streamnb.cli.snapshot.pin import pin, unpin
from streamnb.cli.snapshot.rollback import rollback
from streamnb.cli.snapshot.verify import verify

app = typer.Typer(no_args_is_help=True, help="Look into snapshots, keep them, go back.")
for _command in (inspect, verify, diff, merge, export, pin, unpin, rollback):
    app.command()(_command)
