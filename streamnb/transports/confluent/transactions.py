"""Kafka transactions through librdkafka: the scores, dead letters and offsets of a batch in one commit.

librdkafka 2.16 uses the transaction requests of before KIP-890, as kafka-python does, so the rules are those
of `streamnb.transports.kafka`: a transaction with an unknown outcome is never aborted, and its producer never
used again. The transactional id and the committed offsets are the same with both clients, so that a learner
through one fences a learner through the other, and resumes what it left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from typing import TypeVar

from streamnb.base import IN_FLIGHT_BYTES_MAX, Partition
from streamnb.errors import TooLargeError, TransactionError, TransportError
from streamnb.transports.confluent.client import (
    Errors,
    build,
    connected_admin,
    librdkafka_settings,
    reason,
    translated,
)
from streamnb.transports.confluent.producer import (
    TOO_LARGE_HINT,
    Report,
    drop,
    is_fenced,
    is_too_large,
    new_producer,
)
from streamnb.transports.topics import (
    ABORT_AFTER_MS,
    COORDINATOR_BUDGET_S,
    IN_FLIGHT_MAX,
    PUBLISHED,
    fenced_by,
    is_published,
    transactional_id,
)

from confluent_kafka import (  # isort: skip  as in source.py
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

STEP_S = 0.005
REQUEST_S_MIN = 0.01
GRACE_S = 1.0
RETRY_PAUSE_S = 0.1
DEFAULTS = {
    # By default librdkafka 2.16 forgets every broker once all are down, and so the group's coordinator: see
    # `_returned`. This setting makes it connect to the same ones again.
    "metadata.recovery.strategy": "none",
}
COORDINATOR_AWAY = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}

T = TypeVar("T")


class ConfluentTransactions:
    """`streamnb.base.protocols.Transactions` with one transactional producer, which the sinks share.

    Parameters
    ----------
    client : mapping
        Settings of librdkafka, as for `ConfluentSource`.
    group : str
        The consumer group to which the offsets are committed. It must have no members.
    delivery_timeout_ms : int
        The time in which the broker must answer a record or a commit.
    in_flight_bytes_max : int
        The number of unacknowledged bytes, of all sinks together, at which `publish` waits.

    Raises
    ------
    SettingsError
        A setting is unknown, or the transport fixes it.
    TransportError
        No broker answers.
    """

    def __init__(
        self,
        client: Mapping[str, object],
        group: str,
        *,
        delivery_timeout_ms: int = 120_000,
        in_flight_bytes_max: int = 2 * IN_FLIGHT_BYTES_MAX,
    ) -> None:
        self._settings = librdkafka_settings(client)
        self._group = group
        self._timeout_ms = delivery_timeout_ms
        self._reports: list[Report] = []
        self._failure: KafkaError | None = None
        self._ready = False
        self._membership: object = None  # of the group, as the broker must see it in a commit
        self._producer: Producer | None = None
        connected_admin(self._settings)
        self._producer = new_producer(
            {**DEFAULTS, **self._settings},
            self._report,
            in_flight_max=IN_FLIGHT_MAX,
            in_flight_bytes_max=in_flight_bytes_max,
            delivery_timeout_ms=delivery_timeout_ms,
            transactional_id=transactional_id(group),
            transaction_timeout_ms=delivery_timeout_ms + ABORT_AFTER_MS,
        )

    def __repr__(self) -> str:
        return f"ConfluentTransactions({self._group!r})"

    @property
    def name(self) -> str:
        """The consumer group."""
        return self._group

    @property
    def producer(self) -> Producer:
        """The producer through which the sinks send."""
        assert self._producer is not None, "closed"
        return self._producer

    def listen(self, report: Report) -> None:
        """Call `report` too with each failed delivery, of whatever topic."""
        self._reports.append(report)

    def recover(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Fence earlier learners, abort their open transaction, and return the offsets it committed.

        Raises
        ------
        TransportError
            The brokers do not answer, or do not allow this user transactions.
        """
        deadline_s = time.monotonic() + COORDINATOR_BUDGET_S
        if not self._ready:  # librdkafka refuses to begin twice
            with translated("Beginning transactions", self._settings):
                _until(deadline_s, self.producer.init_transactions)
            self._ready = True
        consumer = build(
            Consumer,
            self._settings,
            Errors(),
            group_id=self._group,
            enable_auto_commit=False,
            isolation_level="read_committed",  # waits for offsets of a transaction that is being ended
        )
        try:
            with translated(f"Looking up the offsets of group {self._group}", self._settings):
                asked = [TopicPartition(*one) for one in partitions]
                found = _until(deadline_s, lambda left_s: consumer.committed(asked, left_s)) if asked else []
                self._membership = consumer.consumer_group_metadata()
        except (
            UnicodeDecodeError
        ):  # another client committed metadata without the null byte of `is_published`
            raise TransportError(
                f"Group {self._group} has offsets with metadata that confluent-kafka cannot read.",
                'Set `kind = "kafka"` for source, sink and dead letters, or another `source.group`.',
            ) from None
        finally:
            consumer.close()
        return {
            Partition(one.topic, one.partition): one.offset
            for one in found
            if one.offset >= 0 and is_published(one.metadata)
        }

    def begin(self) -> None:
        """Open a transaction."""
        with self._outcome_known():
            self.producer.begin_transaction()

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Commit the records published since `begin`, and these offsets with them.

        Raises
        ------
        FencedError
            Another learner of this group has started, or the broker aborted the transaction for its age.
        TransactionError
            The commit failed, or its outcome is unknown.
        """
        producer, deadline_s = self.producer, time.monotonic() + self._timeout_ms / 1000
        offsets = [TopicPartition(*one, at, PUBLISHED) for one, at in next_offsets.items()]
        with self._outcome_known():
            # The commit would wait for the records too, but at full processor load, as `flush` does.
            while self._failure is None and len(producer) and time.monotonic() < deadline_s:
                producer.poll(STEP_S)
            self._raise_failure()
            if waiting := len(producer):
                raise _timed_out(f"{waiting} records were not acknowledged within {self._timeout_ms} ms")
            group = self._membership
            _until(deadline_s, lambda left_s: producer.send_offsets_to_transaction(offsets, group, left_s))
            _until(deadline_s, producer.commit_transaction)
            self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise KafkaException(self._failure)

    def close(self) -> None:
        """Close the producer, without committing an open transaction."""
        producer, self._producer = self._producer, None
        if producer is not None:
            drop(producer, self._group)

    def _report(self, error: KafkaError | None, record: Message) -> None:
        """Remember the first failed delivery; librdkafka calls this from `poll` and `flush`."""
        self._failure = self._failure or error
        for report in self._reports:
            report(error, record)

    @contextmanager
    def _outcome_known(self) -> Iterator[None]:
        """Translate the client's errors to a `FencedError` or a `TransactionError`."""
        try:
            yield
        except KafkaException as error:
            if is_fenced(error):
                raise fenced_by(reason(error)) from error
            if is_too_large(error):
                raise TooLargeError(
                    f"A record of a transaction of group {self._group} was not delivered: {reason(error)}.",
                    TOO_LARGE_HINT,
                ) from error
            raise TransactionError(
                f"The outcome of a transaction of group {self._group} is unknown: {reason(error)}.",
                "Restart streamnb: it resumes from its last snapshot.",
            ) from error


