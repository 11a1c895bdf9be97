"""What the sink publishes in columns is what a reader finds, whatever happens to batches and connections.

Each test runs for both paths: rows that are appended to open batches by one call, and records that are sent
one by one.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable, Sequence

import pytest
from kafka.admin import KafkaAdminClient

from deploy.kafka.broker import Broker
from streamnb.base import Headers, twins
from streamnb.base.record import Partition
from streamnb.errors import FencedError, TooLargeError
from streamnb.transports.kafka.producer import Producer
from streamnb.transports.kafka.source import KafkaSink
from streamnb.transports.kafka.transactions import KafkaTransactions
from tests.transports.kafka.proxy import Proxy
from tests.transports.kafka.test_pipeline import read_to_end

Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]
Chosen = Callable[[Producer | None], None]


COMPILED = twins.load("streamnb.transports.kafka._sink") is not None


@pytest.fixture(params=["in columns", "one by one"] if COMPILED else ["one by one"])
def chosen(request: pytest.FixtureRequest) -> Chosen:
    """Choose the path of a producer: without a writer of rows, records are sent one by one."""

    def choose(producer: Producer | None) -> None:
        assert producer is not None
        if request.param == "one by one":
            producer.rows = None
        assert (producer.rows is not None) == (request.param == "in columns")

    return choose


def new_topic(broker: str, partitions: int = 1, **configs: object) -> str:
    """Create a topic that no other test uses, and wait until it is there."""
    topic = f"rows-{uuid.uuid4().hex[:12]}"
    with KafkaAdminClient(bootstrap_servers=broker) as admin:
        names = {name.replace("_", "."): str(value) for name, value in configs.items()}
        admin.create_topics({topic: {"num_partitions": partitions, "configs": names}})
        admin.wait_for_topics([topic])
    return topic


def publish(sink: KafkaSink, partition: int, rows: Sequence[Row]) -> None:
    """Publish rows as columns."""
    headers: list[Headers] = [row[2] for row in rows]
    sink.publish(partition, [row[0] for row in rows], [row[1] for row in rows], headers)


def found(broker: str, topic: str, number: int = 0) -> list[Row]:
    """Return what a `read_committed` reader finds in a partition, in order."""
    return [
        (value, key, list(headers))
        for batch in read_to_end(broker, topic)
        if batch.partition.number == number
        for value, key, headers in zip(batch.values, batch.keys, batch.headers, strict=True)
    ]


def numbered(n: int, size: int = 100) -> list[Row]:
    """Return rows of about a size, each with its own number."""
    return [(b"%d " % i + b"x" * size, None, []) for i in range(n)]


def drawn(chance: random.Random, n: int) -> list[Row]:
    """Return rows of all kinds: null and empty, small and large, with headers and without."""
    sizes = (0, 1, 20, 300, 9000)

    def part() -> bytes:
        return chance.randbytes(chance.choice(sizes))

    return [
        (
            None if chance.random() < 0.1 else part(),
            None if chance.random() < 0.5 else part(),
            [(chance.choice(["h", "é", ""]), part()) for _ in range(chance.choice([0, 0, 0, 1, 3]))],
        )
        for _ in range(n)
    ]


@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
def test_all_kinds_of_rows_are_read_as_they_were_published(
    broker: str, chosen: Chosen, compression: str | None
) -> None:
    """Over three partitions, in batches of many sizes, one call after the other or far apart."""
    topic, chance = new_topic(broker, 3), random.Random(compression)
    sink = KafkaSink(
        topic, {"bootstrap_servers": broker, "compression_type": compression, "batch_size": 40_000}
    )
    sent: list[list[Row]] = [[], [], []]
    try:
        chosen(sink._producer)
        for call in range(60):
            number, rows = chance.randrange(3), drawn(chance, chance.choice([1, 2, 30, 100]))
            publish(sink, number, rows)
            sent[number] += rows
            if call % 20 == 19:
                sink.flush(30_000)
        sink.flush(30_000)
        assert (sink._in_flight_rows, sink._in_flight_bytes, len(sink._in_flight)) == (0, 0, 0)
    finally:
        sink.close()

    assert [found(broker, topic, number) for number in range(3)] == sent


@pytest.mark.parametrize("in_transaction", [False, True], ids=["at least once", "exactly once"])
def test_a_batch_that_the_broker_refuses_as_too_large_is_split_and_delivered(
    broker: str, chosen: Chosen, caplog: pytest.LogCaptureFixture, in_transaction: bool
) -> None:
    """The client halves it until it fits; each row is delivered once and in order, and is then done."""
    caplog.set_level(logging.WARNING, "kafka")
    topic, client = new_topic(broker, max_message_bytes=20_000), {"bootstrap_servers": broker}
    transactions = KafkaTransactions(client, topic) if in_transaction else None
    sink = KafkaSink(topic, client, transactions=transactions)
    rows = numbered(3000)
    try:
        chosen(sink._producer)
        if transactions is not None:
            assert transactions.recover([Partition(topic, 0)]) == {}
            transactions.begin()
        publish(sink, 0, rows[:2000])
        publish(sink, 0, rows[2000:])
        sink.flush(60_000)
        if transactions is not None:
            transactions.commit({Partition(topic, 0): 3000})
        assert not sink._in_flight
    finally:
        sink.close()
        if transactions is not None:
            transactions.close()

    assert any("splitting batch and retrying" in message for message in caplog.messages)
    assert found(broker, topic) == rows


def test_a_row_that_no_split_makes_small_enough_is_an_error_that_stays(broker: str, chosen: Chosen) -> None:
    """The rows before it may be delivered; the sink reports it, and reports nothing as delivered after it."""
    topic = new_topic(broker, max_message_bytes=20_000)
    sink = KafkaSink(topic, {"bootstrap_servers": broker})
    rows = numbered(400)
    rows[300] = (b"x" * 30_000, None, [])
    try:
        chosen(sink._producer)
        publish(sink, 0, rows)
        for _ in range(2):
            with pytest.raises(TooLargeError, match=rf"(?i){topic}-0 .*message ?size ?too ?large"):
                sink.flush(60_000)
    finally:
        sink.close()
    read = found(broker, topic)
    assert [row for row in read if row not in rows] == []
    assert rows[300] not in read


def test_a_row_larger_than_the_client_may_send_stops_behind_those_before_it(
    broker: str, chosen: Chosen
) -> None:
    """The error is that of the client; the rows before it are delivered, those behind it are not."""
    topic = new_topic(broker)
    sink = KafkaSink(topic, {"bootstrap_servers": broker, "max_request_size": 10_000, "batch_size": 1 << 20})
    rows = numbered(9)
    rows[5] = (b"x" * 9_950, None, [])
    try:
        chosen(sink._producer)
        with pytest.raises(
            TooLargeError, match=rf"{topic}-0 .*The message is 10037 bytes .*`output.bytes_max`"
        ):
            publish(sink, 0, rows)
        with pytest.raises(TooLargeError, match=rf"{topic}-0"):
            sink.flush(10_000)
        assert sink._producer is not None
        sink._producer.flush(10)
    finally:
        sink.close()

    assert found(broker, topic) == rows[:5]


@pytest.mark.parametrize(
    "refused", [(b"x", None, [("name", None)]), (b"x", "text", [])], ids=["header", "key"]
)
def test_a_row_of_the_wrong_type_is_the_clients_own_error(broker: str, chosen: Chosen, refused: Row) -> None:
    """An error of the caller, raised where the row is published."""
    topic = new_topic(broker)
    sink = KafkaSink(topic, {"bootstrap_servers": broker})
    try:
        chosen(sink._producer)
        with pytest.raises(TypeError):
            publish(sink, 0, [*numbered(3), refused, *numbered(3)])
    finally:
        sink.close()


def test_columns_of_different_lengths_are_a_failed_delivery(broker: str, chosen: Chosen) -> None:
    """As before, the rows that are whole are sent, and the sink keeps the error."""
    sink = KafkaSink(new_topic(broker), {"bootstrap_servers": broker})
    try:
        chosen(sink._producer)
        with pytest.raises(Exception, match="was not delivered: zip"):
            sink.publish(0, [b"a", b"b"], [None], [(), ()])
    finally:
        sink.close()


def test_a_connection_that_breaks_in_the_middle_doubles_and_loses_nothing(
    proxied: tuple[Broker, Proxy, str], chosen: Chosen
) -> None:
    """Requests are sent again with their sequence numbers, also where only the response was lost."""
    broker, proxy, address = proxied
    topic, chance = new_topic(broker.address), random.Random(1)
    sink = KafkaSink(topic, {"bootstrap_servers": address, "batch_size": 5000, "linger_ms": 1})
    rows = numbered(20_000)
    at = 0
    try:
        chosen(sink._producer)
        while at < len(rows):
            n = chance.choice([1, 10, 300])
            publish(sink, 0, rows[at : at + n])
            at += n
            if chance.random() < 0.15:
                proxy.cut(chance.choice(["now", "before the response"]))
                time.sleep(0.02)
        sink.flush(60_000)
    finally:
        sink.close()

    assert found(broker.address, topic) == rows


def test_a_fenced_learner_publishes_nothing_more(broker: str, chosen: Chosen) -> None:
    """Rows in its open transaction are never seen, and its error names the reason."""
    topic, client = new_topic(broker), {"bootstrap_servers": broker}
    first, second = (KafkaTransactions(client, topic) for _ in range(2))
    sink = KafkaSink(topic, client, transactions=first)
    zero = Partition(topic, 0)

    def go_on() -> None:
        for _ in range(100):
            publish(sink, 0, numbered(10))
            time.sleep(0.05)
        first.commit({zero: 100})

    try:
        chosen(sink._producer)
        first.recover([zero])
        first.begin()
        publish(sink, 0, numbered(1000))
        sink.flush(10_000)
        second.recover([zero])
        with pytest.raises(FencedError, match="This learner was fenced"):
            go_on()
    finally:
        sink.close()
        first.close()
        second.close()

    assert found(broker, topic) == []


def test_rows_in_flight_are_bounded(own_broker: Broker, chosen: Chosen) -> None:
    """By number, and by the bytes of values and keys; one that is larger than the bound goes alone."""
    topic = new_topic(own_broker.address)
    client: dict[str, object] = {"bootstrap_servers": own_broker.address}
    sink = KafkaSink(topic, client, in_flight_max=700, in_flight_bytes_max=50_000)
    rows = [*numbered(3000), (b"y" * 60_000, b"k", []), *numbered(3000, 1)]
    held: list[tuple[int, int]] = []
    count = sink._count

    def counted(delivery: object, target: int, n: int, size: int) -> None:
        count(delivery, target, n, size)  # type: ignore[arg-type]
        held.append((sink._in_flight_rows, sink._in_flight_bytes))

    sink._count = counted  # type: ignore[method-assign]
    try:
        chosen(sink._producer)
        publish(sink, 0, rows)
        sink.flush(30_000)
    finally:
        sink.close()

    assert max(n for n, _ in held) == 700
    assert 49_000 < max(size for n, size in held if n > 1) <= 50_000
    assert (1, 60_001) in held
    assert found(own_broker.address, topic) == rows
