"""From the start of a process to ready: the snapshot read, the log found, what came since read again.

``python tests/bench/recovery.py [--largest TOKENS] [--replay N] [--live R] [--runs R] [--kafka ADDRESS]``

A snapshot of N tokens is written for `configs/spam.toml`, and records that came after it in a topic
of a real broker. Then the engine is started as an operator does, and timed from before its process exists: to
"ready", when it stands at the snapshot's positions, and to "caught up", when what waited is scored and
learned; in brackets the processor time up to then. A plain read of the file precedes each start. The first
row has no snapshot: what a start costs in any case. Aimed at is to be caught up within a second, one and a
half plain reads, and the replay; and a replay at five times the rate of the live stream, `soak.py`'s.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.base.offsets import Account
from streamnb.base.record import Partition
from streamnb.config import snapshot_of
from streamnb.storage import write_snapshot
from tests.bench.common import DATA, machine, markdown, progress
from tests.bench.kafka_loops import PARTITIONS, KafkaLoops, broker
from tests.bench.kernel_contenders import SPAM, built, shipped
from tests.bench.kernel_growth import grow
from tests.bench.throughput import input_lines

ALLOWED_S, ALLOWED_READS, ALLOWED_RATE = 1.0, 1.5, 5.0
CONFIG = """
[model]
name = "recovery"
max_tokens = 100000000

[[views]]
name = "words"
reader = {{ kind = "words" }}

[source]
kind = "kafka"
topics = ["{mail}"]

[sink]
kind = "kafka"
topic = "{scores}"

[dead_letters.sink]
kind = "kafka"
topic = "{dead}"

[kafka]
bootstrap_servers = "{address}"

[engine]
start = "earliest"

[snapshots]
directory = "{directory}"
"""


class Start(NamedTuple):
    """One start: seconds since before the process, and of processor time up to then."""

    read: float
    read_cpu: float
    ready: float
    ready_cpu: float
    caught_up: float
    caught_up_cpu: float

    def of_allowed(self) -> float:
        """What it took, of what it may take."""
        replay = self.caught_up - self.ready
        return self.caught_up / (ALLOWED_S + ALLOWED_READS * self.read + replay)

    def of_allowed_cpu(self) -> float:
        """The same in processor time, where other work on the machine counts little."""
        replay = self.caught_up_cpu - self.ready_cpu
        return self.caught_up_cpu / (ALLOWED_S + ALLOWED_READS * self.read_cpu + replay)


def lay_down(directory: Path, tokens: int, positions: dict[Partition, Account]) -> Path:
    """The snapshot of an engine that stands at these positions, and knows this many tokens."""
    settings = shipped(SPAM)
    model = built(settings, compiled=True)
    grow(model, 0, tokens)
    snapshot = replace(snapshot_of(settings, model), accounts=positions)
    directory.mkdir()
    path = directory / "snapshot-0000000001.snb"
    write_snapshot(path, snapshot.numbered(1))
    return path


def start(config: Path, snapshot: Path | None) -> Start:
    """Read the snapshot plainly, then start the engine over it, until it has caught up."""
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    if snapshot is not None:
        snapshot.read_bytes()
    figures = [time.perf_counter() - began_s, time.process_time() - began_cpu_s]
    began_s = time.perf_counter()
    command = [sys.executable, "-m", "streamnb", "run", str(config)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    said, awaited = "", ["ready at", "caught up"]
    assert process.stderr is not None
    while awaited:
        line = process.stderr.readline()
        said += line
        if not line:
            raise SystemExit(f"The engine ended: {said}")
        if awaited[0] in line:
            figures += [time.perf_counter() - began_s, processor_seconds_of(process.pid)]
            awaited.pop(0)
    process.kill()
    process.communicate()
    return Start(*figures)


def processor_seconds_of(pid: int) -> float:
    """Of another process, so far."""
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def row(title: str, starts: list[Start], megabytes: float, replay: int, live: float) -> list[str]:
    """Medians of some starts; wall clock, and processor time in brackets."""

    def both(figure: Callable[[Start], float], cpu: Callable[[Start], float]) -> str:
        return f"{median(map(figure, starts)):.2f} ({median(map(cpu, starts)):.2f})"

    took = median(one.caught_up - one.ready for one in starts)
    took_cpu = median(one.caught_up_cpu - one.ready_cpu for one in starts)
    return [
        title,
        f"{megabytes:,.0f}",
        both(lambda one: one.read, lambda one: one.read_cpu),
        both(lambda one: one.ready, lambda one: one.ready_cpu),
        both(lambda one: one.caught_up, lambda one: one.caught_up_cpu),
        both(Start.of_allowed, Start.of_allowed_cpu),
        f"{replay / took:,.0f} ({replay / took_cpu:,.0f})",
        f"{replay / took / live:.1f} ({replay / took_cpu / live:.1f})",
    ]


def main() -> int:
    """Run, print, return the exit code."""
    parser = argparse.ArgumentParser(description="From the start of a process to ready.")
    parser.add_argument("--largest", type=int, default=10**7, help="tokens of a snapshot (%(default)s)")
    parser.add_argument("--replay", type=int, default=20_000, help="records that wait (%(default)s)")
    parser.add_argument("--live", type=float, default=2_000, help="records/s of the stream (%(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="the median counts (%(default)s)")
    parser.add_argument("--kafka", metavar="ADDRESS", help="a running broker; by default one is started")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the streams (%(default)s)")
    options = parser.parse_args()
    what, lines = input_lines(options.data, options.replay)
    print(f"{machine()}\n{what} to read again; the median of {options.runs} runs\n", flush=True)
    sizes = [0, *(10**power for power in range(5, 8) if 10**power <= options.largest)]
    rows = []
    with tempfile.TemporaryDirectory() as folder, broker(options.kafka) as address:
        if address is None:
            return 69
        topics = KafkaLoops(address, lines, {})
        for size in sizes:
            home = Path(folder) / str(size)
            home.mkdir()
            config = home / "recovery.toml"
            config.write_text(
                CONFIG.format(
                    mail=topics.mail,
                    scores=topics.scores,
                    dead=topics.dead,
                    address=address,
                    directory=home / "snapshots",
                )
            )
            positions = {Partition(topics.mail, number): Account(0, 0) for number in range(PARTITIONS)}
            path = lay_down(home / "snapshots", size, positions) if size else None
            starts = [start(config, path) for _ in range(options.runs)]
            megabytes = path.stat().st_size / 1e6 if path else 0.0
            rows.append(
                row(f"{size:,}" if size else "no snapshot", starts, megabytes, options.replay, options.live)
            )
            progress(" ".join(rows[-1]))
        topics.close()
    header = ["tokens", "file, MB", "plain read, s", "ready, s", "caught up, s", "of what is allowed"]
    print(markdown([*header, "replay, records/s", "of the live rate"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
