"""`streamnb demo`: the engine on a broker of its own, over a generated mailbox."""

from __future__ import annotations

import sys
from typing import Annotated

import orjson
import typer

from streamnb.cli.options import (
    JsonOption,
)


def demo(
    messages: Annotated[int | None, typer.Option(help="Stop after this many; without it, at Ctrl-C.")] = None,
    json: JsonOption = False,
    rate: Annotated[float | None, typer.Option(help="Messages a second; 0 for as many as can be.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another mailbox.")] = 0,
    dataset: Annotated[
        str | None, typer.Option(help="sms or trec07: river's data sets, where there is a network.")
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Only print the messages, as JSON lines for the other commands.")
    ] = False,
) -> None:
    """Run the engine on a broker of its own, over a generated mailbox: live scores, no set-up."""
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
