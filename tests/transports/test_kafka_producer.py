"""The workarounds in the producer that need no broker to be seen."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kafka import TopicPartition
from kafka.producer.transaction_manager import (
    AddOffsetsToTxnHandler,
    AddPartitionsToTxnHandler,
    EndTxnHandler,
    TransactionManager,
    TxnOffsetCommitHandler,
    TxnRequestHandler,
)
from kafka.structs import ConsumerGroupMetadata

from streamnb.transports.kafka.producer import _SoonAgain


def refused_partition(manager: TransactionManager) -> TxnRequestHandler:
    """Return a request as the client leaves it when the transaction before is still being ended."""
    handler = AddPartitionsToTxnHandler(manager, [TopicPartition("t", 0)])
    handler.maybe_override_retry_backoff_ms()
    return handler


@pytest.mark.parametrize(
    ("make", "pause_ms"),
    [
        (refused_partition, 20),
        (lambda manager: AddOffsetsToTxnHandler(manager, ConsumerGroupMetadata("g"), {}), 20),
        (lambda manager: TxnOffsetCommitHandler(manager, ConsumerGroupMetadata("g"), {}, None), 20),
        (lambda manager: EndTxnHandler(manager, committed=True), 100),
    ],
    ids=["partitions", "offsets", "offsets to the group", "commit"],
)
def test_the_sender_pauses_before_a_retry_as_long_as_the_request_asks(
    make: type[TxnRequestHandler], pause_ms: int
) -> None:
    """kafka-python 3.0.12 pauses 100 ms, in which the next transaction could have been over."""
    manager = TransactionManager("t", 1000, retry_backoff_ms=100)
    manager._transaction_started = True
    sender = SimpleNamespace(config={"retry_backoff_ms": 50})
    next_handler = _SoonAgain(sender, manager)
    assert next_handler(False) is None
    assert sender.config["retry_backoff_ms"] == 50
    handler = make(manager)
    manager._enqueue_request(handler)
    assert next_handler(False) is handler
    assert sender.config["retry_backoff_ms"] == pause_ms
