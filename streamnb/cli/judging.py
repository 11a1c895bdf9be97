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
    warn_of_refused,
    watched,
)
from streamnb.evaluation import Feedback, Mode

LimitOption = Annotated[int | None, typer.Option(help="Lines to read at most.", min=1)]


def evaluate(
    data: LinesArgument,
    config: ConfigOption,
    json: JsonOption = False,
    limit: LimitOption = None,
    window: Annotated[int, typer.Option(help="Messages of the sliding window.", min=1)] = 1000,
    warm_up: Annotated[
        int, typer.Option(help="Messages that the calibration error leaves out at first.", min=0)
    ] = 500,
    delay: Annotated[int, typer.Option(help="Messages by which every label is late.", min=0)] = 0,
    feedback: Annotated[
        Mode, typer.Option(help="Which labels are learned: all, those of the first, those of some messages.")
    ] = "immediate",
    taught: Annotated[int, typer.Option(help="For delayed: messages with a label.", min=0)] = 10_000,
    share: Annotated[float, typer.Option(help="For partial: of the labels.", min=0.0, max=1.0)] = 0.5,
    seed: Annotated[int, typer.Option(help="Of partial feedback and of the intervals.")] = 0,
    changes: SetOption = None,
) -> None:
    """Test, then learn, message by message, and print what the scores were worth."""
    from streamnb import assembly
    from streamnb.cli.tables import print_evaluation
    from streamnb.config import load
    from streamnb.evaluation import Prequential
    from streamnb.evaluation import evaluate as judged
    from streamnb.history import History

    settings = load(config, changes or ())
    model, history = assembly.model(settings), History(data, assembly.decoder(settings), limit)
    labels = Feedback(feedback, delay=delay, taught=taught, share=share, seed=seed)
    judgement = Prequential(window, warm_up)
    batches = (messages.batch for _, messages in history.batches())
    for _ in watched(judged(model, batches, labels, judgement), "evaluating", history):
        pass
    warn_of_refused(history)
    figures = judgement.figures(model.classes, intervals=True, seed=seed)
    vocabulary = sum(len(model.counts[view].rows) for view in model.counts)
    if json:
        extra = {"vocabulary": vocabulary, "refused": history.refused}
        print(orjson.dumps(asdict(figures) | extra, default=list).decode())
        return
    print_evaluation(figures, vocabulary, history.refused)
