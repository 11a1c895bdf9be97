"""Select the messages of a batch that are scored, learned and published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamnb.base import Flag, Label, Scores
from streamnb.wire import Output


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows of one batch that are scored, learned, refused and published.

    Parameters
    ----------
    scored : int
        Number of messages that have a score in the output topic once the batch is done.
    learned : int
        Number of labels that the model learned.
    over_limit : list of int
        Indices of the messages whose label would be one class more than `classes_max`, ascending. They
        become dead letters.
    published : list of int
        Indices of the messages whose score is published now, ascending. These are the scored ones without
        those that an earlier process published in a committed transaction.
    """

    scored: int
    learned: int
    over_limit: list[int]
    published: list[int]


def select(
    scores: Scores,
    labels: Sequence[Label | None],
    offsets: Sequence[int],
    *,
    output: Output,
    published_before: int = 0,
) -> Selection:
    """Return which messages of a scored and learned batch are published or refused, and count the others.

    Parameters
    ----------
    scores : Scores
    labels : sequence of Label or None
    offsets : sequence of int
        The messages' offsets, ascending.
    output : Output
        Its `emit` decides whether labelled messages have a published score.
    published_before : int
        The scores of lower offsets were published in a committed transaction.

    Examples
    --------
    >>> from streamnb import NaiveBayes
    >>> from streamnb.base import Batch
    >>> batch = Batch({"text": ["win", "lunch", "win"]}, ["spam", "ham", None])
    >>> scores = NaiveBayes(classes_max=1).step(batch)
    >>> select(scores, batch.labels, [7, 8, 9], output=Output(), published_before=8)
    Selection(scored=2, learned=1, over_limit=[1], published=[2])
    """
    labelled = np.fromiter((label is not None for label in labels), bool, len(labels))
    accepted = (scores.flags & Flag.CLASS_LIMIT) == 0
    guarded = (scores.flags & (Flag.QUOTA | Flag.CERTAIN)) != 0
    scored = accepted & ~labelled if output.emit == "unlabelled" else accepted
    published = scored
    if offsets and offsets[0] < published_before:
        published = scored & (np.asarray(offsets) >= published_before)
    return Selection(
        scored=int(np.count_nonzero(scored)),
        learned=int(np.count_nonzero(accepted & labelled & ~guarded)),
        over_limit=np.flatnonzero(~accepted).tolist(),
        published=np.flatnonzero(published).tolist(),
    )
