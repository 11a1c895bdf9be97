"""Scores that are too large to publish: they list only the likeliest class, so that each can be delivered."""

from __future__ import annotations

from collections.abc import Sequence

from streamnb.base import Flag, Scores
from streamnb.wire.message import KEY_BYTES_MAX


def too_large(values: Sequence[bytes], keys: Sequence[bytes | None], bytes_max: int) -> list[int]:
    """Return the rows whose score and key together have more than `bytes_max` bytes."""
    if max(map(len, values), default=0) + KEY_BYTES_MAX <= bytes_max:
        return []
    return [
        row
        for row, (value, key) in enumerate(zip(values, keys, strict=True))
        if len(value) + len(key or b"") > bytes_max
    ]


def cut(scores: Scores, row: int) -> Scores:
    """Return one row's score with the flag `CUT` and without explanation, to be encoded with one class.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> scores = NaiveBayes(classes=["ham", "spam"]).score_one({"text": "hello"})
    >>> cut(scores, 0).to_dicts()[0]["flags"]
    ['cut']
    """
    one = scores.take([row])
    one.flags |= Flag.CUT
    one.explanations = None
    return one
