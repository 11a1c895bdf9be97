"""`streamnb snapshot merge`: add up what several engines have learned, in one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamnb.cli.options import OutputOption
from streamnb.errors import SettingsError, SnapshotError

if TYPE_CHECKING:
    from streamnb.base import Snapshot

PLACES = ("first", "second", "third")


def merge(
    snapshots: Annotated[
        list[Path], typer.Argument(metavar="SNAPSHOT", help="Paths of at least two snapshot files (.snb).")
    ],
    output: OutputOption,
    base: Annotated[
        Path | None,
        typer.Option(
            "--base",
            metavar="SNAPSHOT",
            help="The snapshot that all of them began from, such as an earlier merge: it counts once.",
        ),
    ] = None,
    statistics_only: Annotated[
        bool, typer.Option("--statistics-only", help="Leave the offsets out: the result is for `run --from`.")
    ] = False,
) -> None:
    """Add up what several snapshots have learned, in a new snapshot.

    It is an error if two have read the same records, unless --statistics-only is passed, or if two hold what
    a third one had learned, unless that one is passed as --base.
    """
    from streamnb.storage import read_snapshot, write_snapshot

    if len(snapshots) < 2:
        raise SettingsError("One snapshot cannot be merged.", "Name at least two snapshot files.")
    merge_of = merged(
        *map(read_snapshot, snapshots),
        base=None if base is None else read_snapshot(base),
        statistics_only=statistics_only,
        names=list(map(str, snapshots)),
    )
    size = write_snapshot(output, merge_of)
    kept = "without offsets" if statistics_only else f"offsets of {len(merge_of.accounts)} partitions"
    learned = merge_of.values["learned"]
    print(f"{output}: {learned} messages, {kept}, {size} bytes, digest {merge_of.digest['all']}")


def merged(
    first: Snapshot,
    *others: Snapshot,
    base: Snapshot | None = None,
    statistics_only: bool = False,
    names: Sequence[str] = (),
) -> Snapshot:
    """Return one snapshot with everything that several snapshots have learned.

    Parameters
    ----------
    first, *others : Snapshot
        The result has the settings of `first`.
    base : Snapshot, optional
        The snapshot that all of them began from; what it has learned counts once.
    statistics_only : bool
        Leave offsets and accounts out, so that the result is for `run --from`. Otherwise no two may have
        read the same offsets of a partition.
    names : sequence of str, optional
        What errors call the snapshots.

    Raises
    ------
    SnapshotError
        Their models count differently, or a record would count twice.
    """
    from streamnb import __version__
    from streamnb.base import Snapshot
    from streamnb.cli.snapshot.coverage import check_origins, check_sources, united_accounts, went_on
    from streamnb.config import build_model, restore_model
    from streamnb.engine import MERGED, SystemClock

    every = [first, *others]
    names = names or [_place(i) for i in range(len(every))]
    _check_different(every, names, base)
    settings, model = restore_model(first.without_index())
    check_origins(every, names, base, build_model(settings).digest()["all"])
    shared = base if base is not None and went_on(every, names, base) else None
    source = {} if statistics_only else check_sources(every, names)
    accounts = {} if statistics_only else united_accounts(every, names, shared)
    start = None if base is None else restore_model(base)[1]
    try:
        for other in others:
            model.merge(restore_model(other)[1], start)
    except ValueError as error:
        raise SnapshotError(
            f"The snapshots cannot be merged: {error}.", "`streamnb snapshot diff` prints how two differ."
        ) from error
    frozen = model.freeze()
    event: dict[str, object] = {"event": MERGED, "digests": [one.digest["all"] for one in every]}
    lineage = [*first.lineage]
    for other in others:
        lineage += [each for each in other.lineage if base is None or each not in base.lineage]
    return Snapshot(
        values=frozen.values,
        sections=frozen.sections,
        digest=frozen.digest(),
        statistics=first.statistics,
        reading=first.reading,
        settings=first.settings,
        source=source,
        accounts=accounts,
        lineage=[*lineage, event],
        written_ms=SystemClock().wall_ms(),
        streamnb=__version__,
    )


def _place(i: int) -> str:
    return f"the {PLACES[i]} snapshot" if i < len(PLACES) else f"snapshot {i + 1}"


def _check_different(snapshots: Sequence[Snapshot], names: Sequence[str], base: Snapshot | None) -> None:
    """Check that no snapshot is there twice, perhaps in two files: each message would count twice.

    Engines that have read nothing since `base` may hold the same.
    """
    for i, one in enumerate(snapshots):
        for other, name in zip(snapshots[:i], names, strict=False):
            same = one.digest == other.digest and one.accounts == other.accounts
            if same and one.values["learned"] and (base is None or one.digest != base.digest):
                raise SnapshotError(
                    f"The same state and the same offsets are in {name} and in {names[i]}, so every message "
                    "would count twice.",
                    "Merge snapshots of engines that have read different messages.",
                )
