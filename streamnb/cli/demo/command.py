"""`streamnb demo`: run the engine on a built-in broker, with a generated mailbox as the stream."""

from __future__ import annotations

import sys
from typing import Annotated

import orjson
import typer

from streamnb.cli.options import (
    JsonOption,
)


def demo(
    messages: Annotated[
        int | None, typer.Option(help="Stop after this many messages; without it, run until Ctrl-C.", min=0)
    ] = None,
    json: JsonOption = False,
    rate: Annotated[
        float | None,
        typer.Option(
            help="Messages per second; 0 is as fast as possible. Default: 40 on a terminal, otherwise 0.",
            min=0.0,
            max=1e9,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the generated mailbox.")] = 0,
    dataset: Annotated[
        str | None,
        typer.Option(help="Use river's data set sms or trec07 instead, which is downloaded the first time."),
    ] = None,
    lines: Annotated[
        bool,
        typer.Option("--lines", help="Only print the messages as JSON lines, as input for other commands."),
    ] = False,
) -> None:
    """Show live scores on a built-in broker, without any set-up.

    The engine scores and learns a generated mailbox of ham and spam. On the screen each message has its
    probability of spam, the predicted class, `=` if that is its label, `x` if not or `?` without a label, and
    the number of its unknown words.
    """
    if lines:
        _print_mail(seed, messages)
        return
    from streamnb.cli.demo.stage import Demo
    from streamnb.engine import StopOnSignals

    stage = Demo(messages=messages, seed=seed, rate=rate, dataset=dataset, quiet=json)
    with stage, StopOnSignals(stage.stop, 20.0):
        summary = stage.run()
    if json:
        print(orjson.dumps(summary).decode())


def _print_mail(seed: int, n: int | None) -> None:
    from streamnb.cli.demo.stage import message_of, stream

    for mail in stream(None, seed, n):
        sys.stdout.buffer.write(orjson.dumps(message_of(mail)) + b"\n")