def _until(deadline_s: float, request: Callable[[float], T]) -> T:
    """Return the request's result; repeat it after an error that librdkafka leaves to the caller to retry.

    A cluster creates the topics of its coordinators at their first use, and does not know them until then.

    Raises
    ------
    KafkaException
        The request failed, or did not return in time.
    """
    while True:
        try:
            return _returned(request, max(deadline_s - time.monotonic(), REQUEST_S_MIN))
        except KafkaException as error:
            again = error.args[0].retriable() or error.args[0].code() in COORDINATOR_AWAY
            if not again or time.monotonic() >= deadline_s:
                raise
            time.sleep(RETRY_PAUSE_S)


def _returned(request: Callable[[float], T], left_s: float) -> T:
    """Return the request's result, or raise if it has not returned a second after its own time limit.

    `send_offsets_to_transaction` of librdkafka 2.16 ignores its time limit. If the group's coordinator has
    left the cluster, it never returns. The thread that waits for it, and its producer, are then left behind.
    """
    answer: Future[T] = Future()

    def ask() -> None:
        try:
            answer.set_result(request(left_s))
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits
            answer.set_exception(error)

    Thread(target=ask, name="streamnb-transaction", daemon=True).start()
    try:
        return answer.result(left_s + GRACE_S)
    except TimeoutError:
        raise _timed_out(f"the client did not return within {left_s + GRACE_S:.0f} s") from None


def _timed_out(what: str) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._TIMED_OUT, what))  # noqa: SLF001 no other name
