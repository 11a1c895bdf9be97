"""Commands of a model: learn a history, score, explain and draw by a snapshot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from streamnb.cli.shared import (
    ConfigOption,
    LinesArgument,
    SetOption,
    SnapshotArgument,
    warn_of_refused,
    watched,
)
from streamnb.errors import DataError, SnapshotError


def learn(
    file: LinesArgument,
    config: ConfigOption,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="SNAPSHOT", help="The file to write.")],
    changes: SetOption = None,
) -> None:
    """Learn a file's labels and write a snapshot that `run --from` begins with."""
    from streamnb.cli.history import History
    from streamnb.config import assembly
    from streamnb.config.settings import load
    from streamnb.storage import directory as snapshots

    settings = load(config, changes or ())
    assembly.check_lines(settings)
    model, history = assembly.model(settings), History(file, assembly.decoder(settings))
    for _, messages in watched(history.batches(), "learning", history):
        model.step(messages.batch, score=False)
    warn_of_refused(history)
    snapshot = assembly.snapshot_of(settings, model)
    size, digest = snapshots.write(output, snapshot), snapshot.digest["all"]
    print(f"{output}: {model.learned} messages, {len(model.classes)} classes, {size} bytes, digest {digest}")


def score(
    snapshot: SnapshotArgument,
    file: LinesArgument = "-",
) -> None:
    """Score JSON lines by a snapshot, one line out for each message in; nothing is learned."""
    from streamnb.cli.history import History
    from streamnb.config import assembly
    from streamnb.wire.score import encode

    settings, model = assembly.restored(assembly.snapshot_at(snapshot))
    history = History(file, assembly.decoder(settings))
    out = sys.stdout.buffer
    for records, messages in history.batches():
        scores = model.step(messages.batch, learn=False)
        values = encode(
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


def explain(
    snapshot: SnapshotArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A message's text.")],
    top: Annotated[int, typer.Option(help="Tokens to name.", min=1)] = 10,
) -> None:
    """Say why a snapshot's model scores a text as it does; the parts add up to the difference."""
    from streamnb.config import assembly

    settings, model = assembly.restored(assembly.snapshot_at(snapshot))
    x = dict.fromkeys(settings.message.text[:1], text)
    explanation = model.explain_one(x)
    if explanation is None:
        raise SnapshotError(
            f"{snapshot} has learned fewer than two classes.", "There is nothing to tell apart."
        )
    for label, p in sorted(model.predict_proba_one(x).items(), key=lambda item: -item[1]):
        print(f"{p:8.4f}  {label}")
    first, second = explanation.classes
    print(f"\n{first} against {second}: {explanation.total:+.4f}")
    print(f"{explanation.start:+9.4f}  before reading")
    for name, value in explanation.others.items():
        print(f"{value:+9.4f}  {name}")
    for view, token, value in explanation.tokens[:top]:
        print(f"{value:+9.4f}  {view}: {token!r}")
    if len(explanation.tokens) > top:
        rest = sum(part.value for part in explanation.tokens[top:])
        print(f"{rest:+9.4f}  {len(explanation.tokens) - top} other tokens")


def generate(
    snapshot: SnapshotArgument,
    n: Annotated[int, typer.Option("--messages", "-n", help="How many.", min=0)] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed, the same messages.", min=0)] = 0,
) -> None:
    """Draw labelled messages from a snapshot's model, one JSON line each."""
    from streamnb.cli.generate import lines
    from streamnb.config import assembly
    from streamnb.storage import directory as snapshots

    settings, model = assembly.restored(snapshots.read(snapshot))
    for line in lines(settings, model, n, seed):
        sys.stdout.buffer.write(line + b"\n")
