"""The command line: one module per command, plus modules shared by several commands.

A new command is a function in a module of its own; name it in the loop below, which adds it to `app`. A
command of `streamnb snapshot` is added in `snapshot/__init__.py`.

This package knows every other package, and no other package knows it. An error that an operator can cause
is printed as one sentence and a hint, never as a traceback; `exits` has every way in which a command ends,
and `streamnb.errors` the exit codes.
"""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from streamnb import __version__
from streamnb.cli.check import check
from streamnb.cli.demo import demo
from streamnb.cli.evaluate import evaluate
from streamnb.cli.exits import exit_code
from streamnb.cli.explain import explain
from streamnb.cli.generate import generate
from streamnb.cli.learn import learn
from streamnb.cli.produce import produce
from streamnb.cli.run import run
from streamnb.cli.score import score
from streamnb.cli.snapshot import app as snapshot_app
from streamnb.cli.tune import tune

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)
for _command in (demo, check, run, produce, learn, score, explain, generate, evaluate, tune):
    app.command()(_command)
app.add_typer(snapshot_app, name="snapshot")


def main() -> NoReturn:
    """Run the command line, print an error as one line, and exit with its exit code."""
    sys.exit(exit_code(app))


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Score and learn from message streams in real time with naive Bayes.

    Exit codes: 0 success, 2 wrong usage or settings, 65 bad data, 69 broker unusable, 70 defect of streamnb,
    74 file or snapshot unusable, 75 stop deadline exceeded, 130 interrupted.
    """
    if version:
        print(__version__)
        raise typer.Exit
