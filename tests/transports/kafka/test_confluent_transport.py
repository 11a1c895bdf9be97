"""The transport through librdkafka passes the tests of the other client, and its own, on a real broker."""

# ruff: noqa: F401, F811  the imported tests of the other client run here with this file's fixtures

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Uuid
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from deploy.kafka.broker import Broker
from streamnb.base.record import Partition
from streamnb.errors import DeliveryError, PositionError, SettingsError, TransportError
from streamnb.storage import read_snapshot
from streamnb.transports.confluent.client import OWNED, topic_id
from streamnb.transports.confluent.source import (
    ConfluentSink,
    ConfluentSource,
    create_topics,
    describe_topics,
)
from streamnb.transports.kafka.source import KafkaSource
from tests.transports.kafka.test_kafka_transport import (
    Client,
    admin,
    client,
    drain,
    new_topic,
    numbered,
    own_client,
    publish,
    pytestmark,
    send,
    test_A16_an_unreadable_record_is_reported_and_no_other_is_lost,
    test_a_first_start_begins_where_it_is_told,
    test_a_record_larger_than_the_client_may_send_is_an_error_that_stays,
    test_a_second_source_resumes_where_the_first_stopped,
    test_a_topic_deleted_under_its_clients_stays_deleted,
    test_B2_a_killed_broker_costs_nothing_once_it_is_back,
    test_B7_a_position_that_the_log_does_not_hold_stops_the_start,
    test_B8_a_partition_added_since_the_snapshot_is_read_from_its_beginning,
    test_B8_a_partition_that_is_added_under_a_reader_is_taken_from_its_beginning,
    test_B13_a_commit_is_seen_by_lag_tools_and_never_read_back,
    test_B14_a_record_that_the_broker_refuses_is_an_error_that_stays,
    test_B18_aborted_records_are_not_read_and_are_accounted_for,
    test_N3_another_engine_under_the_same_group_is_warned_of_once,
    test_the_identity_tells_a_topic_made_again_from_the_first,
    test_what_is_published_is_what_is_read,
    topic,
    values,
)
from tests.transports.kafka.test_pipeline import Pipeline, pipeline, plain_loop

MakeSource = Callable[..., ConfluentSource]
MakeSink = Callable[..., ConfluentSink]

OTHER_NAMES = {"metadata.max.age.ms": "topic.metadata.refresh.interval.ms"}


def renamed(client: Client) -> Client:
    """Translate settings of kafka-python to librdkafka's names."""
    dotted = {name.replace("_", "."): value for name, value in client.items()}
    return {OTHER_NAMES.get(name, name): value for name, value in dotted.items()}


@pytest.fixture
def closing() -> Iterator[list[ConfluentSource | ConfluentSink]]:
    """A list whose sources and sinks are closed after the test."""
    opened: list[ConfluentSource | ConfluentSink] = []
    yield opened
    for one in opened:
        one.close()


@pytest.fixture
def source(closing: list[ConfluentSource | ConfluentSink]) -> MakeSource:
    """Build a source that is closed after the test, from the other client's settings."""

    def make(topic: str, client: Client, group: str | None = None) -> ConfluentSource:
        # A broker delays a fetch at the end of the log for 500 ms, longer than `drain` waits.
        made = ConfluentSource([topic], {**renamed(client), "fetch.wait.max.ms": 50}, group=group)
        closing.append(made)
        return made

    return make


@pytest.fixture
def sink(closing: list[ConfluentSource | ConfluentSink]) -> MakeSink:
    """Build a sink that is closed after the test, from the other client's settings."""

    def make(topic: str, client: Client, **settings: int) -> ConfluentSink:
        made = ConfluentSink(topic, renamed(client), **settings)  # type: ignore[arg-type]
        closing.append(made)
        return made

    return make


def test_a_missing_topic_is_an_error_and_is_not_created(own_client: Client, source: MakeSource) -> None:
    """Neither source nor sink creates a topic, although the broker allows it."""
    with pytest.raises(TransportError, match="Topic misspelt does not exist"):
        source("misspelt", own_client).open({}, "earliest")
    with pytest.raises(TransportError, match="Topic misspelt does not exist"):
        ConfluentSink("misspelt", renamed(own_client))
    assert describe_topics(renamed(own_client), ["misspelt"]) == {}


