"""How far the engine has come: the value that the loop, the snapshots and the recovery share."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from streamnb.base import Account, Accounts, Partition
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
        Each partition's next offset, and what became of the records before it.
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
    identity: dict[str, str] = field(default_factory=dict)
    changed: bool = False
    records: int = 0
    summary: Summary = field(init=False)

    def __post_init__(self) -> None:
        self.summary = Summary(accounts=self.accounts)

    def next_offsets(self) -> dict[Partition, int]:
        """Return the next offset to read of each partition."""
        return {partition: account.next_offset for partition, account in self.accounts.items()}

    def open_accounts(self, opened: Mapping[Partition, int]) -> None:
        """Open an account for each partition that has none, at the offset where its reading begins."""
        for partition, offset in opened.items():
            if partition not in self.accounts:
                self.accounts[partition] = Account(offset, offset)
                self.changed = True

    def note(self, event: dict[str, object]) -> None:
        """Add an event to the lineage."""
        self.lineage.append(event)
        self.changed = True
        _log.info("noted in the lineage: %s", event)

    def mark(self, *, changed: bool) -> None:
        """Count records from here on, after a snapshot was begun (nothing changed since) or failed."""
        self.changed, self.records = changed, 0
