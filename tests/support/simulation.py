"""Simulation of an engine over several lives in one process, with random faults of disk, broker and process.

``python -m tests.support.simulation --runs 100000`` runs many schedules. A schedule is drawn from a seed: a
stream of one or three partitions, sizes of snapshots, and faults that kill the engine until one life reaches
the end of the stream. Each life has its own size of polls, so that a poll may begin before an offset that an
earlier life has committed and end behind it; some records are unreadable. After every life and at every
snapshot these invariants are checked:

I1  The last digest equals that of an uninterrupted run.
I2  Every record has a score or a dead letter, and exactly one if scores are published exactly once.
I3  All scores of one record are the same bytes (with one partition).
I4  A score does not depend on its own label.
I5  Every snapshot that can be loaded is the state after exactly the records before its offsets.
I6  Snapshot numbers rise, and offsets never go back.
I7  The accounts add up.
I8  All records before a snapshot's offsets were acknowledged before the snapshot was written.
I9  No temporary file is left after a start.
"""

from __future__ import annotations

import argparse
import errno
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import orjson

from streamnb.base.batch import Batch
from streamnb.base.protocols import Clock, Source
from streamnb.base.record import Partition, RecordBatch
from streamnb.base.snapshot import Snapshot
from streamnb.config.engines import assemble
from streamnb.engine.dead_letters import DeadLetterLimits, DeadLetters
from streamnb.engine.engine import Engine
from streamnb.engine.metrics import Metrics
from streamnb.engine.model import Model
from streamnb.engine.settings import EngineSettings, Pace, SnapshotSettings, Summary
from streamnb.errors import DataError, DeliveryError, StorageError, TransportError
from streamnb.evaluation import LiveEvaluation
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.model.view import TEXT_ONLY
from streamnb.storage import snapshot_file
from streamnb.storage.directory import SnapshotDirectory
from streamnb.transports.memory import Crash, MemoryClock, MemoryLog, MemoryRecord
from streamnb.wire.message import Decoder, MessageFields
from streamnb.wire.score import Output, encode_scores
from tests.support.faulty_broker import (
    UNREADABLE,
    Broker,
    FaultySink,
    FaultySource,
    FaultyTransactions,
    address_of,
)
from tests.support.faulty_disk import Fault, FaultyDisk, in_place_of_the_disk

HOME = Path("/kept")
WORDS = ("win", "money", "now", "lunch", "at", "noon", "prize", *(f"word{n}" for n in range(30)))
POISON: tuple[bytes | None, ...] = (b"{", b"\xff\xfe", b'{"text": 7}', None, UNREADABLE, UNREADABLE)
DECODER = Decoder(MessageFields(), timed=True)
METRICS = Metrics()  # shared by all lives: nothing here reads them, and creating them costs as much as a life
LIVES_MAX = 40
# Streams of one partition use these in turn; streams of several use the default, which forgets nothing.
MODELS: tuple[dict[str, Any], ...] = (
    {},
    {"max_tokens": 16},
    {"half_life_messages": 3.0},
    {"half_life_s": 5.0},
)
STREAMS = 24  # few enough that the oracle's results can be cached


