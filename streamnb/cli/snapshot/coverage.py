"""Which records several snapshots have learned: merged, each record must count once.

A snapshot names the offsets that it has read in its accounts, and the snapshots that it holds in its lineage:
those that it was merged from, and the one that its engine began from. Both are compared here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations

from msgspec.structs import asdict

from streamnb.base import Account, Accounts, Partition, Snapshot
from streamnb.engine import BEGUN, MERGED
from streamnb.errors import SnapshotError

STATISTICS_ONLY = "Pass `--statistics-only` to merge what they learned, without the offsets."
BASE = (
    "If several engines began from it, pass its path with `--base`: it then counts once. Otherwise merge "
    "snapshots that learned different messages."
)


def check_sources(snapshots: Sequence[Snapshot], names: Sequence[str]) -> dict[str, str]:
    """Return the identity of the log that all snapshots have read.

    Raises
    ------
    SnapshotError
        Two have read different logs.
    """
    known: dict[str, tuple[str, str]] = {}
    for snapshot, place in zip(snapshots, names, strict=True):
        for name, value in snapshot.source.items():
            before, where = known.setdefault(name, (value, place))
            if before != value:
                what = f"The {name} is {before} in {where} and {value} in {place}."
                raise SnapshotError(what, STATISTICS_ONLY)
    return {name: value for name, (value, _) in known.items()}


def check_origins(
    snapshots: Sequence[Snapshot], names: Sequence[str], base: Snapshot | None, empty: str
) -> None:
    """Check that no two snapshots hold what a third one had learned, except for `base`.

    Parameters
    ----------
    snapshots : sequence of Snapshot
    names : sequence of str
        What errors call them.
    base : Snapshot or None
        The snapshot that all began from.
    empty : str
        The digest of a model that has learned nothing, which may be held twice.

    Raises
    ------
    SnapshotError
        Two snapshots hold the same third one, or one holds the other: its messages would count twice.
    """
    known = {empty} if base is None else {empty, base.digest["all"], *_held(base)}
    for (one, mine), (other, theirs) in permutations(zip(snapshots, names, strict=True), 2):
        if one.digest["all"] in _held(other) - known:
            raise SnapshotError(
                f"What {mine} has learned is also in {theirs}, so its messages would count twice.",
                "Merge snapshots of engines that have read different messages.",
            )
        for digest in sorted((_held(one) & _held(other)) - known):
            raise SnapshotError(
                f"What the snapshot with the digest {digest} had learned is both in {mine} and in {theirs}, "
                "so its messages would count twice.",
                BASE,
            )


def _held(snapshot: Snapshot) -> set[str]:
    """Return the digests of the snapshots that a snapshot holds, by its lineage."""
    found = _begun(snapshot)
    for event in snapshot.lineage:
        several = event.get("digests")
        if event.get("event") == MERGED and isinstance(several, list):
            found |= set(map(str, several))
    return found


def _begun(snapshot: Snapshot) -> set[str]:
    return {str(event.get("digest")) for event in snapshot.lineage if event.get("event") == BEGUN}


def went_on(snapshots: Sequence[Snapshot], names: Sequence[str], base: Snapshot) -> bool:
    """Return whether all snapshots went on at the offsets of `base`, as from a copy in their directories.

    The other way to begin from it is `run --from`, which takes no offsets.

    Raises
    ------
    SnapshotError
        One did not begin from it, or they did so in both ways.
    """
    if all(base.digest["all"] in _begun(snapshot) for snapshot in snapshots):
        return False
    for snapshot, name in zip(snapshots, names, strict=True):
        found = [snapshot.accounts.get(partition) for partition in base.accounts]
        same = snapshot.lineage[: len(base.lineage)] == base.lineage and bool(found)
        for account, before in zip(found, base.accounts.values(), strict=True):
            same = same and account is not None and account.start == before.start
            same = same and account is not None and account.next_offset >= before.next_offset
        if not same:
            raise SnapshotError(
                f"By its lineage and its offsets, {name} did not begin from the snapshot of `--base`.",
                "Pass as `--base` the snapshot that each engine began from, in the same way.",
            )
    return True


def united_accounts(snapshots: Sequence[Snapshot], names: Sequence[str], base: Snapshot | None) -> Accounts:
    """Return the accounts of all snapshots in one, each offset in it once.

    Several snapshots may have read one partition, if each went on at the offset where another one ended.

    Parameters
    ----------
    snapshots : sequence of Snapshot
    names : sequence of str
        What errors call them.
    base : Snapshot or None
        A snapshot at whose offsets all went on; what it has read does not count as read twice.

    Raises
    ------
    SnapshotError
        Two have read the same offsets of a partition, or none has read offsets between theirs; the error
        names the partition and the offsets.
    """
    every = sorted({partition for snapshot in snapshots for partition in snapshot.accounts})
    return {partition: _united(partition, snapshots, names, base) for partition in every}


def _united(
    partition: Partition, snapshots: Sequence[Snapshot], names: Sequence[str], base: Snapshot | None
) -> Account:
    before = None if base is None else base.accounts.get(partition)
    found = [
        (snapshot.accounts[partition], name)
        for snapshot, name in zip(snapshots, names, strict=True)
        if partition in snapshot.accounts
    ]
    if before is not None:
        further = [one for one in found if one[0].next_offset > before.next_offset]
        if len(further) < 2:
            return (further or found)[0][0]
    read = sorted((one for one in found if one[0].next_offset > one[0].start), key=lambda one: one[0].start)
    if not read:
        return min((account for account, _ in found), key=lambda account: account.start)
    for (one, mine), (other, theirs) in pairwise(read):
        if other.start < one.next_offset:
            raise SnapshotError(
                f"{partition} was read twice: {_span(one)} in {mine} and {_span(other)} in {theirs}, so its "
                "records would count twice.",
                BASE if base is None else "Only one engine may go on in a partition that `--base` has read.",
            )
        if other.start > one.next_offset:
            raise SnapshotError(
                f"{partition} was read up to offset {one.next_offset - 1} in {mine} and from offset "
                f"{other.start} on in {theirs}: a start after both would skip the offsets between.",
                STATISTICS_ONLY,
            )
    fields = [asdict(account) for account, _ in read]
    sums = {name: sum(one[name] for one in fields) for name in fields[0]}
    return Account(**{**sums, "start": read[0][0].start, "next_offset": read[-1][0].next_offset})


def _span(account: Account) -> str:
    return f"offsets {account.start} to {account.next_offset - 1}"
