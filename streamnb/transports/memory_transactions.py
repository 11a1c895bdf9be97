"""Transactions over logs in memory: the records of an uncommitted transaction are removed again."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from streamnb.base import Partition
from streamnb.errors import FencedError
from streamnb.transports.memory import MemoryLog


class MemoryBroker:
    """The state that a broker keeps when a process dies: committed offsets, epoch, an open transaction.

    Attributes
    ----------
    committed : dict of Partition to int
        The committed next offset of each partition.
    epoch : int
        The epoch of the newest producer; producers with an older one are fenced.
    """

    def __init__(self) -> None:
        self.committed: dict[Partition, int] = {}
        self.epoch = 0
        self._before: list[tuple[MemoryLog, int, list[int]]] = []

    def begin(self, logs: Collection[MemoryLog]) -> None:
        """Open a transaction: remember where each log ends."""
        self._before = [(log, len(log.elements), list(log.end)) for log in logs]

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Keep the records appended since `begin`, and store the offsets."""
        self._before = []
        self.committed.update(next_offsets)

    def roll_back(self) -> None:
        """Remove the records appended since `begin`; do nothing if no transaction is open."""
        for log, length, end in self._before:
            del log.elements[length:]
            log.end[:] = end
        self._before = []


class MemoryTransactions:
    """`streamnb.base.protocols.Transactions` over logs in memory.

    Parameters
    ----------
    broker : MemoryBroker
    logs : collection of MemoryLog
        The logs that the sinks append to. The records of a transaction that was never committed are removed
        from them.
    name : str
        The name under which offsets are committed.

    Examples
    --------
    >>> log, broker = MemoryLog(), MemoryBroker()
    >>> first, second = MemoryTransactions(broker, [log]), MemoryTransactions(broker, [log])
    >>> first.recover([]), first.begin(), log.append(b"never committed"), second.recover([])
    ({}, None, 0, {})
    >>> log.records(0)
    []
    """

    def __init__(self, broker: MemoryBroker, logs: Collection[MemoryLog], name: str = "memory") -> None:
        self._broker = broker
        self._logs = logs
        self._name = name
        self._epoch = 0

    @property
    def name(self) -> str:
        """The name given at construction."""
        return self._name

    def recover(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Fence earlier learners, roll back their open transaction, and return the committed offsets."""
        self._broker.epoch += 1
        self._epoch = self._broker.epoch
        self._broker.roll_back()
        return {one: at for one, at in self._broker.committed.items() if one in partitions}

    def begin(self) -> None:
        """Open a transaction."""
        self._check()
        self._broker.begin(self._logs)

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Commit the records appended since `begin`, and the offsets.

        Raises
        ------
        FencedError
            Another learner has called `recover` since.
        """
        self._check()
        self._broker.commit(next_offsets)

    def close(self) -> None:
        """Do nothing: an open transaction stays open until the next `recover` rolls it back."""

    def _check(self) -> None:
        if self._epoch != self._broker.epoch:
            raise FencedError("This learner was fenced: another one has started.", "Run only one learner.")
