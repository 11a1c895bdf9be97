"""A sink to a Kafka topic through librdkafka: all in-sync replicas acknowledge each record, or it fails."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import length_hint
from typing import Protocol

from streamnb.base import IN_FLIGHT_BYTES_MAX, Headers
from streamnb.transports.confluent.client import brokers, describe_topics, librdkafka_settings, reason
from streamnb.transports.confluent.producer import (
    TOO_LARGE_HINT,
    Report,
    drop,
    is_fenced,
    is_too_large,
    new_producer,
)
from streamnb.transports.topics import IN_FLIGHT_MAX, TopicSink, fenced_by

from confluent_kafka import KafkaError, KafkaException, Message, Producer  # isort: skip  as in source.py

QUEUE_STEP_S = 0.005
FLUSH_STEP_S = 0.005


class _Transactions(Protocol):
    @property
    def producer(self) -> Producer: ...

    def listen(self, report: Report) -> None: ...


class ConfluentSink(TopicSink):
    """A `TopicSink` through librdkafka.

    librdkafka reports only the records it could not deliver, so that a delivered record costs no Python call.

    Parameters
    ----------
    topic : str
        A topic that exists.
    client : mapping
        Settings of librdkafka, as for `ConfluentSource`.
    in_flight_max : int
        The number of unacknowledged records at which `publish` waits.
    in_flight_bytes_max : int
        The number of unacknowledged bytes at which `publish` waits, rounded up to a multiple of 1,024.
    delivery_timeout_ms : int
        The time after which a record without acknowledgement counts as not delivered.
    transactions : ConfluentTransactions, optional
        The transactions whose producer, and open transaction, the sink publishes through. Their producer's
        limits of records and bytes in flight take the place of this sink's.

    Raises
    ------
    SettingsError
        A setting is unknown, or the transport fixes it.
    TransportError
        No broker answers, or the topic does not exist.
    """

    _too_large_hint = TOO_LARGE_HINT

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
        settings = librdkafka_settings(client)
        super().__init__(topic, brokers(settings), describe_topics(client, [topic]))
        self._delivery_timeout_ms = delivery_timeout_ms
        self._own = transactions is None
        self._producer: Producer | None = None
        if transactions is not None:
            self._producer = transactions.producer
            transactions.listen(self._report)
        else:
            self._producer = new_producer(
                settings,
                self._report,
                in_flight_max=in_flight_max,
                in_flight_bytes_max=in_flight_bytes_max,
                delivery_timeout_ms=delivery_timeout_ms,
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
        self._serve(0)
        self._raise_failure()
        target = partition % self._partitions
        try:
            if any(headers) or not len(values) == len(keys) == len(headers):
                for value, key, names in zip(values, keys, headers, strict=True):
                    self._produce(target, value, key, list(names) if names else None)
            else:
                self._produce_all(target, values, keys)
        except KafkaException as error:
            self._fail_for(target, error)
        self._raise_failure()

    def flush(self, timeout_ms: int) -> None:
        """Return when every published record is acknowledged.

        Raises
        ------
        DeliveryError
            A record since the sink was opened was not delivered, or is not acknowledged within `timeout_ms`.
        """
        assert self._producer is not None, "closed"
        deadline_s = time.monotonic() + timeout_ms / 1000
        # The client's own `flush` (librdkafka 2.16) waits at full processor load, so `poll` in steps instead.
        while self._failure is None and (waiting := len(self._producer)):
            if time.monotonic() >= deadline_s:
                raise self._not_acknowledged(waiting, timeout_ms)
            self._serve(FLUSH_STEP_S)
        self._raise_failure()

    def close(self) -> None:
        """Close the sink's own producer; records that were not flushed may be dropped."""
        producer, self._producer = self._producer, None
        if producer is not None and self._own:
            drop(producer, self._topic)

    def _produce_all(self, target: int, values: Sequence[bytes | None], keys: Sequence[bytes | None]) -> None:
        """Send records without headers; C code makes the calls, which saves half of their processor time."""
        assert self._producer is not None, "closed"
        rest = iter(list(values))  # of a list, the length of the rest is known
        calls = map(self._producer.produce, repeat(self._topic), rest, keys, repeat(target))
        while True:
            try:
                deque(calls, maxlen=0)
            except BufferError:  # `calls` continues behind the record that was refused
                refused = len(values) - length_hint(rest) - 1
                self._produce_when_queue_has_space(target, values[refused], keys[refused], None)
            else:
                return

    def _produce(
        self, target: int, value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes]] | None
    ) -> None:
        assert self._producer is not None, "closed"
        try:
            self._producer.produce(self._topic, value, key, target, headers=headers)
        except BufferError:
            self._produce_when_queue_has_space(target, value, key, headers)

    def _produce_when_queue_has_space(
        self, target: int, value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes]] | None
    ) -> None:
        """Send one record as soon as librdkafka's queue has space; give up after two delivery timeouts."""
        assert self._producer is not None, "closed"
        deadline_s = time.monotonic() + 2 * self._delivery_timeout_ms / 1000
        while True:
            self._serve(QUEUE_STEP_S)  # wait, since librdkafka reports failures only and not free space
            self._raise_failure()
            try:
                self._producer.produce(self._topic, value, key, target, headers=headers)
            except BufferError as error:
                if time.monotonic() >= deadline_s:
                    self._fail(target, str(error))
            else:
                return

    def _serve(self, timeout_s: float) -> None:
        """Run the delivery callbacks, and remember an error that `poll` raises as a failed delivery.

        librdkafka 2.16 raises errors of all records, such as a missing ACL, instead of reporting it.
        """
        assert self._producer is not None, "closed"
        try:
            self._producer.poll(timeout_s)
        except KafkaException as error:
            self._fail_for(None, error)

    def _report(self, error: KafkaError | None, record: Message) -> None:
        """Remember a failed delivery; librdkafka calls this from `poll` and `flush`."""
        if error is not None and record.topic() == self._topic:
            self._fail_for(record.partition(), error)

    def _fail_for(self, target: int | None, error: KafkaException | KafkaError) -> None:
        if is_fenced(error) and self._failure is None:
            self._failure = fenced_by(reason(error))
        self._fail(target, reason(error), too_large=is_too_large(error))
