"""Accounts: the position in each partition, and the outcome of every offset before it.

After every batch ``next_offset - start`` equals ``scored + learned_only + dead_lettered + tombstones +
unreadable + gaps + lost``. Snapshots store the accounts, so this holds across restarts too.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from streamnb.base.record import Partition
from streamnb.errors import AccountingError


class Account(msgspec.Struct):
    """The position in one partition, and how many offsets before it had which outcome.

    Parameters
    ----------
    start : int
        The offset at which reading began.
    next_offset : int
        The offset of the next record to read.
    scored : int
        Messages whose score was published.
    learned_only : int
        Messages learned without a published score (``output.emit = "unlabelled"``).
    dead_lettered : int
        Records that became dead letters.
    tombstones : int
        Records without a value.
    unreadable : int
        Offsets of records that the client could not extract from the log.
    gaps : int
        Offsets without a record: compaction, control records, aborted transactions.
    lost : int
        Offsets that the log no longer held when they were due; see `engine.on_data_loss`.
    """

    start: int
    next_offset: int
    scored: int = 0
    learned_only: int = 0
    dead_lettered: int = 0
    tombstones: int = 0
    unreadable: int = 0
    gaps: int = 0
    lost: int = 0

    def advance(
        self,
        next_offset: int,
        *,
        read: int,
        scored: int,
        dead_lettered: int = 0,
        tombstones: int = 0,
        unreadable: int = 0,
    ) -> dict[str, int]:
        """Account for a batch, and move on to the offset after it.

        Records with none of the given outcomes were learned only; offsets without a record are gaps.

        Parameters
        ----------
        next_offset : int
            The offset after the batch.
        read : int
            How many records the batch holds.
        scored, dead_lettered, tombstones : int
            How many of these records had each outcome.
        unreadable : int
            How many offsets were unreadable; they are not counted in `read`.

        Returns
        -------
        dict of str to int
            How many offsets of the batch had each outcome.
        """
        outcome = {
            "scored": scored,
            "learned_only": read - scored - dead_lettered - tombstones,
            "dead_lettered": dead_lettered,
            "tombstones": tombstones,
            "unreadable": unreadable,
            "gaps": next_offset - self.next_offset - read - unreadable,
        }
        assert min(outcome.values()) >= 0, f"{outcome} up to {next_offset}"
        self.next_offset = next_offset
        for name, n in outcome.items():
            setattr(self, name, getattr(self, name) + n)
        assert self.balance() == 0, self
        return outcome

    def balance(self) -> int:
        """Return the offsets passed minus the offsets accounted for; not 0 is a defect of streamnb."""
        accounted = self.scored + self.learned_only + self.dead_lettered
        accounted += self.tombstones + self.unreadable + self.gaps + self.lost
        return self.next_offset - self.start - accounted


Accounts = dict[Partition, Account]


def check_accounts(accounts: Mapping[Partition, Account]) -> None:
    """Check that every offset passed is accounted for exactly once; called before a snapshot is taken.

    Raises
    ------
    AccountingError
        An account does not balance: streamnb has lost or double-counted a record.
    """
    for partition, account in accounts.items():
        if account.balance() or min(msgspec.structs.astuple(account)) < 0:
            raise AccountingError(
                f"{partition} does not add up: {account.balance()} offsets unaccounted for in {account}.",
                "This is a defect of streamnb: report it. The last snapshot stays in force; restart from it.",
            )


def to_rows(accounts: Mapping[Partition, Account]) -> list[list[object]]:
    """Return accounts in a form for JSON, sorted: ``[topic, number, {...}]`` per partition."""
    return [
        [partition.topic, partition.number, msgspec.to_builtins(account)]
        for partition, account in sorted(accounts.items())
    ]


def from_rows(rows: object) -> Accounts:
    """Return the accounts that `to_rows` gave as `rows`.

    Raises
    ------
    msgspec.ValidationError
        `rows` are not accounts.
    """
    decoded = msgspec.convert(rows, list[tuple[str, int, Account]])
    return {Partition(topic, number): account for topic, number, account in decoded}


def positions(accounts: Accounts) -> str:
    """Return the position in each partition as text for logs and errors.

    Examples
    --------
    >>> positions({Partition("mail", 0): Account(start=0, next_offset=7)})
    'mail-0 @ 7'
    """
    return ", ".join(f"{one} @ {account.next_offset}" for one, account in sorted(accounts.items()))
