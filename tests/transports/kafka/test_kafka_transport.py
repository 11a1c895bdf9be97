"""The transport through kafka-python keeps the protocols of source and sink on a real broker."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import NodeNotReadyError, TopicAuthorizationFailedError

from deploy.kafka.broker import Broker
from streamnb.base.protocols import Sink, Source
from streamnb.base.record import Partition, RecordBatch
from streamnb.errors import DeliveryError, PositionError, SettingsError, TooLargeError, TransportError
from streamnb.transports.kafka.client import OWNED
from streamnb.transports.kafka.source import KafkaSink, KafkaSource, create_topics, describe_topics

Client = dict[str, object]
MakeSource = Callable[..., KafkaSource]
MakeSink = Callable[..., KafkaSink]

# kafka-python never closes the socket of a refused connection; the garbage collector does.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def client(broker: str) -> Client:
    """Settings that connect to the broker."""
    return {"bootstrap_servers": broker}


@pytest.fixture
def own_client(own_broker: Broker) -> Client:
    """Settings that connect to the broker that tests may kill."""
    return {"bootstrap_servers": own_broker.address, "reconnect_backoff_max_ms": 500}


@pytest.fixture
def admin(client: Client) -> Iterator[KafkaAdminClient]:
    """An admin client, to change topics as an operator does."""
    with KafkaAdminClient(**client) as connected:
        yield connected


@pytest.fixture
def topic(client: Client) -> str:
    """A new topic of three partitions."""
    return new_topic(client, 3)


@pytest.fixture
def closing() -> Iterator[list[KafkaSource | KafkaSink]]:
    """A list whose sources and sinks are closed after the test."""
    opened: list[KafkaSource | KafkaSink] = []
    yield opened
    for one in opened:
        one.close()


@pytest.fixture
def source(closing: list[KafkaSource | KafkaSink]) -> MakeSource:
    """Build a source that is closed after the test."""

    def make(topic: str, client: Client, group: str | None = None) -> KafkaSource:
        made = KafkaSource([topic], client, group=group)
        closing.append(made)
        return made

    return make


@pytest.fixture
def sink(closing: list[KafkaSource | KafkaSink]) -> MakeSink:
    """Build a sink that is closed after the test."""

    def make(topic: str, client: Client, **settings: Any) -> KafkaSink:  # noqa: ANN401 - the sink has them
        made = KafkaSink(topic, client, **settings)
        closing.append(made)
        return made

    return make


def new_topic(client: Client, partitions: int) -> str:
    """Create a topic that no other test uses."""
    name = f"t-{uuid.uuid4().hex[:12]}"
    create_topics(client, {name: partitions})
    return name


def drain(source: Source, records_max: int = 1000, pause_ms: int = 300) -> list[RecordBatch]:
    """Poll to the end offsets of now and return every batch."""
    ends = dict(source.end_offsets() or {})
    batches: list[RecordBatch] = []
    reached: dict[Partition, int] = {}
    deadline = time.monotonic() + 20
    idle = False
    while not idle:
        assert time.monotonic() < deadline, f"reached {reached} of {ends}"
        polled = source.poll(records_max, pause_ms)
        assert sum(map(len, polled)) <= records_max
        batches += polled
        reached |= {batch.partition: batch.next_offset for batch in polled}
        held: dict[Partition, int] = source._next_offsets  # type: ignore[attr-defined]
        idle = not polled and all(held[partition] >= end for partition, end in ends.items())
    return batches


def values(batches: Sequence[RecordBatch], number: int | None = None) -> list[bytes | None]:
    """Return the values of one partition or of all."""
    return [v for batch in batches if number in (None, batch.partition.number) for v in batch.values]


def publish(sink: Sink, partition: int, contents: Sequence[bytes]) -> None:
    """Publish values without keys or headers."""
    sink.publish(partition, contents, [None] * len(contents), [()] * len(contents))


def numbered(count: int, prefix: str = "v") -> list[bytes]:
    """Return numbered values."""
    return [f"{prefix}{i}".encode() for i in range(count)]


def send(client: Client, topic: str, contents: Sequence[bytes], **settings: object) -> None:
    """Send values to partition 0 with kafka-python alone."""
    producer = KafkaProducer(**client, linger_ms=50)
    try:
        futures = [producer.send(topic, content, partition=0, **settings) for content in contents]
        assert [future.get(10).offset for future in futures]
    finally:
        producer.close(5)


def test_what_is_published_is_what_is_read(
    topic: str, client: Client, source: MakeSource, sink: MakeSink
) -> None:
    """Order, keys, values and headers survive over three partitions, also of records without value or key."""
    opened = sink(topic, client)
    sent: dict[int, list[tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]]] = {}
    for number in range(3):
        rows: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]] = [
            (
                f"{number}-{i}".encode(),
                f"k{i}".encode(),
                [("h", str(i).encode()), ("h", b"\xff\x00"), ("é", b"")],
            )
            for i in range(2000)
        ]
        sent[number] = [*rows, (None, b"key", []), (None, None, []), (b"", None, [("t", b"1")])]
    for number, rows in sent.items():
        # Input partitions 3, 4, 5 of a larger topic: the output partition is the remainder.
        opened.publish(number + 3, [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])
    opened.flush(10_000)
    reader = source(topic, client)
    assert reader.open({}, "earliest") == {Partition(topic, n): 0 for n in range(3)}
    batches = drain(reader)
    for number, rows in sent.items():
        mine = [batch for batch in batches if batch.partition.number == number]
        assert [
            tuple(row)
            for batch in mine
            for row in zip(batch.values, batch.keys, map(list, batch.headers), strict=True)
        ] == rows
        assert [offset for batch in mine for offset in batch.offsets] == list(range(2003))
        assert mine[-1].next_offset == 2003
        assert all(abs(stamp / 1000 - time.time()) < 60 for batch in mine for stamp in batch.timestamps_ms)
    assert all(len(batch) == len(batch.offsets) and not batch.unreadable for batch in batches)
    assert not reader.finished()


def test_a_second_source_resumes_where_the_first_stopped(
    topic: str, client: Client, source: MakeSource, sink: MakeSink
) -> None:
    """Two sources in a row, joined by `next_offset`, read each record once."""
    writer = sink(topic, client)
    for number in range(3):
        publish(writer, number, numbered(500, f"{number}-"))
    writer.flush(10_000)
    first = source(topic, client)
    positions = dict(first.open({}, "earliest"))
    batches: list[RecordBatch] = []
    while len(values(batches)) < 600:
        polled = first.poll(70, 1000)
        batches += polled
        positions |= {batch.partition: batch.next_offset for batch in polled}
    second = source(topic, client)
    assert second.open(positions, "latest") == positions
    rest = drain(second)
    for number in range(3):
        assert values(batches, number) + values(rest, number) == numbered(500, f"{number}-")


def test_a_first_start_begins_where_it_is_told(topic: str, client: Client, source: MakeSource) -> None:
    """`start` may be earliest, latest or a time, which means the first record at or after it, or the end."""
    send(client, topic, [b"a"], timestamp_ms=1_000_000)
    send(client, topic, [b"b"], timestamp_ms=2_000_000)
    zero = Partition(topic, 0)
    reader = source(topic, client)
    assert reader.open({}, "latest")[zero] == 2
    assert reader.open({}, 3_000_000)[zero] == 2
    assert reader.open({}, 2_000_000)[zero] == 1
    assert values(drain(reader)) == [b"b"]
    assert reader.open({}, 1_000_001)[zero] == 1
    assert reader.open({}, "earliest")[zero] == 0
    assert values(drain(reader)) == [b"a", b"b"]
    with pytest.raises(SettingsError, match="1970"):
        reader.open({}, -5)


def test_B8_a_partition_added_since_the_snapshot_is_read_from_its_beginning(
    client: Client, admin: KafkaAdminClient, source: MakeSource, sink: MakeSink
) -> None:
    """A topic that grew from one partition to three loses nothing, whatever `start` says."""
    topic = new_topic(client, 1)
    send(client, topic, numbered(3))
    admin.create_partitions({topic: 3})
    admin.wait_for_topics([topic])
    writer = sink(topic, client)
    publish(writer, 2, [b"new"])
    writer.flush(10_000)
    reader = source(topic, client)
    positions = reader.open({Partition(topic, 0): 2}, "latest")
    assert positions == {Partition(topic, 0): 2, Partition(topic, 1): 0, Partition(topic, 2): 0}
    assert sorted(map(str, values(drain(reader)))) == [str(b"new"), str(b"v2")]


def test_B8_a_partition_that_is_added_under_a_reader_is_taken_from_its_beginning(
    client: Client,
    admin: KafkaAdminClient,
    source: MakeSource,
    sink: MakeSink,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is assigned after the next metadata refresh; the other partitions keep their positions."""
    monkeypatch.setattr("streamnb.transports.confluent.source.LOOK_AGAIN_S", 0.2)
    topic = new_topic(client, 1)
    send(client, topic, numbered(3))
    reader = source(topic, client | {"metadata_max_age_ms": 200})
    reader.open({}, "earliest")
    assert values(drain(reader)) == numbered(3)
    assert reader.added() == {}
    admin.create_partitions({topic: 2})
    admin.wait_for_topics([topic])
    writer = sink(topic, client)
    for partition in range(2):
        publish(writer, partition, [b"later"])
    writer.flush(10_000)
    deadline_s = time.monotonic() + 30
    read: list[bytes | None] = []
    while not (added := reader.added()) and time.monotonic() < deadline_s:
        read += values(reader.poll(100, 100))
    assert added == {Partition(topic, 1): 0}
    assert reader.added() == {}
    assert read + values(drain(reader)) == [b"later", b"later"]


