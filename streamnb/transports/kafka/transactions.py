"""Kafka's transactions through kafka-python: a batch's scores, dead letters and offsets in one.

kafka-python 3.0.12 speaks the transaction requests of before KIP-890, against a broker of 4.x too: after a
commit whose answer was lost, a late request can still fall into the next transaction. So a transaction whose
outcome is not known is never aborted and its producer never used again; what remains is Kafka's own risk,
which is why at least once, with the source address as identity, stays the default. The state does not depend
on it: its offsets are in the snapshot.
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
from streamnb.errors import TransactionError
from streamnb.transports.kafka.client import client_settings, connect, translated
from streamnb.transports.kafka.producer import Producer, fenced, is_fenced, new_producer

# How long after `delivery_timeout_ms` the broker aborts what nobody ended, so that readers wait no longer. It
# shuts out the producer with it, as if another learner had begun, so it must not come first.
ABORT_AFTER_MS = 60_000
COORDINATOR_BUDGET_S = 30.0
RETRY_PAUSE_S = 0.1

T = TypeVar("T")


class KafkaTransactions:
    """`streamnb.base.protocols.Transactions` of one producer, which the sinks made with it share.

    Parameters
    ----------
    client : mapping
        Settings of kafka-python, as for `KafkaSource`.
    group : str
        The consumer group that the offsets are committed under; nobody may be a member of it.
    delivery_timeout_ms : int
        How long a record, and a commit, may go unanswered.

    Raises
    ------
    SettingsError
        A setting is unknown, or the transport's own.
    TransportError
        No broker answers.
    """

    def __init__(
        self, client: Mapping[str, object], group: str, *, delivery_timeout_ms: int = 120_000
    ) -> None:
        self._settings = client_settings(client)
        self._group = group
        self._timeout_ms = delivery_timeout_ms
        self._open = False
        self._producer: Producer | None = new_producer(
            self._settings,
            delivery_timeout_ms=delivery_timeout_ms,
            transactional_id=f"streamnb-{group}",
            transaction_timeout_ms=delivery_timeout_ms + ABORT_AFTER_MS,
        )

    def __repr__(self) -> str:
        return f"KafkaTransactions({self._group!r})"

    @property
    def name(self) -> str:
        """The group."""
        return self._group

    @property
    def producer(self) -> Producer:
        """What the sinks send through."""
        assert self._producer is not None, "closed"
        return self._producer

    def recover(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Shut out earlier learners, end what they left open, and say which offsets are committed.

        Raises
        ------
        TransportError
            The brokers do not answer, or do not allow transactions.
        """
        with translated("Beginning transactions", self._settings):
            _asked_again(self.producer.init_transactions)
        admin = connect(KafkaAdminClient, self._settings)
        try:
            with translated(f"Looking up the offsets of group {self._group}", self._settings):
                asked = {self._group: [TopicPartition(*one) for one in partitions]}
                found = _asked_again(lambda: admin.list_group_offsets(asked)[self._group])
        finally:
            admin.close()
        return {Partition(*one): at.offset for one, at in found.items() if at.offset >= 0}

    def begin(self) -> None:
        """Open a transaction."""
        with self._known():
            self.producer.begin_transaction()
        self._open = True

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Commit what was published since `begin`, and these offsets with it.

        Raises
        ------
        FencedError
            Another learner of this group has begun.
        TransactionError
            It is not known whether it was committed.
        """
        offsets = {TopicPartition(*one): OffsetAndMetadata(at, "", -1) for one, at in next_offsets.items()}
        with self._known():
            self.producer.commit(offsets, self._group, self._timeout_ms)
        self._open = False

    def close(self) -> None:
        """Let go; an open transaction is never committed."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        if self._open:
            producer.abandon()
        producer.let_go()

    @contextmanager
    def _known(self) -> Iterator[None]:
        try:
            yield
        except KafkaError as error:
            if is_fenced(error):
                raise fenced(error) from error
            raise TransactionError(
                f"What became of a transaction of the group {self._group} is not known: {error!r}.",
                "Start again: the engine resumes from its last snapshot.",
            ) from error


def _asked_again(ask: Callable[[], T]) -> T:
    """The answer, while a coordinator is being found: a cluster's first use of one makes its topic."""
    deadline_s = time.monotonic() + COORDINATOR_BUDGET_S
    while True:
        try:
            return ask()
        except KafkaError as error:
            if not error.retriable or time.monotonic() > deadline_s:
                raise
            time.sleep(RETRY_PAUSE_S)
