"""Kafka transactions through kafka-python: the scores, dead letters and offsets of a batch in one commit.

kafka-python 3.0.12 uses the transaction requests of before KIP-890, also with a 4.x broker. If the answer to
a commit is lost, a delayed request can therefore still join the next transaction of the same producer epoch.
For that reason this module never aborts a transaction with an unknown outcome, and never uses its producer
again. The rest of that risk is Kafka's own; KIP-890 describes it. At-least-once delivery, with the source
address as identity, therefore stays the default. The model's state is safe in both modes, because its
offsets are in the snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from streamnb.base import Partition
from streamnb.errors import TooLargeError, TransactionError
from streamnb.transports.kafka.client import connect, kafka_python_settings, translated
from streamnb.transports.kafka.producer import Producer, fenced, is_fenced, is_too_large, new_producer
from streamnb.transports.topics import (
    ABORT_AFTER_MS,
    COORDINATOR_BUDGET_S,
    PUBLISHED,
    TOO_LARGE_HINT,
    is_published,
    transactional_id,
)

RETRY_PAUSE_S = 0.1

T = TypeVar("T")


class KafkaTransactions:
    """`streamnb.base.protocols.Transactions` with one transactional producer, which the sinks share.

    Parameters
    ----------
    client : mapping
        Settings of kafka-python, as for `KafkaSource`.
    group : str
        The consumer group to which the offsets are committed. It must have no members.
    delivery_timeout_ms : int
        The time in which the broker must answer a record or a commit.

    Raises
    ------
    SettingsError
        A setting is unknown, or the transport fixes it.
    TransportError
        No broker answers.
    """

    def __init__(
        self, client: Mapping[str, object], group: str, *, delivery_timeout_ms: int = 120_000
    ) -> None:
        self._settings = kafka_python_settings(client)
        self._group = group
        self._timeout_ms = delivery_timeout_ms
        self._open = False
        self._producer: Producer | None = new_producer(
            self._settings,
            delivery_timeout_ms=delivery_timeout_ms,
            transactional_id=transactional_id(group),
            transaction_timeout_ms=delivery_timeout_ms + ABORT_AFTER_MS,
        )

    def __repr__(self) -> str:
        return f"KafkaTransactions({self._group!r})"

    @property
    def name(self) -> str:
        """The consumer group."""
        return self._group

    @property
    def producer(self) -> Producer:
        """The producer through which the sinks send."""
        assert self._producer is not None, "closed"
        return self._producer

    def recover(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Fence earlier learners, abort their open transaction, and return the offsets it committed.

        Raises
        ------
        TransportError
            The brokers do not answer, or do not allow this user transactions.
        """
        with translated("Beginning transactions", self._settings):
            _with_coordinator(self.producer.init_transactions)
        admin = connect(KafkaAdminClient, self._settings)
        try:
            with translated(f"Looking up the offsets of group {self._group}", self._settings):
                asked = {self._group: [TopicPartition(*one) for one in partitions]}
                found = _with_coordinator(lambda: admin.list_group_offsets(asked)[self._group])
        finally:
            admin.close()
        return {Partition(*one): at.offset for one, at in found.items() if is_published(at.metadata)}

    def begin(self) -> None:
        """Open a transaction."""
        with self._outcome_known():
            self.producer.begin_transaction()
        self._open = True

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Commit the records published since `begin`, and these offsets with them.

        Raises
        ------
        FencedError
            Another learner of this group has started, or the broker aborted the transaction for its age.
        TransactionError
            The commit failed, or its outcome is unknown.
        """
        offsets = {
            # The null byte is for confluent-kafka: see `is_published`.
            TopicPartition(*one): OffsetAndMetadata(at, f"{PUBLISHED}\0", -1)
            for one, at in next_offsets.items()
        }
        with self._outcome_known():
            self.producer.commit(offsets, self._group, self._timeout_ms)
        self._open = False

    def close(self) -> None:
        """Close the producer, without committing an open transaction."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        if self._open:
            producer.abandon()
        producer.close_or_drop()

    @contextmanager
    def _outcome_known(self) -> Iterator[None]:
        """Translate the client's errors to a `FencedError` or a `TransactionError`."""
        try:
            yield
        except KafkaError as error:
            if is_fenced(error):
                raise fenced(error) from error
            if is_too_large(error):
                raise TooLargeError(
                    f"A record of a transaction of group {self._group} was not delivered: {error!r}.",
                    TOO_LARGE_HINT,
                ) from error
            raise TransactionError(
                f"The outcome of a transaction of group {self._group} is unknown: {error!r}.",
                "Restart streamnb: it resumes from its last snapshot.",
            ) from error


def _with_coordinator(request: Callable[[], T]) -> T:
    """Return the request's result; retry while the cluster sets up a coordinator.

    A cluster creates the topics of its coordinators at their first use. Until then kafka-python raises
    retriable errors instead of retrying.
    """
    deadline_s = time.monotonic() + COORDINATOR_BUDGET_S
    while True:
        try:
            return request()
        except KafkaError as error:
            if not error.retriable or time.monotonic() > deadline_s:
                raise
            time.sleep(RETRY_PAUSE_S)
