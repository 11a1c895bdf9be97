"""`streamnb tune`: try settings on the first part of a file, judge them on the rest."""

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
        list[str] | None, typer.Option(metavar="TABLE.KEY=VALUE,...", help="What to try; repeatable.")
    ] = None,
    part: Annotated[
        float, typer.Option(help="Share of the messages to choose by.", min=0.01, max=0.99)
    ] = 0.5,
    json: JsonOption = False,
    limit: LimitOption = None,
    changes: SetOption = None,
) -> None:
    """Try settings on the first part of a file, and report on the rest whether a change is worth it."""
    from streamnb.cli.history import History, batches_of
    from streamnb.cli.tables import print_tuning
    from streamnb.cli.tuning import candidates
    from streamnb.cli.tuning import tune as tuned
    from streamnb.config import build_decoder, load_settings

    settings = load_settings(config, changes or ())
    tried = candidates(settings, grid or ())
    if data == "-":
        raise SettingsError("Standard input cannot be read twice.", "Give a file: its messages are counted.")
    decoder = build_decoder(settings)
    history = History(data, decoder, limit)
    n = sum(len(batch) for batch in watched(batches_of(history), "counting", history))
    history = History(data, decoder, limit)
    steps = tuned(config, changes or (), tried, batches_of(history), int(part * n))
    *_, found = watched(steps, "tuning", history)
    warn_of_refused(history)
    assert found is not None
    if json:
        apart = found.apart and {**found.apart._asdict(), "within_noise": found.apart.within_noise}
        print(orjson.dumps(asdict(found) | {"apart": apart}, default=list).decode())
        return
    print_tuning(found, config.name, settings.model.max_tokens)
