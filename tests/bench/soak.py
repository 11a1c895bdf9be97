"""The engine for an hour over a real broker, under churn: are memory, descriptors and threads flat?

``python tests/bench/soak.py [--minutes M] [--rate R] [--client kafka|confluent] [--exactly-once]``

The engine is a process of its own, with a snapshot every five seconds. It meets what wears a process down:
words that nobody has seen in every message, so that the vocabulary stays at `max_tokens` and tokens are let
go all the time; bad records, tombstones, labels beyond `classes_max`; and connections that are all cut every
half minute, behind a proxy. Every ten seconds its memory, descriptors and threads are looked up, and its
lag: what was produced and not yet accounted for. Printed are a row for every five minutes, and by how much
each figure rose an hour: the slope of a straight line through what was seen after the first sixth.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import linear_regression, median
from typing import NamedTuple

import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from deploy.kafka.broker import Broker, BrokerError, free_port
from streamnb.transports.confluent.source import ConfluentSink, create_topics
from tests.bench.common import machine, markdown, progress, versions
from tests.transports.kafka.proxy import Proxy, listeners

PACKAGES = ("kafka-python", "confluent-kafka", "crc32c", "numpy")
PARTITIONS = 3
SAMPLE_S, CUT_S, ROW_S = 10.0, 30.0, 300.0
TICK_S = 0.1
OLD_WORDS = 20_000
# Records that were read are dropped: an hour of a stream must not fill the disk.
RETENTION = {
    "log.retention.bytes": str(64 << 20),
    "log.segment.bytes": str(16 << 20),
    "log.retention.check.interval.ms": "10000",
}
CONFIG = """
[model]
name = "soak"
classes_max = 8
max_tokens = 200000

[[views]]
name = "words"
reader = {{ kind = "words" }}

[source]
kind = "{client}"
topics = ["mail"]
group = "soak"

[sink]
kind = "{client}"
topic = "scores"

[dead_letters.sink]
kind = "{client}"
topic = "dead-letters"

[kafka]
bootstrap_servers = "{address}"

[confluent]
"bootstrap.servers" = "{address}"

[engine]
start = "earliest"
scores = "{scores}"

[snapshots]
directory = "{directory}"
interval_s = 5.0

[metrics]
port = {port}
"""


class Sample(NamedTuple):
    """What the engine held at a moment."""

    at_s: float
    rss_mib: float
    descriptors: int
    threads: int
    cpu_s: float
    produced: int
    lag: int


def records(draw: random.Random, first: int, n: int) -> list[bytes | None]:
    """Messages of old and of new words, half of them labelled, and what is none."""
    found: list[bytes | None] = []
    for number in range(first, first + n):
        kind = draw.random()
        if kind < 0.005:
            found.append(None)
        elif kind < 0.01:
            found.append(b'{"text": "cut off')
        else:
            words = [f"w{int(OLD_WORDS * draw.random() ** 3)}" for _ in range(10)]
            label = draw.choice(("spam", "ham")) if kind < 0.5 else None
            if kind < 0.011:
                label = f"label {number}"
            found.append(
                orjson.dumps({"text": f"{' '.join(words)} new{number} seen{number}", "label": label})
            )
    return found


class Producer:
    """Sends at a steady rate, from wherever the clock stands.

    Parameters
    ----------
    address : str
    rate : float
        Records a second.
    """

    def __init__(self, address: str, rate: float) -> None:
        self._sink = ConfluentSink("mail", {"bootstrap.servers": address})
        self._draw, self._rate, self._began_s = random.Random(0), rate, time.monotonic()
        self.produced = 0

    def catch_up(self) -> None:
        """Send what is due."""
        due = int((time.monotonic() - self._began_s) * self._rate) - self.produced
        values = records(self._draw, self.produced, max(due, 0))
        for partition in range(PARTITIONS):
            part = values[partition::PARTITIONS]
            self._sink.publish(partition, part, [None] * len(part), [()] * len(part))
        self.produced += len(values)

    def close(self) -> None:
        """Send the rest, and close."""
        self._sink.flush(60_000)
        self._sink.close()


class Child:
    """The engine, and what it shows of itself.

    Parameters
    ----------
    config, log : Path
    port : int
        Of its metrics page.
    """

    def __init__(self, config: Path, log: Path, port: int) -> None:
        self._page, self._log = f"http://127.0.0.1:{port}/metrics", log.open("wb")
        command = [sys.executable, "-m", "streamnb", "run", str(config)]
        self.process = subprocess.Popen(command, stderr=self._log)
        self._began_s = time.monotonic()

    def sample(self, produced: int) -> Sample:
        """What it holds now."""
        home = Path(f"/proc/{self.process.pid}")
        status = (home / "status").read_text()
        rss, threads = (int(re.findall(rf"{name}:\s+(\d+)", status)[0]) for name in ("VmRSS", "Threads"))
        times = (home / "stat").read_text().rpartition(")")[2].split()[11:13]
        return Sample(
            at_s=time.monotonic() - self._began_s,
            rss_mib=rss / 1024,
            descriptors=len(list((home / "fd").iterdir())),
            threads=threads,
            cpu_s=sum(map(int, times)) / os.sysconf("SC_CLK_TCK"),
            produced=produced,
            lag=produced - self._passed(),
        )

    def _passed(self) -> int:
        with urllib.request.urlopen(self._page, timeout=10) as page:
            said = page.read().decode()
        return int(
            sum(float(n) for n in re.findall(r"^streamnb_records_total\{.*\} (\S+)$", said, re.MULTILINE))
        )

    def end(self) -> int:
        """Stop it as an operator does; its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(60)
        finally:
            self._log.close()


