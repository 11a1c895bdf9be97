"""Messages per second of the engine over memory, JSON lines and Kafka, beside what bounds it, in one run.

``python tests/bench/throughput.py [--messages N] [--runs R] [--kafka ADDRESS] [--data DIR] [--json]``

The engine runs the model of `configs/spam.toml`: decode, score, learn, encode, publish, snapshot at the end.
Beside it, in the same run and over the same messages:

- the model's `step` alone, on messages already decoded;
- a bare loop that reads, decodes, encodes something of a score's size and writes, without a model: over
  files, over streamnb's own Kafka transport, and over kafka-python as it comes, with the same settings;
- the step and the bare loop one after the other: computed from the two, the most that an engine in one
  thread could do.

Connecting and opening are not measured; the last flush is. Speeds are medians of the runs. A ratio is the
median of the ratios within each run, where engine and bound follow each other and meet the same machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice, product
from pathlib import Path
from statistics import median

import msgspec
import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from deploy.kafka.broker import Broker, BrokerError
from streamnb import assembly
from streamnb.config import (
    DeadLetterSettings,
    KafkaInput,
    KafkaOutput,
    LinesInput,
    LinesOutput,
    Settings,
    load,
)
from streamnb.dead_letters import DeadLetters
from streamnb.clock import SystemClock
from streamnb.engine import Engine
from streamnb.errors import StreamnbError
from streamnb.mailbox import mailbox
from streamnb.metrics import Metrics
from streamnb.record import Partition, RecordBatch
from streamnb.score import encode
from streamnb.snapshots import SnapshotDirectory
from streamnb.transports.memory import END, MemoryLog, MemorySink, MemorySource
from tests.bench.common import (
    DATA,
    ROOT,
    machine,
    markdown,
    progress,
    ratio,
    read_lines,
    stream_path,
    versions,
)

PACKAGES = ("kafka-python", "crc32c", "orjson", "numpy")
PARTITIONS = 3
ENGINE = "engine"
STEP = "the model's step alone"
BARE = "bare loop"
RAW = "bare loop, kafka-python itself"
IN_TURN = "step and bare loop in turn (computed)"

Measure = Callable[[Path], float]
"""Runs once with an empty folder to itself; messages per second."""


# ---- what is measured


def base_settings() -> Settings:
    """`configs/spam.toml`; the empty poll that ends a run waits 10 ms rather than 200."""
    return load(ROOT / "configs" / "spam.toml", ["engine.poll_timeout_ms=10"])


def input_lines(data: Path, n: int) -> tuple[str, list[bytes]]:
    """`n` records, and what they are: the sms stream over and over, or the demo's mailbox."""
    path = stream_path(data, "sms")
    if path.is_file():
        return f"sms, {n:,} messages", list(islice(cycle(read_lines(path)), n))
    progress(f"There is no sms stream: looked for {path}. The demo's mailbox takes its place.")
    return f"the demo's mailbox, {n:,} messages", [orjson.dumps(mail) for mail in mailbox(n=n)]


def batches_of(lines: Sequence[bytes], size: int) -> Iterator[RecordBatch]:
    """Records as the engine polls them."""
    for begin in range(0, len(lines), size):
        values: list[bytes | None] = [*lines[begin : begin + size]]
        n = len(values)
        offsets = range(begin, begin + n)
        yield RecordBatch(Partition("bench", 0), offsets, values, [None] * n, [-1] * n, [()] * n, begin + n)


def step_alone(lines: Sequence[bytes]) -> float:
    """Score and learn messages that are decoded already."""
    settings = base_settings()
    model, decoder = assembly.model(settings), assembly.decoder(settings)
    size = settings.engine.batch_records_max
    decoded = [decoder.decode(records).batch for records in batches_of(lines, size)]
    began = time.perf_counter()
    for batch in decoded:
        model.step(batch)
    return len(lines) / (time.perf_counter() - began)


def a_score(lines: Sequence[bytes]) -> dict[str, object]:
    """What the engine says of the last of the first 200 messages."""
    settings = base_settings()
    records = next(batches_of(lines[:200], 200))
    messages = assembly.decoder(settings).decode(records)
    scores = assembly.model(settings).step(messages.batch)
    last = len(messages.rows) - 1
    score = encode(
        scores,
        last,
        message_id=messages.ids[last],
        model=settings.model.name,
        partition=records.partition,
        offset=records.offsets[last],
    )
    return dict(orjson.loads(score))


def timed(engine: Engine, n: int) -> float:
    """Run an engine to the end of its source."""
    try:
        engine.source.open({}, "earliest")  # connects; `run` opens again, on the same connection
        began = time.perf_counter()
        summary = engine.run()
        seconds = time.perf_counter() - began
    finally:
        engine.close()
    assert summary.scored == n, summary
    return n / seconds


