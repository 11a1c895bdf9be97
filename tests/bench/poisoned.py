"""Poisoned topics on a real broker: the memory of an engine, its speed, and what becomes of each record.

``python tests/bench/poisoned.py [--client C ...] [--config NAME ...] [--only TOPIC ...] [--messages N]``

Each topic of `poisoned_topics.py` is read twice. The first engine reads it in one go: this gives the rate.
Then engines share the work: the first is killed with SIGKILL in the middle, the second stopped with SIGTERM,
the third reads to the end, and the fourth finds nothing left. The peak is the highest of all engines, over
the process and its children. The target is 480 MB. Where the documentation excepts a client, the peak is in
brackets, and no fault of the row counts.

A row is accounted for if the positions rose with every engine, the account of the last snapshot has every
offset of the topic, each message has a score and each other record a dead letter, no reason is in the log
twice as the first of a run, and the state is that of the engine that was not interrupted. Without ``--kafka``
a broker of its own is started.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from deploy.kafka.broker import Broker, BrokerError
from streamnb.base import Account, Snapshot
from streamnb.storage import read_snapshot
from tests.bench.common import ROOT, machine, markdown, progress, versions
from tests.bench.poisoned_topics import TOPICS, Topic, Transaction
from tests.support.raw_batches import RawProducer

PACKAGES = ("kafka-python", "confluent-kafka", "numpy")
CLIENTS = ("kafka", "confluent")
CONFIGS = ("spam", "spam-accurate", "textbook")
PEAK_MAX_MB = 480
RUN_MAX_S = 600.0
STILL_S = 20.0  # an engine whose positions do not move for so long has done what it can
TICK_S = 0.02
HELD = re.compile(r"(?:ready at|holds) .*? @ (\d+)")
FIRST = re.compile(r"WARNING streamnb.engine: (.*, \w+): the first is")
TOOK = re.compile(r"stopped after (\d+) records: .* in ([0-9.]+) s;")
# Records of 60 MiB, and timestamps of any year, which brokers refuse or soon remove by default.
LAX = {
    "max.message.bytes": str(100 << 20),
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
    "retention.ms": "-1",
}


class Ended(NamedTuple):
    """An engine that has ended.

    Parameters
    ----------
    code : int
        Of its exit.
    peak_mb : float
        The most memory that it and its children held.
    said : str
        Its log.
    """

    code: int
    peak_mb: float
    said: str


class Row(NamedTuple):
    """What became of a topic."""

    cells: tuple[str, ...]
    faults: tuple[str, ...]


def fill(address: str, name: str, topic: Topic, messages: int) -> tuple[int, int]:
    """Create a topic and send its batches; return how many bytes and how many offsets it has."""
    create(address, {name: LAX})
    raw, size = RawProducer(address), 0
    settings = {"bootstrap.servers": address, "transactional.id": name, "linger.ms": 0}
    producer: Producer | None = None
    for sent in topic.batches(random.Random(1), messages):
        if isinstance(sent, Transaction):
            if producer is None:
                producer = Producer(settings)
                producer.init_transactions(30)
            producer.begin_transaction()
            for value in sent.values:
                producer.produce(name, value)
            producer.flush(30)
            (producer.commit_transaction if sent.committed else producer.abort_transaction)(30)
        else:
            raw.send(name, sent)
            size += len(sent)
    raw.close()
    return size, end_of(address, name)


def create(address: str, topics: Mapping[str, Mapping[str, str]]) -> None:
    """Create topics of one partition, each with its configuration."""
    new = [NewTopic(name, 1, 1, config=dict(config)) for name, config in topics.items()]
    admin = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics(new).values():
        made.result(30)


def consumer_of(address: str) -> Consumer:
    """Return a consumer of committed records, which joins no group."""
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "poisoned",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.message.max.bytes": 8 << 20,
        }
    )


def end_of(address: str, name: str) -> int:
    """Return the offset after the last record of a topic."""
    consumer = consumer_of(address)
    end: int = consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=30)[1]
    consumer.close()
    return end


class Run:
    """Engines over one topic, which resume from each other's snapshots.

    Parameters
    ----------
    address, name : str
        The broker, and the topic that is read.
    config : str
        A name of `CONFIGS`.
    client : str
        One of `CLIENTS`.
    topic : Topic
    home : Path
        A folder of its own.
    """

    def __init__(self, address: str, name: str, config: str, client: str, topic: Topic, home: Path) -> None:
        run = f"{name}-{uuid.uuid4().hex[:8]}"
        self.address, self.scores, self.dead = address, f"{run}-scores", f"{run}-dead"
        create(address, {self.scores: {}, self.dead: {}})
        self.directory = home / "snapshots"
        changes = [
            f'kafka.bootstrap_servers="{address}"',
            f'confluent.bootstrap.servers="{address}"',
            f'source={{kind="{client}", topics=["{name}"]}}',
            f'sink={{kind="{client}", topic="{self.scores}"}}',
            f'dead_letters.sink={{kind="{client}", topic="{self.dead}"}}',
            f'snapshots.directory="{self.directory}"',
            "snapshots.interval_s=0.5",
            "dead_letters.ratio_max=1.0",
            *topic.settings,
        ]
        self._command = [sys.executable, "-m", "streamnb", "run", str(ROOT / "configs" / f"{config}.toml")]
        self._command += [word for change in changes for word in ("--set", change)]
        self._log = home / "log"

    def to_end(self) -> Ended:
        """Run an engine that ends by itself."""
        return self._run(None, 0, "--until-end")

    def part(self, number: signal.Signals, more: int) -> Ended:
        """Run an engine until it has published so many, or no more for a while; then end it."""
        return self._run(number, more)

    def _run(self, number: signal.Signals | None, more: int, *options: str) -> Ended:
        watcher = consumer_of(self.address)
        before = at = self._published(watcher, 0)
        with self._log.open("wb") as log:
            engine = subprocess.Popen([*self._command, *options], stderr=log, stdout=subprocess.DEVNULL)
        began_s = moved_s = time.monotonic()
        peaks: dict[int, int] = {}
        ready = False
        try:
            while engine.poll() is None:
                note_peaks(engine.pid, peaks)
                now_s = time.monotonic()
                if now_s - began_s > RUN_MAX_S:
                    engine.kill()
                if number is not None:
                    last, at = at, self._published(watcher, at)
                    ready = ready or b"ready at" in self._log.read_bytes()
                    moved_s = moved_s if ready and at == last else now_s
                    if (ready and at - before >= more) or now_s - moved_s > STILL_S:
                        engine.send_signal(number)
                        number = None
                time.sleep(TICK_S)
        finally:
            engine.kill()  # if it still runs, this campaign was interrupted
            watcher.close()
        return Ended(engine.returncode, sum(peaks.values()) * 1024 / 1e6, self._log.read_text())

    def _published(self, watcher: Consumer, otherwise: int) -> int:
        with suppress(KafkaException):  # of a topic that has just been created
            return sum(
                watcher.get_watermark_offsets(TopicPartition(name, 0), timeout=30)[1]
                for name in (self.scores, self.dead)
            )
        return otherwise

    def newest(self) -> Snapshot | None:
        """Return the newest snapshot."""
        found = sorted(self.directory.glob("snapshot-*.snb"))
        return read_snapshot(found[-1]) if found else None

    def account(self) -> Account | None:
        """Return the account of the newest snapshot."""
        newest = self.newest()
        return None if newest is None else next(iter(newest.accounts.values()))

    def outcomes(self) -> tuple[Counter[int], Counter[int], int]:
        """Return how often each offset was scored and put aside, and how many offsets were unreadable."""
        scored: Counter[int] = Counter()
        aside: Counter[int] = Counter()
        unreadable: dict[int, int] = {}
        for name in (self.scores, self.dead):
            consumer = consumer_of(self.address)
            consumer.assign([TopicPartition(name, 0, 0)])
            while (one := consumer.poll(10)) is not None and one.error() is None:
                if name == self.scores:
                    scored[orjson.loads(one.value())["source"]["offset"]] += 1
                    continue
                headers = dict(one.headers()[:8])
                offset = int(headers["streamnb.offset"])
                if headers["streamnb.reason"] == b"unreadable":
                    span = re.findall(rb"Offsets (\d+) to (\d+)", headers["streamnb.detail"])[0]
                    unreadable[offset] = int(span[1]) + 1 - int(span[0])
                else:
                    aside[offset] += 1
            consumer.close()
        return scored, aside, sum(unreadable.values())


def note_peaks(pid: int, peaks: dict[int, int]) -> None:
    """Note the peak of a process and of its children, in KiB."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has just ended
        return
    if found := re.search(r"VmHWM:\s+(\d+)", status):
        peaks[pid] = max(peaks.get(pid, 0), int(found[1]))
    for child in children:
        note_peaks(int(child), peaks)


