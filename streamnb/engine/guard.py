"""A guard against poisoned labels: a quota of labels per sender, and a limit of certainty.

Both decisions depend only on the records and their order, so records that are read again after a crash are
decided in the same way: a window is a fixed number of a partition's offsets, and the labels counted in it
are kept with the state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from streamnb.base import Batch, Classifier, Flag, Label, Partition, Scores, Section, Sections, section
from streamnb.errors import SnapshotError

# Offsets of a partition per window. For a stricter quota lower `quota`. The snapshot holds the sources of all
# open windows, 16 bytes each, so a window must not be long.
WINDOW_RECORDS = 10_000
KEY_BYTES = 8
SECTION = "guard_sources"

_Row = tuple[str, int, int, int | dict[str, int]]
_Windows = dict[Partition, tuple[int, dict[int, int]]]


class GuardSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which labelled messages are scored but not learned. Their scores carry a flag.

    Parameters
    ----------
    source : str
        The category field that names a message's sender, or "" for no quota. All messages without this
        field count as from one sender.
    quota : int
        The number of labels that are learned from one sender in a window of 10,000 offsets of a partition.
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
        self._windows: _Windows = {}

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

    def freeze(self) -> tuple[dict[str, object], dict[str, Section]]:
        """Return the counts of the open windows, for a snapshot; sources are hashes of 64 bits.

        The sources are a section: a header has room for those of fewer than a hundred partitions.

        Returns
        -------
        dict
            ``windows``: topic, partition, window and number of sources of each open window.
        dict of str to ndarray
            ``guard_sources`` uint64 (N, 2): per source its hash and its labels, in the order of the windows.
        """
        held = sorted(self._windows.items())
        rows = [[one.topic, one.number, window, len(taught)] for one, (window, taught) in held]
        sources = [pair for _, (_, taught) in held for pair in taught.items()]
        return {"windows": rows}, {SECTION: np.array(sources, np.uint64).reshape(-1, 2)}

    def restore(self, values: object, sections: Sections) -> None:
        """Restore what `freeze` returned; ``None``, from a snapshot without a guard, changes nothing.

        Raises
        ------
        SnapshotError
            They are not a guard's; nothing was changed.
        """
        if values is None:
            return
        try:
            self._windows = _windows_of(msgspec.convert(values, dict[str, list[_Row]]), sections)
        except (msgspec.ValidationError, ValueError) as error:
            raise SnapshotError(
                f"The guard's counts in the snapshot are damaged: {error}.", "Use another snapshot."
            ) from error


def _windows_of(values: dict[str, list[_Row]], sections: Sections) -> _Windows:
    """Return the open windows; earlier snapshots held their sources in the header, by hexadecimal hash."""
    held = section(sections, SECTION, np.uint64) if SECTION in sections else np.empty((0, 2), np.uint64)
    if held.ndim != 2 or held.shape[1] != 2:
        raise ValueError(f"section `{SECTION}` has the shape {held.shape}")
    pairs, windows = held.tolist(), _Windows()
    begin = 0
    for topic, number, window, sources in values.get("windows", []):
        if isinstance(sources, dict):
            taught = {int(key, 16): n for key, n in sources.items()}
        else:
            taught = dict(pairs[begin : begin + sources])
            begin += len(taught)
            if len(taught) != sources:
                raise ValueError(f"section `{SECTION}` lacks sources of {topic}-{number}")
        windows[Partition(topic, number)] = window, taught
    if begin != len(pairs):
        raise ValueError(f"section `{SECTION}` has {len(pairs)} sources, and the windows {begin}")
    return windows


def _key(source: object) -> int:
    """Return a source's hash: its name may be very long, and a snapshot need not name people."""
    name = f"{type(source).__name__} {source}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(name, digest_size=KEY_BYTES).digest())