def engine_over_memory(lines: Sequence[bytes], folder: Path) -> float:
    """The engine between two logs in memory."""
    settings, clock, log = base_settings(), SystemClock(), MemoryLog()
    for line in lines:
        log.append(line)
    log.append(END)
    engine = Engine(
        name=settings.model.name,
        classifier=assembly.model(settings),
        decoder=assembly.decoder(settings),
        source=MemorySource(log),
        sink=MemorySink(MemoryLog(topic="scores")),
        dead_letters=DeadLetters(MemorySink(MemoryLog(topic="dead")), clock, settings.dead_letters),
        store=SnapshotDirectory(folder / "snapshots"),
        settings=settings.engine,
        snapshots=settings.snapshots,
        output=settings.output,
        clock=clock,
        metrics=Metrics(),
    )
    return timed(engine, len(lines))


def engine_over_lines(lines: Sequence[bytes], folder: Path) -> float:
    """The engine from a file to a file."""
    messages, scores = folder / "messages.jsonl", folder / "scores.jsonl"
    messages.write_bytes(b"\n".join([*lines, b""]))
    settings = msgspec.structs.replace(
        base_settings(),
        source=LinesInput(str(messages)),
        sink=LinesOutput(str(scores)),
        dead_letters=DeadLetterSettings(sink=LinesOutput(str(folder / "dead.jsonl"))),
    )
    return timed(_assembled(settings, folder), len(lines))


def bare_lines(lines: Sequence[bytes], score: dict[str, object], folder: Path) -> float:
    """Read a line, decode it, encode a score, write it; sync at the end."""
    messages, scores = folder / "messages.jsonl", folder / "scores.jsonl"
    messages.write_bytes(b"\n".join([*lines, b""]))
    with messages.open("rb") as source, scores.open("wb") as sink:
        began = time.perf_counter()
        for line in source:
            score["id"] = orjson.loads(line).get("id")
            sink.write(orjson.dumps(score) + b"\n")
        sink.flush()
        os.fsync(sink.fileno())
        return len(lines) / (time.perf_counter() - began)


def _assembled(settings: Settings, folder: Path) -> Engine:
    snapshots = msgspec.structs.replace(settings.snapshots, directory=str(folder / "snapshots"))
    settings = msgspec.structs.replace(settings, snapshots=snapshots)
    return assembly.engine(settings, metrics=Metrics(), until_end=True)


# ---- Kafka


class KafkaBench:
    """The loops over one broker, on topics of their own that are deleted at the end.

    Parameters
    ----------
    address : str
    lines : sequence of bytes
        Produced into the input topic, spread over its partitions.
    score : dict
        What a bare loop publishes for each.
    """

    def __init__(self, address: str, lines: Sequence[bytes], score: dict[str, object]) -> None:
        from streamnb.transports.kafka import KafkaSink, create_topics

        self.client: dict[str, object] = {"bootstrap_servers": address}
        self.n = len(lines)
        self.score = score
        self.size = base_settings().engine.batch_records_max
        name = f"streamnb-bench-{uuid.uuid4().hex[:8]}"
        self.mail, self.scores, self.dead = (f"{name}-{kind}" for kind in ("mail", "scores", "dead"))
        create_topics(self.client, dict.fromkeys((self.mail, self.scores, self.dead), PARTITIONS))
        sink = KafkaSink(self.mail, self.client)
        for partition in range(PARTITIONS):
            values = lines[partition::PARTITIONS]
            sink.publish(partition, values, [None] * len(values), [()] * len(values))
        sink.flush(60_000)
        sink.close()

    def close(self) -> None:
        """Delete the topics."""
        from kafka.admin import KafkaAdminClient

        admin = KafkaAdminClient(**self.client)
        admin.delete_topics([self.mail, self.scores, self.dead])
        admin.close()

    def engine(self, folder: Path) -> float:
        """The engine from topic to topic."""
        settings = msgspec.structs.replace(
            base_settings(),
            kafka=self.client,
            source=KafkaInput((self.mail,)),
            sink=KafkaOutput(self.scores),
            dead_letters=DeadLetterSettings(sink=KafkaOutput(self.dead)),
        )
        return timed(_assembled(settings, folder), self.n)

    def bare(self, _folder: Path) -> float:
        """Consume, decode, encode, produce with streamnb's source and sink."""
        from streamnb.transports.kafka import KafkaSink, KafkaSource

        source, sink = KafkaSource([self.mail], self.client), KafkaSink(self.scores, self.client)
        try:
            source.open({}, "earliest")
            began, left = time.perf_counter(), self.n
            while left:
                for records in source.poll(self.size, 200):
                    values: list[bytes | None] = []
                    for value in records.values:
                        assert value is not None
                        self.score["id"] = orjson.loads(value).get("id")
                        values.append(orjson.dumps(self.score))
                    sink.publish(records.partition.number, values, records.keys, [()] * len(values))
                    left -= len(values)
            sink.flush(60_000)
            return self.n / (time.perf_counter() - began)
        finally:
            source.close()
            sink.close()

    def raw(self, _folder: Path) -> float:
        """Do the same with kafka-python and nothing around it."""
        from kafka import KafkaConsumer, KafkaProducer, TopicPartition

        from streamnb.transports.kafka_sink import BATCH_BYTES, LINGER_MS

        consumer = KafkaConsumer(
            **self.client, enable_auto_commit=False, isolation_level="read_committed", metrics_enabled=False
        )
        producer = KafkaProducer(
            **self.client, acks="all", linger_ms=LINGER_MS, batch_size=BATCH_BYTES, metrics_enabled=False
        )
        try:
            partitions = [TopicPartition(self.mail, number) for number in range(PARTITIONS)]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            consumer.end_offsets(partitions)
            began, left = time.perf_counter(), self.n
            while left:
                for partition, records in consumer.poll(timeout_ms=200, max_records=self.size).items():
                    for record in records:
                        self.score["id"] = orjson.loads(record.value).get("id")
                        producer.send(self.scores, orjson.dumps(self.score), partition=partition.partition)
                    left -= len(records)
            producer.flush()
            return self.n / (time.perf_counter() - began)
        finally:
            consumer.close()
            producer.close()


