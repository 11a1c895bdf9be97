"""The command line: one command a job, a room for the commands of one kind.

What an operator can cause is one sentence and a hint, never a traceback.

Exit codes: 0 done, 2 settings, 65 bad data, 69 broker unreachable, 70 a defect of streamnb, 74 storage, 75
stopped past its deadline.
"""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from streamnb import __version__
from streamnb.cli import evaluate as judging
from streamnb.cli import models, snapshots
from streamnb.cli import run as stream
from streamnb.errors import StreamnbError

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)
for _command in (
    stream.demo,
    stream.check,
    stream.run,
    stream.produce,
    models.learn,
    models.score,
    models.explain,
    models.generate,
    judging.evaluate,
    judging.tune,
):
    app.command()(_command)

snapshot_app = typer.Typer(no_args_is_help=True, help="Look into snapshots, keep them, go back.")
app.add_typer(snapshot_app, name="snapshot")
for _snapshot_command in (
    snapshots.inspect,
    snapshots.verify,
    snapshots.diff,
    snapshots.merge,
    snapshots.export,
    snapshots.pin,
    snapshots.unpin,
    snapshots.rollback,
):
    snapshot_app.command()(_snapshot_command)


def main() -> NoReturn:
    """Run the command line and exit."""
    try:
        app()
    except StreamnbError as error:
        if isinstance(error.__cause__, BrokenPipeError):
            _end_quietly()
        print(f"streamnb: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _end_quietly()
    sys.exit(0)


def _end_quietly() -> NoReturn:
    """Whoever read our output has had enough."""
    from streamnb.storage.lines import silence_stdout

    silence_stdout()
    sys.exit(0)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Score and learn from message streams in real time with naive Bayes."""
    if version:
        print(__version__)
        raise typer.Exit
