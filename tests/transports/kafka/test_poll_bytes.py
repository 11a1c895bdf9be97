"""A poll is bounded in bytes, and so is what the clients buffer, with both clients on a real broker."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from kafka import KafkaProducer

from streamnb.base import HEADER_BYTES, POLL_BYTES_MAX, RecordBatch, Source, record_bytes
from streamnb.transports.confluent.source import ConfluentSource
from streamnb.transports.kafka.source import KafkaSource
from tests.transports.kafka.conftest import ROOT
from tests.transports.kafka.test_kafka_transport import new_topic, pytestmark  # noqa: F401  holds here too

LARGE = 900_000
KINDS = ("kafka", "confluent")


def send(broker: str, topic: str, values: Sequence[bytes], partitions: int = 1, **sent: object) -> None:
    """Send values to the partitions in turn, some of them in one record batch if they are compressed."""
    compression, headers = sent.get("compression"), sent.get("headers", [])
    producer = KafkaProducer(
        bootstrap_servers=broker, linger_ms=200, batch_size=16 << 20 if compression else 1 << 20,
        compression_type=compression, max_request_size=32 << 20,
    )  # fmt: skip
    try:
        futures = [
            producer.send(topic, value, partition=i % partitions, headers=headers)
            for i, value in enumerate(values)
        ]
        for future in futures:
            future.get(20)
    finally:
        producer.close(5)


def opened(kind: str, broker: str, topic: str) -> Source:
    """Return a source of either client at the beginning of the topic."""
    source: Source = (
        KafkaSource([topic], {"bootstrap_servers": broker})
        if kind == "kafka"
        else ConfluentSource([topic], {"bootstrap.servers": broker})
    )
    source.open({}, "earliest")
    return source


def polls(source: Source, records: int) -> Iterator[list[RecordBatch]]:
    """Poll until this number of records was returned, after a pause in which the client reads ahead."""
    polled = source.poll(1, 0)
    time.sleep(2)
    deadline_s = time.monotonic() + 60
    while (records := records - sum(map(len, polled))) > 0:
        assert time.monotonic() < deadline_s, records
        yield polled
        polled = source.poll(2000, 500)
    yield polled


def size(polled: Sequence[RecordBatch]) -> int:
    """Return the bytes of the records of one poll."""
    return sum(
        record_bytes(value, key, headers)
        for batch in polled
        for value, key, headers in zip(batch.values, batch.keys, batch.headers, strict=True)
    )


def peak_bytes(kind: str, broker: str, topic: str, records: int) -> int:
    """Return by how much reading the records raises the highest memory use of this process."""
    source = opened(kind, broker, topic)
    before = status_bytes("VmRSS")
    for _ in polls(source, records):
        pass
    peak = status_bytes("VmHWM") - before
    source.close()
    return peak


def status_bytes(name: str) -> int:
    """Return a figure of this process from the kernel."""
    with Path("/proc/self/status").open() as lines:
        (kilobytes,) = [int(line.split()[1]) for line in lines if line.startswith(name + ":")]
    return kilobytes << 10


@pytest.mark.parametrize("kind", KINDS)
def test_F9_large_records_come_in_several_polls_and_in_order(broker: str, kind: str) -> None:
    """Of 60 records of 900 kB in three partitions each is returned once; no poll returns all."""
    topic = new_topic({"bootstrap_servers": broker}, 3)
    sent = [i.to_bytes(2) + bytes(LARGE) for i in range(60)]
    send(broker, topic, sent, 3, compression="gzip")  # so that all come in one answer
    source = opened(kind, broker, topic)
    found: dict[int, list[bytes | None]] = {0: [], 1: [], 2: []}
    for polled in polls(source, 60):
        assert size(polled) <= POLL_BYTES_MAX + (LARGE + 2)
        for batch in polled:
            assert list(batch.offsets) == list(range(batch.next_offset - len(batch), batch.next_offset))
            assert batch.offsets[0] == len(found[batch.partition.number])
            found[batch.partition.number] += batch.values
    source.close()
    assert found == {number: sent[number::3] for number in range(3)}


@pytest.mark.parametrize("kind", KINDS)
def test_F9_empty_headers_count_towards_a_poll(broker: str, kind: str) -> None:
    """A header of two bytes takes about a hundred in memory."""
    topic = new_topic({"bootstrap_servers": broker}, 1)
    many = 10_000
    send(broker, topic, [b"{}"] * 60, headers=[("", b"")] * many)
    source = opened(kind, broker, topic)
    sizes = [size(polled) for polled in polls(source, 60)]
    source.close()
    assert max(sizes) <= POLL_BYTES_MAX + (many * HEADER_BYTES + 2)
    assert sum(sizes) == 60 * (many * HEADER_BYTES + 2)


@pytest.mark.parametrize(
    ("kind", "partitions", "compression"),
    [("kafka", 1, "gzip"), ("kafka", 40, None), ("confluent", 40, None)],
)
def test_F10_the_clients_buffer_a_bounded_number_of_bytes(
    broker: str, kind: str, partitions: int, compression: str | None
) -> None:
    """180 MB, compressed in one answer or in many partitions, take a process less than half of that."""
    topic = new_topic({"bootstrap_servers": broker}, partitions)
    same = bytes(LARGE)
    sent = [same if compression else random.Random(i).randbytes(LARGE) for i in range(200)]
    send(broker, topic, sent, partitions, compression=compression)
    program = f"from {__name__} import peak_bytes; print(peak_bytes({kind!r}, {broker!r}, {topic!r}, 200))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) < 80 << 20, done.stdout