def faults_of(run: Run, ended: list[Ended], positions: list[int], end: int) -> list[str]:
    """Return what is wrong after the engines of a run."""
    faults = []
    codes = [one.code for one in ended]
    if codes[-1] != 0 or any(code not in (0, -signal.SIGKILL) for code in codes):
        faults.append(f"exit codes {codes}: {ended[-1].said.strip().splitlines()[-1:]}")
    # The first one may be killed before its first snapshot, and the last one has nothing to do.
    if positions != sorted(positions) or (len(positions) > 2 and positions[1] <= 0):
        faults.append(f"no progress: {positions}")
    account = run.account()
    if account is None:
        return [*faults, "no snapshot"]
    if account.balance() or account.next_offset != end or account.start:
        faults.append(f"{account} of {end}")
    scored, aside, unreadable = run.outcomes()
    expected = (account.scored, account.dead_lettered + account.tombstones, account.unreadable)
    if (len(scored), len(aside), unreadable) != expected or scored.keys() & aside.keys():
        faults.append(
            f"{len(scored)} scored, {len(aside)} aside, {unreadable} unreadable; account {expected}"
        )
    for one in ended:
        firsts = Counter(FIRST.findall(one.said))
        if firsts and max(firsts.values()) > 1:
            faults.append(f"logged twice: {firsts}")
        if one.said.count("\n") > 250 or len(one.said) > 100_000:
            faults.append(f"{one.said.count(chr(10))} lines, {len(one.said)} characters of log")
        if "Traceback" in one.said:
            faults.append("a traceback")
    return faults


