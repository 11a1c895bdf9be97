"""The workarounds for kafka-python's defects hold on a real broker."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Sequence

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaTimeoutError, NotCoordinatorError

from deploy.kafka.broker import Broker
from streamnb.base.record import Partition, Unreadable
from streamnb.errors import DeliveryError, FencedError, TransactionError
from streamnb.transports.kafka import transactions as kafka_transactions
from streamnb.transports.kafka.source import KafkaSink, KafkaSource, create_topics, describe_topics
from streamnb.transports.kafka.transactions import KafkaTransactions
from tests.transports.kafka.proxy import Proxy
from tests.transports.kafka.test_pipeline import read_to_end

BOMB_BYTES = 40 << 20


def topic_of(broker: str) -> tuple[str, dict[str, object]]:
    """Create a topic of one partition; return its name and the client's settings."""
    topic, client = f"traps-{uuid.uuid4().hex[:12]}", {"bootstrap_servers": broker}
    create_topics(client, {topic: 1})
    return topic, dict(client)


def produce(broker: str, topic: str, values: Sequence[bytes | None], compression: str | None = None) -> None:
    """Produce each value in its own batch, as another application may."""
    producer = KafkaProducer(
        bootstrap_servers=broker,
        compression_type=compression,
        max_request_size=1 << 28,
        metrics_enabled=False,
    )
    try:
        for value in values:
            producer.send(topic, value, key=b"k", partition=0).get(30)
    finally:
        producer.close()


def read(source: KafkaSource, until: int) -> tuple[list[bytes | None], list[Unreadable]]:
    """Return the values and the unreadable ranges up to an offset."""
    source.open({}, "earliest")
    values: list[bytes | None] = []
    unreadable: list[Unreadable] = []
    at, deadline_s = 0, time.monotonic() + 30
    while at < until:
        assert time.monotonic() < deadline_s
        for batch in source.poll(100, 200):
            values += batch.values
            unreadable += batch.unreadable
            at = batch.next_offset
    return values, unreadable


