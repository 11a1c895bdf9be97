"""One process over a whole stream beside two processes over its halves, whose snapshots are merged.

``python tests/bench/partitions.py [--messages N] [--runs R] [--kafka ADDRESS] [--data DIR] [--json]``

Each process runs the engine of `configs/spam.toml` over the sms stream: from one file to another, where each
half is a file of its own, and from topic to topic of a real broker with either client, where each half is two
of four partitions, chosen by `source.partitions`. Message n goes to half n modulo 2. One process and two
follow each other in each run.

A process has imported, built and connected everything before its time begins, so that a start, which takes
the same in both cases, is not measured. "Wall" is the time until the last process has ended, "processor" the
time of all threads of all processes per message, and "longest" that of the process with the most, which
bounds the wall time if each process has a core of its own. Medians of the runs; a ratio is the median of the
ratios within each run. The order-free digest of the merged snapshots must be that of the one process.

The second table is what each half does not know. Message by message, as in a stream: the log loss of one
model, of two models over halves, and of two models that go on from their merged one every so many messages
(each message scored by the model of its half). "Early" is the same after one model has learned the first
30 %, from which the two go on; "rest" is the last 30 % alone, by models that learned the first 70 %: one
model, each half's, and the merged one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.cli.snapshot.merge import merged
from streamnb.config import Settings, build_engine, build_model, load_settings
from streamnb.engine.metrics import Metrics
from streamnb.errors import StreamnbError
from streamnb.naive_bayes import NaiveBayes
from streamnb.storage import read_snapshot
from tests.bench.common import (
    DATA,
    ROOT,
    Stream,
    machine,
    markdown,
    progress,
    ratio,
    read_stream,
    stream_path,
    versions,
)
from tests.bench.halves import learned, losses
from tests.bench.kafka_loops import broker
from tests.bench.throughput import PACKAGES, input_lines

PARTITIONS = 4
HALVES = 2
LINES, KAFKA, CONFLUENT = "JSON lines", "Kafka", "Kafka, confluent"
KINDS = {KAFKA: "kafka", CONFLUENT: "confluent"}
WALL_AIM = 1.7  # times as fast over JSON lines, on two free cores
PROCESSOR_AIM = 1.1  # times as much processor time per message over Kafka
STREAMS = ("sms", "enron1")
MERGED_EVERY = (500, 2000)  # messages of both halves together
LEARNED = 0.7  # of a stream
EARLY = 0.3  # of a stream, by one model, before two go on


class Run(NamedTuple):
    """What some processes took for all messages, in seconds."""

    wall_s: float
    processor_s: float
    longest_s: float
    order_free: str


def work(config: Path) -> None:
    """Run one engine when a line arrives on standard input, and print what it took."""
    engine = build_engine(load_settings(config), metrics=Metrics(), until_end=True)
    try:
        engine.source.open({}, "earliest")  # connects; `run` opens again, on the same connection
        print("ready", flush=True)
        sys.stdin.readline()
        began_s = time.process_time()
        summary = engine.run()
        spent = {"processor_s": time.process_time() - began_s, "scored": summary.scored}
        print(orjson.dumps(spent).decode(), flush=True)
    finally:
        engine.close()


def measure(configs: Sequence[Path], n: int) -> Run:
    """Run a process for each configuration, all at the same time."""
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, __file__, "--worker", str(config)],
                    stdin=pipe,
                    stdout=pipe,
                    start_new_session=True,  # Linux divides a busy processor among sessions before processes
                )
            )
            for config in configs
        ]
        outputs = [process.stdout for process in processes if process.stdout is not None]
        for output in outputs:
            assert output.readline() == b"ready\n"
        began_s = time.perf_counter()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
        answers: list[dict[str, Any]] = [orjson.loads(output.readline()) for output in outputs]
        wall_s = time.perf_counter() - began_s
    assert sum(answer["scored"] for answer in answers) == n, answers
    spent = [answer["processor_s"] for answer in answers]
    snapshots = [read_snapshot(max((config.parent / config.stem).glob("*.snb"))) for config in configs]
    together = merged(*snapshots, statistics_only=True) if len(snapshots) > 1 else snapshots[0]
    return Run(wall_s, sum(spent), max(spent), together.digest["order_free"])


def configured(folder: Path, name: str, **tables: dict[str, object]) -> Path:
    """Write `configs/spam.toml` with other tables, and return its path."""
    import tomllib

    found = tomllib.loads((ROOT / "configs" / "spam.toml").read_text()) | tables
    found["engine"] = {"start": "earliest", "poll_timeout_ms": 10}
    found["snapshots"] = {"directory": str(folder / name)}
    path = folder / f"{name}.toml"
    path.write_text("\n".join(f"{key} = {_toml(value)}" for key, value in found.items()))
    return path


def _toml(value: object) -> str:
    """Return a value as one line of TOML, which is JSON but for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {_toml(inner)}' for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return orjson.dumps(value).decode()