def row_of(address: str, key: str, name: str, sent: tuple[int, int], config: str, client: str) -> Row:
    """Run all engines over a topic."""
    topic, (size, end) = TOPICS[key], sent
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        whole = Run(address, name, config, client, topic, Path(one))
        at_once = whole.to_end()
        faults += faults_of(whole, [at_once], [end], end)
        took = TOOK.findall(at_once.said)
        parts = Run(address, name, config, client, topic, Path(other))
        ended, positions = [], []
        outputs = whole.account() or Account(0, 0)
        published = outputs.scored + outputs.dead_lettered + outputs.tombstones
        steps = ((signal.SIGKILL, published // 2), (signal.SIGTERM, published // 4 + 1), None, None)
        for step in steps:
            ended.append(parts.part(*step) if step else parts.to_end())
            account = parts.account()
            positions.append(0 if account is None else account.next_offset)
        faults += faults_of(parts, ended, positions, end)
        after, before = parts.newest(), whole.newest()
        if after is not None and before is not None and after.digest != before.digest:
            faults.append("another state than without a crash")
    peak = max(one.peak_mb for one in (at_once, *ended))
    excepted = client in topic.unbounded
    if peak >= PEAK_MAX_MB and not excepted:
        faults.append(f"{peak:.0f} MB")
    records, seconds = (int(took[0][0]), max(0.1, float(took[0][1]))) if took else (0, 0.1)
    account = outputs
    cells = (
        topic.what,
        config,
        client,
        f"{end:,}",
        f"{size / 1e6:,.1f}",
        f"{records / seconds:,.0f}",
        f"{size / seconds / 1e6:.2f}",
        f"({peak:.0f})" if excepted else f"{peak:.0f}",
        f"{account.scored:,}",
        f"{account.dead_lettered + account.tombstones:,}",
        f"{account.unreadable:,}",
        f"{account.gaps:,}",
        "; ".join(faults) or "yes",
    )
    return Row(cells, () if excepted else tuple(faults))


HEADER = (
    *("topic", "configuration", "client", "offsets", "MB", "records/s", "MB/s", "peak, MB", "scored"),
    *("dead letters", "unreadable", "gaps", "accounted for"),
)


def campaign(
    address: str, keys: list[str], configs: list[str], clients: list[str], messages: int
) -> list[Row]:
    """Fill each topic once and return a row for each configuration and client."""
    rows = []
    for key in keys:
        name = f"{key}-{uuid.uuid4().hex[:8]}"
        sent = fill(address, name, TOPICS[key], messages)
        for config in configs:
            for client in clients:
                rows.append(row_of(address, key, name, sent, config, client))
                progress(" | ".join(rows[-1].cells))
    return rows


def main() -> int:
    """Print a table; return 1 if a row is not accounted for or takes too much memory."""
    parser = argparse.ArgumentParser(description="Engines over poisoned topics.")
    parser.add_argument("--client", choices=CLIENTS, nargs="+", default=[*CLIENTS])
    parser.add_argument("--config", choices=CONFIGS, nargs="+", default=["spam", "textbook"])
    parser.add_argument("--only", choices=TOPICS, nargs="+", default=[*TOPICS], metavar="TOPIC")
    parser.add_argument("--messages", type=int, default=20_000, help="about so many (%(default)s)")
    parser.add_argument("--kafka", metavar="ADDRESS", help="a broker that runs already, on this machine")
    options = parser.parse_args()
    print(machine())
    print(", ".join(f"{name} {number}" for name, number in versions(PACKAGES).items()))
    print(f"{options.messages:,} messages", flush=True)
    asked = (options.only, options.config, options.client, options.messages)
    if options.kafka:
        rows = campaign(options.kafka, *asked)
    else:
        with tempfile.TemporaryDirectory() as folder:
            broker = Broker(Path(folder) / "broker")
            try:
                broker.start()
                rows = campaign(broker.address, *asked)
            except BrokerError as error:
                print(error, file=sys.stderr)
                return error.exit_code
            finally:
                broker.stop()
    print(f"\n{markdown(HEADER, [row.cells for row in rows], texts=3)}")
    return int(any(row.faults for row in rows))


if __name__ == "__main__":
    sys.exit(main())
