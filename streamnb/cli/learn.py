"""`streamnb learn`: history first, the stream after."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamnb.cli.options import (
    ConfigOption,
    LinesArgument,
    SetOption,
    warn_of_refused,
    watched,
)


def learn(
    file: LinesArgument,
    config: ConfigOption,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="SNAPSHOT", help="The file to write.")],
    changes: SetOption = None,
) -> None:
    """Learn a file's labels and write a snapshot that `run --from` begins with."""
    from streamnb.cli.history import History
    from streamnb.config import (
        build_decoder,
        build_model,
        check_lines,
        load_settings,
        snapshot_of,
    )
    from streamnb.storage import write_snapshot

    settings = load_settings(config, changes or ())
    check_lines(settings)
    model, history = build_model(settings), History(file, build_decoder(settings))
    for _, messages in watched(history.batches(), "learning", history):
        model.step(messages.batch, score=False)
    warn_of_refused(history)
    snapshot = snapshot_of(settings, model)
    size, digest = write_snapshot(output, snapshot), snapshot.digest["all"]
    print(f"{output}: {model.learned} messages, {len(model.classes)} classes, {size} bytes, digest {digest}")
