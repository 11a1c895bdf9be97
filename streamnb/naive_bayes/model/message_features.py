"""A message as the views read it: weighted tokens and numbers, checked before the state is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from streamnb.base import Flag
from streamnb.naive_bayes.features.message import Message
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.view import View

Features = Mapping[str, float]
"""What a view reads from a message: weighted distinct tokens, or named numbers."""


class MessageFeatures(NamedTuple):
    """The features of one message.

    Parameters
    ----------
    features : list of Features
        One per view.
    length : float
        ``ln(1 + code points)`` of the text fields together.
    flags : Flag
    scale : float
        The weight of a pseudo-count of 1 at the message's time; 1 in a model that does not forget.
    """

    features: list[Features]
    length: float
    flags: Flag
    scale: float = 1.0


def read_message(
    views: Sequence[View], tokenizer: Tokenizer, fields: Mapping[str, Sequence[object]], i: int
) -> MessageFeatures:
    """Read the features of message i of a batch.

    Raises
    ------
    ValueError
        A field holds a value that its view cannot read.
    """
    message = Message(fields, i, tokenizer, named_fields(views))
    features = [view.features(message) for view in views]
    flags = Flag(0)
    if message.is_truncated:
        flags |= Flag.TRUNCATED
    if message.is_empty:
        flags |= Flag.EMPTY
    return MessageFeatures(features, message.length, flags)


def named_fields(views: Sequence[View]) -> set[str]:
    """Return the fields that the views name; a block that names none reads all others."""
    return {name for view in views for name in view.reader.named_fields}
