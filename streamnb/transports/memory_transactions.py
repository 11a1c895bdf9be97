"""Transactions in memory, as a broker has them: what a batch publishes is seen when it is committed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from streamnb.base import Partition
from streamnb.errors import FencedError
from streamnb.transports.memory import MemoryLog


class MemoryBroker:
    """What outlives a process: the offsets that were committed, who may commit, and what nobody ended.

    Attributes
    ----------
    committed : dict of Partition to int
    epoch : int
        Of the newest producer.
    """

    def __init__(self) -> None:
        self.committed: dict[Partition, int] = {}
        self.epoch = 0
        self._before: list[tuple[MemoryLog, int, list[int]]] = []

    def begin(self, logs: Collection[MemoryLog]) -> None:
        """Remember where the logs end."""
        self._before = [(log, len(log.elements), list(log.end)) for log in logs]

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Let what was appended since stand."""
        self._before = []
        self.committed.update(next_offsets)

    def roll_back(self) -> None:
        """Take it out again."""
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
        What the sinks append to. A record of a transaction that was not committed is taken out again.
    name : str

    Examples
    --------
    >>> log, broker = MemoryLog(), MemoryBroker()
    >>> first, second = MemoryTransactions(broker, [log]), MemoryTransactions(broker, [log])
    >>> first.recover([]), first.begin(), log.append(b"seen by nobody"), second.recover([])
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
        """The name it was given."""
        return self._name

    def recover(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Shut out earlier learners, take out what they left open, and say which offsets are committed."""
        self._broker.epoch += 1
        self._epoch = self._broker.epoch
        self._broker.roll_back()
        return {one: at for one, at in self._broker.committed.items() if one in partitions}

    def begin(self) -> None:
        """Open a transaction."""
        self._check()
        self._broker.begin(self._logs)

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Let everybody see what was appended, and keep the offsets.

        Raises
        ------
        FencedError
            Another learner has begun.
        """
        self._check()
        self._broker.commit(next_offsets)

    def close(self) -> None:
        """Do nothing: what is open stays open until another learner begins."""

    def _check(self) -> None:
        if self._epoch != self._broker.epoch:
            raise FencedError("Another learner has begun.", "Let only one run.")