class Store(SnapshotDirectory):
    """The snapshot directory, with checks of what it reads and writes."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        super().__init__(HOME, keep=schedule.keep)
        assert not [name for name in schedule.disk.visible(str(HOME)) if name.endswith(".tmp")], "I9"

    def newest(self) -> Snapshot | None:
        """Return the newest snapshot, and remember that no power cut may remove it from now on."""
        newest = super().newest()
        self._schedule.newest = None if newest is None else (newest.sequence, dict(_offsets(newest)))
        return newest

    def write(self, snapshot: Snapshot) -> int:
        """Write a snapshot that satisfies the invariants."""
        return self._schedule.checked_write(snapshot, super().write)


class HeldThread:
    """A replacement of the snapshot writer's thread that runs its work when the schedule says so.

    A snapshot can be in flight while the stream goes on, and still every run of a seed is the same.
    """

    def __init__(self) -> None:
        self._held: tuple[Future[int], Callable[[], int]] | None = None

    def submit(self, work: Callable[..., int], *arguments: object) -> Future[int]:
        """Hold a piece of work until `let`."""
        future: Future[int] = Future()
        self._held = future, lambda: work(*arguments)
        return future

    def let(self) -> None:
        """Run the held work; an exception goes into the future, as in a thread."""
        if self._held is not None:
            (future, work), self._held = self._held, None
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - includes Crash
                future.set_exception(error)


class Life:
    """One process, and the faults that happen to it."""

    def __init__(self, schedule: Schedule, *, spared: bool) -> None:
        draw = schedule.draw
        self.schedule = schedule
        self.thread = HeldThread()
        self.polls_left = -1 if spared or draw.random() < 0.5 else draw.randrange(8)
        schedule.disk.arm(None if spared or draw.random() < 0.5 else _disk_fault(draw))

    def before_a_poll(self) -> None:
        """At random, die, lose the broker, or write a held snapshot."""
        draw = self.schedule.draw
        if self.polls_left == 0:
            self.schedule.disk.dead = True
            raise Crash
        self.polls_left -= 1
        if draw.random() < self.schedule.faults / 4:
            raise TransportError("The broker did not answer.")
        if draw.random() < 0.7:
            self.thread.let()

    def run(self) -> Summary:
        """Run the engine from recovery to the end of the log, or until it dies."""
        engine = self.schedule.engine(self)
        writer = engine.snapshots.writer
        writer._thread.shutdown()
        writer._thread = cast("Any", self.thread)
        writer.wait = self.thread.let  # type: ignore[method-assign]
        try:
            return engine.run()
        except DataError:  # the end was reached, and all that this life read was refused
            return engine.summary
        finally:
            if not self.schedule.disk.dead:  # a process that lives finishes the snapshot in flight
                self.thread.let()
                writer.store.close()


def _disk_fault(draw: random.Random) -> Fault:
    kinds: list[int | str] = ["kill", "kill", "kill", "short", errno.EIO, errno.ENOSPC]
    what = draw.choice(kinds)
    return Fault(draw.randrange(1, 80), what, sticky=draw.random() < 0.3)


class Schedule:
    """A stream, its disk and broker, and the faults drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.partitions = self.draw.choice([1, 1, 3])
        self.stream = self.draw.randrange(STREAMS)
        self.log = stream(self.stream, self.partitions)
        self.disk = FaultyDisk()
        self.broker = Broker(self.partitions)
        self.interval = self.draw.randrange(1, 9)
        self.keep = self.draw.randrange(1, 4)
        self.faults = self.draw.choice([0.0, 0.1, 0.4])
        self.newest: tuple[int, Mapping[int, int]] | None = None
        self.lives = 0
        self.deaths = Counter[str]()
        self._cuts = self.draw.random() < 0.7
        self.once = self.draw.random() < 0.3
        self.interval_ms = self.draw.choice([0, 100])

    def live(self) -> Summary:
        """Run lives until one reaches the end of the stream; after `LIVES_MAX` lives there are no faults."""
        while True:
            self.lives += 1
            spared = self.lives > LIVES_MAX
            if spared:
                self.faults = 0.0
            try:
                return Life(self, spared=spared).run()
            except (Crash, DeliveryError, TransportError, StorageError) as error:
                self.deaths[type(error).__name__] += 1
                power = self.disk.dead and self._cuts and self.draw.random() < 0.7
                self.deaths["power cut"] += power
                self.disk.restart(self.draw if power else None)
                self._check_loadable()

    def engine(self, life: Life) -> Engine:
        """Return the engine of a new process, which has learned nothing yet."""
        clock = MemoryClock()
        scores, aside = (
            FaultySink(log, self.broker, self.draw, self.faults / 2, once=self.once)
            for log in (self.broker.scores, self.broker.aside)
        )
        transactions = FaultyTransactions(self.broker, [scores, aside], self.draw, self.faults / 2)
        return assemble(
            model=Model("test", model_of(self.stream, self.partitions), DECODER),
            source=cast("Source", FaultySource(self.log, life.before_a_poll)),
            sink=scores,
            dead_letters=DeadLetters(aside, cast("Clock", clock), DeadLetterLimits(ratio_max=1.0)),
            store=Store(self),
            transactions=transactions if self.once else None,
            settings=EngineSettings(
                start="earliest",
                batch_records_max=self.draw.randrange(1, 9),
                scores="exactly_once" if self.once else "at_least_once",
            ),
            snapshots=SnapshotSettings(),
            pace=Pace(snapshot_interval_records=self.interval, transaction_interval_ms=self.interval_ms),
            output=Output(state=True),
            clock=clock,
            metrics=METRICS,
            evaluation=LiveEvaluation(),
            until_end=True,
        )

    def checked_write(self, snapshot: Snapshot, write: Any) -> int:  # noqa: ANN401 - the directory's own
        """Write a snapshot, and check I5, I6 and I8."""
        offsets = _offsets(snapshot)
        before = {(n, offset) for n, end in offsets.items() for offset in range(end)}
        assert before <= self.broker.acknowledged, f"I8 {before - self.broker.acknowledged}"
        self._check_state(snapshot)
        sequence = int(write(snapshot))
        if self.newest is not None:
            assert sequence > self.newest[0], "I6"
            assert all(end >= self.newest[1].get(n, 0) for n, end in offsets.items()), "I6"
        self.newest = sequence, offsets
        return sequence

    def _check_loadable(self) -> None:
        """Check every snapshot that can be loaded after a death, and that the newest one is still there."""
        loaded = []
        for name, data in self.disk.visible(str(HOME)).items() if self.disk.path.isdir(HOME) else ():
            if name.endswith(".snb") and not name.startswith("."):
                with suppress(StorageError):
                    loaded.append(snapshot_file.decode(data))
        for snapshot in loaded:
            self._check_state(snapshot)
        newest = max(loaded, key=lambda snapshot: snapshot.sequence, default=None)
        if self.newest is not None:  # a snapshot reported as kept must survive any power cut
            assert newest is not None, "I5"
            assert newest.sequence >= self.newest[0], "I6"

    def _check_state(self, snapshot: Snapshot) -> None:
        offsets = _offsets(snapshot)
        truth = digest_of(
            self.stream, self.partitions, tuple(offsets.get(n, 0) for n in range(self.partitions))
        )
        kind = "all" if self.partitions == 1 else "order_free"
        assert snapshot.digest[kind] == truth[kind], f"I5 at {offsets}"
        assert all(account.balance() == 0 for account in snapshot.accounts.values()), "I7"

    def check(self, summary: Summary) -> None:
        """Check the invariants at the end of the stream."""
        ends = tuple(self.log.end)
        kind = "all" if self.partitions == 1 else "order_free"
        assert summary.digest[kind] == digest_of(self.stream, self.partitions, ends)[kind], "I1"
        scored: dict[tuple[int, int], set[bytes]] = {}
        for n in range(self.partitions):
            for record in self.broker.scores.records(n):
                assert record.value is not None
                score = orjson.loads(record.value)
                source = score["source"]
                address = source["partition"], source["offset"]
                assert score["state"][f"{source['topic']}-{address[0]}"] == address[1], "I4"
                scored.setdefault(address, set()).add(record.value)
        aside = [
            address_of(record.value, record.headers)
            for n in range(self.partitions)
            for record in self.broker.aside.records(n)
        ]
        every = {(n, offset) for n, end in enumerate(ends) for offset in range(end)}
        assert scored.keys() | {*aside} == every, f"I2 {every - scored.keys() - {*aside}}"
        assert not scored.keys() & {*aside}, "I2"
        assert not self.once or sum(self.broker.scores.end) + len(aside) == len(every), "I2 once"
        if self.partitions == 1:
            truth = scores_of(self.stream)
            assert all(values == {truth[offset]} for (_, offset), values in scored.items()), "I3, I4"
        for partition, account in summary.accounts.items():
            values = [record.value for record in self.log.records(partition.number)]
            assert (account.start, account.next_offset) == (0, len(values)), "I7"
            assert account.tombstones == values.count(None), "I7"
            assert account.unreadable == values.count(UNREADABLE), "I7"
            assert account.scored == sum(address[0] == partition.number for address in scored), "I7"


