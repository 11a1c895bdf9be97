"""`streamnb explain`: how much each token of a text contributes to its score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from streamnb.cli.options import (
    SnapshotArgument,
    is_unicode,
    visible,
)
from streamnb.errors import SettingsError, SnapshotError

if TYPE_CHECKING:
    from streamnb.config import Settings


def explain(
    snapshot: SnapshotArgument,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="The text to score, as the first field of `message.text`; quote it."
        ),
    ],
    top: Annotated[int, typer.Option(help="Number of tokens to list.", min=1)] = 10,
) -> None:
    """Explain how a snapshot's model scores a text.

    Prints each class's posterior, then what each token contributes for the likeliest class and against
    the second. The line with the names of these two classes has the sum of all contributions: the
    logarithm of the ratio of their posteriors, before the calibrated head's correction for wrong labels.
    A token of a view of ends is marked h (among the first tokens of the text) or t (among the last). A
    string stands for its last byte, after the bytes before it.
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
    print(f"{_filled(settings)}\n")
    posterior = model.predict_proba_one(x)
    for label, p in sorted(posterior.items(), key=lambda item: -item[1]):
        print(f"{p:8.4f}  {visible(label)}")
    print()
    if model.state.head is not None:
        corrected = math.log(posterior[explanation.classes[0]] / posterior[explanation.classes[1]])
        print(f"The logarithm of the ratio of these posteriors is {corrected:+.4f}.")
        print("Before the correction for wrong labels it is the sum of these contributions:")
    first, second = map(visible, explanation.classes)
    print(f"{first} against {second}: {explanation.total:+.4f}")
    print(f"{explanation.start:+9.4f}  before reading the text")
    for name, value in explanation.others.items():
        print(f"{value:+9.4f}  {visible(name)}")
    for view, token, value in explanation.tokens[:top]:
        print(f"{value:+9.4f}  {visible(view)}: {token!r}")
    if len(explanation.tokens) > top:
        rest = sum(part.value for part in explanation.tokens[top:])
        print(f"{rest:+9.4f}  {len(explanation.tokens) - top} other tokens")


def _filled(settings: Settings) -> str:
    """Return a sentence that names the field that the text fills, and the fields that are missing."""
    message = settings.message
    fields = (*message.text, *message.category, *message.number, *message.flag)
    names = [f"`{visible(field)}`" for field in fields]
    if not message.text:
        return "The model reads no field of text: this is the score of a message without any field."
    missing = f" Missing fields: {', '.join(names[1:])}." if names[1:] else ""
    return f"The text was scored as the field {names[0]}.{missing}"