@contextmanager
def broker(given: str | None) -> Iterator[str | None]:
    """The address of a broker: the one given, or a real one of our own; ``None`` where there can be none."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        own = Broker(Path(folder))
        try:
            own.start()
        except BrokerError as error:
            print(f"The Kafka rows are left out. {error}", file=sys.stderr)
            yield None
            return
        try:
            yield own.address
        finally:
            own.stop()


# ---- the run


Runs = dict[str, dict[str, list[float]]]
"""Messages per second of every run, by room and by what was run."""


def run(lines: Sequence[bytes], address: str | None, runs: int) -> Runs:
    """Measure the engine and its bounds, one after the other, as many times as asked."""
    score = a_score(lines)
    rooms: dict[str, dict[str, Measure]] = {
        "memory": {ENGINE: lambda folder: engine_over_memory(lines, folder)},
        "JSON lines": {
            ENGINE: lambda folder: engine_over_lines(lines, folder),
            BARE: lambda folder: bare_lines(lines, score, folder),
        },
    }
    kafka = KafkaBench(address, lines, score) if address is not None else None
    if kafka is not None:
        rooms["Kafka"] = {ENGINE: kafka.engine, BARE: kafka.bare, RAW: kafka.raw}
    found: Runs = {room: {} for room in rooms}
    try:
        for number, (room, measures) in product(range(1, runs + 1), rooms.items()):
            speeds = found[room]
            for name, measure in {STEP: lambda _: step_alone(lines), **measures}.items():
                with tempfile.TemporaryDirectory() as folder:
                    speeds.setdefault(name, []).append(measure(Path(folder)))
                progress(f"run {number}, {room}, {name}: {speeds[name][-1]:,.0f}/s")
            if BARE in speeds:
                in_turn = 1 / (1 / speeds[STEP][-1] + 1 / speeds[BARE][-1])
                speeds.setdefault(IN_TURN, []).append(in_turn)
    finally:
        if kafka is not None:
            kafka.close()
    return found


def medians(found: Runs) -> dict[str, dict[str, dict[str, float]]]:
    """Of each thing measured its speed, and the engine's ratio to it.

    The ratio is taken within a run, where both follow each other: a busy machine slows both.
    """
    return {
        room: {
            name: {
                "messages_per_s": median(those),
                "engine_ratio": median(
                    mine / other for mine, other in zip(speeds[ENGINE], those, strict=True)
                ),
            }
            for name, those in speeds.items()
        }
        for room, speeds in found.items()
    }


def table(found: Runs) -> str:
    """A row for each bound."""
    rows = []
    for room, figures in medians(found).items():
        engine = f"{figures[ENGINE]['messages_per_s']:,.0f}"
        for name, of in figures.items():
            if name != ENGINE:
                rows.append([room, name, engine, f"{of['messages_per_s']:,.0f}", ratio(of["engine_ratio"])])
    header = ["engine over", "beside it", "engine, messages/s", "that, messages/s", "engine / that"]
    return markdown(header, rows, texts=2)


def main() -> int:
    """Run, print, return the exit code."""
    parser = argparse.ArgumentParser(description="Messages per second of the engine, beside what bounds it.")
    parser.add_argument("--messages", type=int, default=20_000, help="records of a run (%(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="the median counts (%(default)s)")
    parser.add_argument("--kafka", metavar="ADDRESS", help="a running broker; by default one is started")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of sms.jsonl.gz (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of Markdown")
    options = parser.parse_args()
    if min(options.messages, options.runs) < 1:
        parser.error("--messages and --runs must be at least 1")
    on, with_versions = machine(), versions(PACKAGES)
    try:
        what, lines = input_lines(options.data, options.messages)
        with broker(options.kafka) as address:
            found = run(lines, address, options.runs)
    except StreamnbError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if options.json:
        answer = {
            "machine": on,
            "versions": with_versions,
            "input": what,
            "runs": found,
            "medians": medians(found),
        }
        print(orjson.dumps(answer).decode())
        return 0
    print(on)
    print(", ".join(f"{package} {number}" for package, number in with_versions.items()))
    print(f"{what}; the median of {options.runs} runs")
    print(f"\n{table(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
