"""Transactions through librdkafka keep their promises on a real broker, where the client alone does not."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka.admin import KafkaAdminClient, NewTopic

from deploy.kafka.broker import Broker
from streamnb.base.record import Partition
from streamnb.errors import DeliveryError, FencedError, TooLargeError, TransactionError
from streamnb.transports.confluent import ConfluentSink, ConfluentTransactions, create_topics
from streamnb.transports.confluent import transactions as module
from tests.transports.kafka.accidents import Child
from tests.transports.kafka.proxy import Proxy
from tests.transports.kafka.test_exactly_once import assert_each_is_seen_once, exactly_once
from tests.transports.kafka.test_pipeline import read_to_end

# Commits a transaction, and then waits in the second one until its broker was killed and started again.
SECOND_COMMIT = """
    import sys
    from confluent_kafka import Consumer, Producer, TopicPartition

    broker, topic = sys.argv[1:]
    client = {"bootstrap.servers": broker}
    consumer = Consumer({**client, "group.id": topic})
    group = consumer.consumer_group_metadata()
    producer = Producer({**client, "transactional.id": topic})
    producer.init_transactions(30)
    for offset in range(2):
        producer.begin_transaction()
        producer.produce(topic, b"value", partition=0)
        producer.flush(10)
        if offset:
            print("begun", flush=True)
            input()
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, offset + 1)], group, 2.0)
        producer.commit_transaction(10)
    print("returned", flush=True)
"""


def topic_of(broker: str) -> tuple[str, dict[str, object]]:
    """Create a topic of one partition; return its name and the client's settings."""
    topic, client = f"transactions-{uuid.uuid4().hex[:12]}", {"bootstrap.servers": broker}
    create_topics(client, {topic: 1})
    return topic, dict(client)


def values(broker: str, topic: str) -> list[bytes | None]:
    """Return what a reader of committed records sees."""
    return [value for batch in read_to_end(broker, topic) for value in batch.values]


@contextmanager
def begun(
    client: dict[str, object], topic: str, **settings: int
) -> Iterator[tuple[ConfluentTransactions, ConfluentSink]]:
    """Yield transactions of which one is open, and a sink that publishes into it."""
    transactions = ConfluentTransactions(client, topic, **settings)
    try:
        sink = ConfluentSink(topic, client, transactions=transactions)
        transactions.recover([Partition(topic, 0)])
        transactions.begin()
        yield transactions, sink
        sink.close()
    finally:
        transactions.close()


def recovered(client: dict[str, object], topic: str) -> dict[Partition, int]:
    """Return the committed offsets that the next learner finds."""
    again = ConfluentTransactions(client, topic)
    try:
        return dict(again.recover([Partition(topic, 0)]))
    finally:
        again.close()


def publish(sink: ConfluentSink, value: bytes) -> None:
    """Publish one record."""
    sink.publish(0, [value], [None], [()])


