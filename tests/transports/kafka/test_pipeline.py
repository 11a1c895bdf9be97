"""An engine on a real broker scores a stream, and resumes after being killed at random moments.

The oracle is a plain loop over the same lines in one process, without broker, snapshots or batches.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from streamnb.base.record import Partition, RecordBatch
from streamnb.config import Settings, build_decoder, build_model, grown, load_settings, restore_model
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.storage import read_snapshot
from streamnb.storage.directory import SnapshotDirectory
from streamnb.transports.kafka.source import KafkaSink, KafkaSource, create_topics
from streamnb.wire.score import encode_scores
from tests.support.streams import lines_of, streams_at_hand

CONFIG = """
[model]
name = "spam"

[[views]]
name = "words"
reader = {{ kind = "words" }}

[source]
kind = "kafka"
topics = ["{run}-mail"]

[sink]
kind = "kafka"
topic = "{run}-scores"

[dead_letters.sink]
kind = "kafka"
topic = "{run}-dead"

[kafka]
bootstrap_servers = "{broker}"

[engine]
start = "earliest"
batch_records_max = {batch_records_max}

[snapshots]
directory = "{directory}"
interval_s = 0.2

[output]
raw_posterior = true
state = true
"""

Score = dict[str, Any]


@dataclass
class Pipeline:
    """The topics, configuration and snapshot directory of one run."""

    broker: str
    run: str
    partitions: int
    config: Path
    directory: Path
    lines: list[bytes]

    @property
    def settings(self) -> Settings:
        """The loaded configuration."""
        return load_settings(self.config)

    def start(self) -> subprocess.Popen[str]:
        """Start the engine as an operator does."""
        command = [sys.executable, "-m", "streamnb", "run", str(self.config), "--until-end"]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def scores(self) -> dict[int, list[tuple[int, bytes]]]:
        """Return the scores topic by partition, as (source offset, bytes) in the topic's order."""
        found: dict[int, list[tuple[int, bytes]]] = {number: [] for number in range(self.partitions)}
        for records in read_to_end(self.broker, f"{self.run}-scores"):
            for value in records.values:
                assert value is not None
                found[records.partition.number].append((orjson.loads(value)["source"]["offset"], value))
        return found

    def batches(self) -> list[RecordBatch]:
        """Return the input, one batch per partition."""
        return [
            batch_of(f"{self.run}-mail", number, self.lines[number :: self.partitions])
            for number in range(self.partitions)
        ]

    def digest(self) -> dict[str, str]:
        """Return the digest of the newest snapshot, after checking it against the restored state's."""
        store = SnapshotDirectory(self.directory)
        try:
            newest = store.newest()
        finally:
            store.close()
        assert newest is not None
        _, model = restore_model(newest)

        assert newest.digest == model.digest()
        return newest.digest


PIPELINES: dict[Path, Pipeline] = {}


def batch_of(topic: str, number: int, lines: list[bytes]) -> RecordBatch:
    """Return lines as one batch of a partition."""
    n = len(lines)
    return RecordBatch(Partition(topic, number), range(n), list(lines), [None] * n, [-1] * n, [()] * n, n)


def read_to_end(broker: str, topic: str) -> list[RecordBatch]:
    """Return every committed record of a topic."""
    source = KafkaSource([topic], {"bootstrap_servers": broker})
    batches: list[RecordBatch] = []
    try:
        positions = dict(source.open({}, "earliest"))
        ends = source.end_offsets()
        while any(positions[partition] < ends[partition] for partition in positions):
            for records in source.poll(5000, 500):
                positions[records.partition] = records.next_offset
                batches.append(records)
    finally:
        source.close()
    return batches


def pipeline(
    broker: str, tmp_path: Path, stream: str, partitions: int, *, times: int = 1, batch_records_max: int = 200
) -> Pipeline:
    """Create topics and fill the input with a stream: line n in partition n modulo the partition count."""
    run, lines = f"pipeline-{uuid.uuid4().hex[:12]}", lines_of(stream) * times
    client = {"bootstrap_servers": broker}
    create_topics(client, {f"{run}-{name}": partitions for name in ("mail", "scores", "dead")})
    sink = KafkaSink(f"{run}-mail", client)
    for number in range(partitions):
        values: list[bytes | None] = [*lines[number::partitions]]
        sink.publish(number, values, [None] * len(values), [()] * len(values))
    sink.flush(60_000)
    sink.close()
    config, directory = tmp_path / "pipeline.toml", tmp_path / "snapshots"
    config.write_text(
        CONFIG.format(run=run, broker=broker, directory=directory, batch_records_max=batch_records_max)
    )
    PIPELINES[config] = Pipeline(broker, run, partitions, config, directory, lines)
    return PIPELINES[config]


