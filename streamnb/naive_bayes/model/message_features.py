"""A message as the views read it: weighted tokens and numbers, checked before the state is touched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from streamnb.base import Flag
from streamnb.naive_bayes.features.readers import (
    Categories,
    Category,
    Counts,
    Flags,
    Numbers,
    Terms,
    fields_of,
    parts_of,
    reads_text,
)
from streamnb.naive_bayes.features.tokenizer import Text, Tokenizer
from streamnb.naive_bayes.features.values import (
    block,
    category_counts,
    named_values,
    number,
    term_counts,
    text_of,
    value_at,
)
from streamnb.naive_bayes.model.view import View

Features = dict[str, float] | float
"""What a view reads from a message: weighted distinct tokens, named numbers, or one number (NaN if missing).
"""


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
    texts: dict[tuple[str, ...], Text] = {}
    characters: dict[str, int] = {}
    features: list[Features] = []
    flags = Flag(0)
    taken = {name for view in views for name in fields_of(view.reader)}
    for view in views:
        reader = view.reader
        if reads_text(reader):
            counts: Counts = {}
            for prefix, names in parts_of(reader):
                text = texts.get(names)
                if text is None:
                    text = texts[names] = tokenizer.read(text_of(names, fields, i, characters))
                if text.truncated:
                    flags |= Flag.TRUNCATED
                for token, n in reader.read(text, tokenizer).items():
                    counts[prefix + token] = counts.get(prefix + token, 0.0) + n
            features.append(view.weighed(counts))
            continue
        if isinstance(reader, Categories | Flags | Numbers):
            features.append(block(reader, named_values(reader, taken, fields, i)))
            continue
        field = fields_of(reader)[0]
        value = value_at(fields, field, i)
        if isinstance(reader, Terms):
            features.append(view.weighed(term_counts(value, field, reader.above)))
        elif isinstance(reader, Category):
            features.append(view.weighed(category_counts(value, field)))
        else:
            features.append(number(value, field))
    if texts and not any(text.tokens for text in texts.values()):
        flags |= Flag.EMPTY
    return MessageFeatures(features, math.log(1.0 + sum(characters.values())), flags)
