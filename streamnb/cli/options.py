"""What the commands share: arguments of the same meaning, progress, readable values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import orjson
import typer

if TYPE_CHECKING:
    from streamnb.cli.history import History

T = TypeVar("T")

ConfigArgument = Annotated[Path, typer.Argument(metavar="CONFIG", help="A TOML file; configs/ has examples.")]
ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="A TOML file; configs/ has examples.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="TABLE.KEY=VALUE", help="Change a setting; repeatable.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
SnapshotArgument = Annotated[Path, typer.Argument(metavar="SNAPSHOT", help="A snapshot file.")]
OutputOption = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")]
DirectoryArgument = Annotated[Path, typer.Argument(metavar="DIRECTORY", help="Where an engine keeps them.")]
SequenceArgument = Annotated[int, typer.Argument(metavar="NUMBER", help="As in the file's name.", min=1)]
LimitOption = Annotated[int | None, typer.Option(help="Lines to read at most.", min=1)]
LinesArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="JSON lines; .gz is unpacked, - is standard input.")
]


def watched(steps: Iterable[T], what: str, history: History) -> Iterator[T]:
    """A bar with the lines read on a terminal, with the share of the file where its size is known."""
    if not sys.stderr.isatty():
        yield from steps
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        for step in steps:
            share = history.share_read
            bar.update(
                task, description=f"{what}, {history.read:,} lines", total=share and 1.0, completed=share or 0
            )
            yield step


def warn_of_refused(history: History) -> None:
    """Say on standard error how many lines were no messages, if any."""
    if history.refused:
        print(
            f"streamnb: left out {history.refused} of {history.read} lines. {history.first_refusal}",
            file=sys.stderr,
        )


def readable(value: object) -> str:
    """A figure or a text for a person."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else orjson.dumps(value).decode()
