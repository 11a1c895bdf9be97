"""kafka-python alone produces to the embedded broker and reads its records back."""

import errno
import socket
import warnings
from collections.abc import Iterator
from importlib import metadata

import pytest

from streamnb.errors import SettingsError
from streamnb.transports.embedded import EmbeddedBroker, load_librdkafka

with warnings.catch_warnings():
    # kafka-python 3.0 reads its schemas at import with a function that Python 3.11 and 3.12 deprecate.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    """Yield a broker with one topic of two partitions."""
    with EmbeddedBroker({"mail": 2}) as embedded:
        yield embedded


def produce(broker: EmbeddedBroker, records: int) -> None:
    """Produce numbered records to the two partitions in turn, and check the offset of each."""
    producer = KafkaProducer(**broker.client, linger_ms=5)
    futures = [
        producer.send("mail", value=b"%d" % number, key=b"k%d" % number, partition=number % 2)
        for number in range(records)
    ]
    offsets = [future.get(timeout=10).offset for future in futures]
    producer.close()
    assert offsets == [number // 2 for number in range(records)]


def read(broker: EmbeddedBroker, next_offsets: dict[int, int], records: int) -> dict[int, list[bytes]]:
    """Assign, seek and read until `records` records have arrived, or no more do."""
    consumer = KafkaConsumer(**broker.client, auto_offset_reset="none", enable_auto_commit=False)
    partitions = {number: TopicPartition("mail", number) for number in next_offsets}
    consumer.assign(list(partitions.values()))
    for number, offset in next_offsets.items():
        consumer.seek(partitions[number], offset)
    values: dict[int, list[bytes]] = {number: [] for number in next_offsets}
    while sum(map(len, values.values())) < records:
        polled = consumer.poll(timeout_ms=10_000)
        if not polled:
            break
        for partition, batch in polled.items():
            values[partition.partition].extend(record.value for record in batch)
    consumer.close()
    return values


def test_records_come_back_in_order_over_two_partitions(broker: EmbeddedBroker) -> None:
    """Each record is read once, in the order of its partition."""
    produce(broker, 500)
    assert read(broker, {0: 0, 1: 0}, 500) == {
        0: [b"%d" % number for number in range(0, 500, 2)],
        1: [b"%d" % number for number in range(1, 500, 2)],
    }


def test_a_consumer_resumes_where_it_seeks(broker: EmbeddedBroker) -> None:
    """Each partition is read from the offset of its seek, and not from an earlier one."""
    produce(broker, 100)
    assert read(broker, {0: 47, 1: 10}, 43) == {
        0: [b"94", b"96", b"98"],
        1: [b"%d" % number for number in range(21, 100, 2)],
    }


def test_a_topic_has_the_partitions_asked_for() -> None:
    """The partition counts are those of the mapping, and not the mock's default of four."""
    with EmbeddedBroker({"mail": 2, "scores": 7}) as broker:
        consumer = KafkaConsumer(**broker.client)
        found = {topic: consumer.partitions_for_topic(topic) for topic in ("mail", "scores")}
        consumer.close()
    assert found == {"mail": {0, 1}, "scores": set(range(7))}


def test_closing_frees_the_port() -> None:
    """The port is in use while the broker runs and free after `close`, which may be called twice."""
    broker = EmbeddedBroker({"mail": 1})
    host, _, port = broker.address.partition(":")
    with socket.socket() as taken, pytest.raises(OSError, match=r".") as refusal:
        taken.bind((host, int(port)))
    assert refusal.value.errno == errno.EADDRINUSE
    broker.close()
    broker.close()
    with socket.socket() as caller:
        assert caller.connect_ex((host, int(port))) == errno.ECONNREFUSED
    with socket.socket() as free:
        free.bind((host, int(port)))


def test_two_brokers_live_side_by_side() -> None:
    """Each of two embedded brokers has its own port and its own records."""
    with EmbeddedBroker({"mail": 2}) as first, EmbeddedBroker({"mail": 2}) as second:
        assert first.address != second.address
        produce(first, 10)
        consumer = KafkaConsumer(**second.client)
        ends = consumer.end_offsets([TopicPartition("mail", 0)])
        consumer.close()
    assert list(ends.values()) == [0]


def test_a_cluster_names_all_its_brokers() -> None:
    """The address lists one port per broker, and records reach all partitions."""
    with EmbeddedBroker({"mail": 2}, brokers=3) as broker:
        assert len(set(broker.address.split(","))) == 3
        produce(broker, 20)


@pytest.mark.parametrize(("topics", "brokers"), [({"mail": 0}, 1), ({"mail": 1001}, 1), ({"mail": 1}, 0)])
def test_numbers_out_of_range_are_refused(topics: dict[str, int], brokers: int) -> None:
    """The constructor refuses them, because librdkafka would abort the process."""
    with pytest.raises(ValueError, match="1 to 1000"):
        EmbeddedBroker(topics, brokers)


def test_a_missing_library_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names confluent-kafka and the command that installs it."""

    def not_installed(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", not_installed)
    with pytest.raises(SettingsError) as raised:
        EmbeddedBroker({"mail": 1})
    assert "confluent-kafka, which is not installed" in raised.value.what
    assert "pip install 'streamnb[demo]'" in raised.value.hint


def test_a_distribution_without_the_library_is_refused() -> None:
    """A distribution built against the system's librdkafka contains none."""
    with pytest.raises(SettingsError, match="The installed pytest contains no librdkafka"):
        load_librdkafka("pytest")
