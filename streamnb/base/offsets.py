"""Where the engine stands in each partition, and what became of every record on the way.

The identity ``next_offset - start = scored + learned_only + dead_lettered + tombstones + unreadable + gaps``
``+ lost`` holds after every batch, and over restarts: a snapshot carries the accounts.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from streamnb.base.record import Partition
from streamnb.errors import AccountingError


class Account(msgspec.Struct):
    """What became of one partition's records.

    Parameters
    ----------
    start : int
        The first offset that was asked for.
    next_offset : int
        The offset of the next record to read.
    scored : int
        Messages whose score was published.
    learned_only : int
        Messages learned without one (``output.emit = "unlabelled"``).
    dead_lettered, tombstones, unreadable : int
        Records put aside: with their bytes, without a value, and those the client could not take.
    gaps : int
        Offsets without a record: compaction, control records, aborted transactions.
    lost : int
        Offsets the log no longer held when they were asked for; see `engine.on_data_loss`.
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
        """Account for a batch: what of it is not named was learned only, or is a gap.

        Parameters
        ----------
        next_offset : int
            The offset after the batch.
        read : int
            Records in it.
        scored, dead_lettered, tombstones, unreadable : int
            What became of them; unreadable offsets are not among the records.

        Returns
        -------
        dict of str to int
            The batch's part of each outcome.
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
        """Offsets passed minus offsets accounted for: 0, or something was lost or counted twice."""
        accounted = self.scored + self.learned_only + self.dead_lettered
        accounted += self.tombstones + self.unreadable + self.gaps + self.lost
        return self.next_offset - self.start - accounted


Accounts = dict[Partition, Account]


def check_accounts(accounts: Mapping[Partition, Account]) -> None:
    """Every offset passed must be accounted for, once, or what is to be kept is wrong.

    Raises
    ------
    AccountingError
        It is not: streamnb has lost or double-counted something, and says so instead of going on.
    """
    for partition, account in accounts.items():
        if account.balance() or min(msgspec.structs.astuple(account)) < 0:
            raise AccountingError(
                f"{partition} does not add up: {account.balance()} offsets unaccounted for in {account}.",
                "This is a defect of streamnb: report it. The last snapshot stays in force; start from it.",
            )


def to_rows(accounts: Mapping[Partition, Account]) -> list[list[object]]:
    """Accounts as JSON can hold them: ``[topic, number, {...}]``, in order."""
    return [
        [partition.topic, partition.number, msgspec.to_builtins(account)]
        for partition, account in sorted(accounts.items())
    ]


def from_rows(rows: object) -> Accounts:
    """The accounts of `to_rows`.

    Raises
    ------
    msgspec.ValidationError
        `rows` are not accounts.
    """
    decoded = msgspec.convert(rows, list[tuple[str, int, Account]])
    return {Partition(topic, number): account for topic, number, account in decoded}


def positions(accounts: Accounts) -> str:
    """Where each partition stands, for a person.

    Examples
    --------
    >>> positions({Partition("mail", 0): Account(start=0, next_offset=7)})
    'mail-0 @ 7'
    """
    return ", ".join(f"{one} @ {account.next_offset}" for one, account in sorted(accounts.items()))