def over_lines(lines: Sequence[bytes], folder: Path) -> tuple[Path, list[Path]]:
    """Return the configuration of one process over a file, and those of two over its halves."""

    def over(name: str, part: Sequence[bytes]) -> Path:
        (folder / f"{name}.jsonl").write_bytes(b"\n".join([*part, b""]))
        places: dict[str, dict[str, object]] = {
            kind: {"kind": "jsonl", "path": str(folder / f"{name}-{kind}.jsonl")}
            for kind in ("scores", "dead")
        }
        source: dict[str, object] = {"kind": "jsonl", "path": str(folder / f"{name}.jsonl")}
        return configured(
            folder, name, source=source, sink=places["scores"], dead_letters={"sink": places["dead"]}
        )

    return over("whole", lines), [over(f"half{i}", lines[i::HALVES]) for i in range(HALVES)]


class Topics:
    """A topic with the messages, and topics for scores and dead letters, which are deleted at the end."""

    def __init__(self, address: str, lines: Sequence[bytes]) -> None:
        import uuid

        from streamnb.transports.kafka import KafkaSink, create_topics

        self.address = address
        name = f"streamnb-bench-{uuid.uuid4().hex[:8]}"
        self.names = {kind: f"{name}-{kind}" for kind in ("mail", "scores", "dead")}
        client: dict[str, object] = {"bootstrap_servers": address}
        create_topics(client, dict.fromkeys(self.names.values(), PARTITIONS))
        sink = KafkaSink(self.names["mail"], client)
        for partition in range(PARTITIONS):
            values: list[bytes | None] = [*lines[partition::PARTITIONS]]
            sink.publish(partition, values, [None] * len(values), [()] * len(values))
        sink.flush(60_000)
        sink.close()

    def configs(self, kind: str, folder: Path) -> tuple[Path, list[Path]]:
        """Return the configuration of one process over all partitions, and those of two over two each."""

        def over(name: str, **chosen: object) -> Path:
            return configured(
                folder,
                name,
                source={"kind": kind, "topics": [self.names["mail"]], **chosen},
                sink={"kind": kind, "topic": self.names["scores"]},
                dead_letters={"sink": {"kind": kind, "topic": self.names["dead"]}},
                kafka={"bootstrap_servers": self.address},
                confluent={"bootstrap.servers": self.address},
            )

        halves = [list(range(i, PARTITIONS, HALVES)) for i in range(HALVES)]
        return over("whole"), [over(f"half{i}", partitions=part) for i, part in enumerate(halves)]

    def close(self) -> None:
        """Delete the topics."""
        from kafka.admin import KafkaAdminClient

        admin = KafkaAdminClient(bootstrap_servers=self.address)
        admin.delete_topics(list(self.names.values()))
        admin.close()


def speeds(lines: Sequence[bytes], address: str | None, runs: int) -> dict[str, list[tuple[Run, Run]]]:
    """Return what one process and two took, for each transport and run."""
    found: dict[str, list[tuple[Run, Run]]] = {}
    topics = None if address is None else Topics(address, lines)
    try:
        for number in range(1, runs + 1):
            for transport in (LINES, *KINDS) if topics is not None else (LINES,):
                with tempfile.TemporaryDirectory() as name:
                    folder = Path(name)
                    if topics is not None and transport in KINDS:
                        whole, halves = topics.configs(KINDS[transport], folder)
                    else:
                        whole, halves = over_lines(lines, folder)
                    pair = measure([whole], len(lines)), measure(halves, len(lines))
                found.setdefault(transport, []).append(pair)
                progress(f"run {number}, {transport}: {pair}")
    finally:
        if topics is not None:
            topics.close()
    return found


def speed_rows(found: dict[str, list[tuple[Run, Run]]], n: int) -> list[list[str]]:
    """A row for each transport."""
    rows = []
    for transport, pairs in found.items():
        wall = median(one.wall_s / two.wall_s for one, two in pairs)
        longest = median(one.processor_s / two.longest_s for one, two in pairs)
        spent = median(two.processor_s / one.processor_s for one, two in pairs)
        reached = wall >= WALL_AIM if transport == LINES else spent <= PROCESSOR_AIM
        each = [median(pair[i].processor_s for pair in pairs) / n * 1e6 for i in range(2)]
        rows.append(
            [
                transport,
                *(f"{n / median(pair[i].wall_s for pair in pairs):,.0f}" for i in range(2)),
                ratio(wall),
                *(f"{us:.1f}" for us in each),
                ratio(spent),
                ratio(longest),
                "yes" if reached else "no",
                "yes" if all(one.order_free == two.order_free for one, two in pairs) else "NO",
            ]
        )
    return rows


