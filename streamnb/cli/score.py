"""`streamnb score`: score a file of messages with a snapshot, without learning."""

from __future__ import annotations

import sys

from streamnb.cli.options import (
    LinesArgument,
    SnapshotArgument,
)
from streamnb.errors import DataError


def score(
    snapshot: SnapshotArgument,
    file: LinesArgument = "-",
) -> None:
    """Score a file of messages with a snapshot; nothing is learned.

    Prints one JSON object per message. If a line is not a usable message, the exit code is 65.
    """
    from streamnb.cli.history import History
    from streamnb.config import (
        build_decoder,
        load_snapshot,
        restore_model,
    )
    from streamnb.wire import encode_scores

    settings, model = restore_model(load_snapshot(snapshot))
    history = History(file, build_decoder(settings))
    out = sys.stdout.buffer
    for records, messages in history.batches():
        scores = model.step(messages.batch, learn=False)
        values = encode_scores(
            scores,
            ids=messages.ids,
            model=settings.model.name,
            partition=records.partition,
            offsets=[records.offsets[row] for row in messages.rows],
            abstained=settings.output.abstain.reasons(scores),
            top_classes=settings.output.top_classes,
        )
        out.writelines(value + b"\n" for value in values)
        out.flush()
    if history.refused:
        raise DataError(
            f"{history.refused} of {history.read} lines are not usable messages. {history.first_refusal}",
            "The other lines were scored.",
        )
