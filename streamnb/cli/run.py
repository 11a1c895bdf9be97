"""`streamnb run`: run the engine until SIGTERM or Ctrl-C."""

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
        typer.Option(
            "--from",
            metavar="SNAPSHOT",
            help="Start with what this snapshot has learned; only while the snapshot directory is empty. "
            "Views that the configuration adds start empty, and views that it lacks are dropped.",
        ),
    ] = None,
    changes: SetOption = None,
    until_end: Annotated[
        bool,
        typer.Option(
            "--until-end",
            help="Stop after the records that the input holds at the start, instead of waiting for more.",
        ),
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild",
            help="If every snapshot is damaged, move them aside and start over from `engine.start`.",
        ),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also log the Kafka client's warnings.")] = False,
) -> None:
    """Run the engine until SIGTERM or Ctrl-C.

    The engine reads records, publishes a score for each message and learns the labels. It resumes from the
    newest snapshot, and finishes the current batch before it stops.
    """
    from streamnb.config import build_engine, grown, load_settings, load_snapshot
    from streamnb.engine import Metrics, supervise
    from streamnb.naive_bayes import compiled, reason

    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.captureWarnings(capture=True)  # the model's, of a category that is text
    logging.getLogger("kafka").setLevel(logging.WARNING if verbose else logging.CRITICAL)
    if not compiled:
        logging.getLogger("streamnb").warning(
            "the model runs in plain Python, fifty to eighty times slower: %s", reason
        )
    settings = load_settings(config, changes or ())
    begin = None if begin_from is None else grown(settings, load_snapshot(begin_from), begin_from)
    metrics = Metrics()
    metrics.serve(settings.metrics)
    starts = iter([rebuild])

    def build() -> Engine:
        again = next(starts, False)  # rebuild in the first engine only, not again when supervise replaces it
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