def test_B7_a_position_that_the_log_does_not_hold_stops_the_start(
    topic: str, client: Client, admin: KafkaAdminClient, source: MakeSource
) -> None:
    """Before the first offset, past the end, or in a missing partition: the error names what is missing."""
    send(client, topic, numbered(10))
    admin.delete_records({TopicPartition(topic, 0): 6})
    reader = source(topic, client)
    with pytest.raises(PositionError, match=rf"{topic}-0 begins at offset 6: offsets 4 to 5 .2 records"):
        reader.open({Partition(topic, 0): 4}, "earliest")
    with pytest.raises(PositionError, match=rf"{topic}-0 ends at offset 10: offsets 10 to 11"):
        reader.open({Partition(topic, 0): 12}, "earliest")
    with pytest.raises(PositionError, match=rf"{topic}-7 is gone"):
        reader.open({Partition(topic, 7): 0}, "earliest")
    assert reader.open({Partition(topic, 0): 10}, "earliest")[Partition(topic, 0)] == 10
    assert reader.open({Partition(topic, 0): 6}, "earliest")[Partition(topic, 0)] == 6
    assert values(drain(reader)) == numbered(10)[6:]


def test_B6_records_removed_under_a_reader_stop_it(
    topic: str, client: Client, admin: KafkaAdminClient, source: MakeSource
) -> None:
    """If retention passes the position, that poll and every later one raise; none jumps ahead."""
    send(client, topic, numbered(10))
    reader = source(topic, client)
    reader.open({}, "earliest")
    admin.delete_records({TopicPartition(topic, 0): 6})
    with pytest.raises(PositionError, match=topic):
        reader.poll(100, 5000)
    with pytest.raises(PositionError, match=topic):
        reader.poll(100, 5000)


