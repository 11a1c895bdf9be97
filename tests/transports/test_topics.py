"""What both Kafka transports have in common, and what of each needs no broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import Uuid

from streamnb.base import Partition, Secret
from streamnb.errors import DeliveryError, SettingsError
from streamnb.transports import topics
from streamnb.transports.confluent import client as librdkafka
from streamnb.transports.kafka import client as kafka_python
from streamnb.transports.kafka import sink as kafka_sink
from streamnb.transports.positions import starting_positions
from streamnb.transports.topics import TopicSink, TopicSource, check_servers

P0, P1 = Partition("mail", 0), Partition("mail", 1)


@pytest.mark.parametrize(
    ("start", "expected"), [("earliest", (3, 5)), ("latest", (10, 20)), (0, (3, 20)), (10**12, (10, 20))]
)
def test_a_first_start_begins_where_its_setting_says(start: Any, expected: tuple[int, int]) -> None:  # noqa: ANN401
    """A partition without a record since a time begins at its end."""

    def at_time(at_ms: int) -> dict[Partition, int | None]:
        return {P0: 3 if at_ms < 1000 else None, P1: None}

    found = starting_positions({}, start, {P0: 3, P1: 5}, {P0: 10, P1: 20}, at_time)
    assert found == {P0: expected[0], P1: expected[1]}


@pytest.mark.parametrize("port", ["0", "65536", "99999999", "", "x", "-1"])
def test_a_port_that_no_broker_has_is_refused(port: str) -> None:
    """The first and the last port are taken."""
    with pytest.raises(SettingsError, match="not host:port"):
        check_servers(f"broker:{port}", "bootstrap_servers")
    for good in ("1", "65535"):
        check_servers(f"broker:{good}", "bootstrap_servers")


class _Source(TopicSource):
    """A source whose commits fail when told to, and whose group holds the offsets of `held`."""

    def __init__(self, partitions: Sequence[int] | None = None) -> None:
        super().__init__(["mail"], "broker", "group", partitions)
        self.failure = ""
        self.held: dict[Partition, int] = {}

    def _committed_in_group(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        return {one: self.held[one] for one in partitions if one in self.held}

    def _commit_to_group(self, next_offsets: Mapping[Partition, int]) -> str:
        if not self.failure:
            self.held.update(next_offsets)
        return self.failure


def test_a_commit_that_failed_is_no_other_engine(caplog: pytest.LogCaptureFixture) -> None:
    """The group then holds what was committed before, which only another engine's commits change."""
    source = _Source()
    source.commit({P0: 3})
    source.failure = "no coordinator"
    source.commit({P0: 5})
    source.failure = ""
    source.commit({P0: 7})
    assert "Another engine" not in caplog.text
    source.held[P0] = 4
    source.commit({P0: 9})
    assert "Another engine" in caplog.text


def test_engines_of_other_partitions_may_share_a_group(caplog: pytest.LogCaptureFixture) -> None:
    """Each commits its own partitions, so lag tools see the whole topic; one partition is one engine's."""
    first, second = _Source([0]), _Source([1])
    second.held = first.held
    for at in range(3):
        first.commit({P0: at})
        second.commit({P1: 10 + at})
    assert first.held == {P0: 2, P1: 12}
    assert caplog.messages == []
    second.commit({P0: 7, P1: 13})
    first.commit({P0: 3})
    assert "`source.partitions` does" in caplog.text


