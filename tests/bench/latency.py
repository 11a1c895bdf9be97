"""Time from a record's timestamp to its acknowledged score, at a tenth, half and nine tenths of the load.

``python tests/bench/latency.py [--seconds S] [--messages N] [--kafka ADDRESS] [--data DIR] [--json]``

The engine runs in a process of its own, as users run it, with the model of `configs/spam.toml`; a producer in
another process sends sms messages at a fixed rate, and the broker is on the same machine. The full rate is
what the engine reaches while that producer sends as fast as it can, so that all three share the processors.

A record's timestamp is the time at which it was due. The score's is the time at which the broker appended it,
which is when it is acknowledged on one broker; both are in whole milliseconds. The first second of each rate
is left out. Where the producer itself was late, that is part of the latency and is shown beside it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from tests.bench.common import DATA, ROOT, machine, markdown, progress, versions
from tests.bench.kafka_loops import broker
from tests.bench.steady_producer import PARTITIONS
from tests.bench.throughput import input_lines

CLIENTS = ("kafka", "confluent")
SHARES = (0.1, 0.5, 0.9)
READY_S = 60.0
SCORED_S = 120.0
WARM_UP_S = 1.0
STAMPED = {"message.timestamp.type": "LogAppendTime"}


class Latency(NamedTuple):
    """Of one rate, in milliseconds; the share of the full rate is 1 where the producer was not held back."""

    client: str
    share: float
    messages_per_s: float
    p50: float
    p99: float
    producer_late: float


class Topics:
    """Input, scores and dead letters of one engine.

    Parameters
    ----------
    address : str
    """

    def __init__(self, address: str) -> None:
        from kafka.admin import KafkaAdminClient, NewTopic

        name = f"streamnb-bench-{uuid.uuid4().hex[:8]}"
        self.address = address
        self.mail, self.scores, self.dead = (f"{name}-{kind}" for kind in ("mail", "scores", "dead"))
        with KafkaAdminClient(bootstrap_servers=address) as admin:
            admin.create_topics([NewTopic(one, PARTITIONS, 1) for one in (self.mail, self.dead)])
            admin.create_topics([NewTopic(self.scores, PARTITIONS, 1, topic_configs=STAMPED)])

    def delete(self) -> None:
        """Delete them."""
        from kafka.admin import KafkaAdminClient

        with KafkaAdminClient(bootstrap_servers=self.address) as admin:
            admin.delete_topics([self.mail, self.scores, self.dead])

    def wait_for_scores(self, n: int) -> None:
        """Return when so many scores were published.

        Raises
        ------
        TimeoutError
            They were not, in two minutes.
        """
        from streamnb.transports.kafka import KafkaSource

        source, deadline_s = KafkaSource([self.scores], {"bootstrap_servers": self.address}), SCORED_S
        try:
            source.open({}, "latest")
            deadline_s += time.monotonic()
            while sum(source.end_offsets().values()) < n:
                if time.monotonic() > deadline_s:
                    raise TimeoutError(f"fewer than {n} scores after {SCORED_S:.0f} s")
                time.sleep(0.1)
        finally:
            source.close()

    def times_ms(self, topic: str) -> list[list[int]]:
        """Return the records' timestamps, by partition and offset."""
        from streamnb.transports.kafka import KafkaSource

        found: list[list[int]] = [[] for _ in range(PARTITIONS)]
        source = KafkaSource([topic], {"bootstrap_servers": self.address})
        try:
            source.open({}, "earliest")
            n = sum(source.end_offsets().values())
            while sum(map(len, found)) < n:
                for records in source.poll(5000, 500):
                    found[records.partition.number] += records.timestamps_ms
        finally:
            source.close()
        return found


@contextmanager
def engine(topics: Topics, client: str, folder: Path) -> Iterator[None]:
    """Run an engine from topic to topic as an operator does; it is ready within."""
    servers = f'kafka.bootstrap_servers="{topics.address}"'
    if client == "confluent":
        servers = f'confluent.bootstrap.servers="{topics.address}"'
    endpoints = {"source": ("topics", f'["{topics.mail}"]'), "sink": ("topic", f'"{topics.scores}"')}
    endpoints["dead_letters.sink"] = ("topic", f'"{topics.dead}"')
    tables = [f'{table}={{kind="{client}", {name}={value}}}' for table, (name, value) in endpoints.items()]
    changes = [servers, *tables, f'snapshots.directory="{folder}"', 'engine.start="earliest"']
    command = [sys.executable, "-m", "streamnb", "run", str(ROOT / "configs" / "spam.toml")]
    command += [word for change in changes for word in ("--set", change)]
    log = folder / "engine.log"
    with log.open("w") as said, subprocess.Popen(command, stderr=said, cwd=ROOT) as process:
        try:
            deadline_s = time.monotonic() + READY_S
            while "ready at" not in log.read_text():
                if process.poll() is not None or time.monotonic() > deadline_s:
                    raise RuntimeError(f"the engine is not ready: {log.read_text()[-2000:]}")
                time.sleep(0.05)
            yield
        finally:
            process.terminate()