def test_topics_are_created_as_asked_or_refused(client: Client) -> None:
    """An equal topic stays as it is; another partition count, or a name that Kafka refuses, is an error."""
    name, settings = f"t-{uuid.uuid4().hex[:12]}", renamed(client)
    create_topics(settings, {name: 3})
    create_topics(settings, {name: 3})
    assert describe_topics(settings, [name, "absent"]) == {name: 3}
    with pytest.raises(TransportError, match=f"Topic {name} exists with 3 partitions, not 2"):
        create_topics(settings, {name: 2})
    with pytest.raises(TransportError, match=r"Topic a b cannot be created: .*invalid"):
        create_topics(settings, {"a b": 1})


def test_both_clients_call_the_log_by_the_same_names(topic: str, client: Client, source: MakeSource) -> None:
    """The ids of the cluster and the topic are equal."""
    other = KafkaSource([topic], client)
    try:
        assert source(topic, client).identity() == other.identity()
        assert other.identity().keys() == {"cluster", f"topic {topic}"}
    finally:
        other.close()


def test_a_topics_id_is_written_as_kafka_writes_it() -> None:
    """Kafka uses URL-safe base64; a broker without topic ids sends zeros."""
    assert topic_id(Uuid(-1, -1)) == "_____________________w"
    assert topic_id(Uuid(-290499906672525313, 4503599627370495)) == "-_fv379___8AD________w"
    assert topic_id(Uuid(0, 0)) == ""
    assert topic_id(None) == ""


def test_a_poll_returns_with_the_first_records(topic: str, client: Client, source: MakeSource) -> None:
    """It does not wait for a fuller batch, and returns nothing if there is nothing."""
    reader = source(topic, client)
    reader.open({}, "earliest")
    assert drain(reader) == []
    send(client, topic, [b"a"])
    began = time.monotonic()
    while not (batches := reader.poll(1000, 60_000)):
        pass
    assert values(batches) == [b"a"]
    assert time.monotonic() - began < 30