def rows(samples: Sequence[Sample]) -> list[list[str]]:
    """A row for every five minutes; of memory the middle, of the others the most."""
    found = []
    for number in range(int(samples[-1].at_s // ROW_S) + 1):
        part = [one for one in samples if number * ROW_S <= one.at_s < (number + 1) * ROW_S]
        if len(part) < 2:
            continue
        first, last = part[0], part[-1]
        seconds = last.at_s - first.at_s
        figures = (
            f"{(last.produced - first.produced) / seconds:,.0f}",
            f"{median(one.lag for one in part):,.0f}",
            f"{max(one.lag for one in part):,}",
            f"{median(one.rss_mib for one in part):.1f}",
            f"{max(one.rss_mib for one in part):.1f}",
            str(max(one.descriptors for one in part)),
            str(max(one.threads for one in part)),
            f"{(last.cpu_s - first.cpu_s) / seconds:.0%}",
        )
        found.append([f"{last.at_s / 60:.0f}", *figures])
    return found


def slopes(samples: Sequence[Sample]) -> str:
    """By how much each figure rose an hour, after the first sixth of the time."""
    settled = [one for one in samples if one.at_s >= samples[-1].at_s / 6]
    hours = [one.at_s / 3600 for one in settled]
    memory, descriptors, threads = (
        linear_regression(hours, [float(getattr(one, name)) for one in settled]).slope
        for name in ("rss_mib", "descriptors", "threads")
    )
    return f"An hour adds {memory:+.1f} MiB, {descriptors:+.1f} descriptors, {threads:+.1f} threads."


def soak(child: Child, producer: Producer, proxy: Proxy, seconds: float) -> list[Sample]:
    """Produce, cut and look, until the time is over or the engine has ended."""
    samples: list[Sample] = []
    began_s = time.monotonic()
    next_sample_s, next_cut_s = began_s + SAMPLE_S, began_s + CUT_S
    while (now_s := time.monotonic()) < began_s + seconds and child.process.poll() is None:
        producer.catch_up()
        if now_s >= next_sample_s:
            with suppress(IndexError, OSError):  # it has ended since
                samples.append(child.sample(producer.produced))
                progress(str(samples[-1]))
            next_sample_s += SAMPLE_S
        if now_s >= next_cut_s:
            proxy.cut("now")
            next_cut_s += CUT_S
        time.sleep(TICK_S)
    return samples


def main() -> int:
    """Run, print, return the exit code."""
    parser = argparse.ArgumentParser(description="The engine for an hour, under churn: is it flat?")
    parser.add_argument("--minutes", type=float, default=60, help="how long (%(default)s)")
    parser.add_argument("--rate", type=float, default=2000, help="records a second (%(default)s)")
    parser.add_argument("--client", choices=["kafka", "confluent"], default="kafka", help="(%(default)s)")
    parser.add_argument("--exactly-once", action="store_true", help="scores in transactions")
    options = parser.parse_args()
    scores = "exactly_once" if options.exactly_once else "at_least_once"
    print(machine())
    print(", ".join(f"{name} {number}" for name, number in versions(PACKAGES).items()))
    what = f"{options.minutes:g} minutes, {options.rate:,.0f} records/s, {options.client}, {scores}"
    print(what, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        port, behind, before = free_port(), free_port(), free_port()
        broker = Broker(home / "broker", port, {**listeners(port, behind, before), **RETENTION})
        proxy, address = Proxy(behind, before), f"127.0.0.1:{before}"
        try:
            broker.start()
        except BrokerError as error:
            print(error, file=sys.stderr)
            return error.exit_code
        try:
            topics = dict.fromkeys(("mail", "scores", "dead-letters"), PARTITIONS)
            create_topics({"bootstrap.servers": broker.address}, topics)
            config, page = home / "soak.toml", free_port()
            text = CONFIG.format(
                client=options.client, address=address, scores=scores, directory=home / "snapshots", port=page
            )
            config.write_text(text)
            with proxy:
                producer = Producer(broker.address, options.rate)
                child = Child(config, home / "engine.log", page)
                samples = soak(child, producer, proxy, options.minutes * 60)
                code = child.end()
                producer.close()
            said = (home / "engine.log").read_text()
        finally:
            broker.stop()
    header = ["minute", "records/s", "lag", "most", "RSS, MiB", "most", "descriptors", "threads", "CPU"]
    if len(samples) > 2:
        print(f"\n{markdown(header, rows(samples), texts=0)}\n\n{slopes(samples)}")
    again, kept = said.count("starting again"), said.count(" holds ")
    print(f"{kept:,} snapshots; begun again {again} times in the process; exit code {code}.")
    if code:
        print(said[-2000:], file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
