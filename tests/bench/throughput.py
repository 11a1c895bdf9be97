"""Messages per second of the engine over memory, JSON lines and Kafka, beside what bounds it, in one run.

``python tests/bench/throughput.py [--messages N] [--runs R] [--kafka ADDRESS] [--data DIR]
[--no-peers] [--json]``

The engine runs the model of `configs/spam.toml`: decode, score, learn, encode, publish, snapshot at the end.
Beside it, in the same run and over the same messages:

- the model's `step` alone, on messages already decoded;
- a bare loop that reads, decodes, encodes something of a score's size and writes, without a model: over
  files, over streamnb's own Kafka transports, and over each client as it comes, with the same settings;
- over Kafka, peers that do the engine's job, a Quix Streams application and a Bytewax dataflow around river:
  see `peer_pipelines.py`;
- the step and the bare loop one after the other: computed from the two, the most that an engine in one
  thread could do.

The engine with scores in Kafka's transactions has the engine with scores at least once beside it.

A third table has the processor time of a message, which other programs on the machine change least.

The messages are the sms stream's; enron1's, which are nine times as long, have rows of their own over JSON
lines. A second table holds the ratios that are aimed at beside those found.

Connecting and opening are not measured; the last flush is. Speeds are medians of the runs. A ratio is the
median of the ratios within each run, where engine and bound follow each other and meet the same machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice, product
from pathlib import Path
from statistics import median
from typing import NamedTuple

import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.cli.demo.mailbox import mailbox
from streamnb.errors import StreamnbError
from tests.bench.common import (
    DATA,
    machine,
    markdown,
    progress,
    ratio,
    read_lines,
    stream_path,
    versions,
)
from tests.bench.kafka_loops import PARTITIONS, KafkaLoops, broker
from tests.bench.loops import a_score, bare_lines, engine_over_lines, engine_over_memory, step_alone
from tests.bench.peer_pipelines import PEERS, Peers, environment

PACKAGES = ("kafka-python", "confluent-kafka", "crc32c", "orjson", "numpy")
ENGINE = "engine"
STEP = "the model's step alone"
BARE = "bare loop"
RAW = "bare loop, kafka-python itself"
CONFLUENT_RAW = "bare loop, confluent-kafka itself"
AT_LEAST_ONCE = "engine over Kafka, scores at least once"
IN_TURN = "step and bare loop in turn (computed)"

MEMORY, LINES, KAFKA, CONFLUENT = "memory", "JSON lines", "Kafka", "Kafka, confluent"
LONG_LINES, EXACTLY_ONCE = "JSON lines, enron1", "Kafka, exactly once"
CONFLUENT_EXACTLY_ONCE = "Kafka, confluent, exactly once"


class Target(NamedTuple):
    """How many times as fast as another measurement the engine over a transport must be, at least."""

    transport: str
    beside: str
    at_least: float


TARGETS = (
    Target(LINES, STEP, 0.25),
    Target(LONG_LINES, STEP, 0.6),
    Target(KAFKA, BARE, 0.5),
    Target(EXACTLY_ONCE, AT_LEAST_ONCE, 0.8),
    Target(CONFLUENT, BARE, 0.5),
    Target(CONFLUENT_EXACTLY_ONCE, AT_LEAST_ONCE, 0.8),
    Target(KAFKA, CONFLUENT, 0.9),
    *(Target(KAFKA, name, 20.0) for name in PEERS),
)

Measure = Callable[[Path], float]
"""Runs once with an empty folder to itself; messages per second."""

Runs = dict[str, dict[str, list[float]]]
"""Messages per second of every run, by transport and by what was run."""


def stream_lines(data: Path, name: str, n: int) -> list[bytes]:
    """`n` records of a stream, read over and over; none where it is not there."""
    path = stream_path(data, name)
    if path.is_file():
        return list(islice(cycle(read_lines(path)), n))
    progress(f"There is no {name} stream: looked for {path}.")
    return []


def input_lines(data: Path, n: int) -> tuple[str, list[bytes]]:
    """`n` records, and what they are: the sms stream over and over, or the demo's mailbox."""
    lines = stream_lines(data, "sms", n)
    if lines:
        return f"sms, {n:,} messages", lines
    progress("The demo's mailbox takes its place.")
    return f"the demo's mailbox, {n:,} messages", [orjson.dumps(mail) for mail in mailbox(n=n)]


