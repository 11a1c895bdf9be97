"""Two engines over two halves of a topic, through either client, learn together what one over it learns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from kafka.admin import KafkaAdminClient
from typer.testing import CliRunner

from streamnb.base.record import Partition
from streamnb.base.snapshot import Snapshot
from streamnb.cli import app
from streamnb.config import checks, load_settings
from streamnb.errors import SettingsError
from streamnb.storage import read_snapshot
from streamnb.transports.confluent.source import ConfluentSource
from streamnb.transports.kafka.source import KafkaSink, KafkaSource, create_topics
from streamnb.transports.topics import TopicSource
from tests.transports.kafka.test_kafka_transport import drain, new_topic, values
from tests.transports.kafka.test_pipeline import read_to_end

CONFIG = """
[source]
kind = "{kind}"
topics = ["{run}"]
group = "{run}-{name}"
{partitions}
[sink]
kind = "{kind}"
topic = "{run}-scores"
[dead_letters.sink]
kind = "{kind}"
topic = "{run}-dead"
[kafka]
bootstrap_servers = "{broker}"
[confluent]
bootstrap.servers = "{broker}"
[engine]
start = "earliest"
{engine}
[snapshots]
directory = "{directory}"
"""
COUNT = 4  # partitions
WORDS = ("win", "money", "lunch", "at", "noon", "neurips", "free")
CLIENTS = pytest.mark.parametrize("kind", ["kafka", "confluent"])


def line(n: int) -> bytes:
    """Return one message; every third has no label."""
    text = f"{WORDS[n % 7]} {WORDS[n % 5]} {WORDS[n % 3]} {n // 9}"
    return orjson.dumps({"text": text, "label": ("spam", "ham", None)[n % 3]})


def send(broker: str, topic: str, first: int, n: int) -> None:
    """Send messages to the partitions in turn."""
    sink = KafkaSink(topic, {"bootstrap_servers": broker})
    for partition in range(COUNT):
        mine: list[bytes | None] = [line(i) for i in range(first, first + n) if i % COUNT == partition]
        sink.publish(partition, mine, [None] * len(mine), [()] * len(mine))
    sink.flush(30_000)
    sink.close()


@pytest.fixture
def topic(broker: str) -> str:
    """A topic with 200 messages in four partitions, and topics for scores and dead letters."""
    client: dict[str, object] = {"bootstrap_servers": broker}
    name = new_topic(client, COUNT)
    create_topics(client, {f"{name}-scores": COUNT, f"{name}-dead": 1})
    send(broker, name, 0, 200)
    return name


@pytest.fixture
def configured(broker: str, topic: str, tmp_path: Path) -> Callable[..., Path]:
    """Write the configuration of one engine and return its path."""

    def write(kind: str, name: str, partitions: list[int] | None, engine: str = "") -> Path:
        config = tmp_path / f"{name}.toml"
        chosen = "" if partitions is None else f"partitions = {partitions}"
        config.write_text(
            CONFIG.format(
                kind=kind,
                run=topic,
                name=name,
                partitions=chosen,
                broker=broker,
                engine=engine,
                directory=tmp_path / name,
            )
        )
        return config

    return write


def start(config: Path) -> subprocess.Popen[str]:
    """Start an engine as an operator does, to read to the present ends."""
    command = [sys.executable, "-m", "streamnb", "run", str(config), "--until-end"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> str:
    """Wait for an engine, and return its log."""
    _, log = process.communicate(timeout=120)
    assert process.returncode == 0, log
    return log


def newest(config: Path) -> Path:
    """Return the path of the newest snapshot."""
    return max(config.with_suffix("").glob("*.snb"))


def same(one: Snapshot, other: Snapshot) -> bool:
    """Return whether two snapshots hold the same counts, offsets and outcomes."""
    return one.digest["order_free"] == other.digest["order_free"] and one.accounts == other.accounts


@CLIENTS
def test_two_engines_over_two_halves_are_merged_to_one_which_reads_on(
    broker: str, topic: str, kind: str, configured: Callable[..., Path], tmp_path: Path
) -> None:
    """They run at the same time, share the output topics, and each record is scored once by one of them."""
    halves = [configured(kind, "first", [0, 1]), configured(kind, "second", [3, 2])]
    logs = list(map(ended, list(map(start, halves))))
    assert f"Topic {topic} has 4 partitions; this process reads 0, 1" in logs[0]
    assert f"Topic {topic} has 4 partitions; this process reads 2, 3" in logs[1]
    scored = [
        orjson.loads(value or b"")["source"] for value in values(read_to_end(broker, f"{topic}-scores"))
    ]
    places = [(one["partition"], one["offset"]) for one in scored]
    assert sorted(places) == [(partition, offset) for partition in range(COUNT) for offset in range(50)]

    config = configured(kind, "further", None)
    ended(start(whole := configured(kind, "whole", None)))
    (tmp_path / "further").mkdir()
    target = tmp_path / "further" / "snapshot-0000000001.snb"
    words = ["snapshot", "merge", *(str(newest(half)) for half in halves), "-o", str(target)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert same(read_snapshot(target), read_snapshot(newest(whole)))

    send(broker, topic, 200, 100)
    assert f"ready at {topic}-0 @ 50, {topic}-1 @ 50, {topic}-2 @ 50, {topic}-3 @ 50" in ended(start(config))
    ended(start(whole))
    assert same(read_snapshot(newest(config)), read_snapshot(newest(whole)))


@CLIENTS
def test_engines_that_publish_exactly_once_are_merged_and_one_goes_on(
    broker: str, topic: str, kind: str, configured: Callable[..., Path], tmp_path: Path
) -> None:
    """Each has a group of its own, and the one that goes on has another: no score is there twice."""
    once = 'scores = "exactly_once"'
    halves = [configured(kind, name, part, once) for name, part in (("first", [0, 1]), ("second", [2, 3]))]
    for process in list(map(start, halves)):
        ended(process)
    (tmp_path / "further").mkdir()
    target = tmp_path / "further" / "snapshot-0000000001.snb"
    words = ["snapshot", "merge", *(str(newest(half)) for half in halves), "-o", str(target)]
    assert CliRunner().invoke(app, words).exit_code == 0
    send(broker, topic, 200, 100)
    log = ended(start(configured(kind, "further", None, once)))
    assert f"published scores exactly once, under the groups {topic}-first, {topic}-second" in log
    scored = [
        orjson.loads(value or b"")["source"] for value in values(read_to_end(broker, f"{topic}-scores"))
    ]
    places = sorted((one["partition"], one["offset"]) for one in scored)
    assert places == [(partition, offset) for partition in range(COUNT) for offset in range(75)]


@CLIENTS
def test_a_partition_that_an_exactly_once_engine_reads_later_begins_at_the_start(
    broker: str, topic: str, kind: str, configured: Callable[..., Path]
) -> None:
    """Its group has committed nothing in it, which is no loss."""
    once = 'scores = "exactly_once"'
    ended(start(configured(kind, "engine", [0], once)))
    config = configured(kind, "engine", [0, 1], once)
    config.write_text(config.read_text().replace('"earliest"', '"latest"'))
    assert f"{topic}-0 @ 50, {topic}-1 @ 50" in ended(start(config))
    send(broker, topic, 200, 100)
    ended(start(config))
    found = read_snapshot(newest(config)).accounts
    assert found[Partition(topic, 1)].start == 50
    assert found[Partition(topic, 1)].next_offset == found[Partition(topic, 0)].next_offset == 75


@CLIENTS
def test_a_check_names_the_partitions_that_are_read(
    kind: str, topic: str, configured: Callable[..., Path]
) -> None:
    """A partition that the topic lacks is one sentence with the topic and the partitions that it has."""
    attempts = dict(checks(load_settings(configured(kind, "engine", [2, 0]))))
    said = attempts["source"]()
    assert said.startswith(f"{topic} (partitions 0, 2 of 4); 40 of the newest 40 records are")
    missing = configured(kind, "engine", [0, 4])
    what = f"Topic {topic} has 4 partitions, numbers 0 to 3, so partition 4 cannot be read"
    with pytest.raises(SettingsError, match=what):
        dict(checks(load_settings(missing)))["source"]()
    process = start(missing)
    _, log = process.communicate(timeout=60)
    assert process.returncode == 2
    assert what in log
    assert "Traceback" not in log


@CLIENTS
def test_only_the_chosen_partitions_have_ends_and_a_new_one_is_reported_once(
    broker: str, topic: str, kind: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not read; the lag and `--until-end` concern the chosen ones alone."""
    monkeypatch.setattr("streamnb.transports.confluent.source.LOOK_AGAIN_S", 0.0)
    source: TopicSource
    if kind == "kafka":
        client: dict[str, object] = {"bootstrap_servers": broker, "metadata_max_age_ms": 200}
        source = KafkaSource([topic], client, partitions=[1])
    else:
        source = ConfluentSource([topic], {"bootstrap.servers": broker}, partitions=[1])
    mine, other = Partition(topic, 1), Partition(topic, 3)
    try:
        assert source.open({mine: 10, other: 10**6}, "latest") == {mine: 10}
        assert source.end_offsets() == {mine: 50}
        assert source.written_offsets() == {mine: 50}
        assert len(values(drain(source))) == 40
        with KafkaAdminClient(bootstrap_servers=broker) as admin:
            admin.create_partitions({topic: COUNT + 2})
            admin.wait_for_topics([topic])
        for _ in range(100):
            assert source.added() == {}
            assert source.poll(10, 50) == []
            if f"Topic {topic} now has 6 partitions; this process reads 1 of them (1)." in caplog.text:
                break
        for _ in range(3):
            assert source.added() == {}
        assert caplog.text.count("now has 6 partitions") == 1
    finally:
        source.close()


@CLIENTS
def test_two_engines_with_one_transactional_group_are_told_so(
    broker: str, topic: str, kind: str, configured: Callable[..., Path], tmp_path: Path
) -> None:
    """The second shuts the first one out, whose error names the setting; the directory's lock names its."""
    once = 'scores = "exactly_once"\npoll_timeout_ms = 100'
    first = configured(kind, "engine", [0, 1], once)
    process = subprocess.Popen(
        [sys.executable, "-m", "streamnb", "run", str(first)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for said in process.stderr:
        if "caught up" in said:
            break
    shared = start(first)
    _, log = shared.communicate(timeout=60)
    assert shared.returncode == 74
    assert f"The snapshot directory {tmp_path / 'engine'} is in use by another learner" in log
    assert "give this one a directory of its own" in log

    second = configured(kind, "second", [2, 3], once)
    second.write_text(second.read_text().replace(f"{topic}-second", f"{topic}-engine"))
    ended(start(second))
    send(broker, topic, 200, 100)
    _, log = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "give each its own `source.group`" in log
