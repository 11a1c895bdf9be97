"""`streamnb learn`: learn a file of labelled messages, so that the engine can start with their counts."""

from __future__ import annotations

from streamnb.cli.options import (
    ConfigOption,
    LinesArgument,
    OutputOption,
    SetOption,
    warn_of_refused,
    watched,
)


def learn(
    file: LinesArgument,
    config: ConfigOption,
    output: OutputOption,
    changes: SetOption = None,
) -> None:
    """Learn a file of labelled messages and write a snapshot.

    `streamnb run --from SNAPSHOT` then starts with what was learned.
    """
    from streamnb.cli.history import model_and_history
    from streamnb.config import load_settings, snapshot_of
    from streamnb.storage import write_snapshot

    settings = load_settings(config, changes or ())
    model, history = model_and_history(settings, file)
    for _, messages in watched(history.batches(), "learning", history):
        model.step(messages.batch, score=False)
    warn_of_refused(history)
    if history.read:
        history.check_labelled(model.learned_, "learn")
    snapshot = snapshot_of(settings, model)
    size, digest = write_snapshot(output, snapshot), snapshot.digest["all"]
    print(
        f"{output}: {model.learned_} messages, {len(model.classes_)} classes, {size} bytes, digest {digest}"
    )
