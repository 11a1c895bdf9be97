"""`streamnb score`: JSON lines in, scores out."""

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
    """Score JSON lines by a snapshot, one line out for each message in; nothing is learned."""
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
        )
        out.writelines(value + b"\n" for value in values)
        out.flush()
    if history.refused:
        raise DataError(
            f"{history.refused} of {history.read} lines were no messages. {history.first_refusal}"
        )