def over_lines(lines: Sequence[bytes]) -> dict[str, Measure]:
    """The engine from file to file, and what bounds it."""
    score = a_score(lines)
    return {
        STEP: lambda _: step_alone(lines),
        ENGINE: lambda folder: engine_over_lines(lines, folder),
        BARE: lambda folder: bare_lines(lines, score, folder),
    }


def peer(peers: Peers, script: str) -> Measure:
    """A peer, from topic to topic."""
    return lambda _: peers.run(script)


def run(
    lines: Sequence[bytes], long_lines: Sequence[bytes], address: str | None, runs: int, python: Path | None
) -> tuple[Runs, Runs]:
    """Measure the engine, its bounds and the peers, one after the other, as many times as asked.

    `python` is that of the peers' environment; without it their rows are left out.

    Returns
    -------
    found : Runs
    spent : Runs
        The processor time of a message in microseconds, of all threads: of the engine with its start and its
        connections, of a peer without.
    """
    step: Measure = lambda _: step_alone(lines)  # noqa: E731 - one of many
    transports: dict[str, dict[str, Measure]] = {
        MEMORY: {STEP: step, ENGINE: lambda folder: engine_over_memory(lines, folder)},
        LINES: over_lines(lines),
    }
    if long_lines:
        transports[LONG_LINES] = over_lines(long_lines)
    kafka = KafkaLoops(address, lines, a_score(lines)) if address is not None else None
    peers = Peers(address, lines, PARTITIONS, python) if address is not None and python is not None else None
    if kafka is not None:
        transports[KAFKA] = {STEP: step, ENGINE: kafka.engine, BARE: kafka.bare, RAW: kafka.raw}
        if peers is not None:
            transports[KAFKA] |= {name: peer(peers, script) for name, script in PEERS.items()}
        transports[EXACTLY_ONCE] = {AT_LEAST_ONCE: kafka.engine, ENGINE: kafka.engine_exactly_once}
        transports[CONFLUENT] = {
            STEP: step,
            ENGINE: kafka.confluent_engine,
            BARE: kafka.confluent_bare,
            CONFLUENT_RAW: kafka.confluent_raw,
        }
        transports[CONFLUENT_EXACTLY_ONCE] = {
            AT_LEAST_ONCE: kafka.confluent_engine,
            ENGINE: kafka.confluent_engine_exactly_once,
        }
    found: Runs = {transport: {} for transport in transports}
    spent: Runs = {transport: {} for transport in transports}
    try:
        for number, (transport, measures) in product(range(1, runs + 1), transports.items()):
            speeds = found[transport]
            for name, measure in measures.items():
                with tempfile.TemporaryDirectory() as folder:
                    began_s = time.process_time()
                    speeds.setdefault(name, []).append(measure(Path(folder)))
                each_s = (time.process_time() - began_s) / len(lines)
                if name in PEERS and peers is not None:
                    each_s = peers.processor_s
                spent[transport].setdefault(name, []).append(1e6 * each_s)
                progress(f"run {number}, {transport}, {name}: {speeds[name][-1]:,.0f}/s")
            if BARE in speeds:
                in_turn = 1 / (1 / speeds[STEP][-1] + 1 / speeds[BARE][-1])
                speeds.setdefault(IN_TURN, []).append(in_turn)
    finally:
        for opened in (kafka, peers):
            if opened is not None:
                opened.close()
    return found, spent


