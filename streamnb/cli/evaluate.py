"""`streamnb evaluate`: test, then learn, over a file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from streamnb.cli.options import (
    ConfigOption,
    JsonOption,
    LimitOption,
    LinesArgument,
    SetOption,
)
from streamnb.errors import SettingsError

# Written again, because `streamnb.evaluation` loads numpy and `--help` must not; a test compares them.
Mode = Literal["immediate", "delayed", "partial"]
TAUGHT, SHARE = 10_000, 0.5


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
    taught: Annotated[
        int | None, typer.Option(help=f"For delayed: messages with a label.  [default: {TAUGHT}]", min=0)
    ] = None,
    share: Annotated[
        float | None, typer.Option(help=f"For partial: of the labels.  [default: {SHARE}]", min=0.0, max=1.0)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of partial feedback and of the intervals.")] = 0,
    compare: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Models to run beside: .toml files, river, sklearn, mnb, vw[-l5][-tokens].",
        ),
    ] = "",
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Draw the figures on a page that needs no network."),
    ] = None,
    changes: SetOption = None,
) -> None:
    """Test, then learn, message by message, and print what the scores were worth."""
    from streamnb.cli import judging
    from streamnb.config import load_settings
    from streamnb.evaluation import Feedback

    if compare and plot:
        raise SettingsError("`--plot` draws one model, and `--compare` runs several.", "Leave one out.")
    for name, value, of in (("taught", taught, "delayed"), ("share", share, "partial")):
        if value is not None and feedback != of:
            raise SettingsError(
                f"`--{name}` is for `--feedback {of}`, and that is not asked for.", f"Add `--feedback {of}`."
            )
    judging.judge(
        load_settings(config, changes or ()),
        config.name,
        data,
        limit=limit,
        judgement=judging.Judgement(window, warm_up, seed),
        labels=partial(
            Feedback,
            feedback,
            delay=delay,
            taught=TAUGHT if taught is None else taught,
            share=SHARE if share is None else share,
            seed=seed,
        ),
        compare=compare.split(",") if compare else [],
        plot=plot,
        json=json,
    )
