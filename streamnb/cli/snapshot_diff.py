"""What tells two snapshots apart, and both in one: a model's sums can be compared and added."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from streamnb import __version__
from streamnb.base.snapshot import Snapshot, differences
from streamnb.config.assembly import restored
from streamnb.engine.clock import SystemClock
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.model.naive_bayes import NaiveBayes


class Change(NamedTuple):
    """A token's count in a class, before and after."""

    view: str
    token: str
    label: str
    before: float
    after: float


class Difference(NamedTuple):
    """What tells one snapshot from another.

    Parameters
    ----------
    same_state : bool
        Whether their digests are equal.
    settings, offsets, classes : list of str
        A line for each that differs: ``what: before -> after``.
    tokens_changed : int
        Tokens with another count in some class, or in one of the two only.
    most_changed : list of Change
        The counts that differ most.
    """

    same_state: bool
    settings: list[str]
    offsets: list[str]
    classes: list[str]
    tokens_changed: int
    most_changed: list[Change]


def difference(before: Snapshot, after: Snapshot, top: int = 10) -> Difference:
    """Compare two snapshots, of one stream or of two.

    Parameters
    ----------
    before, after : Snapshot
    top : int
        How many of the most changed counts to name.

    Raises
    ------
    SnapshotError
        One of them cannot be restored here.
    """
    _, old = restored(before)
    _, new = restored(after)
    changes = list(_changes(old, new))
    return Difference(
        before.digest["all"] == after.digest["all"],
        differences(
            {"statistics": before.statistics, "reading": before.reading},
            {"statistics": after.statistics, "reading": after.reading},
        ),
        differences(_positions(before), _positions(after)),
        differences(_classes(old), _classes(new)),
        len({(change.view, change.token) for change in changes}),
        heapq.nsmallest(top, changes, key=lambda one: (-abs(one.after - one.before), one)),
    )


def _positions(snapshot: Snapshot) -> dict[str, object]:
    accounts = {str(partition): account.next_offset for partition, account in snapshot.accounts.items()}
    return {"source": snapshot.source, "next_offset": accounts}


def _classes(model: NaiveBayes) -> dict[str, float]:
    return {str(label): n for label, n in zip(model.classes, model.class_counts, strict=True)}


def _changes(old: NaiveBayes, new: NaiveBayes) -> Iterator[Change]:
    labels = [*new.classes, *(label for label in old.classes if label not in new.index)]
    for view in sorted({*old.counts, *new.counts}):
        rows = [model.counts[view].rows if view in model.counts else {} for model in (old, new)]
        for token in {**rows[0], **rows[1]}:
            for label in labels:
                n = []
                for model, held in zip((old, new), rows, strict=True):
                    known = token in held and label in model.index
                    n.append(held[token][model.index[label]] if known else 0.0)
                if n[0] != n[1]:
                    yield Change(view, token, str(label), n[0], n[1])


def merged(first: Snapshot, second: Snapshot, *, statistics_only: bool = False) -> Snapshot:
    """One snapshot of what two have learned.

    Parameters
    ----------
    first, second : Snapshot
        The settings are the first's.
    statistics_only : bool
        Leave offsets and accounts out, for `run --from`; else a partition may stand in one of them only.

    Raises
    ------
    SnapshotError
        They count otherwise, or read the same partition, so that records would count twice.
    """
    if not statistics_only:
        _check_apart(first, second)
    _, model = restored(first)
    _, other = restored(second)
    try:
        model.merge(other)
    except ValueError as error:
        raise SnapshotError(
            f"The two cannot be merged: {error}.", "See `streamnb snapshot diff` for what they differ in."
        ) from error
    frozen = model.freeze()
    digests = [snapshot.digest["all"] for snapshot in (first, second)]
    event: dict[str, object] = {"event": "merged", "digests": digests}
    return Snapshot(
        values=frozen.values,
        sections=frozen.sections,
        digest=frozen.digest(),
        statistics=first.statistics,
        reading=first.reading,
        settings=first.settings,
        source={} if statistics_only else {**first.source, **second.source},
        accounts={} if statistics_only else {**first.accounts, **second.accounts},
        lineage=[*first.lineage, *second.lineage, event],
        written_ms=SystemClock().wall_ms(),
        streamnb=__version__,
    )


def _check_apart(first: Snapshot, second: Snapshot) -> None:
    hint = "`--statistics-only` adds what they learned, and leaves the offsets out."
    for name, known in first.source.items():
        if second.source.get(name, known) != known:
            raise SnapshotError(f"The {name} is {known} in one and {second.source[name]} in the other.", hint)
    both = sorted(first.accounts.keys() & second.accounts.keys())
    if both:
        raise SnapshotError(f"Both have read {', '.join(map(str, both))}: records would count twice.", hint)
