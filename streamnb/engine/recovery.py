"""Recovery: from the newest snapshot to a source that is open at its offsets."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from streamnb.base import Account, Accounts, Partition, Snapshot, Source, differences, positions
from streamnb.engine.delivery import Delivery
from streamnb.engine.model import Model
from streamnb.engine.preconditions import check_identity, check_statistics, starting_point
from streamnb.engine.progress import Progress
from streamnb.engine.published_scores import BEGUN
from streamnb.engine.settings import EngineSettings
from streamnb.engine.snapshots import Snapshots
from streamnb.errors import PositionError

_log = logging.getLogger("streamnb.engine")


class CatchUp:
    """Tells whether a restart has read again what came after its snapshot.

    Parameters
    ----------
    ends : mapping of Partition to int, or None
        The ends that the log had at the start. ``None`` where they cannot be known: then there is nothing
        to catch up with.
    """

    def __init__(self, ends: Mapping[Partition, int] | None = None) -> None:
        self.ends = ends
        self.done = False

    def is_known(self) -> bool:
        """Return whether the log has an end."""
        return self.ends is not None

    def is_done(self, accounts: Accounts) -> bool:
        """Return whether every partition has reached the end it had at the start; once True, always True."""
        ends = self.ends or {}
        self.done = self.done or all(accounts[one].next_offset >= end for one, end in ends.items())
        return self.done


@dataclass(kw_only=True, eq=False, repr=False)
class Recovery:
    """Brings model, progress, source and delivery to where the newest snapshot left them.

    Parameters
    ----------
    model : Model
    progress : Progress
    source : Source
    delivery : Delivery
    snapshots : Snapshots
    settings : EngineSettings
    """

    model: Model
    progress: Progress
    source: Source
    delivery: Delivery
    snapshots: Snapshots
    settings: EngineSettings

    def run(self, begin_from: Snapshot | None) -> CatchUp:
        """Recover. This order makes a restart safe:

        1. **Find** the newest intact snapshot, or the one to begin from.
        2. **Check** that its counts and its offsets mean the same here as where they were taken.
        3. **Restore** state, accounts and lineage.
        4. **Open** the source at the offsets in the snapshot, and see where the log ends.
        5. **Resume** transactions: find out which scores were published already, and keep that answer in a
           snapshot, so that a later start can rely on it.

        Parameters
        ----------
        begin_from : Snapshot or None
            Statistics to begin a first start with; its offsets are dropped.

        Returns
        -------
        CatchUp
            How far the log reached.
        """
        progress, writer = self.progress, self.snapshots.writer
        progress.identity = dict(self.source.identity())
        snapshot = starting_point(writer.store.newest(), begin_from, self.settings.start)  # 1. Find
        if snapshot is not None:
            self._restore(snapshot, first=snapshot is begin_from)  # 2. and 3.
        opened = self._open()  # 4. Open
        progress.rest(opened)
        new = progress.open_accounts(opened)
        if snapshot is not None and snapshot is not begin_from and new:
            begun = {partition: progress.accounts[partition] for partition in new}
            _log.info("read from here on, and not in snapshot %d: %s", snapshot.sequence, positions(begun))
        ends = self.source.end_offsets()
        writer.schedule()
        self.delivery.resume(ends, new)  # 5. Resume
        if self.delivery.transactions is not None and progress.changed:
            self.snapshots.take()
        _log.info("ready at %s", positions(progress.accounts))
        return CatchUp(ends)

    def _restore(self, snapshot: Snapshot, *, first: bool) -> None:
        """Check a snapshot and restore it; at a first start, without its offsets and what depends on them."""
        progress = self.progress
        check_statistics(snapshot, self.model.state_settings())  # 2. Check
        if not first:
            check_identity(snapshot.source, progress.identity, f"when snapshot {snapshot.sequence} was made")
        self.model.restore(snapshot, with_guard=not first)  # 3. Restore
        progress.lineage = list(snapshot.lineage)
        if first:
            progress.note({"event": BEGUN, "digest": snapshot.digest["all"]})
        else:
            progress.accounts.update(snapshot.accounts)
            if not snapshot.accounts:
                _log.warning(
                    "snapshot %d has no offsets, as one that was saved from Python: the stream is read from "
                    "`engine.start`, and a message that the model has learned before is learned again",
                    snapshot.sequence,
                )
        if changes := differences(snapshot.reading, self.model.classifier.reading_settings()):
            progress.note({"event": "reading changed", "after": snapshot.sequence, "changes": changes})

    def _open(self) -> Mapping[Partition, int]:
        """Open the source; where records are missing, stop or, if that was allowed, note it and go on."""
        progress, settings = self.progress, self.settings
        start = "earliest" if settings.start is None else settings.start
        try:
            return self.source.open(progress.next_offsets(), start)
        except PositionError as error:
            if settings.on_data_loss == "stop" or not error.resume:
                raise
            _log.error("%s", error.what)
            for event in skip(progress.accounts, {Partition(*one): at for one, at in error.resume.items()}):
                progress.note(event)
        return self.source.open(progress.next_offsets(), start)


def skip(accounts: Accounts, resume: Mapping[Partition, int | None]) -> list[dict[str, object]]:
    """Move accounts to the offsets where reading can go on, and return what was lost.

    Records that were never read count as lost. Where the log ends before the account's next offset, records
    that were learned are gone from the log; no account can express that, so the partition gets a new one.

    Parameters
    ----------
    accounts : Accounts
        Changed in place.
    resume : mapping of Partition to int or None
        Where each partition can go on, as a `PositionError` has it; ``None`` where the partition is gone.

    Returns
    -------
    list of dict
        An event for the lineage per partition.
    """
    events: list[dict[str, object]] = []
    for partition, offset in resume.items():
        account = accounts.pop(partition)
        event = {"event": "data_loss", "partition": str(partition), "from": account.next_offset, "to": offset}
        if offset is not None and offset < account.next_offset:
            accounts[partition] = Account(offset, offset)
            event |= {"from": offset, "to": account.next_offset, "learned": True}
        elif offset is not None:
            account.lost += offset - account.next_offset
            account.next_offset = offset
            accounts[partition] = account
        events.append(event)
    return events
