"""`streamnb snapshot merge`: add up what two engines have learned, in one snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streamnb.cli.options import (
    FirstSnapshot,
    OutputOption,
    SecondSnapshot,
)
from streamnb.errors import SnapshotError

if TYPE_CHECKING:
    from streamnb.base import Snapshot


def merge(
    first: FirstSnapshot,
    second: SecondSnapshot,
    output: OutputOption,
    statistics_only: Annotated[
        bool, typer.Option("--statistics-only", help="Leave the offsets out: the result is for `run --from`.")
    ] = False,
) -> None:
    """Add up what two snapshots have learned, in a new snapshot.

    It is an error if both have read the same partition, unless --statistics-only is passed.
    """
    from streamnb.storage import read_snapshot, write_snapshot

    both = merged(read_snapshot(first), read_snapshot(second), statistics_only=statistics_only)
    size = write_snapshot(output, both)
    kept = "without offsets" if statistics_only else f"offsets of {len(both.accounts)} partitions"
    learned = both.values["learned"]
    print(f"{output}: {learned} messages, {kept}, {size} bytes, digest {both.digest['all']}")


def merged(first: Snapshot, second: Snapshot, *, statistics_only: bool = False) -> Snapshot:
    """Return one snapshot with everything that two snapshots have learned.

    Parameters
    ----------
    first, second : Snapshot
        The result has the settings of `first`.
    statistics_only : bool
        Leave offsets and accounts out, so that the result is for `run --from`. Otherwise no partition may be
        in both snapshots.

    Raises
    ------
    SnapshotError
        Their models count differently, or both have read the same partition, whose records would count twice.
    """
    from streamnb import __version__
    from streamnb.base import Snapshot
    from streamnb.config import restore_model
    from streamnb.engine import SystemClock

    _check_two(first, second)
    if not statistics_only:
        _check_apart(first, second)
    _, model = restore_model(first.without_index())
    _, other = restore_model(second)
    try:
        model.merge(other)
    except ValueError as error:
        raise SnapshotError(
            f"The two snapshots cannot be merged: {error}.",
            "`streamnb snapshot diff` prints how they differ.",
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


def _check_two(first: Snapshot, second: Snapshot) -> None:
    """Check that the snapshots are not the same one, perhaps in two files: each message would count twice."""
    same = first.digest == second.digest and first.accounts == second.accounts
    if same and first.values["learned"]:
        raise SnapshotError(
            "Both snapshots hold the same state and the same offsets, so every message would count twice.",
            "Merge snapshots of engines that have read different messages.",
        )


def _check_apart(first: Snapshot, second: Snapshot) -> None:
    hint = "Pass `--statistics-only` to merge what they learned, without the offsets."
    for name, known in first.source.items():
        if second.source.get(name, known) != known:
            raise SnapshotError(
                f"The {name} is {known} in the first snapshot and {second.source[name]} in the second.", hint
            )
    both = sorted(first.accounts.keys() & second.accounts.keys())
    if both:
        raise SnapshotError(
            f"Both snapshots have read {', '.join(map(str, both))}: records would count twice.", hint
        )
