"""`streamnb run`: the engine, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamnb.cli.options import ConfigArgument, SetOption

if TYPE_CHECKING:
    from streamnb.engine import Engine


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
    from streamnb.config import build_engine, load_settings, load_snapshot
    from streamnb.engine import Metrics, supervise
    from streamnb.naive_bayes import compiled, reason

    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("kafka").setLevel(logging.WARNING if verbose else logging.CRITICAL)
    if not compiled:
        logging.getLogger("streamnb").warning("plain Python, about fifty times slower: %s", reason)
    settings = load_settings(config, changes or ())
    begin = load_snapshot(begin_from) if begin_from is not None else None
    metrics = Metrics()
    metrics.serve(settings.metrics)
    starts = iter([rebuild])

    def build() -> Engine:
        again = next(starts, False)  # damaged snapshots are moved aside once, not at each new engine
        return build_engine(settings, metrics=metrics, until_end=until_end, rebuild=again)

    summary = supervise(build, begin)
    logging.getLogger("streamnb").info(
        "stopped after %d records: %d scored, %d learned, %d dead letters in %.1f s; digest %s",
        summary.records,
        summary.scored,
        summary.learned,
        summary.dead_letters,
        summary.seconds,
        summary.digest["all"],
    )
