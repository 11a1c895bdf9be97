"""`streamnb snapshot diff`: print the differences between two snapshots."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import orjson
import typer

from streamnb.cli.options import (
    FirstSnapshot,
    JsonOption,
    SecondSnapshot,
    visible,
)

if TYPE_CHECKING:
    from streamnb.base import Snapshot
    from streamnb.naive_bayes import NaiveBayes, State


def diff(
    first: FirstSnapshot,
    second: SecondSnapshot,
    top: Annotated[int, typer.Option(help="Number of changed counts to list.", min=0)] = 10,
    json: JsonOption = False,
) -> None:
    """Print the differences between two snapshots.

    Compares settings, offsets, classes and token counts, and lists the counts that changed most.
    """
    from streamnb.storage import read_snapshot

    found = snapshot_difference(read_snapshot(first), read_snapshot(second), top)
    if json:
        most = [change._asdict() for change in found.most_changed]
        print(orjson.dumps({**found._asdict(), "most_changed": most}).decode())
        return
    print("the same state" if found.same_state else "another state")
    for line in (*found.settings, *found.offsets, *(f"class {line}" for line in found.classes)):
        print(f"  {visible(line)}")
    print(f"{found.tokens_changed} tokens with other counts")
    for view, token, label, was, now in found.most_changed:
        print(f"  {visible(view)}: {token!r} in {visible(label)}: {was:.6g} -> {now:.6g}")


class Change(NamedTuple):
    """A token's count in a class, before and after."""

    view: str
    token: str
    label: str
    before: float
    after: float


class SnapshotDifference(NamedTuple):
    """The differences between two snapshots.

    Parameters
    ----------
    same_state : bool
        Whether the digests of their states are equal.
    settings, offsets, classes : list of str
        One line per difference: ``name: before -> after``.
    tokens_changed : int
        Tokens whose count differs in at least one class.
    most_changed : list of Change
        The counts that differ most.
    """

    same_state: bool
    settings: list[str]
    offsets: list[str]
    classes: list[str]
    tokens_changed: int
    most_changed: list[Change]


def snapshot_difference(before: Snapshot, after: Snapshot, top: int = 10) -> SnapshotDifference:
    """Compare two snapshots, of the same stream or of different ones.

    Parameters
    ----------
    before, after : Snapshot
    top : int
        Length of `SnapshotDifference.most_changed`.

    Raises
    ------
    SnapshotError
        This version of streamnb cannot restore one of them.
    """
    from streamnb.base import differences
    from streamnb.config import restore_model

    _, old = restore_model(before)
    _, new = restore_model(after)
    changes = list(_changes(old.state, new.state))
    return SnapshotDifference(
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
    return {str(label): n for label, n in zip(model.classes_, model.state.class_counts, strict=True)}


def _changes(old: State, new: State) -> Iterator[Change]:
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
