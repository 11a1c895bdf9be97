"""How far the engine has come: the value that the loop, the snapshots and the recovery share."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from streamnb.base import Account, Accounts, Partition, positions
from streamnb.engine.settings import Summary

_log = logging.getLogger("streamnb.engine")


@dataclass(slots=True)
class Progress:
    """What a snapshot holds beside the model's state, and how much of it no snapshot holds yet.

    Parameters
    ----------
    lineage : list of dict
        Events that an auditor should know, oldest first.
    accounts : Accounts
        The next offset of each partition that is read, and what became of the records before it.
    resting : Accounts
        Those of partitions that the snapshot has and this process does not read. Every snapshot keeps them,
        so that a later start can read on.
    identity : dict of str to str
        The log that the offsets belong to, as `Source.identity` names it.
    changed : bool
        Whether anything changed since the newest snapshot, or since the one that is being written.
    records : int
        Number of records read since then.
    summary : Summary
        Figures of this run, so far; it shares `accounts`.
    """

    lineage: list[dict[str, object]] = field(default_factory=list)
    accounts: Accounts = field(default_factory=dict)
    resting: Accounts = field(default_factory=dict)
    identity: dict[str, str] = field(default_factory=dict)
    changed: bool = False
    records: int = 0
    summary: Summary = field(init=False)

    def __post_init__(self) -> None:
        self.summary = Summary(accounts=self.accounts)

    def next_offsets(self) -> dict[Partition, int]:
        """Return the next offset to read of each partition that is read."""
        return {partition: account.next_offset for partition, account in self.accounts.items()}

    def all_accounts(self) -> Accounts:
        """Return the accounts of all partitions that the snapshot has or that are read."""
        return {**self.resting, **self.accounts}

    def rest(self, opened: Collection[Partition]) -> None:
        """Set the accounts of partitions aside that the source does not read."""
        for partition in [one for one in self.accounts if one not in opened]:
            self.resting[partition] = self.accounts.pop(partition)
        if self.resting:
            _log.info("kept for later, and not read by this process: %s", positions(self.resting))

    def open_accounts(self, opened: Mapping[Partition, int]) -> list[Partition]:
        """Open an account for each partition that has none, at the offset where its reading begins.

        Returns
        -------
        list of Partition
            Those that had none.
        """
        new = [partition for partition in opened if partition not in self.accounts]
        self.accounts |= {partition: Account(opened[partition], opened[partition]) for partition in new}
        self.changed = self.changed or bool(new)
        return new

    def note(self, event: dict[str, object]) -> None:
        """Add an event to the lineage."""
        self.lineage.append(event)
        self.changed = True
        _log.info("noted in the lineage: %s", event)

    def mark(self, *, changed: bool) -> None:
        """Count records from here on, after a snapshot was begun (nothing changed since) or failed."""
        self.changed, self.records = changed, 0