def test_B17_a_transaction_that_took_too_long_is_refused_and_seen_by_nobody(
    own_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker aborts it and fences the producer; the next start publishes its records again."""
    monkeypatch.setattr(module, "ABORT_AFTER_MS", 0)
    topic, client = topic_of(own_broker.address)
    partition = Partition(topic, 0)
    with begun(client, topic, delivery_timeout_ms=2000) as (slow, sink):
        publish(sink, b"too late")
        sink.flush(2000)
        time.sleep(4)
        with pytest.raises(FencedError):
            slow.commit({partition: 1})
    with begun(client, topic) as (again, once):
        assert again.recover([partition]) == {}
        publish(once, b"once")
        again.commit({partition: 1})
        assert again.recover([partition]) == {partition: 1}

    assert values(own_broker.address, topic) == [b"once"]


def test_B16_a_record_that_is_given_up_takes_its_transaction_with_it(
    proxied: tuple[Broker, Proxy, str],
) -> None:
    """The commit fails, and neither the record before it nor the offsets are committed."""
    broker, proxy, address = proxied
    topic, client = topic_of(address)
    with begun(client, topic, delivery_timeout_ms=2000) as (transactions, sink):
        publish(sink, b"sent")
        sink.flush(2000)
        proxy.refuse(True)
        publish(sink, b"never sent")
        time.sleep(3)
        proxy.refuse(False)
        with pytest.raises(TransactionError, match=r"timed out|not acknowledged"):
            transactions.commit({Partition(topic, 0): 2})
        time.sleep(2)  # librdkafka looks once a second for records that have expired
        with pytest.raises(DeliveryError, match=f"{topic}-0 was not delivered"):
            publish(sink, b"refused")

    assert recovered(client, topic) == {}
    assert values(broker.address, topic) == []


def test_B2_a_coordinator_that_is_away_for_a_moment_is_waited_for(
    proxied: tuple[Broker, Proxy, str],
) -> None:
    """No transaction is lost, and none is committed twice."""
    broker, proxy, address = proxied
    topic, client = topic_of(address)
    partition = Partition(topic, 0)
    with begun(client, topic) as (transactions, sink):
        publish(sink, b"first")
        transactions.commit({partition: 1})
        transactions.begin()
        proxy.refuse(True)
        time.sleep(0.5)
        publish(sink, b"second")
        time.sleep(1.5)
        proxy.refuse(False)
        transactions.commit({partition: 2})

    assert values(broker.address, topic) == [b"first", b"second"]
    assert recovered(client, topic) == {partition: 2}


def test_B16_a_commit_whose_answer_is_lost_is_made_once_or_not_at_all(
    proxied: tuple[Broker, Proxy, str],
) -> None:
    """Wherever the connection breaks, the next learner's offsets agree with what readers see."""
    broker, proxy, address = proxied
    topic, client = topic_of(address)
    partition = Partition(topic, 0)
    known = 0
    for number in range(12):
        with begun(client, topic) as (transactions, sink):
            publish(sink, b"%d" % known)
            sink.flush(10_000)
            proxy.cut("before the response")
            time.sleep(number / 1000)
            try:
                transactions.commit({partition: known + 1})
            except TransactionError as error:
                assert "unknown" in str(error)  # noqa: PT017  either outcome is right
        known = recovered(client, topic).get(partition, 0)

        assert values(broker.address, topic) == [b"%d" % i for i in range(known)]
    assert known > 0


def test_F8_a_record_that_the_broker_refuses_for_its_size_fails_the_commit(broker: str) -> None:
    """The error is the one that a restart does not help against."""
    topic, client = f"transactions-{uuid.uuid4().hex[:12]}", {"bootstrap.servers": broker}
    with KafkaAdminClient(bootstrap_servers=broker) as admin:
        admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"max.message.bytes": "1000"})])
    with begun(dict(client), topic) as (transactions, sink):
        publish(sink, bytes(5000))
        with pytest.raises(TooLargeError, match=r"`batch\.size`"):
            transactions.commit({Partition(topic, 0): 1})
        with pytest.raises(TooLargeError):
            publish(sink, b"refused")


def test_a_commit_never_returns_once_the_coordinator_has_left_the_cluster(own_broker: Broker) -> None:
    """The client alone forgets its brokers if all are down, and waits for one of them past its time limit."""
    topic, _ = topic_of(own_broker.address)
    command = [sys.executable, "-c", textwrap.dedent(SECOND_COMMIT), own_broker.address, topic]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        own_broker.kill()
        own_broker.start()
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate("\n", timeout=12)
        process.kill()


def test_a_commit_is_made_once_its_broker_is_back(own_broker: Broker) -> None:
    """The transport keeps its brokers, so that the call above returns."""
    topic, client = topic_of(own_broker.address)
    partition = Partition(topic, 0)
    with begun(client, topic) as (transactions, sink):
        publish(sink, b"first")
        transactions.commit({partition: 1})
        transactions.begin()
        publish(sink, b"second")
        sink.flush(10_000)
        own_broker.kill()
        own_broker.start()
        transactions.commit({partition: 2})

    assert values(own_broker.address, topic) == [b"first", b"second"]


def test_an_engine_whose_commit_never_returns_resumes_with_another_producer(
    own_broker: Broker, starter: subprocess.Popen[str], tmp_path: Path
) -> None:
    """With librdkafka's own setting the call hangs; the engine goes on from its last snapshot, once each."""
    pipe = exactly_once(own_broker.address, tmp_path, 3, "confluent", times=4)
    changes = ['confluent.metadata.recovery.strategy="rebootstrap"', "sink.delivery_timeout_ms=5000"]
    child = Child(starter, pipe.config, pipe.broker, "confluent", *changes, until_end=True)
    child.wait_until_ready()
    time.sleep(0.3)
    own_broker.kill()
    own_broker.start()

    assert child.ended(120) == 0, "".join(child.said)
    assert_each_is_seen_once(pipe)


def test_a_request_that_does_not_return_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its outcome is unknown a moment after its time limit; an error and a result are handed on."""
    monkeypatch.setattr(module, "GRACE_S", 0.1)
    began_s = time.monotonic()
    with pytest.raises(KafkaException, match="did not return") as caught:
        module._until(began_s, time_out_of_mind)
    assert caught.value.args[0].code() == KafkaError._TIMED_OUT
    assert module._until(began_s, lambda left_s: left_s) == module.REQUEST_S_MIN
    refused = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))

    def refuse(_: float) -> None:
        raise refused

    with pytest.raises(KafkaException) as again:
        module._until(began_s, refuse)
    assert again.value is refused


def time_out_of_mind(_: float) -> None:
    """Return long after every limit of these tests."""
    time.sleep(5)