def test_a_missing_topic_is_an_error_and_is_not_created(own_client: Client, source: MakeSource) -> None:
    """Neither source nor sink creates a topic, although the broker allows it."""
    with pytest.raises(TransportError, match="Topic misspelt does not exist"):
        source("misspelt", own_client).open({}, "earliest")
    with pytest.raises(TransportError, match="Topic misspelt does not exist"):
        KafkaSink("misspelt", own_client)
    assert describe_topics(own_client, ["misspelt"]) == {}


def test_a_topic_deleted_under_its_clients_stays_deleted(
    own_client: Client, source: MakeSource, sink: MakeSink
) -> None:
    """A metadata refresh does not create the topic again."""
    topic = new_topic(own_client, 1)
    settings = {**own_client, "metadata_max_age_ms": 200}
    writer, reader = sink(topic, settings), source(topic, settings)
    reader.open({}, "earliest")
    publish(writer, 0, [b"a"])
    writer.flush(10_000)
    assert values(drain(reader)) == [b"a"]
    with KafkaAdminClient(**own_client) as admin:
        admin.delete_topics([topic])
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        reader.poll(10, 200)
    assert describe_topics(own_client, [topic]) == {}


def test_B18_aborted_records_are_not_read_and_are_accounted_for(
    topic: str, client: Client, source: MakeSource
) -> None:
    """`next_offset` passes aborted records and transaction markers, also at the end of the log."""
    reader = source(topic, client)
    reader.open({}, "earliest")
    producer = KafkaProducer(**client, transactional_id=f"x-{topic}")
    producer.init_transactions()

    def transaction(content: bytes, *, commit: bool) -> None:
        producer.begin_transaction()
        producer.send(topic, content, partition=0)
        producer.send(topic, content, partition=0)
        producer.flush(10)
        assert not values(drain(reader)), "an open transaction was read"
        (producer.commit_transaction if commit else producer.abort_transaction)()

    try:
        transaction(b"first", commit=True)
        batches = drain(reader)
        transaction(b"aborted", commit=False)
        gaps = drain(reader)
        transaction(b"second", commit=True)
        batches += drain(reader)
    finally:
        producer.close(5)
    assert values(gaps) == []
    assert [batch.next_offset for batch in gaps] == [6]
    assert values(batches) == [b"first", b"first", b"second", b"second"]
    assert [offset for batch in batches for offset in batch.offsets] == [0, 1, 6, 7]
    assert batches[-1].next_offset == reader.end_offsets()[Partition(topic, 0)] == 9


