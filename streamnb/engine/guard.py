"""A guard against poisoned labels: a quota of labels per source, and a limit of certainty.

Both decisions depend only on the records and their order, so records that are read again after a crash are
decided in the same way: a window is a fixed number of a partition's offsets, and the labels counted in it
are kept with the state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from streamnb.base import Batch, Classifier, Flag, Label, Partition, Scores
from streamnb.errors import SnapshotError

# Offsets of a partition per window. For a stricter quota lower `quota`. The snapshot holds the sources of all
# open windows, so a window must not be long.
WINDOW_RECORDS = 10_000
KEY_BYTES = 8


class GuardSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which labelled messages are scored but not learned. Their scores carry a flag.

    Parameters
    ----------
    source : str
        The category field that names a message's sender, or "" for no quota. All messages without this
        field count as one source.
    quota : int
        The number of labels that are learned from one source in a window of 10,000 offsets of a partition.
    learn_below : float
        A label is not learned if the model gives it this probability or more; with 1, all labels are
        learned. Below 1, labelled messages are stepped one by one, which is slower.
    """

    source: str = ""
    quota: int = 100
    learn_below: float = 1.0

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a limit out of its range."""
        if self.quota < 1:
            raise ValueError("`quota` must be at least 1")
        if not 0 < self.learn_below <= 1:
            raise ValueError("`learn_below` must be above 0 and at most 1")


class Guard:
    """Steps a classifier over batches, and withholds the labels that it must not learn.

    Parameters
    ----------
    settings : GuardSettings
    window_records : int
        The number of offsets of a partition in a window.

    Examples
    --------
    >>> from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
    >>> guard = Guard(GuardSettings(source="from", quota=2))
    >>> batch = Batch({"text": ["win"] * 3, "from": ["mallory"] * 3}, ["ham"] * 3)
    >>> scores = guard.step(NaiveBayes(), Partition("mail", 0), [0, 1, 2], batch)
    >>> scores.flags.tolist() == [0, 0, Flag.QUOTA]
    True
    """

    def __init__(self, settings: GuardSettings, *, window_records: int = WINDOW_RECORDS) -> None:
        self.settings = settings
        self._window_records = window_records
        self._windows: dict[Partition, tuple[int, dict[str, int]]] = {}

    def step(
        self, classifier: Classifier, partition: Partition, offsets: Sequence[int], batch: Batch
    ) -> Scores:
        """Score each message, then learn it if it has a label that the guard allows.

        Parameters
        ----------
        classifier : Classifier
        partition : Partition
        offsets : sequence of int
            The messages' offsets, ascending.
        batch : Batch

        Returns
        -------
        Scores
            With the flags `QUOTA` and `CERTAIN` where a label was withheld.
        """
        allowed, over = self._within_quota(partition, offsets, batch)
        if self.settings.learn_below < 1:
            scores = self._step_by_certainty(classifier, allowed)
        else:
            scores = classifier.step(allowed)
        scores.flags[over] |= Flag.QUOTA
        return scores

    def _within_quota(
        self, partition: Partition, offsets: Sequence[int], batch: Batch
    ) -> tuple[Batch, list[int]]:
        """Return the batch without the labels beyond their source's quota, and the indices of these."""
        if not self.settings.source:
            return batch, []
        sources = batch.fields[self.settings.source]
        labels: list[Label | None] = list(batch.labels)
        over = []
        window, taught = self._windows.get(partition, (-1, {}))
        for i, offset in enumerate(offsets):
            if labels[i] is None:
                continue
            if offset // self._window_records != window:
                window, taught = offset // self._window_records, {}
            source = _key(sources[i])
            if taught.get(source, 0) >= self.settings.quota:
                labels[i] = None
                over.append(i)
            else:
                taught[source] = taught.get(source, 0) + 1
        self._windows[partition] = window, taught
        return replace(batch, labels=labels), over

    def _step_by_certainty(self, classifier: Classifier, batch: Batch) -> Scores:
        """Step labelled messages one by one, as each may change the next score, and the others in runs."""
        parts, begin = [], 0
        for i, label in enumerate(batch.labels):
            if label is None:
                continue
            if begin < i:
                parts.append(classifier.step(batch.rows(slice(begin, i))))
            one = batch.rows(slice(i, i + 1))
            score = classifier.step(one, learn=False)
            if label in score.classes and self._is_certain(score, score.classes.index(label)):
                score.flags[0] |= Flag.CERTAIN
                parts.append(score)
            else:
                parts.append(classifier.step(one))
            begin = i + 1
        if begin < len(batch.labels) or not parts:
            parts.append(classifier.step(batch.rows(slice(begin, None))))
        return Scores.joined(parts)

    def _is_certain(self, score: Scores, column: int) -> bool:
        # An only class always has probability 1; not learning it would make its share depend on the order.
        known = int(score.n_classes[0])
        return 1 < known > column and bool(score.posterior[0, column] >= self.settings.learn_below)

    def values(self) -> dict[str, object]:
        """Return the counts of the open windows, for a snapshot; sources are hashes of 64 bits."""
        return {
            "windows": [[one.topic, one.number, *window] for one, window in sorted(self._windows.items())]
        }

    def restore(self, values: object) -> None:
        """Restore what `values` returned; ``None``, from a snapshot without a guard, changes nothing.

        Raises
        ------
        SnapshotError
            The values are not a guard's.
        """
        if values is None:
            return
        try:
            held = msgspec.convert(values, dict[str, list[tuple[str, int, int, dict[str, int]]]])
        except msgspec.ValidationError as error:
            raise SnapshotError(
                f"The guard's counts in the snapshot are damaged: {error}.", "Use another snapshot."
            ) from error
        self._windows = {
            Partition(topic, number): (window, taught)
            for topic, number, window, taught in held.get("windows", [])
        }


def _key(source: object) -> str:
    """Return a source's hash: its name may be very long, and a snapshot need not name people."""
    name = f"{type(source).__name__} {source}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(name, digest_size=KEY_BYTES).hexdigest()
