"""What `consume.py` and `produce.py` share: ways of doing one thing with the records of a topic, compared."""

from __future__ import annotations

import argparse
import gc
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.bench.common import DATA, machine, markdown, progress, ratio, versions
from tests.bench.kafka_loops import PARTITIONS, broker
from tests.bench.throughput import input_lines

CONFLUENT = "confluent-kafka itself"
OVER_CONFLUENT = "through confluent-kafka"


class Cost(NamedTuple):
    """Of a record, in microseconds."""

    processor: float
    wall: float


class Ways(ABC):
    """Several ways of doing the same with the records of one topic.

    Parameters
    ----------
    address : str
        Of a broker, on which a topic of `PARTITIONS` partitions is made.
    lines : sequence of bytes
        Messages.
    """

    def __init__(self, address: str, lines: Sequence[bytes]) -> None:
        from streamnb.transports.kafka import create_topics

        self.address = address
        self.client: dict[str, object] = {"bootstrap_servers": address}
        self.topic = f"streamnb-bench-{uuid.uuid4().hex[:8]}"
        self.n = len(lines)
        create_topics(self.client, {self.topic: PARTITIONS})

    @abstractmethod
    def ways(self) -> dict[str, Callable[[], Cost]]:
        """Return what is measured, by name; `CONFLUENT` is one of them."""

    @contextmanager
    def timed(self, costs: list[Cost]) -> Iterator[None]:
        """Measure the block."""
        gc.collect()
        processor_s, wall_s = time.process_time(), time.perf_counter()
        yield
        spent = (time.process_time() - processor_s, time.perf_counter() - wall_s)
        costs.append(Cost(*(1e6 * one / self.n for one in spent)))

    def close(self) -> None:
        """Delete the topic."""
        from kafka.admin import KafkaAdminClient

        with KafkaAdminClient(**self.client) as admin:
            admin.delete_topics([self.topic])


def run(measured: Ways, runs: int) -> dict[str, list[Cost]]:
    """Measure each way as many times as asked, one after the other."""
    found: dict[str, list[Cost]] = {}
    try:
        for number in range(1, runs + 1):
            for name, way in measured.ways().items():
                found.setdefault(name, []).append(way())
                progress(f"run {number}, {name}: {found[name][-1].processor:.2f} us")
    finally:
        measured.close()
    return found


def table(found: dict[str, list[Cost]], done: str) -> str:
    """A row for each way; `done` is the title of their column."""
    rows = []
    for name, costs in found.items():
        over = [mine.processor / its.processor for mine, its in zip(costs, found[CONFLUENT], strict=True)]
        of = [median(one[i] for one in costs) for i in range(2)]
        rows.append([name, *(f"{one:.2f}" for one in of), ratio(median(over))])
    header = [done, "processor, us per record", "wall, us per record", f"processor / {CONFLUENT}"]
    return markdown(header, rows)


def print_costs(kind: type[Ways], title: str, done: str) -> int:
    """Read the options, measure, print, return the exit code.

    Parameters
    ----------
    kind : subclass of Ways
    title : str
        What the script measures.
    done : str
        What is done with the records, such as "read".
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--messages", type=int, default=100_000, help="records of a run (%(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="the median counts (%(default)s)")
    parser.add_argument("--kafka", metavar="ADDRESS", help="a running broker; by default one is started")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the streams (%(default)s)")
    options = parser.parse_args()
    if min(options.messages, options.runs) < 1:
        parser.error("--messages and --runs must be at least 1")
    on = machine()
    what, lines = input_lines(options.data, options.messages)
    with broker(options.kafka) as address:
        if address is None:
            return 1
        found = run(kind(address, lines), options.runs)
    print(on)
    print(
        ", ".join(f"{one} {number}" for one, number in versions(("kafka-python", "confluent-kafka")).items())
    )
    print(f"{what}; the median of {options.runs} runs\n\n{table(found, done)}")
    return 0