def _offsets(snapshot: Snapshot) -> Mapping[int, int]:
    return {partition.number: account.next_offset for partition, account in snapshot.accounts.items()}


@cache
def stream(number: int, partitions: int) -> MemoryLog:
    """Return a log of six to seventeen records, some of them unusable."""
    draw, log = random.Random(f"{number}/{partitions}"), MemoryLog(partitions)
    for i in range(draw.randrange(6, 18)):
        fields = {
            "id": f"m-{i}",
            "text": " ".join(draw.choices(WORDS, k=draw.randrange(5))),
            "label": draw.choice(["spam", "ham", "list", None]),
        }
        value = draw.choice(POISON) if draw.random() < 0.15 else orjson.dumps(fields)
        log.append(value, draw.randrange(partitions), timestamp_ms=1000 * draw.randrange(i, i + 20))
    return log


def model_of(number: int, partitions: int) -> NaiveBayes:
    """Return a new model for a stream."""
    return NaiveBayes(TEXT_ONLY, **(MODELS[number % len(MODELS)] if partitions == 1 else {}))


@cache
def digest_of(number: int, partitions: int, ends: tuple[int, ...]) -> dict[str, str]:
    """Return the digest of a model that learned each partition's records before `ends`, one at a time."""
    model, log = model_of(number, partitions), stream(number, partitions)
    for record in log.elements:
        if isinstance(record, MemoryRecord) and record.offset < ends[record.partition]:
            model.step(_decoded(record)[0], score=False)
    return model.digest()


