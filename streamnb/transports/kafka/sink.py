"""A sink to a Kafka topic through kafka-python: all in-sync replicas acknowledge each record, or it fails.

kafka-python 3.0.12 reports a failed delivery only in the record's future: `send` and `flush` do not raise it.
The sink therefore keeps every future until it is done, and raises the first failure from every later call.
`send` also accepts records without limit while no broker answers, so the sink limits the records in flight.

The client opens a batch with its first record, and `rows.RowWriter` appends the records that follow. Where it
cannot, each record is sent by the client's own `send`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from kafka import TopicPartition
from kafka.errors import KafkaError

from streamnb.base import IN_FLIGHT_BYTES_MAX, Headers
from streamnb.errors import DeliveryError
from streamnb.transports.kafka.client import brokers, describe_topics, kafka_python_settings
from streamnb.transports.kafka.producer import (
    NO_VALUE,
    Producer,
    fenced,
    is_fenced,
    is_too_large,
    new_producer,
)
from streamnb.transports.topics import IN_FLIGHT_MAX, TopicSink


class _Delivery(Protocol):
    """Of one record (`FutureRecordMetadata`) or of several (`rows.Rows`)."""

    @property
    def is_done(self) -> bool: ...

    def get(self, timeout_s: float, /) -> object: ...


class _Transactions(Protocol):
    @property
    def producer(self) -> Producer: ...


class KafkaSink(TopicSink):
    """A `TopicSink` through kafka-python.

    Parameters
    ----------
    topic : str
        A topic that exists.
    client : mapping
        Settings of kafka-python, as for `KafkaSource`.
    in_flight_max : int
        The number of unacknowledged records at which `publish` waits.
    in_flight_bytes_max : int
        The number of unacknowledged bytes, of values and keys, at which `publish` waits.
    delivery_timeout_ms : int
        The time after which a record without acknowledgement counts as not delivered.
    transactions : KafkaTransactions, optional
        The transactions whose producer, and open transaction, the sink publishes through.

    Raises
    ------
    SettingsError
        A setting is unknown, or the transport fixes it.
    TransportError
        No broker answers, or the topic does not exist.
    """

    def __init__(
        self,
        topic: str,
        client: Mapping[str, object],
        *,
        in_flight_max: int = IN_FLIGHT_MAX,
        in_flight_bytes_max: int = IN_FLIGHT_BYTES_MAX,
        delivery_timeout_ms: int = 120_000,
        transactions: _Transactions | None = None,
    ) -> None:
        settings = kafka_python_settings(client)
        super().__init__(topic, brokers(settings), describe_topics(client, [topic]))
        self._in_flight_max = in_flight_max
        self._in_flight_bytes_max = in_flight_bytes_max
        self._in_flight_rows = self._in_flight_bytes = 0
        self._delivery_timeout_ms = delivery_timeout_ms
        self._in_flight: deque[tuple[_Delivery, int, int, int]] = deque()  # with partition, rows, bytes
        self._failed = [partial(self._fail, number) for number in range(self._partitions)]
        self._own = transactions is None
        self._producer: Producer | None = (
            new_producer(settings, delivery_timeout_ms=delivery_timeout_ms)
            if transactions is None
            else transactions.producer
        )

    def publish(
        self,
        partition: int,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        headers: Sequence[Headers],
    ) -> None:
        """Send columns of records that came from the input partition with the number `partition`.

        Raises
        ------
        DeliveryError
            An earlier record was not acknowledged, or one of these is larger than the client may send.
        """
        assert self._producer is not None, "closed"
        self._raise_failure()
        target = partition % self._partitions
        try:
            if self._producer.rows is not None and len(values) == len(keys) == len(headers):
                self._append(self._producer, target, list(values), list(keys), list(headers))
            else:
                for value, key, names in zip(values, keys, headers, strict=True):
                    self._send(self._producer, target, value, key, names)
        except (KafkaError, ValueError) as error:  # ValueError: the topic was recreated with fewer partitions
            self._fail(target, error)
        except DeliveryError as error:
            self._failure = error  # must stay, because the rest of these columns was never sent
        while self._in_flight and self._in_flight[0][0].is_done:
            self._wait_for_oldest(0, 0)
        self._raise_failure()

    def _append(
        self,
        producer: Producer,
        target: int,
        values: list[bytes | None],
        keys: list[bytes | None],
        headers: list[Headers],
    ) -> None:
        """Append records to open batches; send one by itself where it needs a new batch."""
        assert producer.rows is not None
        partition, at = TopicPartition(self._topic, target), 0
        while at < len(values):
            self._wait_for_space(len(values[at] or b"") + len(keys[at] or b""))
            rows = producer.rows.append(
                partition,
                values,
                keys,
                headers,
                at,
                rows_max=self._in_flight_max - self._in_flight_rows,
                bytes_max=self._in_flight_bytes_max - self._in_flight_bytes,
                failed=self._failed[target],
            )
            if rows is None:
                self._send(producer, target, values[at], keys[at], headers[at])
                at += 1
            else:
                self._count(rows, target, rows.n, rows.size)
                at += rows.n

    def _send(
        self, producer: Producer, target: int, value: bytes | None, key: bytes | None, names: Headers
    ) -> None:
        size = len(value or b"") + len(key or b"")
        self._wait_for_space(size)
        content = NO_VALUE if value is None else value
        future = producer.send(self._topic, content, key, list(names), target)
        future.add_errback(self._failed[target])
        self._count(future, target, 1, size)

    def _count(self, delivery: _Delivery, target: int, n: int, size: int) -> None:
        self._in_flight.append((delivery, target, n, size))
        self._in_flight_rows += n
        self._in_flight_bytes += size

    def _wait_for_space(self, size: int) -> None:
        """Wait until a record of this size may be in flight too, at most for two delivery timeouts."""
        while self._in_flight and (
            self._in_flight_rows >= self._in_flight_max
            or self._in_flight_bytes + size > self._in_flight_bytes_max
        ):
            self._wait_for_oldest(time.monotonic(), 2 * self._delivery_timeout_ms)

    def flush(self, timeout_ms: int) -> None:
        """Return when every published record is acknowledged.

        Raises
        ------
        DeliveryError
            A record since the sink was opened was not delivered, or is not acknowledged within `timeout_ms`.
        """
        since_s = time.monotonic()
        while self._in_flight and self._failure is None:
            self._wait_for_oldest(since_s, timeout_ms)
        self._raise_failure()

    def _fail(self, target: int | None, cause: object, *, too_large: bool = False) -> None:
        if isinstance(cause, KafkaError) and is_fenced(cause) and self._failure is None:
            self._failure = fenced(cause)
        super()._fail(target, cause, too_large=too_large or is_too_large(cause))

    def close(self) -> None:
        """Close the sink's own producer; records that were not flushed may be dropped."""
        producer, self._producer = self._producer, None
        if producer is None or not self._own:
            return
        if self._failure is not None or any(not delivery.is_done for delivery, _, _, _ in self._in_flight):
            producer.abandon()
        self._in_flight.clear()
        producer.close_or_drop()

    def _wait_for_oldest(self, since_s: float, timeout_ms: int) -> None:
        """Wait for the oldest delivery in flight, until `timeout_ms` after `since_s`, and remove it."""
        delivery, target, n, size = self._in_flight[0]
        try:
            delivery.get(max(since_s + timeout_ms / 1000 - time.monotonic(), 0))
        except KafkaError as error:
            if not delivery.is_done:
                raise self._not_acknowledged(self._in_flight_rows, timeout_ms) from None
            self._fail(target, error)
        self._in_flight.popleft()
        self._in_flight_rows -= n
        self._in_flight_bytes -= size
