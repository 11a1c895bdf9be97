"""Commands of the stream: run the engine, try its settings, fill a topic, see it all at work."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from streamnb.cli.shared import ConfigArgument, JsonOption, LinesArgument, SetOption
from streamnb.errors import SettingsError, StreamnbError

if TYPE_CHECKING:
    from streamnb.engine.engine import Engine


def run(
    config: ConfigArgument,
    begin_from: Annotated[
        Path | None,
        typer.Option("--from", metavar="SNAPSHOT", help="Begin with what a snapshot has learned."),
    ] = None,
    changes: SetOption = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop at the ends that the partitions have now.")
    ] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Where every snapshot is damaged: move them aside, begin anew.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log the Kafka client's warnings too.")] = False,
) -> None:
    """Run the engine: records in, scores out, until SIGTERM or Ctrl-C (the batch in hand is finished)."""
    from streamnb.config import assembly
    from streamnb.config.settings import load
    from streamnb.engine import supervision
    from streamnb.engine.metrics import Metrics
    from streamnb.naive_bayes import _kernel

    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("kafka").setLevel(logging.WARNING if verbose else logging.CRITICAL)
    if not _kernel.compiled:
        logging.getLogger("streamnb").warning("plain Python, about fifty times slower: %s", _kernel.reason)
    settings = load(config, changes or ())
    begin = assembly.snapshot_at(begin_from) if begin_from is not None else None
    metrics = Metrics()
    metrics.serve(settings.metrics)
    starts = iter([rebuild])

    def build() -> Engine:
        again = next(starts, False)  # damaged snapshots are moved aside once, not at each new engine
        return assembly.engine(settings, metrics=metrics, until_end=until_end, rebuild=again)

    summary = supervision.run(build, begin)
    logging.getLogger("streamnb").info(
        "stopped after %d records: %d scored, %d learned, %d dead letters in %.1f s; digest %s",
        summary.records,
        summary.scored,
        summary.learned,
        summary.dead_letters,
        summary.seconds,
        summary.digest["all"],
    )


def check(
    config: ConfigArgument,
    changes: SetOption = None,
    create: Annotated[
        int,
        typer.Option(metavar="PARTITIONS", help="Make the topics that are missing, with so many partitions."),
    ] = 0,
) -> None:
    """Try settings, model, snapshot directory, broker and topics: ready, or why not."""
    from streamnb.config.checks import checks
    from streamnb.config.settings import load

    settings = load(config, changes or ())
    failure: StreamnbError | None = None
    for name, attempt in checks(settings, create):
        try:
            print(f"ok    {name}: {attempt()}")
        except StreamnbError as error:
            print(f"FAIL  {name}: {error}")
            failure = failure or error
    if failure is not None:
        raise typer.Exit(failure.exit_code)
    print("ready")


def produce(
    file: LinesArgument,
    topic: Annotated[str, typer.Option(help="Where to.")],
    config: Annotated[Path | None, typer.Option("--config", "-c", help="For its table [kafka].")] = None,
    servers: Annotated[str | None, typer.Option("--bootstrap-servers", help="In place of a config.")] = None,
    create: Annotated[
        int,
        typer.Option(metavar="PARTITIONS", help="Make the topic, with so many partitions, if it is missing."),
    ] = 0,
    changes: SetOption = None,
) -> None:
    """Send lines into a Kafka topic, line n to partition n modulo how many there are."""
    from streamnb.cli.produce import produce as send
    from streamnb.config.settings import client, load

    if (config is None) == (servers is None):
        raise SettingsError("Which broker?", "Give either --config or --bootstrap-servers.")
    brokers = client(load(config, changes or ())) if config is not None else {"bootstrap_servers": servers}
    sent, partitions = send(file, topic, brokers, create)
    print(f"{sent} records to {topic}, {partitions} partition{'s' if partitions > 1 else ''}")


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
    from streamnb.cli.demo.demo import Demo
    from streamnb.engine.signals import StopOnSignals

    stage = Demo(messages=messages, seed=seed, rate=rate, dataset=dataset, quiet=json)
    with stage, StopOnSignals(stage.stop, 20.0):
        summary = stage.run()
    if json:
        print(orjson.dumps(summary).decode())


def _print_mail(seed: int, n: int | None) -> None:
    from streamnb.cli.demo.demo import message_of, stream

    for mail in stream(None, seed, n):
        sys.stdout.buffer.write(orjson.dumps(message_of(mail)) + b"\n")
