"""A broker in memory that may not answer, acknowledge late or not at all, and store a record twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence

import orjson

from streamnb.base.record import Headers, Partition, RecordBatch, Unreadable
from streamnb.errors import TransactionError
from streamnb.transports.memory import MemoryLog, MemorySink, MemorySource
from streamnb.transports.memory_transactions import MemoryBroker, MemoryTransactions

UNREADABLE = b"unreadable"
"""The value of a record that a `FaultySource` cannot extract from the log."""


class Broker:
    """The output topics, and which records the broker has acknowledged.

    Attributes
    ----------
    acknowledged : set of (int, int)
        The source addresses (partition, offset) whose score or dead letter was acknowledged.
    """

    def __init__(self, partitions: int) -> None:
        self.scores = MemoryLog(partitions, "scores")
        self.aside = MemoryLog(partitions, "aside")
        self.transactions = MemoryBroker()
        self.acknowledged: set[tuple[int, int]] = set()


class FaultySink(MemorySink):
    """A sink whose client buffers records until a flush, or until it sends some of them by itself.

    Faults: the connection breaks before the broker has received all records, or after that and before it
    acknowledged them; a record is sent twice after a reconnection, unless transactions are used. A killed
    client has sent some or none of the buffered records.
    """

    def __init__(
        self, log: MemoryLog, broker: Broker, draw: random.Random, faults: float, *, once: bool
    ) -> None:
        super().__init__(log)
        self._broker, self._draw, self._faults, self._once = broker, draw, faults, once
        self._waiting: list[tuple[int, bytes | None, bytes | None, Headers]] = []
        self._unacknowledged: list[tuple[int, int]] = []

    def publish(
        self,
        partition: int,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        headers: Sequence[Headers],
    ) -> None:
        """Buffer records, and send a random number of them at once."""
        self._check()
        self._waiting += [(partition, *record) for record in zip(values, keys, headers, strict=True)]
        self.send(self._draw.randrange(len(self._waiting) + 1))

    def send(self, n: int | None = None) -> None:
        """Send the next `n` records, or all, to the broker, which does not acknowledge them yet."""
        n = len(self._waiting) if n is None else n
        for partition, value, key, pairs in self._waiting[:n]:
            for _ in range(2 if not self._once and self._draw.random() < self._faults / 4 else 1):
                super().publish(partition, [value], [key], [pairs])
            self._unacknowledged.append(address_of(value, pairs))
        del self._waiting[:n]

    def flush(self, timeout_ms: int) -> None:
        """Send all records and wait for their acknowledgement, unless the connection breaks."""
        if self._draw.random() < self._faults:
            self.send(self._draw.randrange(len(self._waiting) + 1))  # the connection breaks on the way
            self._lost = True
        self.send()
        super().flush(timeout_ms)
        if not self._once:
            self.acknowledge()

    def acknowledge(self) -> None:
        """Record that everything sent so far is acknowledged."""
        self._broker.acknowledged.update(self._unacknowledged)
        self._unacknowledged = []


class FaultyTransactions(MemoryTransactions):
    """Transactions in which the answer to a commit may be lost, whether it was carried out or not."""

    def __init__(
        self, broker: Broker, sinks: Collection[FaultySink], draw: random.Random, faults: float
    ) -> None:
        super().__init__(broker.transactions, [broker.scores, broker.aside])
        self._sinks, self._draw, self._faults = sinks, draw, faults

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Send buffered records and commit. If the answer is lost, raise, whether it was committed or not."""
        for sink in self._sinks:
            sink.send()
        lost = self._draw.random() < self._faults
        if lost and self._draw.random() < 0.5:
            raise TransactionError("Nothing was committed.")
        super().commit(next_offsets)
        for sink in self._sinks:
            sink.acknowledge()
        if lost:
            raise TransactionError("All was committed.")


class FaultySource(MemorySource):
    """A source that runs a function before each poll, which may raise an error or kill the process.

    It reports the records of the value `UNREADABLE` as such.
    """

    def __init__(self, log: MemoryLog, before_a_poll: Callable[[], None]) -> None:
        super().__init__(log)
        self._before_a_poll = before_a_poll

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """Run the function, then poll."""
        self._before_a_poll()
        return [_without_unreadable(batch) for batch in super().poll(records_max, timeout_ms)]


def _without_unreadable(batch: RecordBatch) -> RecordBatch:
    """Return a batch that lists its unreadable records in place of holding them."""
    kept = [row for row, value in enumerate(batch.values) if value != UNREADABLE]
    lost = [at for at, value in zip(batch.offsets, batch.values, strict=True) if value == UNREADABLE]
    return RecordBatch(
        batch.partition,
        [batch.offsets[row] for row in kept],
        [batch.values[row] for row in kept],
        [batch.keys[row] for row in kept],
        [batch.timestamps_ms[row] for row in kept],
        [batch.headers[row] for row in kept],
        batch.next_offset,
        [Unreadable(at, at + 1, "checksum") for at in lost],
    )


def address_of(value: bytes | None, headers: Headers) -> tuple[int, int]:
    """Return the source address of a published record, from a score's source or a dead letter's headers."""
    found = dict(headers)
    if "streamnb.offset" in found:
        return int(found["streamnb.partition"]), int(found["streamnb.offset"])
    source = orjson.loads(value or b"")["source"]
    return source["partition"], source["offset"]