def copied(model: NaiveBayes, settings: Settings) -> NaiveBayes:
    """Return a model of the same state."""
    frozen, other = model.freeze(), build_model(settings)
    other.restore(frozen.values, frozen.sections)
    return other


def in_turn(stream: Stream, settings: Settings, every: int, after: int = 0) -> float:
    """Return the log loss of two models that go on from their merged one after each `every` messages.

    Parameters
    ----------
    after : int
        Messages that one model learns first; their loss does not count.
    """
    base, total = learned(stream, range(after), settings), 0.0
    for begin in range(after, len(stream), every):
        rows = range(begin, min(begin + every, len(stream)))
        halves = [copied(base, settings) for _ in range(HALVES)]
        for model, part in zip(halves, _halves(rows), strict=True):
            total += _loss(model, stream, part)
        following = halves[0]
        for other in halves[1:]:
            following.merge(other, base)
        base = following
    return total / (len(stream) - after)


def _halves(rows: Sequence[int]) -> Iterator[Sequence[int]]:
    for half in range(HALVES):
        yield [i for i in rows if i % HALVES == half]


def _loss(model: NaiveBayes, stream: Stream, rows: Sequence[int]) -> float:
    return float(np.nansum(losses(model, [stream.texts[i] for i in rows], [stream.labels[i] for i in rows])))


def quality(stream: Stream, settings: Settings) -> dict[str, float]:
    """Return the log losses of one model, of halves and of what they are merged to."""
    n, every = len(stream), range(len(stream))
    begin = int(n * LEARNED)
    rest = range(begin, n)
    early = int(n * EARLY)
    begun = learned(stream, range(early), settings)
    parts = [learned(stream, part, settings) for part in _halves(range(begin))]
    both = copied(parts[0], settings)
    both.merge(parts[1])
    return {
        "one": _loss(build_model(settings), stream, every) / n,
        "halves": sum(_loss(build_model(settings), stream, part) for part in _halves(every)) / n,
        **{f"merged every {count:,}": in_turn(stream, settings, count) for count in MERGED_EVERY},
        "early: one": _loss(copied(begun, settings), stream, range(early, n)) / (n - early),
        "early: halves": in_turn(stream, settings, n, early),
        f"early: merged every {MERGED_EVERY[0]}": in_turn(stream, settings, MERGED_EVERY[0], early),
        "rest: one": _loss(learned(stream, range(begin), settings), stream, rest) / len(rest),
        "rest: a half": sum(_loss(part, stream, rest) for part in parts) / HALVES / len(rest),
        "rest: merged": _loss(both, stream, rest) / len(rest),
    }


def main() -> int:
    """Run, print, return the exit code."""
    parser = argparse.ArgumentParser(description="One process beside two over halves of the partitions.")
    parser.add_argument("--messages", type=int, default=200_000, help="records of a run (%(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="the median counts (%(default)s)")
    parser.add_argument("--kafka", metavar="ADDRESS", help="a running broker; by default one is started")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the streams (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of Markdown")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        work(options.worker)
        return 0
    on, with_versions = machine(), versions(PACKAGES)
    settings = load_settings(ROOT / "configs" / "spam.toml")
    try:
        what, lines = input_lines(options.data, options.messages)
        with broker(options.kafka) as address:
            found = speeds(lines, address, options.runs)
        known = [name for name in STREAMS if stream_path(options.data, name).is_file()]
        worth = {name: quality(read_stream(options.data, name), settings) for name in known}
    except StreamnbError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if options.json:
        print(
            orjson.dumps(
                {
                    "machine": on,
                    "versions": with_versions,
                    "input": what,
                    "runs": {
                        name: [[run._asdict() for run in pair] for pair in pairs]
                        for name, pairs in found.items()
                    },
                    "log_loss": worth,
                }
            ).decode()
        )
        return 0
    print(on)
    print(", ".join(f"{package} {number}" for package, number in with_versions.items()))
    print(f"{what}; the median of {options.runs} runs\n")
    header = [
        "engine over",
        "one, messages/s",
        "two, messages/s",
        "two / one",
        "one, processor us",
        "two, processor us",
        "two / one",
        "one / longest of two",
        "reached",
        "same digest",
    ]
    print(markdown(header, speed_rows(found, len(lines))))
    if worth:
        names = list(next(iter(worth.values())))
        rows = [[name, *(f"{each[column]:.4f}" for column in names)] for name, each in worth.items()]
        print(f"\n{markdown(['log loss, spam.toml', *names], rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
