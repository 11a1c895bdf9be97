"""kafka-python's producer, with workarounds for two defects that make a transaction lose records.

tests/transports/kafka/test_upstream.py shows both in 3.0.12. The producer drops a request to the transaction
coordinator if the coordinator does not answer at that moment; the records that depend on the request wait
until they expire. And it commits a transaction without a batch that it gave up, for example because the batch
expired, so that the offsets are committed and the records are lost.
"""

# ruff: noqa: SLF001  the client has no public name for the state of a transaction

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafka import KafkaProducer, TopicPartition
from kafka.errors import (
    InvalidProducerEpochError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    ProducerFencedError,
    RecordListTooLargeError,
)
from kafka.producer.sender import Sender
from kafka.producer.transaction_manager import (
    AddOffsetsToTxnHandler,
    InitProducerIdHandler,
    TransactionManager,
    TransactionState,
    TxnOffsetCommitHandler,
)
from kafka.serializer import Serializer

from streamnb.errors import FencedError
from streamnb.transports.kafka.client import connect
from streamnb.transports.kafka.rows import row_writer
from streamnb.transports.topics import BATCH_BYTES, LINGER_MS, fenced_by, log

CLOSE_TIMEOUT_S = 10.0
READY_TIMEOUT_MS = 1000.0  # the sender thread cannot be stopped while it waits for a connection

NO_VALUE = object()  # passed to `send` for a record without a value

_FENCED = (ProducerFencedError, InvalidProducerEpochError)
_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
_SOON = (AddOffsetsToTxnHandler, TxnOffsetCommitHandler, InitProducerIdHandler)


def is_fenced(error: KafkaError) -> bool:
    """Return whether the broker has fenced the producer; 3.0.12 may wrap that error in another one."""
    return any(isinstance(cause, _FENCED) for cause in (error, *error.args))


def is_too_large(error: object) -> bool:
    """Return whether the client or the broker refuses a record for its size."""
    causes = (error, *error.args) if isinstance(error, KafkaError) else ()
    return any(isinstance(cause, _TOO_LARGE) for cause in causes)


def fenced(error: KafkaError) -> FencedError:
    """Return the error for a fenced producer."""
    return fenced_by(repr(error))


class _NullSerializer(Serializer):  # type: ignore[misc]
    """Serializes `NO_VALUE` to null, so that ``send`` accepts a record without key and value."""

    def serialize(self, topic: str, headers: object, data: object) -> object:  # noqa: ARG002
        return None if data is NO_VALUE else data


class _AddPartitionOnce:
    """Adds a partition to the transaction only once, instead of asking the client with every record.

    The client's own method takes four locks per record, a quarter of the cost of sending one. The check here
    gives the same answer without a lock: a transaction with an error is no longer ``IN_TRANSACTION``.

    Parameters
    ----------
    manager : TransactionManager
    """

    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager
        self._add = manager.maybe_add_partition_to_transaction

    def __call__(self, partition: TopicPartition) -> None:
        manager = self._manager
        if (
            manager._current_state is not TransactionState.IN_TRANSACTION
            or partition not in manager._partitions_in_transaction
        ):
            self._add(partition)


class _FailTransactionWithBatch:
    """Classifies the error of a batch that the client gave up, so that its transaction cannot be committed.

    3.0.12 classifies a retriable error as harmless even if it will not retry, and commits the transaction
    without the batch. After an out-of-order sequence it requests a new producer epoch, for which the broker
    aborts the transaction, and then reports the commit as successful.

    Parameters
    ----------
    manager : TransactionManager
    """

    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager

    def __call__(self, error: Exception, batch: object, log_start_offset: int = -1) -> str:  # noqa: ARG002
        manager = self._manager
        fatal = type(error) in manager._FATAL_ERRORS
        outcome: str = manager.ERROR_CLASS_FATAL if fatal else manager.ERROR_CLASS_ABORTABLE
        return outcome


def _ready_or_false(await_ready: Callable[..., bool]) -> Callable[..., bool]:
    """Wrap `await_ready` so that it returns False where it would raise, and waits at most a second.

    3.0.12 drops the coordinator request in hand if `await_ready` raises, and keeps it if the answer is False.
    The wait is short because the sender thread cannot be stopped while it waits.
    """

    def ready(node: object, timeout_ms: float = READY_TIMEOUT_MS) -> bool:
        try:
            return await_ready(node, timeout_ms=min(timeout_ms, READY_TIMEOUT_MS))
        except KafkaError:  # the client has logged it
            return False

    return ready