def test_which_partitions_are_read_is_logged_and_new_ones_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are not taken, and a count that the client does not know yet is no change."""
    caplog.set_level("INFO")
    source = _Source([2, 0])
    assert source._partitions({"mail": 3}) == [P0, Partition("mail", 2)]
    for count in (3, 0, 6, 6, 6):
        assert source._gained({"mail": count}, [P0]) == []
    opened, grown = caplog.messages
    assert opened == "Topic mail has 3 partitions; this process reads 0, 2"
    assert grown == (
        "Topic mail now has 6 partitions; this process reads 2 of them (0, 2). Make sure that "
        "`source.partitions` of some process names each new one."
    )


def test_without_chosen_partitions_every_new_one_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    """As ever, and without a line in the log."""
    caplog.set_level("INFO")
    source = _Source()
    assert source._partitions({"mail": 1}) == [P0]
    assert source._gained({"mail": 2}, {P0: 7}) == [P1]
    assert source._gained({"mail": 2}, {P0: 7, P1: 0}) == []
    assert caplog.messages == []


def test_the_first_failed_delivery_is_the_one_that_is_raised() -> None:
    """What fails after it, with or without a partition, follows from it."""
    sink = TopicSink("scores", "broker", {"scores": 2})
    sink._fail(1, "the first cause")
    sink._fail(0, "a second one")
    sink._fail(None, "a third one", too_large=True)
    with pytest.raises(DeliveryError, match="scores-1 was not delivered: the first cause"):
        sink._raise_failure()


@pytest.mark.parametrize("client", [kafka_python, librdkafka], ids=["kafka-python", "librdkafka"])
def test_every_setting_that_the_transport_fixes_is_refused(client: Any) -> None:  # noqa: ANN401
    """Those of both transports and those of each; a secret is masked wherever the settings are printed."""
    is_python = client is kafka_python
    settings = client.kafka_python_settings if is_python else client.librdkafka_settings
    servers, secret = (
        ("bootstrap_servers", "sasl_plain_password") if is_python else ("bootstrap.servers", "sasl.password")
    )
    assert len(client.OWNED) > len(topics.OWNED_BY_BOTH)
    for name in client.OWNED:
        with pytest.raises(SettingsError, match=f"`{name}` cannot be set"):
            settings({servers: "broker:9092", name: True})
    found = settings({servers: "broker:9092", secret: "hunter2"})
    assert isinstance(found[secret], Secret)
    assert "hunter2" not in repr(found)
    assert found[secret] == "hunter2"


def test_a_topic_of_an_old_broker_has_no_id() -> None:
    """Both clients give it the same name in a snapshot, the empty one; the id of another is Kafka's own."""
    assert librdkafka.topic_id(None) == librdkafka.topic_id(Uuid(0, 0)) == ""
    assert librdkafka.topic_id(Uuid(-1, -1)) == "_____________________w"


class _Future:
    """A delivery that is confirmed when the sink waits for it."""

    is_done = False

    def get(self, timeout_s: float) -> None:
        del timeout_s
        self.is_done = True

    def add_errback(self, called: object) -> None:
        """Nothing fails here."""


class _Producer:
    """A producer that only keeps what it is to send."""

    rows = None

    def __init__(self) -> None:
        self.sent: list[_Future] = []

    def send(self, *record: object) -> _Future:
        del record
        self.sent.append(_Future())
        return self.sent[-1]

    @property
    def producer(self) -> _Producer:
        return self

    def waiting(self) -> int:
        return sum(not one.is_done for one in self.sent)


@pytest.mark.parametrize(("records_max", "bytes_max", "most"), [(5, 1 << 20, 5), (1000, 1000, 10)])
def test_the_records_that_wait_for_an_answer_are_bounded(
    monkeypatch: pytest.MonkeyPatch, records_max: int, bytes_max: int, most: int
) -> None:
    """In number and in bytes; at the bound the sink waits for the oldest."""
    monkeypatch.setattr(kafka_sink, "describe_topics", lambda *_: {"scores": 1})
    producer: Any = _Producer()
    sink = kafka_sink.KafkaSink(
        "scores",
        {"bootstrap_servers": "broker:9092"},
        in_flight_max=records_max,
        in_flight_bytes_max=bytes_max,
        transactions=producer,
    )
    for _ in range(50):
        sink.publish(0, [b"v" * 60], [b"k" * 40], [()])
        assert producer.waiting() <= most
    sink.flush(1000)
    assert producer.waiting() == 0
    assert sink._in_flight_bytes == 0
