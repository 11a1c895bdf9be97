"""Scores that are too large to publish: they list only the likeliest class, so that each can be delivered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
    """Return one row's score with the flag `CUT`, its likeliest class only and no explanation.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> scores = NaiveBayes(classes=["ham", "spam"]).score_one({"text": "hello"})
    >>> cut(scores, 0).to_dicts()[0]["posterior"], cut(scores, 0).to_dicts()[0]["flags"]
    ({'ham': 0.5}, ['cut'])
    """
    one = scores.take([row])
    names = scores.classes_as_text()[: int(one.n_classes[0])]
    likeliest = min(range(len(names)), key=lambda c: (-one.posterior[0, c], names[c]))
    column = slice(likeliest, likeliest + 1)
    return Scores(
        classes=scores.classes[column],
        n_classes=np.ones_like(one.n_classes),
        posterior=one.posterior[:, column],
        log_odds=one.log_odds[:, column],
        u=one.u[:, column],
        raw_posterior=None if one.raw_posterior is None else one.raw_posterior[:, column],
        known_tokens=one.known_tokens,
        unknown_tokens=one.unknown_tokens,
        learned=one.learned,
        learned_by_class=one.learned_by_class[:, column],
        flags=one.flags | Flag.CUT,
    )