class NotUtf8(str):
    """A header name that is sent as bytes that are not UTF-8."""

    __slots__ = ()

    def encode(self, _encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """Encode as Latin-1, whatever the encoding asked for."""
        return super().encode("latin-1", errors)


@pytest.mark.parametrize("records_max", [1, 3, 1000])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_A16_an_unreadable_record_is_reported_and_no_other_is_lost(
    topic: str, client: Client, source: MakeSource, records_max: int, compression: str | None
) -> None:
    """A header name that is not UTF-8 costs only its own record, and no other of the same batch."""
    bad = {2, 3, 6, 9}
    producer = KafkaProducer(**client, linger_ms=200, compression_type=compression)
    try:
        for i in range(10):
            name = NotUtf8("caf\xe9") if i in bad else "coffee"
            producer.send(topic, b"%d" % i, headers=[(name, b"x")], partition=0)
        producer.flush(10)
    finally:
        producer.close(5)
    send(client, topic, [b"10"])
    reader = source(topic, client)
    reader.open({}, "earliest")
    batches = drain(reader, records_max)
    assert values(batches) == [b"%d" % i for i in range(11) if i not in bad]
    ranges = [(one.first_offset, one.next_offset) for batch in batches for one in batch.unreadable]
    assert ranges == [(i, i + 1) for i in sorted(bad)]
    assert all("utf-8" in one.cause for batch in batches for one in batch.unreadable)
    assert batches[-1].next_offset == 11
    resumed = source(topic, client)
    resumed.open({Partition(topic, 0): 3}, "earliest")
    again = [(one.first_offset, one.next_offset) for batch in drain(resumed) for one in batch.unreadable]
    assert again == [(3, 4), (6, 7), (9, 10)]


def test_A17_a_damaged_batch_is_reported_and_the_stream_goes_on(
    own_broker: Broker, own_client: Client, source: MakeSource
) -> None:
    """A batch with a wrong checksum, as from a failing disk, is one exact unreadable range."""
    topic = new_topic(own_client, 1)
    for name in ("good", "bad", "fine"):
        send(own_client, topic, numbered(5, name))
    own_broker.stop()
    segment = next((own_broker.directory / "data" / f"{topic}-0").glob("*.log"))
    content = segment.read_bytes()
    assert content.count(b"bad3") == 1
    segment.write_bytes(content.replace(b"bad3", b"baX3"))
    own_broker.start()
    reader = source(topic, own_client)
    reader.open({}, "earliest")
    batches = drain(reader)
    assert values(batches) == [*numbered(5, "good"), *numbered(5, "fine")]
    (damage,) = [one for batch in batches for one in batch.unreadable]
    assert (damage.first_offset, damage.next_offset) == (5, 10)
    assert "crc" in damage.cause
    assert batches[-1].next_offset == 15


def test_a_compression_that_is_not_installed_stops_the_reader(
    client: Client, admin: KafkaAdminClient, source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record is skipped because a library is missing; every poll raises and names what to install."""
    monkeypatch.setattr("kafka.codec.has_zstd", lambda: False)
    topic = f"t-{uuid.uuid4().hex[:12]}"
    admin.create_topics({topic: {"num_partitions": 1, "configs": {"compression.type": "zstd"}}})
    admin.wait_for_topics([topic])
    send(client, topic, numbered(5))
    reader = source(topic, client)
    reader.open({}, "earliest")
    for _ in range(2):
        with pytest.raises(TransportError, match=r"zstd .*pip install"):
            reader.poll(100, 5000)


def test_B14_a_record_that_the_broker_refuses_is_an_error_that_stays(
    client: Client, admin: KafkaAdminClient, sink: MakeSink
) -> None:
    """`flush` and every later call raise the failure, with topic, partition and cause."""
    topic = f"t-{uuid.uuid4().hex[:12]}"
    admin.create_topics({topic: {"num_partitions": 2, "configs": {"max.message.bytes": "1000"}}})
    admin.wait_for_topics([topic])
    writer = sink(topic, client)
    publish(writer, 1, [b"small", b"x" * 5000])
    for _ in range(2):
        with pytest.raises(TooLargeError, match=rf"(?i){topic}-1 .*message ?size ?too ?large"):
            writer.flush(10_000)
    with pytest.raises(DeliveryError, match=topic):
        publish(writer, 0, [b"small"])


def test_a_record_larger_than_the_client_may_send_is_an_error_that_stays(
    topic: str, client: Client, sink: MakeSink
) -> None:
    """A record that the client refuses to send counts as not delivered too."""
    writer = sink(topic, client)
    with pytest.raises(TooLargeError, match=rf"{topic}-0 .*`output.bytes_max`.* A restart alone fails again"):
        publish(writer, 0, [b"x" * 2_000_000])
    with pytest.raises(TooLargeError, match=rf"{topic}-0"):
        writer.flush(10_000)


@pytest.mark.parametrize("name", sorted(OWNED))
def test_a_setting_of_the_transport_is_refused(name: str) -> None:
    """A user cannot change a setting on which exactly-once learning depends, and the error says why."""
    client: Client = {"bootstrap_servers": "nowhere.invalid:9092", name: True}
    with pytest.raises(SettingsError, match=rf"`{name}` cannot be set: \w+"):
        KafkaSource(["t"], client)
    with pytest.raises(SettingsError, match=rf"`{name}` cannot be set: \w+"):
        KafkaSink("t", client)


def test_the_dangerous_defaults_are_overridden(
    topic: str, client: Client, source: MakeSource, sink: MakeSink
) -> None:
    """The running clients hold the safe values."""
    reader, writer = source(topic, client), sink(topic, client)
    reader.open({}, "earliest")
    consumer, producer = reader._consumer, writer._producer
    assert consumer is not None
    assert producer is not None
    held = {
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "isolation_level": "read_committed",
        "check_crcs": True,
        "group_id": None,
        "key_deserializer": None,
        "value_deserializer": None,
    }
    assert {name: consumer.config[name] for name in held} == held
    assert consumer._cluster.config["allow_auto_create_topics"] is False
    assert producer._metadata.config["allow_auto_create_topics"] is False
    held = {
        "acks": -1,
        "enable_idempotence": True,
        "linger_ms": 20,
        "batch_size": 262_144,
        "max_block_ms": 120_000,
        "key_serializer": None,
    }
    assert {name: producer.config[name] for name in held} == held


def test_retriable_errors_are_retried_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retriable errors are retried until the time limit; then the error names the brokers."""
    reader = KafkaSource(["t"], {"bootstrap_servers": ["a:1", "b:2"]})
    retriable = NodeNotReadyError("node 1")
    assert reader._poll_failure(retriable) is None
    assert reader._poll_failure(retriable) is None
    monkeypatch.setattr("streamnb.transports.kafka.source.RETRY_BUDGET_S", 0.0)
    with pytest.raises(
        TransportError, match=r"Reading from a:1, b:2 has failed for .*NodeNotReadyError: node 1"
    ):
        raise reader._poll_failure(retriable) or AssertionError
    with pytest.raises(TransportError, match="TopicAuthorizationFailedError"):
        raise reader._poll_failure(TopicAuthorizationFailedError("t")) or AssertionError


def test_a_mistyped_setting_is_refused_with_the_nearest_name() -> None:
    """The error names the nearest setting; missing brokers and topics are refused too."""
    with pytest.raises(SettingsError, match="Did you mean `bootstrap_servers`"):
        KafkaSource(["t"], {"bootstrap_server": "a:1"})
    with pytest.raises(SettingsError, match="`bootstrap_servers` is missing"):
        KafkaSource(["t"], {})
    with pytest.raises(SettingsError, match="names no topic"):
        KafkaSource([], {"bootstrap_servers": "a:1"})


def test_B1_B5_a_broker_that_does_not_answer_is_an_error_after_a_bounded_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The error names the host; no message, repr or log line contains the password."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("kafka").setLevel(logging.DEBUG)
    client: Client = {
        "bootstrap_servers": "127.0.0.1:1",
        "bootstrap_timeout_ms": 500,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "user",
        "sasl_plain_password": "canary-secret",
    }
    began = time.monotonic()
    try:
        reader = KafkaSource(["t"], client)
        with pytest.raises(TransportError, match=r"127\.0\.0\.1:1 within 500 ms") as caught:
            reader.open({}, "earliest")
        with pytest.raises(TransportError):
            KafkaSink("t", client)
    finally:
        logging.getLogger("kafka").setLevel(logging.WARNING)
    assert time.monotonic() - began < 5
    assert caplog.records, "the client logged nothing, so nothing was checked"
    for text in (str(caught.value), repr(caught.value), repr(reader), caplog.text):
        assert "canary-secret" not in text
    # These objects would keep the refused sockets alive past the end of this test.
    del caught
    caplog.clear()


def test_the_identity_tells_a_topic_made_again_from_the_first(
    client: Client, admin: KafkaAdminClient, source: MakeSource
) -> None:
    """The cluster's id stays the same; the topic's id changes although its name does not."""
    topic = new_topic(client, 1)
    before = source(topic, client).identity()
    assert before.keys() == {"cluster", f"topic {topic}"}
    assert before == source(topic, client).identity()
    admin.delete_topics([topic])
    deadline = time.monotonic() + 10
    while describe_topics(client, [topic]):
        assert time.monotonic() < deadline
    create_topics(client, {topic: 1})
    after = source(topic, client).identity()
    assert after["cluster"] == before["cluster"]
    assert after[f"topic {topic}"] != before[f"topic {topic}"]


def test_the_ends_are_known_while_a_fetch_waits(topic: str, client: Client, source: MakeSource) -> None:
    """The broker delays a fetch at the end of the log, and a lookup of the lag must not wait for it."""
    reader = source(topic, {**client, "fetch_max_wait_ms": 20_000})
    reader.open({}, "earliest")
    reader.poll(10, 500)
    began_s = time.monotonic()
    assert set(reader.end_offsets().values()) == {0}
    assert time.monotonic() - began_s < 10


def test_an_idle_partition_does_not_delay_a_busy_one(topic: str, client: Client, source: MakeSource) -> None:
    """A fetch of the idle one alone does not wait at the broker while records of the busy one wait here."""
    sink = KafkaSink(topic, client)
    sink.publish(0, [b"x" * 1000] * 8_000, [None] * 8_000, [()] * 8_000)
    sink.flush(30_000)
    sink.close()
    reader = source(topic, client)
    reader.open({}, "earliest")
    assert reader._consumer is not None
    fetcher, waits = reader._consumer._fetcher, list[tuple[bool, int]]()
    create = fetcher._create_fetch_requests

    def created() -> object:
        has_records = bool(fetcher._completed_fetches or fetcher._next_partition_records)
        requests = create()
        waits.extend((has_records, request.max_wait_ms) for request, _ in requests.values())
        return requests

    fetcher._create_fetch_requests = created
    left = 8_000
    while left:
        left -= sum(len(records) for records in reader.poll(500, 500))
    reader.poll(500, 10)

    assert set(waits) == {(True, 0), (False, 500)}


def test_B13_a_commit_is_seen_by_lag_tools_and_never_read_back(
    topic: str, client: Client, admin: KafkaAdminClient, source: MakeSource
) -> None:
    """The group holds the offsets, and a source does not start from them."""
    send(client, topic, numbered(5))
    reader = source(topic, client, group="g-" + topic)
    reader.open({}, "earliest")
    reader.commit({Partition(topic, 0): 4, Partition(topic, 2): 0})
    found = admin.list_group_offsets("g-" + topic)["g-" + topic]
    assert {tuple(one): at.offset for one, at in found.items()} == {(topic, 0): 4, (topic, 2): 0}
    assert source(topic, client, group="g-" + topic).open({}, "earliest")[Partition(topic, 0)] == 0


def test_N3_another_engine_under_the_same_group_is_warned_of_once(
    topic: str, client: Client, source: MakeSource, caplog: pytest.LogCaptureFixture
) -> None:
    """Both would score every record; a source alone sees its own positions and logs nothing."""
    zero = Partition(topic, 0)
    mine, other = (source(topic, client, group="g-" + topic) for _ in range(2))
    for one in (mine, other):
        one.open({}, "earliest")
    for at in range(3):
        mine.commit({zero: at})
    assert caplog.messages == []
    other.commit({zero: 7})
    for at in (4, 5):
        mine.commit({zero: at})
        other.commit({zero: at})
    said = [line for line in caplog.messages if "Another engine" in line]
    assert len(said) <= 2
    assert f"commits positions to group g-{topic}: {topic}-0 @ 7. A group does not divide records" in said[0]


def test_B2_a_killed_broker_costs_nothing_once_it_is_back(
    own_broker: Broker,
    own_client: Client,
    source: MakeSource,
    sink: MakeSink,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After an outage polls and flushes recover, and each record is read once and in order."""
    topic = new_topic(own_client, 1)
    writer, reader = sink(topic, own_client), source(topic, own_client, group="g")
    reader.open({}, "earliest")
    publish(writer, 0, numbered(100, "before"))
    writer.flush(10_000)
    batches = drain(reader)
    own_broker.kill()
    publish(writer, 0, numbered(100, "during"))
    began = time.monotonic()
    with pytest.raises(DeliveryError, match=r"100 records .* not acknowledged within 700 ms"):
        writer.flush(700)
    assert reader.poll(100, 500) == []
    assert time.monotonic() - began < 3
    reader.commit({Partition(topic, 0): 100})
    assert "The positions were not committed to group g," in caplog.text
    own_broker.start()
    writer.flush(30_000)
    publish(writer, 0, numbered(100, "after"))
    writer.flush(30_000)
    deadline = time.monotonic() + 30
    while len(values(batches)) < 300 and time.monotonic() < deadline:
        batches += reader.poll(1000, 500)
    while True:  # the connection that asks for the ends is another one, and comes back by itself
        try:
            batches += drain(reader)
            break
        except TransportError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    expected = [*numbered(100, "before"), *numbered(100, "during"), *numbered(100, "after")]
    assert values(batches) == expected
    assert [offset for batch in batches for offset in batch.offsets] == list(range(300))


def test_records_in_flight_are_bounded_while_the_broker_is_away(
    own_broker: Broker, own_client: Client, sink: MakeSink
) -> None:
    """`publish` waits at the limit and fails after the delivery timeout; `close` then does not hang."""
    topic = new_topic(own_client, 1)
    quick = {**own_client, "request_timeout_ms": 600}
    writer = sink(topic, quick, in_flight_max=50, delivery_timeout_ms=1000)
    publish(writer, 0, [b"a"])
    writer.flush(10_000)
    own_broker.kill()
    try:
        began = time.monotonic()
        with pytest.raises(DeliveryError, match=topic):
            publish(writer, 0, numbered(200))
        assert 0.5 < time.monotonic() - began < 5
        assert writer._in_flight_rows <= 50
        began = time.monotonic()
        writer.close()
        assert time.monotonic() - began < 5
    finally:
        own_broker.start()