@cache
def plain_loop(config: Path) -> tuple[list[bytes], NaiveBayes]:
    """Return the scores and the model of a plain loop over a pipeline of one partition."""
    settings, (batch,) = load_settings(config), PIPELINES[config].batches()
    model, messages = build_model(settings), build_decoder(settings).decode(batch)
    offsets = [batch.offsets[row] for row in messages.rows]
    encoded = encode_scores(
        model.step(messages.batch),
        ids=messages.ids,
        model="spam",
        partition=batch.partition,
        offsets=offsets,
        states=[{str(batch.partition): offset} for offset in offsets],
    )
    return encoded, model


def order_free_digest(pipe: Pipeline) -> str:
    """Return the order-free digest of a model that learned the partitions one after another."""
    model = build_model(pipe.settings)
    for batch in pipe.batches():
        model.step(build_decoder(pipe.settings).decode(batch).batch, score=False)
    return model.digest()["order_free"]


def raw_posterior_at(pipe: Pipeline, score: Score) -> dict[str, float]:
    """Return a message's raw posterior after learning exactly the offsets below the score's `state`."""
    settings = pipe.settings
    decoder = build_decoder(settings)
    model = NaiveBayes(settings.views, head="product", tokenizer=settings.tokens)
    for batch in pipe.batches():
        learned = batch_of(
            batch.partition.topic,
            batch.partition.number,
            [value for value in batch.values[: score["state"][str(batch.partition)]] if value is not None],
        )
        model.step(decoder.decode(learned).batch, score=False)
    source = score["source"]
    value = pipe.batches()[source["partition"]].values[source["offset"]]
    assert value is not None
    text = orjson.loads(value)["text"]
    return {str(label): p for label, p in model.predict_proba_one({"text": text}).items()}


def assert_every_message_is_scored_in_order(pipe: Pipeline) -> None:
    """Check that each offset is scored, and followed by the next one or, after a crash, by an earlier one."""
    for batch, scored in zip(pipe.batches(), pipe.scores().values(), strict=True):
        offsets = [offset for offset, _ in scored]

        assert set(batch.offsets) == set(offsets)
        assert all(b <= a + 1 for a, b in pairwise(offsets))


def assert_scores_are_from_before_their_label(pipe: Pipeline, seed: int) -> None:
    """Check scores: each against the plain loop's bytes or, with several partitions, a recomputed sample."""
    if pipe.partitions == 1:
        expected, _ = plain_loop(pipe.config)
        for offset, value in pipe.scores()[0]:
            assert expected[offset] == value
        return
    published = [orjson.loads(value) for scored in pipe.scores().values() for _, value in scored]
    for score in random.Random(seed).sample(published, 6):
        source = score["source"]
        address = f"{source['topic']}-{source['partition']}"

        assert source["offset"] == score["state"][address]
        assert raw_posterior_at(pipe, score) == score["raw_posterior"]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("stream", streams_at_hand("sms", "enron1"))
def test_a_stream_through_the_broker_is_scored_once_and_learned_as_by_a_plain_loop(
    broker: str, tmp_path: Path, stream: str, partitions: int
) -> None:
    """One score per message, in order per partition; equal digests, and with one partition equal bytes."""
    pipe = pipeline(broker, tmp_path, stream, partitions)

    _, errors = (process := pipe.start()).communicate(timeout=120)
    scored = pipe.scores()

    assert process.returncode == 0, errors
    assert [list(batch.offsets) for batch in pipe.batches()] == [
        [offset for offset, _ in scores] for scores in scored.values()
    ]
    assert order_free_digest(pipe) == pipe.digest()["order_free"]
    assert_scores_are_from_before_their_label(pipe, seed=0)
    if partitions == 1:
        assert plain_loop(pipe.config)[1].digest() == pipe.digest()


