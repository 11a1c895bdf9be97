"""A topic that is deleted, re-created and filled again is never read on at the old offset."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from uuid import uuid4

import pytest
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from deploy.kafka.broker import Broker
from streamnb.base import Source
from streamnb.base.snapshot import Snapshot
from streamnb.errors import MissingTopicError, PositionError
from streamnb.transports.confluent.source import ConfluentSource
from streamnb.transports.kafka.source import KafkaSink, KafkaSource, create_topics
from tests.transports.kafka.accidents import CLIENTS, Child
from tests.transports.kafka.proxy import Proxy
from tests.transports.kafka.test_crash import newest_of
from tests.transports.kafka.test_pipeline import Pipeline, pipeline

GONE_S = 20.0


def recreate(pipe: Pipeline, records: int) -> None:
    """Delete the input topic, make it again, and fill it with this number of records."""
    topic, brokers = f"{pipe.run}-mail", {"bootstrap_servers": pipe.broker}
    with KafkaAdminClient(**brokers) as admin:
        admin.delete_topics([topic])
        deadline_s = time.monotonic() + GONE_S
        while True:
            try:
                admin.create_topics({topic: {"num_partitions": 1}})
                break
            except KafkaError:  # it is still being deleted
                assert time.monotonic() < deadline_s
                time.sleep(0.1)
        admin.wait_for_topics([topic])
    sink = KafkaSink(topic, brokers)
    values: list[bytes | None] = [b'{"text": "new", "label": "ham"}'] * records
    sink.publish(0, values, [None] * records, [()] * records)
    sink.flush(30_000)
    sink.close()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("share", [2.0, 0.5], ids=["longer", "shorter"])
def test_F6_a_topic_recreated_while_the_engine_was_stopped(
    broker: str, starter: subprocess.Popen[str], tmp_path: Path, client: str, share: float
) -> None:
    """The engine names the cause, whether the new topic holds the old offset or not, and keeps nothing."""
    pipe = pipeline(broker, tmp_path, "mailbox", 1)
    child = Child(starter, pipe.config, broker, client)
    wait_until_all_is_kept(pipe, child)
    child.signal(signal.SIGSTOP)
    recreate(pipe, int(len(pipe.lines) * share))
    child.signal(signal.SIGCONT)

    assert_it_names_the_cause(pipe, child)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("share", [2.0, 0.5], ids=["longer", "shorter"])
def test_F6_a_topic_recreated_while_the_engine_was_cut_off(
    proxied: tuple[Broker, Proxy, str],
    starter: subprocess.Popen[str],
    tmp_path: Path,
    client: str,
    share: float,
) -> None:
    """Connections that are lost, and then opened without an answer, do not hide the new topic's id."""
    broker, proxy, address = proxied
    pipe = pipeline(broker.address, tmp_path, "mailbox", 1)
    child = Child(starter, pipe.config, address, client)
    wait_until_all_is_kept(pipe, child)
    proxy.ignore(True)
    recreate(pipe, int(len(pipe.lines) * share))
    proxy.ignore(False)

    assert_it_names_the_cause(pipe, child)


def wait_until_all_is_kept(pipe: Pipeline, child: Child) -> None:
    """Wait for the snapshot that holds the whole topic."""
    deadline_s = time.monotonic() + 30
    while (newest := newest_of(pipe.directory)) is None or next_offsets(newest) < len(pipe.lines):
        assert time.monotonic() < deadline_s, child.said
        time.sleep(0.05)


def assert_it_names_the_cause(pipe: Pipeline, child: Child) -> None:
    """Check how the engine ended, and that no snapshot has an offset of the new topic."""
    assert child.ended() == PositionError.exit_code
    said = "".join(child.said)
    assert f"Topic {pipe.run}-mail was re-created: its id is now " in said
    assert "etention" not in said
    kept = newest_of(pipe.directory)
    assert kept is not None
    assert next_offsets(kept) == len(pipe.lines)


def next_offsets(snapshot: Snapshot) -> int:
    """Return the sum of the offsets that a snapshot holds."""
    return sum(account.next_offset for account in snapshot.accounts.values())


@pytest.mark.parametrize("client", CLIENTS)
def test_a_topic_deleted_while_it_is_read_is_named(broker: str, client: str) -> None:
    """The client's poll waits; the question for the topic's end is answered, and names the topic."""
    topic = f"deleted-{uuid4().hex[:8]}"
    create_topics({"bootstrap_servers": broker}, {topic: 2})
    source: Source = (
        KafkaSource([topic], {"bootstrap_servers": broker})
        if client == "kafka"
        else ConfluentSource([topic], {"bootstrap.servers": broker})
    )
    try:
        source.open({}, "earliest")
        assert set((source.end_offsets() or {}).values()) == {0}
        with KafkaAdminClient(bootstrap_servers=broker) as admin:
            admin.delete_topics([topic])
        deadline_s = time.monotonic() + GONE_S
        while True:
            source.poll(10, 100)
            try:
                source.end_offsets()
            except MissingTopicError as error:
                assert f"Topic {topic} no longer exists at " in str(error)  # noqa: PT017
                break
            assert time.monotonic() < deadline_s
    finally:
        source.close()