def never_sent(producer: KafkaProducer, topic: str) -> None:
    """Keep all records published from now on in the client until they expire."""
    producer._accumulator.muted.add(TopicPartition(topic, 0))


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_A15_a_bomb_is_an_unreadable_range_and_the_stream_goes_on(broker: str, compression: str) -> None:
    """A legal batch that decompresses to 40 MiB is skipped, and the records around it arrive."""
    topic, client = topic_of(broker)
    produce(broker, topic, [b"before"], compression)
    produce(
        broker, topic, [bytes(BOMB_BYTES) if compression != "snappy" else bytes(BOMB_BYTES // 4)], compression
    )
    produce(broker, topic, [b"after"], compression)
    source = KafkaSource([topic], client, decompressed_bytes_max=1 << 20)
    try:
        values, unreadable = read(source, 3)
    finally:
        source.close()

    assert values == [b"before", b"after"]
    assert [(one.first_offset, one.next_offset) for one in unreadable] == [(1, 2)]
    assert "decompress to more than" in unreadable[0].cause


def test_A14_a_record_larger_than_a_fetch_is_read(broker: str) -> None:
    """The client neither waits forever nor skips the record."""
    topic, client = topic_of(broker)
    produce(broker, topic, [b"small", b"x" * 900_000, b"small"])
    source = KafkaSource([topic], {**client, "max_partition_fetch_bytes": 1000, "fetch_max_bytes": 1000})
    try:
        values, unreadable = read(source, 3)
    finally:
        source.close()

    assert [len(value or b"") for value in values] == [5, 900_000, 5]
    assert unreadable == []


def test_A11_a_tombstone_is_read_as_one(broker: str) -> None:
    """Its value is None, and the records around it arrive."""
    topic, client = topic_of(broker)
    produce(broker, topic, [b"one", None, b"three"])
    source = KafkaSource([topic], client)
    try:
        values, _ = read(source, 3)
    finally:
        source.close()

    assert values == [b"one", None, b"three"]


def test_B21_bytes_in_flight_are_bounded_while_the_broker_is_away(own_broker: Broker) -> None:
    """`publish` waits at the limit; kafka-python alone would accept every record."""
    topic, client = topic_of(own_broker.address)
    client["request_timeout_ms"] = 600
    sink = KafkaSink(topic, client, in_flight_bytes_max=100_000, delivery_timeout_ms=1000)
    sink.publish(0, [b"first"], [None], [()])
    sink.flush(10_000)
    own_broker.kill()
    held: list[int] = []

    def publish_much() -> None:
        for _ in range(100):
            sink.publish(0, [b"x" * 10_000], [None], [()])
            held.append(sink._in_flight_bytes)

    try:
        with pytest.raises(DeliveryError):
            publish_much()
        assert 90_000 <= max(held) <= 100_000
    finally:
        sink.close()
        own_broker.start()


def test_B17_a_transaction_that_took_too_long_is_refused_and_seen_by_nobody(
    own_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker aborts it and fences the producer; the next start publishes its records again."""
    monkeypatch.setattr(kafka_transactions, "ABORT_AFTER_MS", -9000)
    topic, client = topic_of(own_broker.address)
    slow = KafkaTransactions({**client, "request_timeout_ms": 5000}, topic, delivery_timeout_ms=10_000)
    sink = KafkaSink(topic, client, transactions=slow)
    partition = Partition(topic, 0)
    try:
        assert slow.recover([partition]) == {}
        slow.begin()
        sink.publish(0, [b"too late"], [None], [()])
        time.sleep(3)
        with pytest.raises(FencedError):
            slow.commit({partition: 1})
    finally:
        sink.close()
        slow.close()
    again = KafkaTransactions(client, topic)
    try:
        assert again.recover([partition]) == {}
        again.begin()
        once = KafkaSink(topic, client, transactions=again)
        once.publish(0, [b"once"], [None], [()])
        again.commit({partition: 1})
        assert again.recover([partition]) == {partition: 1}
    finally:
        again.close()

    assert [value for batch in read_to_end(own_broker.address, topic) for value in batch.values] == [b"once"]


def test_B16_a_batch_that_is_given_up_takes_its_transaction_with_it(own_broker: Broker) -> None:
    """The commit fails; kafka-python alone would commit and lose the batch (in CI once 250 scores)."""
    topic, client = topic_of(own_broker.address)
    settings = {**client, "request_timeout_ms": 1000}
    transactions = KafkaTransactions(settings, topic, delivery_timeout_ms=2000)
    sink = KafkaSink(topic, client, transactions=transactions)
    partition = Partition(topic, 0)
    try:
        assert transactions.recover([partition]) == {}
        transactions.begin()
        sink.publish(0, [b"sent"], [None], [()])
        sink.flush(10_000)
        never_sent(transactions.producer, topic)
        sink.publish(0, [b"never sent"], [None], [()])
        time.sleep(2.5)
        with pytest.raises(TransactionError, match="Expiring 1 record"):
            transactions.commit({partition: 2})
    finally:
        sink.close()
        transactions.close()
    again = KafkaTransactions(client, topic)
    try:
        assert again.recover([partition]) == {}
    finally:
        again.close()

    assert [value for batch in read_to_end(own_broker.address, topic) for value in batch.values] == []


def test_B2_what_the_coordinator_could_not_be_asked_is_asked_again(
    proxied: tuple[Broker, Proxy, str],
) -> None:
    """The request is sent again; kafka-python alone drops it, and the records wait two minutes to expire."""
    broker, proxy, address = proxied
    topic, _ = topic_of(broker.address)
    transactions = KafkaTransactions({"bootstrap_servers": address}, topic)
    sink = KafkaSink(topic, {"bootstrap_servers": address}, transactions=transactions)
    partition = Partition(topic, 0)
    try:
        assert transactions.recover([partition]) == {}
        transactions.begin()
        sink.publish(0, [b"first"], [None], [()])
        transactions.commit({partition: 1})
        transactions.begin()
        proxy.refuse(True)
        time.sleep(0.5)
        sink.publish(0, [b"second"], [None], [()])
        time.sleep(1.5)
        proxy.refuse(False)
        sink.flush(20_000)
        transactions.commit({partition: 2})
    finally:
        sink.close()
        transactions.close()

    found = [value for batch in read_to_end(broker.address, topic) for value in batch.values]
    assert found == [b"first", b"second"]


def test_a_partition_without_a_leader_is_waited_for(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a rolling restart, `open` retries until there is a leader; the client alone raises a KeyError."""
    client = {"bootstrap_servers": broker}
    topic = f"traps-{uuid.uuid4().hex[:12]}"
    create_topics(client, {topic: 2})
    source = KafkaSource([topic], client)
    positions = {Partition(topic, 0): 0, Partition(topic, 1): 0}
    try:
        source.open({}, "earliest")
        assert source._consumer is not None
        cluster = source._consumer._cluster
        leader, back_s = cluster.leader_for_partition, time.monotonic() + 1.5

        def leaderless(partition: TopicPartition) -> object:
            away = partition.partition == 1 and time.monotonic() < back_s
            return -1 if away else leader(partition)

        monkeypatch.setattr(cluster, "leader_for_partition", leaderless)
        assert source.open(positions, "earliest") == positions
        assert time.monotonic() >= back_s
    finally:
        source.close()


def test_news_of_the_cluster_are_heard_after_an_odd_error_too(broker: str) -> None:
    """A file error in one metadata refresh does not end the refreshes; the client alone never asks again."""
    topic, client = topic_of(broker)
    source = KafkaSource([topic], {**client, "metadata_max_age_ms": 200})
    try:
        source.open({}, "earliest")
        assert source._consumer is not None
        net = source._consumer._client
        refresh, failed = net._refresh, threading.Event()

        async def failing_once(node_id: object = None) -> None:
            if not failed.is_set():
                failed.set()
                raise FileNotFoundError("ca.pem")
            await refresh(node_id)

        net._refresh = failing_once
        assert failed.wait(10)
        deadline_s = time.monotonic() + 10
        with KafkaAdminClient(**client) as admin:
            admin.create_partitions({topic: 2})
        while not (added := source.added()) and time.monotonic() < deadline_s:
            source.poll(100, 100)
        assert added == {Partition(topic, 1): 0}
    finally:
        source.close()


def test_a_listener_that_hangs_up_is_asked_again_after_a_pause(proxied: tuple[Broker, Proxy, str]) -> None:
    """A connection closed after it was accepted backs off; the client alone retries 500 times a second."""
    broker, proxy, address = proxied
    topic, _ = topic_of(broker.address)
    client = {"bootstrap_servers": address}
    source, sink = KafkaSource([topic], client), KafkaSink(topic, client)
    try:
        source.open({}, "earliest")
        sink.publish(0, [b"first"], [None], [()])
        sink.flush(10_000)
        proxy.refuse(True)
        asked, until_s = proxy.asked, time.monotonic() + 3
        sink.publish(0, [b"second"], [None], [()])
        while time.monotonic() < until_s:
            source.poll(100, 100)
        asked = proxy.asked - asked
        proxy.refuse(False)
        sink.flush(20_000)
    finally:
        source.close()
        sink.close()

    assert 0 < asked < 150


def test_a_producer_does_not_look_for_its_connection_without_a_pause(broker: str) -> None:
    """The delay is in milliseconds and never 0; kafka-python gives seconds, and 0 while it connects."""
    topic, client = topic_of(broker)
    sink = KafkaSink(topic, client)
    try:
        assert sink._producer is not None
        net = sink._producer._sender._client
        assert net.connection_delay("of none") == 50
        net._manager._backoff["elsewhere"] = (1, time.monotonic() + 0.5, 1000)
        assert 300 < net.connection_delay("elsewhere") <= 500
    finally:
        sink.close()


def test_who_keeps_a_groups_offsets_is_looked_up_again_when_it_refuses(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cached coordinator is dropped after an error; kafka-python alone asks it again forever."""
    topic, client = topic_of(broker)
    source, partition = KafkaSource([topic], client, group=topic), Partition(topic, 0)
    try:
        source.open({}, "earliest")
        source.commit({partition: 0})
        admin = source._connected_admin()
        known, alter = admin._manager.cluster._coordinators, admin.alter_group_offsets
        asked: list[int] = []

        def refusing_once(group: str, offsets: dict[TopicPartition, object]) -> object:
            asked.append(len(known))
            return dict.fromkeys(offsets, NotCoordinatorError) if len(asked) == 1 else alter(group, offsets)

        monkeypatch.setattr(admin, "alter_group_offsets", refusing_once)
        source.commit({partition: 0})
        assert asked == [1, 0]
    finally:
        source.close()


def test_a_topic_made_again_with_fewer_partitions_is_a_failed_delivery(broker: str) -> None:
    """kafka-python raises a ValueError; the sink raises a DeliveryError that names topic and partition."""
    topic, client = f"traps-{uuid.uuid4().hex[:12]}", {"bootstrap_servers": broker}
    create_topics(client, {topic: 3})
    sink = KafkaSink(topic, client)
    try:
        with KafkaAdminClient(**client) as admin:
            admin.delete_topics([topic])
        deadline_s = time.monotonic() + 20
        while topic in describe_topics(client, [topic]) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        create_topics(client, {topic: 1})
        with pytest.raises(DeliveryError, match=f"{topic}-2 was not delivered"):
            sink.publish(2, [b"a score"], [None], [()])
    finally:
        sink.close()


def test_a_producer_that_cannot_be_closed_in_time_is_dropped(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error must not replace the error for which the producer is closed."""
    topic, client = topic_of(broker)
    transactions = KafkaTransactions(client, topic)
    producer = transactions.producer

    def late(timeout: object = None) -> None:
        raise KafkaTimeoutError(timeout)

    with monkeypatch.context() as patched:
        patched.setattr(producer, "close", late)
        transactions.close()
    producer._sender.join(10)
    assert not producer._sender.is_alive()
