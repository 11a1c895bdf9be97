"""`streamnb tune`: choose settings on the first part of a file and check them on the rest; see `tuning`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import orjson
import typer

from streamnb.cli.options import (
    ConfigOption,
    JsonOption,
    LimitOption,
    LinesArgument,
    SetOption,
    warn_of_refused,
    watched,
)
from streamnb.errors import SettingsError


def tune(
    data: LinesArgument,
    config: ConfigOption,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE.KEY=VALUE,...",
            help="A setting and the values to try; if repeated, all combinations are tried. Default: four "
            "sets of text views, each with four strengths of smoothing, and the given views with two "
            "half-lives.",
        ),
    ] = None,
    part: Annotated[
        float,
        typer.Option(
            help="Share of the file used to choose the settings; the rest checks the choice.",
            min=0.01,
            max=0.99,
        ),
    ] = 0.5,
    json: JsonOption = False,
    limit: LimitOption = None,
    changes: SetOption = None,
) -> None:
    """Choose the best settings for a file of labelled messages.

    The combinations of a grid are compared on the first part of the file, and the best one is checked on the
    rest. Prints the log loss of each, and whether the best one is significantly better than the given
    settings.
    """
    from streamnb.cli.history import History, batches_of
    from streamnb.cli.tables import print_tuning
    from streamnb.cli.tuning import candidates
    from streamnb.cli.tuning import tune as tuned
    from streamnb.config import build_decoder, load_settings

    settings = load_settings(config, changes or ())
    tried = candidates(settings, grid or ())
    if data == "-":
        raise SettingsError(
            "Standard input cannot be read twice.", "Pass a file; tune first counts its messages."
        )
    decoder = build_decoder(settings)
    history = History(data, decoder, limit)
    n = labelled = 0
    for batch in watched(batches_of(history), "counting", history):
        n += len(batch)
        labelled += len(batch) - list(batch.labels).count(None)
    history.check_labelled(labelled, "compare")
    history = History(data, decoder, limit)
    steps = tuned(config, changes or (), tried, batches_of(history), int(part * n))
    *_, found = watched(steps, "tuning", history)
    warn_of_refused(history)
    assert found is not None
    if json:
        apart = found.apart and {**found.apart._asdict(), "within_noise": found.apart.within_noise}
        print(orjson.dumps(asdict(found) | {"apart": apart}, default=list).decode())
        return
    print_tuning(found, config.name, settings.model.bytes_max)
