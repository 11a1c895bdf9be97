"""`streamnb snapshot`: inspect, verify, compare, merge, grow, relabel, export, pin, roll back."""

from __future__ import annotations

import typer

from streamnb.cli.snapshot.diff import diff
from streamnb.cli.snapshot.export import export
from streamnb.cli.snapshot.grow import grow
from streamnb.cli.snapshot.inspect import inspect
from streamnb.cli.snapshot.merge import merge
from streamnb.cli.snapshot.pin import pin, unpin
from streamnb.cli.snapshot.relabel import relabel
from streamnb.cli.snapshot.rollback import rollback
from streamnb.cli.snapshot.verify import verify

app = typer.Typer(
    no_args_is_help=True, help="Inspect, compare, merge, grow, relabel, export and roll back snapshots."
)
for _command in (inspect, verify, diff, merge, grow, relabel, export, pin, unpin, rollback):
    app.command()(_command)