def test_a_leader_that_is_being_chosen_is_asked_again(
    topic: str, client: Client, source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lookup of end offsets is retried; librdkafka alone fails at once, as for a topic just created."""
    reader = source(topic, client)
    reader.open({}, "earliest")
    asked = reader._connected_side_consumer()

    class Choosing:
        left = 2

        def get_watermark_offsets(self, partition: object, timeout: float) -> tuple[int, int]:
            if self.left:
                self.left -= 1
                raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
            low, high = asked.get_watermark_offsets(partition, timeout)
            return low, high

    choosing = Choosing()
    monkeypatch.setattr(reader, "_connected_side_consumer", lambda: choosing)
    assert set(reader.end_offsets().values()) == {0}
    assert choosing.left == 0


def test_records_removed_under_a_reader_stop_it(
    topic: str, client: Client, admin: KafkaAdminClient, closing: list[ConfluentSource | ConfluentSink]
) -> None:
    """If retention passes the position, that poll and every later one raise; none jumps ahead."""
    contents = [b"%d" % i + b"x" * 20_000 for i in range(500)]
    send(client, topic, contents)
    little = {"queued.min.messages": 1, "fetch.message.max.bytes": 100_000, "fetch.max.bytes": 100_000}
    # librdkafka reads ahead and returns these records first: they must not be all records.
    reader = ConfluentSource([topic], {**renamed(client), **little, "message.max.bytes": 100_000})
    closing.append(reader)
    reader.open({}, "earliest")
    batches = reader.poll(1, 10_000)
    admin.delete_records({TopicPartition(topic, 0): 490})
    refused: list[str] = []
    while len(refused) < 2 and len(batches) < 500:
        try:
            batches += reader.poll(1, 5000)
        except PositionError as error:
            refused.append(str(error))
    read = values(batches)
    assert 0 < len(read) < 490
    assert read == contents[: len(read)]
    assert all(f"{topic}-0 no longer holds the position {len(read)}" in one for one in refused)
    assert len(refused) == 2


def test_a_limit_for_larger_messages_may_be_set(
    topic: str, client: Client, closing: list[ConfluentSource | ConfluentSink]
) -> None:
    """It is for the sink; librdkafka requires that `fetch.max.bytes` is not below it."""
    send(client, topic, numbered(3))
    reader = ConfluentSource([topic], {**renamed(client), "message.max.bytes": 20_000_000})
    closing.append(reader)
    reader.open({}, "earliest")
    assert values(drain(reader, pause_ms=1000)) == numbered(3)


def test_reading_leaves_no_offset_with_the_group(
    topic: str, client: Client, admin: KafkaAdminClient, source: MakeSource
) -> None:
    """The client commits no offset by itself, also not in `close`."""
    send(client, topic, numbered(5))
    reader = source(topic, client, group="g-" + topic)
    reader.open({}, "earliest")
    assert values(drain(reader)) == numbered(5)
    reader.close()
    found = admin.list_group_offsets("g-" + topic)["g-" + topic]
    assert [at for at in found.values() if at.offset >= 0] == []


def test_a_damaged_batch_stops_the_stream_and_the_other_client_goes_on(
    own_broker: Broker, own_client: Client, source: MakeSource
) -> None:
    """Records before it are returned, none after it; the error names the offset and the way to continue."""
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
    batches = reader.poll(1000, 10_000)
    for _ in range(2):
        with pytest.raises(TransportError, match=rf'{topic}-0 is damaged at offset 5: .*CRC.* `kind = "kaf'):
            reader.poll(1000, 10_000)
    assert values(batches) == numbered(5, "good")
    assert batches[-1].next_offset == 5
    other = KafkaSource([topic], own_client)
    try:
        other.open({Partition(topic, 0): 5}, "earliest")
        rest = drain(other)
    finally:
        other.close()
    assert values(rest) == numbered(5, "fine")
    assert [(one.first_offset, one.next_offset) for batch in rest for one in batch.unreadable] == [(5, 10)]


def test_what_an_error_means_for_the_stream(source: MakeSource) -> None:
    """Retriable errors and errors of the group are only logged; any other stops the stream."""
    reader = source("t", {"bootstrap_servers": "a:1, b:2"})
    zero, nothing = Partition("t", 0), Partition("", -1)
    assert reader._failure_of(KafkaError(KafkaError._TRANSPORT), zero, -1) is None
    assert reader._failure_of(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), nothing, -1) is None
    refused = reader._failure_of(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), zero, -1)
    assert refused is not None
    assert "Reading t-0 from a:1, b:2 failed: Broker: Topic authorization failed." in str(refused)


@pytest.mark.parametrize("name", sorted(OWNED))
def test_a_setting_of_the_transport_is_refused(name: str) -> None:
    """A user cannot change a setting on which exactly-once learning depends, and the error says why."""
    client: Client = {"bootstrap.servers": "nowhere.invalid:9092", name: True}
    with pytest.raises(SettingsError, match=rf"`{name}` cannot be set: \w+"):
        ConfluentSource(["t"], client)
    with pytest.raises(SettingsError, match=rf"`{name}` cannot be set: \w+"):
        ConfluentSink("t", client)


def test_a_mistyped_setting_is_refused() -> None:
    """The error names a setting of the other client, an unknown name or value, or the missing brokers."""
    with pytest.raises(SettingsError, match=r"Did you mean `bootstrap\.servers`"):
        ConfluentSource(["t"], {"bootstrap_servers": "a:1"})
    with pytest.raises(SettingsError, match=r"No such configuration property: .bootstrap\.server\b"):
        ConfluentSource(["t"], {"bootstrap.servers": "a:1", "bootstrap.server": "a:1"})
    with pytest.raises(SettingsError, match="Invalid value"):
        ConfluentSource(["t"], {"bootstrap.servers": "a:1", "fetch.min.bytes": "many"})
    with pytest.raises(SettingsError, match=r"`bootstrap\.servers` is missing"):
        ConfluentSource(["t"], {})
    with pytest.raises(SettingsError, match="names no topic"):
        ConfluentSource([], {"bootstrap.servers": "a:1"})


def test_a_list_of_brokers_may_be_a_list(client: Client, topic: str, source: MakeSource) -> None:
    """A list of brokers, as a configuration file has, is joined with commas."""
    reader = source(topic, {"bootstrap_servers": ["127.0.0.1:1", client["bootstrap_servers"]]})
    assert repr(reader) == f"ConfluentSource(['{topic}'], '127.0.0.1:1,{client['bootstrap_servers']}')"
    assert len(reader.open({}, "earliest")) == 3


def test_a_broker_that_does_not_answer_is_an_error_after_a_bounded_time(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """The error names the host; no message, repr, log line or stderr contains the password."""
    caplog.set_level(logging.DEBUG)
    client: Client = {
        "bootstrap.servers": "127.0.0.1:1",
        "socket.connection.setup.timeout.ms": 1000,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "user",
        "sasl.password": "canary-secret",
        "debug": "all",
    }
    logging.getLogger("kafka").setLevel(logging.DEBUG)
    began = time.monotonic()
    try:
        reader = ConfluentSource(["t"], client)
        with pytest.raises(TransportError, match=r"127\.0\.0\.1:1 within 1000 ms") as caught:
            reader.open({}, "earliest")
        with pytest.raises(TransportError):
            ConfluentSink("t", client)
    finally:
        logging.getLogger("kafka").setLevel(logging.WARNING)
    assert time.monotonic() - began < 5
    assert "sasl.password = " in caplog.text, "the client did not log its settings, so nothing was checked"
    out, err = capfd.readouterr()
    for text in (
        str(caught.value),
        repr(caught.value),
        repr(reader),
        repr(vars(reader)),
        caplog.text,
        out,
        err,
    ):
        assert "canary-secret" not in text
    assert "rdkafka" not in err
    reader.close()


def test_a_broker_that_refuses_us_says_so_before_the_time_is_up(client: Client) -> None:
    """The error contains the broker's reason, and not the password."""
    secure: Client = {
        **renamed(client),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "user",
        "sasl.password": "canary-secret",
    }
    began = time.monotonic()
    with pytest.raises(
        TransportError, match=r"Authentication with Kafka at .* failed: .*SASL.* `sasl\.mechanism`"
    ) as caught:
        describe_topics(secure, ["t"])
    assert time.monotonic() - began < 20
    assert "canary-secret" not in str(caught.value) + repr(caught.value)


def test_records_in_flight_are_bounded_while_the_broker_is_away(
    own_broker: Broker, own_client: Client, sink: MakeSink
) -> None:
    """`publish` waits at the limit and fails after the delivery timeout; `close` then does not hang."""
    topic = new_topic(own_client, 1)
    writer = sink(topic, own_client, in_flight_max=50, delivery_timeout_ms=3000)
    publish(writer, 0, [b"a"])
    writer.flush(10_000)
    own_broker.kill()
    try:
        began = time.monotonic()
        with pytest.raises(DeliveryError, match=topic):
            publish(writer, 0, numbered(200))
        assert 1 < time.monotonic() - began < 10
        assert writer._producer is not None
        assert len(writer._producer) <= 50
        began = time.monotonic()
        writer.close()
        assert time.monotonic() - began < 5
    finally:
        own_broker.start()


def test_more_records_than_may_be_in_flight_all_arrive_in_order(
    topic: str, client: Client, source: MakeSource, sink: MakeSink
) -> None:
    """`publish` waits for space in the queue; no record is lost or sent twice."""
    writer, reader = sink(topic, client, in_flight_max=10), source(topic, client)
    publish(writer, 1, numbered(1000))
    writer.flush(10_000)
    reader.open({}, "earliest")
    assert values(drain(reader)) == numbered(1000)


def through(pipe: Pipeline, kind: str) -> None:
    """Change the client in the pipeline's configuration."""
    text = pipe.config.read_text()
    for one in ("kafka", "confluent"):
        text = text.replace(f'kind = "{one}"', f'kind = "{kind}"')
    pipe.config.write_text(f'{text}\n[confluent]\nbootstrap.servers = "{pipe.broker}"\n')


@pytest.mark.parametrize(("first", "second"), [("kafka", "confluent"), ("confluent", "kafka")])
def test_what_one_client_began_the_other_finishes(
    broker: str, tmp_path: Path, first: str, second: str
) -> None:
    """Stopped half-way and resumed from the same snapshots: each message once, the plain loop's digest."""
    pipe = pipeline(broker, tmp_path, "mailbox", 1)
    half, plain = len(pipe.lines), pipe.config.read_text()
    through(pipe, first)
    _, errors = (process := pipe.start()).communicate(timeout=60)
    assert process.returncode == 0, errors
    (newest,) = sorted(pipe.directory.glob("*.snb"))[-1:]
    assert read_snapshot(newest).accounts[Partition(f"{pipe.run}-mail", 0)].next_offset == half

    writer = ConfluentSink(f"{pipe.run}-mail", {"bootstrap.servers": broker})
    publish(writer, 0, pipe.lines)
    writer.flush(10_000)
    writer.close()
    pipe.lines = [*pipe.lines, *pipe.lines]
    pipe.config.write_text(plain)
    through(pipe, second)
    _, errors = (process := pipe.start()).communicate(timeout=60)

    assert process.returncode == 0, errors
    assert f"ready at {pipe.run}-mail-0 @ {half}" in errors
    expected, model = plain_loop(pipe.config)
    assert pipe.scores()[0] == list(enumerate(expected))
    assert pipe.digest() == model.digest()
