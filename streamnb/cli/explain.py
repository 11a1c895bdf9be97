"""`streamnb explain`: the tokens that made a score."""

from __future__ import annotations

from typing import Annotated

import typer

from streamnb.cli.options import (
    SnapshotArgument,
)
from streamnb.errors import SnapshotError


def explain(
    snapshot: SnapshotArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A message's text.")],
    top: Annotated[int, typer.Option(help="Tokens to name.", min=1)] = 10,
) -> None:
    """Say why a snapshot's model scores a text as it does; the parts add up to the difference."""
    from streamnb.config import (
        load_snapshot,
        restore_model,
    )

    settings, model = restore_model(load_snapshot(snapshot))
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
