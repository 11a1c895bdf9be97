"""Commands that judge models on a stream: test, then learn."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import orjson
import typer

from streamnb.cli.shared import (
    ConfigOption,
    JsonOption,
    LinesArgument,
    SetOption,
    readable,
    warn_of_refused,
    watched,
)


def evaluate(
    data: LinesArgument,
    config: ConfigOption,
    json: JsonOption = False,
    limit: Annotated[int | None, typer.Option(help="Messages to read at most.", min=1)] = None,
    changes: SetOption = None,
) -> None:
    """Test, then learn, message by message, and print what the scores were worth."""
    from streamnb import assembly
    from streamnb.config import load
    from streamnb.evaluation import Prequential
    from streamnb.evaluation import evaluate as judged
    from streamnb.history import History

    settings = load(config, changes or ())
    assembly.check_lines(settings)
    model, history = assembly.model(settings), History(data, assembly.decoder(settings), limit)
    judgement = Prequential()
    for step in watched(judged(model, (m.batch for _, m in history.batches())), "evaluating"):
        judgement = step[0]
    warn_of_refused(history)
    vocabulary = sum(len(model.counts[view].rows) for view in model.counts)
    figures = asdict(judgement.figures(model.classes)) | {
        "vocabulary": vocabulary,
        "refused": history.refused,
    }
    if json:
        print(orjson.dumps(figures).decode())
        return
    for name, value in figures.items():
        print(f"{name:>16}  {readable(value)}")
