"""Shared by the commands: common arguments and options, the progress bar, and formatting of values."""

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


def new_file(path: Path) -> Path:
    """Return the path of an option that names a file to write, refusing it before any work is done."""
    from streamnb.storage import check_new

    check_new(path)
    return path


CONFIG_HELP = "Configuration file (TOML); the package has examples in its folder configs."
ConfigArgument = Annotated[Path, typer.Argument(metavar="CONFIG", help=CONFIG_HELP)]
ConfigOption = Annotated[Path, typer.Option("--config", "-c", help=CONFIG_HELP)]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="TABLE.KEY=VALUE",
        help="Override a setting of the configuration, such as engine.start=latest; repeatable.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]
SnapshotArgument = Annotated[Path, typer.Argument(metavar="SNAPSHOT", help="Path of a snapshot file (.snb).")]
FirstSnapshot = Annotated[Path, typer.Argument(metavar="FIRST", help="Path of a snapshot file (.snb).")]
SecondSnapshot = Annotated[Path, typer.Argument(metavar="SECOND", help="Path of another snapshot file.")]
OutputOption = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Path of the file to write; it must not exist.",
        callback=new_file,
    ),
]
DirectoryArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DIRECTORY",
        help="The engine's snapshot directory: `snapshots.directory` in its configuration.",
    ),
]
SequenceArgument = Annotated[
    int,
    typer.Argument(
        metavar="NUMBER", help="Number of the snapshot: 7 for the file snapshot-0000000007.snb.", min=1
    ),
]
CreateOption = Annotated[
    int,
    typer.Option(
        metavar="PARTITIONS",
        help="Create missing topics with this many partitions; 0 creates none.",
        min=0,
    ),
]
LimitOption = Annotated[int | None, typer.Option(help="Read at most this many lines of the file.", min=1)]
LinesArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="File of messages, one JSON object per line; a .gz file is decompressed, - is standard input.",
    ),
]


def watched(steps: Iterable[T], what: str, history: History) -> Iterator[T]:
    """Yield the steps, and show a progress bar while standard error is a terminal.

    The bar counts the lines read, and shows the share of the file if its size is known.
    """
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
    """Print on standard error how many lines were left out because they are not usable messages, if any."""
    if history.refused:
        print(
            f"streamnb: left out {history.refused} of {history.read} lines. {history.first_refusal}",
            file=sys.stderr,
        )


def visible(text: object) -> str:
    r"""Return a text with its control characters escaped, so that a class cannot act on a terminal.

    Examples
    --------
    >>> visible("Größe " + chr(27) + "[31m")
    'Größe \\x1b[31m'
    """
    shown = str(text)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def is_unicode(argument: str) -> bool:
    """Return whether an argument is text; a byte that is not UTF-8 becomes half of a surrogate pair."""
    return not any("\ud800" <= character <= "\udfff" for character in argument)


def readable(value: object) -> str:
    """Return a value as text for a person: floats shortened, strings unquoted, all else as JSON."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else orjson.dumps(value).decode()