def medians(found: Runs) -> dict[str, dict[str, dict[str, float]]]:
    """Of each thing measured its speed, and the engine's ratio to it.

    The ratio is taken within a run, where both follow each other: a busy machine slows both.
    """
    return {
        transport: {
            name: {
                "messages_per_s": median(those),
                "engine_ratio": median(
                    mine / other for mine, other in zip(speeds[ENGINE], those, strict=True)
                ),
            }
            for name, those in speeds.items()
        }
        for transport, speeds in found.items()
    }


def table(found: Runs) -> str:
    """A row for each bound."""
    rows = []
    for transport, figures in medians(found).items():
        engine = f"{figures[ENGINE]['messages_per_s']:,.0f}"
        for name, of in figures.items():
            if name != ENGINE:
                rows.append(
                    [transport, name, engine, f"{of['messages_per_s']:,.0f}", ratio(of["engine_ratio"])]
                )
    header = ["engine over", "beside it", "engine, messages/s", "that, messages/s", "engine / that"]
    return markdown(header, rows, texts=2)


def targets(found: Runs) -> list[dict[str, object]]:
    """The ratios aimed at of what was run: the median of the ratios within each run."""
    rows: list[dict[str, object]] = []
    for transport, beside, at_least in TARGETS:
        theirs = found.get(beside, {}).get(ENGINE) or found.get(transport, {}).get(beside)
        if transport in found and theirs:
            ratios = [mine / other for mine, other in zip(found[transport][ENGINE], theirs, strict=True)]
            row = {
                "engine over": transport,
                "beside it": beside if beside not in found else f"engine over {beside}",
            }
            reached = "yes" if median(ratios) >= at_least else "no"
            rows.append({**row, "ratio": median(ratios), "at least": at_least, "reached": reached})
    return rows


def targets_table(found: Runs) -> str:
    """A row for each of `targets`."""
    rows = [
        [ratio(cell) if isinstance(cell, float) else str(cell) for cell in row.values()]
        for row in targets(found)
    ]
    return markdown(["engine over", "beside it", "ratio", "at least", "reached"], rows, texts=2)


def processor(spent: Runs) -> dict[str, float]:
    """Microseconds of processor time for a message: of the engine over each Kafka transport, and of peers."""
    rows = {f"engine over {one}": spent[one][ENGINE] for one in spent if one.startswith(KAFKA)}
    rows |= {name: spent[KAFKA][name] for name in PEERS if name in spent.get(KAFKA, ())}
    return {name: median(us) for name, us in rows.items()}


def processor_table(spent: Runs) -> str:
    """A row for each of `processor`."""
    found = processor(spent)
    least = found.get(f"engine over {KAFKA}", 0.0)
    rows = [[name, f"{us:.2f}", ratio(us / least)] for name, us in found.items()]
    return markdown(["", "processor, us per message", "times the engine over Kafka"], rows)


def main() -> int:
    """Run, print, return the exit code."""
    parser = argparse.ArgumentParser(description="Messages per second of the engine, beside what bounds it.")
    parser.add_argument("--messages", type=int, default=100_000, help="records of a run (%(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="the median counts (%(default)s)")
    parser.add_argument("--kafka", metavar="ADDRESS", help="a running broker; by default one is started")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the streams (%(default)s)")
    parser.add_argument("--no-peers", action="store_true", help="leave out the peers around river")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of Markdown")
    options = parser.parse_args()
    if min(options.messages, options.runs) < 1:
        parser.error("--messages and --runs must be at least 1")
    on, with_versions = machine(), versions(PACKAGES)
    try:
        what, lines = input_lines(options.data, options.messages)
        with broker(options.kafka) as address:
            python = None if options.no_peers or address is None else environment()
            long_lines = stream_lines(options.data, "enron1", options.messages)
            found, spent = run(lines, long_lines, address, options.runs, python)
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
            "targets": targets(found),
            "processor_us": processor(spent),
        }
        print(orjson.dumps(answer).decode())
        return 0
    print(on)
    print(", ".join(f"{package} {number}" for package, number in with_versions.items()))
    print(f"{what}; the median of {options.runs} runs")
    print(f"\n{table(found)}")
    print(f"\n{targets_table(found)}")
    print(f"\n{processor_table(spent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
