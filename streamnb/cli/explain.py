"""`streamnb explain`: how much each token of a text contributes to its score."""

from __future__ import annotations

from typing import Annotated

import typer

from streamnb.cli.options import (
    SnapshotArgument,
    is_unicode,
    visible,
)
from streamnb.errors import SettingsError, SnapshotError


def explain(
    snapshot: SnapshotArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to score; quote it.")],
    top: Annotated[int, typer.Option(help="Number of tokens to list.", min=1)] = 10,
) -> None:
    """Explain how a snapshot's model scores a text.

    Prints each class's posterior, then what each token contributes for the likeliest class and against
    the second. The line with the names of these two classes has the sum of all contributions: the
    logarithm of the ratio of their posteriors, before the calibrated head's correction for wrong labels.
    """
    from streamnb.config import (
        build_decoder,
        load_snapshot,
        restore_model,
    )

    if not is_unicode(text):
        raise SettingsError("The text has bytes that are not UTF-8.", "Use a terminal or a script in UTF-8.")
    settings, model = restore_model(load_snapshot(snapshot))
    build_decoder(settings)  # refuses a model that does not read fields of a message, and so not this text
    x = dict.fromkeys(settings.message.text[:1], text)
    explanation = model.explain_one(x)
    if explanation is None:
        raise SnapshotError(
            f"{snapshot} has learned fewer than two classes, so there is no score to explain.",
            "Choose a snapshot that has learned labels of two classes.",
        )
    for label, p in sorted(model.predict_proba_one(x).items(), key=lambda item: -item[1]):
        print(f"{p:8.4f}  {visible(label)}")
    first, second = map(visible, explanation.classes)
    print(f"\n{first} against {second}: {explanation.total:+.4f}")
    print(f"{explanation.start:+9.4f}  before reading the text")
    for name, value in explanation.others.items():
        print(f"{value:+9.4f}  {visible(name)}")
    for view, token, value in explanation.tokens[:top]:
        print(f"{value:+9.4f}  {visible(view)}: {token!r}")
    if len(explanation.tokens) > top:
        rest = sum(part.value for part in explanation.tokens[top:])
        print(f"{rest:+9.4f}  {len(explanation.tokens) - top} other tokens")