def sent(topics: Topics, n: int, rate: float, file: Path) -> float:
    """Produce messages at a rate; by how many milliseconds the last one was late."""
    script = Path(__file__).with_name("steady_producer.py")
    command = [sys.executable, str(script), topics.address, topics.mail, str(n), str(rate), str(file)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measured(address: str, client: str, file: Path, n: int, seconds: float) -> list[Latency]:
    """Measure the full rate, and the latencies at shares of it."""
    topics = Topics(address)
    try:
        with tempfile.TemporaryDirectory() as folder, engine(topics, client, Path(folder)):
            before = whole(2000)
            sent(topics, before, 1000.0, file)  # the first records find caches and connections cold
            topics.wait_for_scores(before)
            late = [sent(topics, n, 0.0, file)]
            topics.wait_for_scores(before + n)
            bounds = [before, before + n]
            due, done = (topics.times_ms(one) for one in (topics.mail, topics.scores))
            full = 1000 * n / (last(done, bounds[1]) - first(due, bounds[0]))
            progress(f"{client}: {full:,.0f} messages/s with the producer at full speed")
            for share in SHARES:
                count = whole(full * share * seconds)
                late.append(sent(topics, count, full * share, file))
                bounds.append(bounds[-1] + count)
                topics.wait_for_scores(bounds[-1])
        due, done = (topics.times_ms(one) for one in (topics.mail, topics.scores))
    finally:
        topics.delete()
    found = []
    for i, share in enumerate((1.0, *SHARES)):
        skipped_s = WARM_UP_S if share < 1 else 0.0  # all are sent in a moment
        p50, p99 = np.percentile(latencies(due, done, bounds[i], bounds[i + 1], skipped_s), [50, 99])
        found.append(Latency(client, share, full * share, float(p50), float(p99), late[i]))
    return found


def whole(n: float) -> int:
    """Return a number of messages that is the same for each partition, and not above `n` but for the least.

    Examples
    --------
    >>> whole(10.5), whole(1)
    (9, 3)
    """
    return max(1, int(n) // PARTITIONS) * PARTITIONS


def first(due: Sequence[Sequence[int]], bound: int) -> int:
    """Return the first time after `bound` messages."""
    return min(times[bound // PARTITIONS] for times in due)


def last(done: Sequence[Sequence[int]], bound: int) -> int:
    """Return the last time of the first `bound` messages."""
    return max(times[bound // PARTITIONS - 1] for times in done)


def latencies(
    due: Sequence[Sequence[int]], done: Sequence[Sequence[int]], begin: int, end: int, skipped_s: float
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the milliseconds of the messages from `begin` to `end`, without those due at first."""
    warm_ms = first(due, begin) + 1000 * skipped_s
    rows = slice(begin // PARTITIONS, end // PARTITIONS)
    asked, answered = (np.asarray([times[rows] for times in column]) for column in (due, done))
    waits: np.ndarray[tuple[int], np.dtype[np.int64]] = (answered - asked)[asked >= warm_ms]
    return waits


def main() -> int:
    """Run, print, return the exit code."""
    parser = argparse.ArgumentParser(description="Latency of the engine at shares of its full rate.")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each rate (%(default)s)")
    parser.add_argument("--messages", type=int, default=400_000, help="for the full rate (%(default)s)")
    parser.add_argument("--kafka", metavar="ADDRESS", help="a running broker; by default one is started")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the streams (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of Markdown")
    options = parser.parse_args()
    if options.seconds <= WARM_UP_S or options.messages < 1:
        parser.error(f"--seconds must be more than {WARM_UP_S:.0f}, and --messages at least 1")
    on, with_versions = machine(), versions(("kafka-python", "confluent-kafka"))
    what, lines = input_lines(options.data, 10_000)
    found: list[Latency] = []
    with broker(options.kafka) as address, tempfile.TemporaryDirectory() as folder:
        if address is None:
            return 1
        file = Path(folder) / "messages"
        file.write_bytes(b"\n".join(lines))
        for client in CLIENTS:
            found += measured(address, client, file, whole(options.messages), options.seconds)
    if options.json:
        latency = [one._asdict() for one in found]
        answer = {"machine": on, "versions": with_versions, "input": what, "latency": latency}
        print(orjson.dumps(answer).decode())
        return 0
    rows = [
        [
            one.client,
            "as fast as it can" if one.share == 1 else f"{one.share:.0%} of that",
            f"{one.messages_per_s:,.0f}",
            *(f"{ms:,.0f}" for ms in one[3:]),
        ]
        for one in found
    ]
    header = ["client", "the producer sends", "messages/s", "p50, ms", "p99, ms", "producer late, ms"]
    print(on)
    print(", ".join(f"{package} {number}" for package, number in with_versions.items()))
    print(f"{what}, over and over; {options.seconds:.0f} s of each rate\n\n{markdown(header, rows, texts=2)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
