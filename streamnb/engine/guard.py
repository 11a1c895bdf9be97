"""A guard against poisoned labels: what a source may teach, and what need not be learned any more.

Both decisions depend on the records alone, in their order, so that what is read again after a crash is
decided again in the same way: a window is so many offsets of one partition, and what was taught in it is
kept with the state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from streamnb.base import Batch, Classifier, Flag, Label, Partition, Scores
from streamnb.errors import SnapshotError

WINDOW_RECORDS_MAX = 100_000
KEY_BYTES = 8


class GuardSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is not learned, though it is labelled. It is scored, and its score says so.

    Parameters
    ----------
    source : str
        The category field that says where a message is from; "" for no quota. Messages without it are from
        one source together.
    quota : int
        Labels that a source may teach in a window.
    window_records : int
        So many offsets of a partition are a window.
    learn_below : float
        A label that the model gives this probability or more is not learned; 1 learns them all. Messages
        with a label are then taken one by one, which is slower.
    """

    source: str = ""
    quota: int = 100
    window_records: int = 10_000
    learn_below: float = 1.0

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a limit out of its range."""
        if not 1 <= self.window_records <= WINDOW_RECORDS_MAX or self.quota < 1:
            raise ValueError(f"`quota` must be at least 1, `window_records` from 1 to {WINDOW_RECORDS_MAX:,}")
        if not 0 < self.learn_below <= 1:
            raise ValueError("`learn_below` must be above 0 and at most 1")


class Guard:
    """Steps a classifier over the messages of one partition after the other, and lets it learn some.

    Parameters
    ----------
    settings : GuardSettings

    Examples
    --------
    >>> from streamnb.naive_bayes.model.naive_bayes import NaiveBayes
    >>> guard = Guard(GuardSettings(source="from", quota=2))
    >>> batch = Batch({"text": ["win"] * 3, "from": ["mallory"] * 3}, ["ham"] * 3)
    >>> scores = guard.step(NaiveBayes(), Partition("mail", 0), [0, 1, 2], batch)
    >>> scores.flags.tolist() == [0, 0, Flag.QUOTA]
    True
    """

    def __init__(self, settings: GuardSettings) -> None:
        self.settings = settings
        self._windows: dict[Partition, tuple[int, dict[str, int]]] = {}

    def step(
        self, classifier: Classifier, partition: Partition, offsets: Sequence[int], batch: Batch
    ) -> Scores:
        """Score each message, then learn it if it has a label and nothing is said against it.

        Parameters
        ----------
        classifier : Classifier
        partition : Partition
        offsets : sequence of int
            Of the messages.
        batch : Batch
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
        """The batch without the labels that are over their source's quota, and where those stand."""
        if not self.settings.source:
            return batch, []
        sources = batch.fields[self.settings.source]
        labels: list[Label | None] = list(batch.labels)
        over = []
        window, taught = self._windows.get(partition, (-1, {}))
        for i, offset in enumerate(offsets):
            if labels[i] is None:
                continue
            if offset // self.settings.window_records != window:
                window, taught = offset // self.settings.window_records, {}
            source = _key(sources[i])
            if taught.get(source, 0) >= self.settings.quota:
                labels[i] = None
                over.append(i)
            else:
                taught[source] = taught.get(source, 0) + 1
        self._windows[partition] = window, taught
        return replace(batch, labels=labels), over

    def _step_by_certainty(self, classifier: Classifier, batch: Batch) -> Scores:
        """Unlabelled messages in runs, labelled ones one by one: the next score may depend on each."""
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
        # An only class is always certain, and has to be learned all the same.
        known = int(score.n_classes[0])
        return 1 < known > column and bool(score.posterior[0, column] >= self.settings.learn_below)

    def values(self) -> dict[str, object]:
        """What was taught in the windows that are open, for a snapshot; sources as hashes of 64 bits."""
        return {
            "windows": [[one.topic, one.number, *window] for one, window in sorted(self._windows.items())]
        }

    def restore(self, values: object) -> None:
        """Take the place of what `values` gave; nothing, where the guard is new.

        Raises
        ------
        SnapshotError
            It is not a guard's.
        """
        if values is None:
            return
        try:
            held = msgspec.convert(values, dict[str, list[tuple[str, int, int, dict[str, int]]]])
        except msgspec.ValidationError as error:
            raise SnapshotError(
                f"What the guard had counted is not there: {error}.", "Use another snapshot."
            ) from error
        self._windows = {
            Partition(topic, number): (window, taught)
            for topic, number, window, taught in held.get("windows", [])
        }


def _key(source: object) -> str:
    """A source by a hash: a hostile one may be long, and a snapshot need not name people."""
    said = f"{type(source).__name__} {source}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=KEY_BYTES).hexdigest()
