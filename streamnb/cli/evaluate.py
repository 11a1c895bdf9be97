"""`streamnb evaluate`: score, then learn, every message of a file; the work is done in `judging`."""

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

# Copied from `streamnb.evaluation`: importing it loads numpy, and `--help` must not. A test compares them.
Mode = Literal["immediate", "delayed", "partial"]
TAUGHT, SHARE = 10_000, 0.5
WINDOW_MAX = 100_000_000  # its messages are held in memory, 48 bytes each


def evaluate(
    data: LinesArgument,
    config: ConfigOption,
    json: JsonOption = False,
    limit: LimitOption = None,
    window: Annotated[
        int,
        typer.Option(
            help="Number of labelled messages in the sliding window of the column `last N` and of the plots.",
            min=1,
            max=WINDOW_MAX,
        ),
    ] = 1000,
    warm_up: Annotated[
        int, typer.Option(help="Leave this many messages at the start out of the calibration error.", min=0)
    ] = 500,
    delay: Annotated[
        int, typer.Option(help="Learn each label only after this many further messages.", min=0)
    ] = 0,
    feedback: Annotated[
        Mode,
        typer.Option(
            help="Which labels the model learns. immediate: all. delayed: only those of the first "
            "--taught messages. partial: a random --share of all. For labels that come late use --delay."
        ),
    ] = "immediate",
    taught: Annotated[
        int | None,
        typer.Option(
            help=f"For delayed feedback: learn the labels of this many messages at the start.  "
            f"[default: {TAUGHT}]",
            min=0,
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            help=f"For partial feedback: probability that a label is learned.  [default: {SHARE}]",
            min=0.0,
            max=1.0,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Random seed of partial feedback and of the confidence intervals.", min=0)
    ] = 0,
    compare: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Compare with other models on the same messages: configuration files (.toml), or mnb (plain "
            "multinomial naive Bayes), river, sklearn, vw, vw-l5 (vw with `-l 5`), vw-tokens (vw on "
            "streamnb's tokens), vw-l5-tokens (both).",
        ),
    ] = "",
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Also write an HTML report with plots; it works offline."),
    ] = None,
    changes: SetOption = None,
) -> None:
    """Measure how well a model scores a file of labelled messages.

    Each message is scored first, then learned, in the order of the file. Prints accuracy, log loss,
    calibration error and more, with 95 % confidence intervals.
    """
    from streamnb.cli import judging
    from streamnb.config import load_settings
    from streamnb.evaluation import Feedback

    if compare and plot:
        raise SettingsError(
            "`--plot` draws one model, and `--compare` runs several.", "Pass only one of the two."
        )
    for name, value, of in (("taught", taught, "delayed"), ("share", share, "partial")):
        if value is not None and feedback != of:
            raise SettingsError(
                f"`--{name}` is for `--feedback {of}`, but the feedback is `{feedback}`.",
                f"Pass `--feedback {of}`, or leave `--{name}` out.",
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
