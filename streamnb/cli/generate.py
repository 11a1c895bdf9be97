"""`streamnb generate`: draw labelled messages from a snapshot's model, in the format that it reads."""

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
    n: Annotated[int, typer.Option("--messages", "-n", help="Number of messages to draw.", min=0)] = 1000,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed draws the same messages.", min=0)] = 0,
) -> None:
    """Draw random labelled messages from a snapshot's model.

    Prints one JSON object per line, with the fields that the snapshot's configuration reads.
    """
    from streamnb.config import (
        restore_model,
    )
    from streamnb.storage import read_snapshot

    settings, model = restore_model(read_snapshot(snapshot))
    for line in lines(settings, model, n, seed):
        sys.stdout.buffer.write(line + b"\n")


def lines(settings: Settings, model: NaiveBayes, n: int, seed: int) -> Iterator[bytes]:
    """Yield labelled messages drawn from a model, each a line of JSON, with the ids ``g-0``, ``g-1``, ...

    Parameters
    ----------
    settings : Settings
        ``[message]`` names the paths of id, label and fields in the JSON object.
    model : NaiveBayes
        The model to draw from; see `NaiveBayes.sample`.
    n : int
        Number of messages.
    seed : int

    Raises
    ------
    DataError
        The model has learned nothing, or one of its views reads tokens that no text can be made of.
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
            f"No messages can be drawn: {error}.",
            "Use a model that has learned labels, whose views read only words, strings, categories, flags or "
            "numbers, with no field read by two views.",
        ) from error


def _put(message: dict[str, object], path: str, value: object) -> None:
    """Put a value into a message at a dotted path, such as ``mail.subject``."""
    *above, last = path.split(".")
    for key in above:
        inner = message.setdefault(key, {})
        assert isinstance(inner, dict)
        message = inner
    message[last] = value
