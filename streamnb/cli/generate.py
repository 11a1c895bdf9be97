"""A labelled stream drawn from a snapshot's model, as the lines its configuration reads."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from streamnb.config.settings import Settings
from streamnb.errors import DataError
from streamnb.naive_bayes.model.naive_bayes import NaiveBayes


def lines(settings: Settings, model: NaiveBayes, n: int, seed: int) -> Iterator[bytes]:
    """Draw messages and write each as a line of JSON, labelled, with ids from ``g-0`` on.

    Parameters
    ----------
    settings : Settings
        Whose ``[message]`` says where id, label and fields stand.
    model : NaiveBayes
        What is drawn from; see `NaiveBayes.sample`.
    n : int
    seed : int

    Raises
    ------
    DataError
        The model cannot draw: it has learned nothing, or reads what no text can be made of.
    """
    try:
        for i, (x, label) in enumerate(model.sample(n, seed)):
            message: dict[str, object] = {}
            for path, value in ((settings.message.id, f"g-{i}"), *x.items(), (settings.message.label, label)):
                if path:
                    _put(message, path, value)
            yield orjson.dumps(message)
    except ValueError as error:
        raise DataError(
            f"No messages can be drawn: {error}.", "A model of words, categories, flags and numbers can."
        ) from error


def _put(message: dict[str, object], path: str, value: object) -> None:
    """A value where a dotted path says."""
    *above, last = path.split(".")
    for key in above:
        inner = message.setdefault(key, {})
        assert isinstance(inner, dict)
        message = inner
    message[last] = value