class _SoonAgain:
    """Lets the first requests of a transaction be sent again after 20 ms instead of 100 ms.

    A broker refuses them while it still ends the transaction before. For a request that adds partitions the
    client shortens the pause itself, but the sender of 3.0.12 does not look at that; and if a commit follows
    soon, the first request is the one that adds the offsets. A request whose coordinator had to be looked up
    counts as a retry too, so that a start took a third of a second.

    Parameters
    ----------
    sender : Sender
    manager : TransactionManager
    """

    def __init__(self, sender: Sender, manager: TransactionManager) -> None:
        self._sender = sender
        self._manager = manager
        self._next = manager.next_request_handler

    def __call__(self, has_incomplete_batches: bool) -> object:
        handler, manager = self._next(has_incomplete_batches), self._manager
        if handler is not None:
            pause_ms = handler.retry_backoff_ms
            if isinstance(handler, _SOON):
                pause_ms = min(pause_ms, manager.ADD_PARTITIONS_RETRY_BACKOFF_MS)
            self._sender.config["retry_backoff_ms"] = pause_ms
        return handler


class Producer(KafkaProducer):  # type: ignore[misc]
    """kafka-python's producer with the workarounds of this module; `new_producer` builds it.

    Attributes
    ----------
    rows : RowWriter or None
        What appends many records at once; ``None`` if they have to be sent one by one.
    """

    def __init__(self, **configs: object) -> None:
        super().__init__(**configs)
        # As in `Consumer`: 3.0.12 never passes the setting of this name to its metadata requests.
        self._metadata.config["allow_auto_create_topics"] = False
        manager = self._transaction_manager
        if manager is not None and manager.is_transactional():
            manager.maybe_add_partition_to_transaction = _AddPartitionOnce(manager)
            manager.classify_batch_error = _FailTransactionWithBatch(manager)
            manager.next_request_handler = _SoonAgain(self._sender, manager)
            net = self._sender._client
            net.await_ready = _ready_or_false(net.await_ready)
        self.rows = row_writer(self)

    def abandon(self) -> None:
        """Fail the records in flight, so that `close` does not wait for them."""
        self._sender.force_close()

    def close_or_drop(self) -> None:
        """Close; after `CLOSE_TIMEOUT_S` drop the records still in flight, which were never flushed."""
        try:
            self.close(CLOSE_TIMEOUT_S)
        except KafkaTimeoutError as error:  # must not replace the error for which this producer is closed
            log.warning("A producer did not close in time; records in flight are dropped: %s", error)
            self._sender.force_close()
            self._closed = True

    def commit(self, offsets: Mapping[object, object], group: str, timeout_ms: int) -> None:
        """Commit offsets and the open transaction within `timeout_ms` for each of the two requests.

        The client's own `send_offsets_to_transaction` and `commit_transaction` wait without a time limit.

        Raises
        ------
        KafkaError
            The commit failed, or the coordinator did not answer in time.
        """
        manager = self._transaction_manager
        try:
            for step in (lambda: manager.send_offsets_to_transaction(offsets, group), manager.begin_commit):
                result = step()
                self._sender.wakeup()
                if not result.wait(timeout_ms):
                    raise KafkaTimeoutError(f"no answer to a commit within {timeout_ms} ms")
        except KafkaError as error:
            # If an earlier error caused this one, only the manager still has the earlier one as an object.
            raise manager.last_error or error from error


def new_producer(settings: Mapping[str, object], *, delivery_timeout_ms: int, **owned: object) -> Producer:
    """Return a connected idempotent producer that waits for all in-sync replicas.

    Raises
    ------
    SettingsError
        The client rejects its settings.
    TransportError
        No broker answers.
    """
    producer: Producer = connect(
        Producer,
        {
            "metrics_enabled": False,
            "linger_ms": LINGER_MS,
            "batch_size": BATCH_BYTES,
            # The first record of a topic waits this long for metadata; the default is 60 s.
            "max_block_ms": delivery_timeout_ms,
            **settings,
        },
        acks="all",
        enable_idempotence=True,
        delivery_timeout_ms=delivery_timeout_ms,
        allow_auto_create_topics=False,
        value_serializer=_NullSerializer(),
        **owned,
    )
    return producer
