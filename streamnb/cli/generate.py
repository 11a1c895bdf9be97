"""`streamnb generate`: a labelled stream drawn from a snapshot's model, as lines its configuration reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from streamnb.cli.options import (
    SnapshotArgument,
)
from streamnb.errors import DataError

if TYPE_CHECKING:
    from streamnb.config import Settings
    from streamnb.naive_bayes import NaiveBayes


def generate(
    snapshot: SnapshotArgument,
    n: Annotated[int, typer.Option("--messages", "-n", help="How many.", min=0)] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed, the same messages.", min=0)] = 0,
) -> None:
    """Draw labelled messages from a snapshot's model, one JSON line each."""
    from streamnb.config import (
        restore_model,
    )
    from streamnb.storage import read_snapshot

    settings, model = restore_model(read_snapshot(snapshot))
    for line in lines(settings, model, n, seed):
        sys.stdout.buffer.write(line + b"\n")


def lines(settings: Settings, model: NaiveBayes, n: int, seed: int) -> Iterator[bytes]:
    """Draw messages and write each as a line of JSON, labelled, with ids from ``g-0`` on.

    Parameters
    ----------
    settings : Settings
        Whose ``[message]`` says where id, label and fields stand.
    model : NaiveBayes
        What is drawn from; see `NaiveBayes.sample`.
    n : int
    seed : int

    Raises
    ------
    DataError
        The model cannot draw: it has learned nothing, or reads what no text can be made of.
    """
    try:
        for i, (x, label) in enumerate(model.sample(n, seed)):
            message: dict[str, object] = {}
            for path, value in ((settings.message.id, f"g-{i}"), *x.items(), (settings.message.label, label)):
                if path:
                    _put(message, path, value)
            yield orjson.dumps(message)
    except ValueError as error:
        raise DataError(
            f"No messages can be drawn: {error}.", "A model of words, categories, flags and numbers can."
        ) from error


def _put(message: dict[str, object], path: str, value: object) -> None:
    """A value where a dotted path says."""
    *above, last = path.split(".")
    for key in above:
        inner = message.setdefault(key, {})
        assert isinstance(inner, dict)
        message = inner
    message[last] = value
