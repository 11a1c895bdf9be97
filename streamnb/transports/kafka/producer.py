"""kafka-python's producer as streamnb needs it: what it lets slip is held here.

Two of its ways would break what a transaction promises (3.0.12; `test_upstream.py`). A request to
the coordinator that is taken up while nobody answers is forgotten: its records then wait until they expire.
And a batch that is given up, expired for one, does not stop its transaction from being committed without it.
"""

# ruff: noqa: SLF001  the client has no public name for the state of a transaction

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafka import KafkaProducer, TopicPartition
from kafka.errors import InvalidProducerEpochError, KafkaError, KafkaTimeoutError, ProducerFencedError
from kafka.producer.transaction_manager import TransactionManager, TransactionState
from kafka.serializer import Serializer

from streamnb.errors import FencedError
from streamnb.transports.kafka.client import connect
from streamnb.transports.topics import BATCH_BYTES, LINGER_MS, log

CLOSE_TIMEOUT_S = 10.0
READY_TIMEOUT_MS = 1000.0

NOTHING = object()  # the value of a record that has none

_FENCED = (ProducerFencedError, InvalidProducerEpochError)


def is_fenced(error: KafkaError) -> bool:
    """Whether a transactional producer is not let in any more; the client wraps what it was told before."""
    return any(isinstance(cause, _FENCED) for cause in (error, *error.args))


def fenced(error: KafkaError) -> FencedError:
    """The error of a transactional producer that is not let in any more."""
    return FencedError(
        f"Another learner has begun under this group, or this one stood still too long: {error!r}.",
        "Let only one run, or give each a `source.group` of its own.",
    )


class _Nothing(Serializer):  # type: ignore[misc]
    """Lets a record have neither key nor value: Kafka takes it, kafka-python's ``send`` does not."""

    def serialize(self, topic: str, headers: object, data: object) -> object:  # noqa: ARG002
        return None if data is NOTHING else data


class _AskedOnce:
    """A transaction's partitions, of which the client is asked once and not with every record.

    Its own way takes four locks a record, which costs a quarter of sending one. What is looked at here says
    the same: a transaction with an error is in another state.

    Parameters
    ----------
    manager : TransactionManager
    """

    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager
        self._ask = manager.maybe_add_partition_to_transaction

    def __call__(self, partition: TopicPartition) -> None:
        manager = self._manager
        if (
            manager._current_state is not TransactionState.IN_TRANSACTION
            or partition not in manager._partitions_in_transaction
        ):
            self._ask(partition)


class _LostWithItsTransaction:
    """What a batch that is given up means for its transaction: that it may not be committed.

    The client's own way takes an error that passes for none, though it will not try again, and lets the
    transaction be committed without the batch. After a wrong sequence it asks for another epoch, for which
    the broker ends the transaction, and then says of a commit that it succeeded.

    Parameters
    ----------
    manager : TransactionManager
    """

    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager

    def __call__(self, error: Exception, batch: object, log_start_offset: int = -1) -> str:  # noqa: ARG002
        manager = self._manager
        fatal = type(error) in manager._FATAL_ERRORS
        said: str = manager.ERROR_CLASS_FATAL if fatal else manager.ERROR_CLASS_ABORTABLE
        return said


def _whether_ready(await_ready: Callable[..., bool]) -> Callable[..., bool]:
    """Its answer is no where it would raise: the sender then keeps the request it was about to send.

    Nor does it wait for long, for the sender does not hear meanwhile that it should end.
    """

    def ask(node: object, timeout_ms: float = READY_TIMEOUT_MS) -> bool:
        try:
            return await_ready(node, timeout_ms=min(timeout_ms, READY_TIMEOUT_MS))
        except KafkaError:  # of a connection, which the client has logged
            return False

    return ask


class Producer(KafkaProducer):  # type: ignore[misc]
    """kafka-python's producer, made by `new_producer`."""

    def __init__(self, **configs: object) -> None:
        super().__init__(**configs)
        # As in `Consumer`: the setting of this name does not reach the requests.
        self._metadata.config["allow_auto_create_topics"] = False
        manager = self._transaction_manager
        if manager is not None and manager.is_transactional():
            manager.maybe_add_partition_to_transaction = _AskedOnce(manager)
            manager.classify_batch_error = _LostWithItsTransaction(manager)
            net = self._sender._client
            net.await_ready = _whether_ready(net.await_ready)

    def abandon(self) -> None:
        """Fail what is in flight, so that `close` does not wait for it."""
        self._sender.force_close()

    def let_go(self) -> None:
        """Close; what is still in flight after a while is dropped, for it was not flushed."""
        try:
            self.close(CLOSE_TIMEOUT_S)
        except KafkaTimeoutError as error:  # it must not take the place of the one for which this is closed
            log.warning("Letting go of a producer, what was in flight is dropped: %s", error)
            self._sender.force_close()
            self._closed = True

    def commit(self, offsets: Mapping[object, object], group: str, timeout_ms: int) -> None:
        """Commit offsets and the open transaction; the client's own calls would wait without end.

        Raises
        ------
        KafkaError
            It failed, or nobody answered in time.
        """
        manager = self._transaction_manager
        try:
            for step in (lambda: manager.send_offsets_to_transaction(offsets, group), manager.begin_commit):
                result = step()
                self._sender.wakeup()
                if not result.wait(timeout_ms):
                    raise KafkaTimeoutError(f"no answer to a commit within {timeout_ms} ms")
        except KafkaError as error:
            # A refusal because of an earlier error has only its text.
            raise manager.last_error or error from error


def new_producer(settings: Mapping[str, object], *, delivery_timeout_ms: int, **owned: object) -> Producer:
    """A connected producer that waits for every replica in sync and sends each record once, in order.

    Raises
    ------
    SettingsError
        The client refuses its settings.
    TransportError
        No broker answers.
    """
    producer: Producer = connect(
        Producer,
        {
            "metrics_enabled": False,
            "linger_ms": LINGER_MS,
            "batch_size": BATCH_BYTES,
            "max_block_ms": delivery_timeout_ms,  # for the first record of a topic
            **settings,
        },
        acks="all",
        enable_idempotence=True,
        delivery_timeout_ms=delivery_timeout_ms,
        allow_auto_create_topics=False,
        value_serializer=_Nothing(),
        **owned,
    )
    return producer
