"""Simulated feedback: which labels a model learns (all, the first ones, a random share), and how late."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from typing import Literal

from streamnb.base import Batch, Label

Mode = Literal["immediate", "delayed", "partial"]

TAUGHT, SHARE = 10_000, 0.5


class Feedback:
    """Rearranges a labelled stream into the order in which a model scores messages and learns labels.

    A label that is `delay` messages late is learned after that many further messages were scored. The model
    then reads the message a second time, so the step that learns the label uses the state of that moment.

    Parameters
    ----------
    mode : {"immediate", "delayed", "partial"}
        The feedback conditions of the TREC 2007 spam track. "immediate": every label is learned. "delayed":
        the labels of the first `taught` messages are learned, then none. "partial": the labels of some
        messages are learned. TREC chose those by recipient; here each is drawn with probability `share`.
    delay : int
        After how many further messages a label arrives; that many messages are held in memory.
    taught : int
        Number of first messages whose labels are learned; used by "delayed".
    share : float
        Probability that a label is learned; used by "partial".
    seed : int
        Random seed, used by "partial": the same seed selects the same messages.

    Examples
    --------
    >>> feedback = Feedback(delay=1)
    >>> batch, asked = feedback.arranged(Batch({"text": ["a", "b", "c"]}, ["x", "y", "x"]))
    >>> list(zip(batch.fields["text"], batch.labels))
    [('a', None), ('b', None), ('a', 'x'), ('c', None), ('b', 'y')]
    >>> asked
    [0, 1, 3]
    """

    def __init__(
        self,
        mode: Mode = "immediate",
        *,
        delay: int = 0,
        taught: int = TAUGHT,
        share: float = SHARE,
        seed: int = 0,
    ) -> None:
        self.mode = mode
        self.delay = delay
        self.taught = taught
        self.share = share
        self._draw = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._n = 0
        self._waiting: deque[tuple[dict[str, object], Label | None, float]] = deque()

    def arranged(self, batch: Batch) -> tuple[Batch, Sequence[int]]:
        """Return the batch that the model steps through, and which of its rows are the messages of `batch`.

        The other rows are earlier messages whose labels arrive now; their scores must be ignored.
        """
        given = [label if self._is_given() else None for label in batch.labels]
        if not self.delay:
            return Batch(batch.fields, given, batch.weights), range(len(batch))
        rows: list[tuple[dict[str, object], Label | None, float]] = []
        asked: list[int] = []
        for i, label in enumerate(given):
            x = {field: column[i] for field, column in batch.fields.items()}
            asked.append(len(rows))
            rows.append((x, None, 1.0))
            self._waiting.append((x, label, 1.0 if batch.weights is None else batch.weights[i]))
            if len(self._waiting) > self.delay:
                arrived = self._waiting.popleft()
                if arrived[1] is not None:
                    rows.append(arrived)
        fields = {field: [x[field] for x, _, _ in rows] for field in batch.fields}
        weights = None if batch.weights is None else [weight for _, _, weight in rows]
        return Batch(fields, [label for _, label, _ in rows], weights), asked

    def _is_given(self) -> bool:
        self._n += 1
        if self.mode == "delayed":
            return self._n <= self.taught
        return self.mode == "immediate" or self._draw.random() < self.share