@pytest.mark.crash
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("stream", streams_at_hand("sms", "enron1"))
def test_killed_at_random_it_learns_every_label_once_and_scores_every_message(
    broker: str,
    starter: subprocess.Popen[str],
    tmp_path: Path,
    stream: str,
    partitions: int,
    kills: int,
    seed: int,
) -> None:
    """After `kill -9` at random moments, the digest equals that of an uninterrupted run.

    Batches are small and the stream is long, so that every kill meets a working engine. The killed engines
    are forked from a process that has imported everything; the last engine is a process of its own.
    """
    from tests.transports.kafka.accidents import Child  # which imports this module

    times = max(1, kills // 20)
    pipe = pipeline(broker, tmp_path, stream, partitions, times=times, batch_records_max=20)
    moments = random.Random(seed)
    killed = 0
    while killed < kills:
        child = Child(starter, pipe.config, broker, "kafka", until_end=True)
        child.wait_until_ready()
        time.sleep(moments.uniform(0.0, 0.06))
        assert child.is_alive(), f"after {killed} kills: {''.join(child.said)}"
        child.kill()
        killed += 1
    _, errors = (process := pipe.start()).communicate(timeout=120)

    assert process.returncode == 0, errors
    assert_every_message_is_scored_in_order(pipe)
    assert_scores_are_from_before_their_label(pipe, seed)
    assert order_free_digest(pipe) == pipe.digest()["order_free"]
    if partitions == 1:
        assert plain_loop(pipe.config)[1].digest() == pipe.digest()


def test_sigterm_finishes_the_batch_keeps_a_snapshot_and_exits_with_0(broker: str, tmp_path: Path) -> None:
    """The next start resumes from that snapshot."""
    pipe = pipeline(broker, tmp_path, "mailbox", 1)
    process = pipe.start()
    assert process.stderr is not None
    while "ready at" not in process.stderr.readline():
        pass
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 0, errors
    assert "stopped after" in errors
    (newest,) = sorted(pipe.directory.glob("*.snb"))[-1:]
    stopped_at = read_snapshot(newest).accounts[Partition(f"{pipe.run}-mail", 0)].next_offset
    assert [offset for offset, _ in pipe.scores()[0]] == list(range(stopped_at))

    _, errors = (process := pipe.start()).communicate(timeout=60)

    assert process.returncode == 0, errors
    assert [offset for offset, _ in pipe.scores()[0]] == list(range(5000))


def test_a_second_signal_exits_at_once_without_harm(broker: str, tmp_path: Path) -> None:
    """The next start reads again what no snapshot holds, and scores every message."""
    pipe = pipeline(broker, tmp_path, "mailbox", 1)
    process = pipe.start()
    assert process.stderr is not None
    while "ready at" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)

    assert process.returncode in {0, 128 + signal.SIGTERM, 128 + signal.SIGINT}

    _, errors = (process := pipe.start()).communicate(timeout=60)

    assert process.returncode == 0, errors
    assert_every_message_is_scored_in_order(pipe)
    assert plain_loop(pipe.config)[1].digest() == pipe.digest()


def test_records_that_are_no_messages_become_dead_letters_with_their_bytes(
    broker: str, tmp_path: Path
) -> None:
    """The dead letters keep bytes, keys and headers, and the messages around them are scored."""
    pipe = pipeline(broker, tmp_path, "mailbox", 1)
    bad: list[bytes | None] = [b"not json", b"\xff\xfe", b'{"text": 7}', b'{"label": "spam"}', None]
    sink = KafkaSink(f"{pipe.run}-mail", {"bootstrap_servers": broker})
    sink.publish(0, bad, [b"key"] * 5, [[("own", b"header")]] * 5)
    sink.publish(0, [pipe.lines[0]], [None], [()])
    sink.flush(10_000)
    sink.close()

    _, errors = (process := pipe.start()).communicate(timeout=60)
    (dead,) = read_to_end(broker, f"{pipe.run}-dead")

    assert process.returncode == 0, errors
    assert bad == dead.values
    assert dead.keys == [b"key"] * 5
    reasons = [dict(headers)["streamnb.reason"] for headers in dead.headers]
    assert reasons == [b"json_syntax", b"encoding", b"schema", b"missing_text", b"tombstone"]
    assert all(("own", b"header") in headers for headers in dead.headers)
    assert [*range(5000), 5005] == [offset for offset, _ in pipe.scores()[0]]


def test_a_model_grows_from_an_engines_snapshot_and_learns_the_stream_on(broker: str, tmp_path: Path) -> None:
    """`run --from` with another view; to the bit what a plain loop with the new view learns from there."""
    pipe = pipeline(broker, tmp_path, "mailbox", 1)
    first = pipe.start()
    _, log = first.communicate(timeout=120)
    assert first.returncode == 0, log
    (newest,) = sorted(pipe.directory.glob("snapshot-*.snb"))[-1:]
    before = pipe.digest()

    pairs = '[[views]]\nname = "pairs"\nreader = { kind = "pairs" }\n\n[source]'
    text = (
        pipe.config.read_text()
        .replace("[source]", pairs)
        .replace(str(pipe.directory), str(tmp_path / "grown"))
    )
    pipe.config.write_text(text)
    pipe.directory = tmp_path / "grown"
    command = [sys.executable, "-m", "streamnb", "run", str(pipe.config), "--until-end"]
    begun = subprocess.run(
        [*command, "--from", str(newest)], capture_output=True, text=True, check=False, timeout=120
    )
    assert begun.returncode == 0, begun.stderr
    assert begun.stderr.count(f"grown from {newest}; kept: words; new and empty: pairs; dropped: none") == 1

    settings = pipe.settings
    _, plain = restore_model(grown(settings, read_snapshot(newest), newest))
    (batch,) = pipe.batches()
    plain.step(build_decoder(settings).decode(batch).batch, score=False)
    assert pipe.digest() == plain.digest()
    assert pipe.digest() != before
    resumed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert resumed.returncode == 0, resumed.stderr
    assert pipe.digest() == plain.digest()
