"""Which labels reach a model, and when: at once, late, for a while only, or for some messages only."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from typing import Literal

from streamnb.base import Batch, Label

Mode = Literal["immediate", "delayed", "partial"]

TAUGHT, SHARE = 10_000, 0.5


class Feedback:
    """Turns messages with labels into what a model is asked and taught, message by message.

    A label that comes `delay` messages late is learned after so many further messages were scored. The
    message is then read again: a step learns from the model as it stands when the label arrives.

    Parameters
    ----------
    mode : {"immediate", "delayed", "partial"}
        As in the TREC 2007 spam track: every label, the labels of the first `taught` messages and then none,
        or the labels of some messages. TREC chose those by recipient; here each is drawn with chance `share`.
    delay : int
        How many messages later a label arrives; as many are held in memory.
    taught : int
        For "delayed".
    share : float
        For "partial".
    seed : int
        For "partial": the same seed, the same messages.

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
        self._draw = random.Random(seed)  # noqa: S311 - a choice that can be repeated, not a secret
        self._n = 0
        self._waiting: deque[tuple[dict[str, object], Label | None, float]] = deque()

    def arranged(self, batch: Batch) -> tuple[Batch, Sequence[int]]:
        """What a model is to step through, in order, and which rows of it are the batch's messages.

        The other rows are earlier messages whose label arrives; what the model says of them is nobody's.
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
