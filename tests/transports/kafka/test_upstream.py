"""Defects of kafka-python alone on a live broker, which `streamnb.transports.kafka` works around.

If one of these tests fails, kafka-python has fixed the defect, and the workaround in README.md can go.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
import uuid

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaConnectionError, KafkaTimeoutError
from kafka.producer.transaction_manager import EndTxnHandler, TransactionManager

from streamnb.transports.kafka.source import create_topics
from tests.transports.kafka.test_client_traps import never_sent
from tests.transports.kafka.test_kafka_transport import NotUtf8

BOMB_BYTES = 40 << 20
SECOND_POLL = """
    import os, sys, threading
    from kafka import KafkaConsumer, TopicPartition

    broker, topic = sys.argv[1:]
    consumer = KafkaConsumer(bootstrap_servers=broker, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    first = "returned"
    for _ in range(20):
        try:
            if consumer.poll(timeout_ms=500):
                break
        except Exception as error:
            first = type(error).__name__
            break
    second = threading.Thread(target=lambda: consumer.poll(timeout_ms=100), daemon=True)
    second.start()
    second.join(5)
    print(first, "still polling" if second.is_alive() else "returned", flush=True)
    os._exit(0)
"""


@pytest.fixture
def topic(broker: str) -> str:
    """Create a topic of one partition."""
    name = f"upstream-{uuid.uuid4().hex[:12]}"
    create_topics({"bootstrap_servers": broker}, {name: 1})
    return name


def send(broker: str, topic: str, value: bytes, **more: object) -> None:
    """Send one record in its own batch."""
    producer = KafkaProducer(bootstrap_servers=broker, **more)
    try:
        headers = [(NotUtf8("caf\xe9"), b"")] if not more else []
        producer.send(topic, value, headers=headers, partition=0).get(30)
    finally:
        producer.close()


def test_after_a_record_it_cannot_decode_a_poll_does_not_return(broker: str, topic: str) -> None:
    """A header name that is not UTF-8 raises; the next poll, with a timeout of 100 ms, never returns."""
    send(broker, topic, b"poison")
    script = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(SECOND_POLL), broker, topic]
    said = subprocess.run(script, capture_output=True, text=True, timeout=60, check=True).stdout

    assert said.split(maxsplit=1) == ["CorruptRecordError", "still polling\n"]


def test_a_batch_is_unpacked_whatever_it_holds(broker: str, topic: str) -> None:
    """A legal record decompresses to forty times the broker's size limit."""
    send(broker, topic, bytes(BOMB_BYTES), compression_type="gzip", max_request_size=1 << 28)
    consumer = KafkaConsumer(bootstrap_servers=broker, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[bytes] = []
        for _ in range(20):
            found += [record.value for records in consumer.poll(1000).values() for record in records]
            if found:
                break
    finally:
        consumer.close()

    assert [len(value) for value in found] == [BOMB_BYTES]


def test_the_setting_against_new_topics_reaches_no_request(broker: str) -> None:
    """The metadata requests still allow the broker to create a misspelt topic."""
    consumer = KafkaConsumer(bootstrap_servers=broker, allow_auto_create_topics=False)
    try:
        assert consumer.config["allow_auto_create_topics"] is False
        assert consumer._cluster.config["allow_auto_create_topics"] is True
    finally:
        consumer.close()


def test_a_record_without_key_and_value_cannot_be_sent(broker: str, topic: str) -> None:
    """Kafka allows such a record, and a dead letter must be able to hold it."""
    producer = KafkaProducer(bootstrap_servers=broker)
    try:
        with pytest.raises(ValueError, match="at least one"):
            producer.send(topic, None, partition=0)
    finally:
        producer.close()


def test_transactions_are_those_of_before_kip_890() -> None:
    """With these, a delayed request after a lost commit response can join the next transaction."""
    manager = TransactionManager(transactional_id="t", transaction_timeout_ms=1000)
    request = EndTxnHandler(manager, committed=True).request

    assert request._max_version < 5


def transactional(broker: str, topic: str, **more: object) -> KafkaProducer:
    """Return a producer with an open transaction."""
    producer = KafkaProducer(bootstrap_servers=broker, transactional_id=topic, **more)
    producer.init_transactions()
    producer.begin_transaction()
    return producer


def test_a_transaction_is_committed_without_a_batch_that_expired(broker: str, topic: str) -> None:
    """The record's future reports the loss; the commit succeeds."""
    producer = transactional(broker, topic, request_timeout_ms=1000, delivery_timeout_ms=2000)
    try:
        producer.send(topic, b"sent", partition=0).get(10)
        never_sent(producer, topic)
        lost = producer.send(topic, b"never sent", partition=0)
        time.sleep(2.5)
        with pytest.raises(KafkaTimeoutError):
            lost.get(10)
        producer.commit_transaction()
    finally:
        producer.close()


def test_a_request_that_meets_a_coordinator_out_of_reach_is_forgotten(broker: str, topic: str) -> None:
    """The dropped request adds a partition to the transaction, so its records are never sent."""
    producer = transactional(broker, topic)
    client = producer._sender._client
    await_ready, refusals = client.await_ready, iter([True])

    def refused_once(node: object, timeout_ms: float = 30_000) -> bool:
        if next(refusals, False):
            raise KafkaConnectionError(node)
        ready: bool = await_ready(node, timeout_ms=timeout_ms)
        return ready

    client.await_ready = refused_once
    try:
        record = producer.send(topic, b"waits", partition=0)
        with pytest.raises(KafkaTimeoutError):
            record.get(5)
        assert not record.is_done
    finally:
        producer._sender.force_close()
        producer.close()