@cache
def scores_of(number: int) -> dict[int, bytes]:
    """Return the score of each offset of a stream of one partition, computed in a plain loop."""
    model, found = model_of(number, 1), {}
    for record in stream(number, 1).elements:
        assert isinstance(record, MemoryRecord)
        batch, ids = _decoded(record)
        if len(batch.labels):
            (found[record.offset],) = encode_scores(
                model.step(batch),
                ids=ids,
                model="test",
                partition=Partition("memory", 0),
                offsets=[record.offset],
                states=[{"memory-0": record.offset}],
            )
    return found


def _decoded(record: MemoryRecord) -> tuple[Batch, list[str | int | None]]:
    partition = Partition("memory", record.partition)
    times, after = [record.timestamp_ms], record.offset + 1
    one = RecordBatch(partition, [record.offset], [record.value], [None], times, [()], after)
    messages = DECODER.decode(one)
    return messages.batch, messages.ids


def simulate(seed: int) -> Schedule:
    """Run one schedule; raise `AssertionError` with the invariant that did not hold."""
    schedule = Schedule(seed)
    with in_place_of_the_disk(schedule.disk):
        schedule.check(schedule.live())
    return schedule


def campaign(seeds: Sequence[int]) -> tuple[list[str], Counter[str]]:
    """Run many schedules.

    Returns
    -------
    list of str
        A line for each seed that broke an invariant.
    Counter of str
        How lives ended, over all schedules.
    """
    broken, deaths = [], Counter[str]()
    logging.disable(logging.CRITICAL)
    try:
        for seed in seeds:
            try:
                deaths += simulate(seed).deaths
            except Exception as error:  # noqa: BLE001 - any error is a finding
                broken.append(f"seed {seed}: {error!r}")
    finally:
        logging.disable(logging.NOTSET)
    return broken, deaths


def main() -> None:
    """Run the simulation, print the broken invariants, and fail if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    wanted = parser.parse_args()
    began_s = time.perf_counter()
    broken, deaths = campaign(range(wanted.seed, wanted.seed + wanted.runs))
    for line in broken:
        print(line)
    rate = wanted.runs / (time.perf_counter() - began_s)
    print(
        f"{wanted.runs} schedules from seed {wanted.seed}: {len(broken)} broken; {dict(deaths)}; {rate:.0f}/s"
    )
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
