"""The snapshot writer writes one snapshot at a time in a thread; its result is collected later."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from streamnb.base.offsets import Account
from streamnb.base.record import Partition
from streamnb.base.snapshot import Snapshot
from streamnb.engine.metrics import Metrics
from streamnb.engine.settings import Pace, SnapshotSettings
from streamnb.engine.snapshot_writer import SnapshotWriter
from streamnb.errors import PathError, StorageError
from streamnb.transports.memory import MemoryClock

ACCOUNTS = {Partition("mail", 0): Account(0, 5, scored=5)}


class HeldStore:
    """A store that waits for permission to write, and first raises the given errors, one per write."""

    def __init__(self, *errors: Exception) -> None:
        self.written: list[Snapshot] = []
        self.threads: list[str] = []
        self.let = threading.Semaphore(0)
        self._errors = list(errors)

    def newest(self) -> Snapshot | None:
        """Fail: the writer never reads."""
        raise AssertionError

    def write(self, snapshot: Snapshot) -> int:
        """Wait for permission, then keep the snapshot or raise the next error."""
        assert self.let.acquire(timeout=30)
        self.threads.append(threading.current_thread().name)
        if self._errors:
            raise self._errors.pop(0)
        self.written.append(snapshot)
        return len(self.written)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def example() -> Snapshot:
    """Return a snapshot whose digest is not known yet."""
    return Snapshot({"learned": 5}, {}, {}, {}, {}, {}, accounts=dict(ACCOUNTS))


def a_digest() -> dict[str, str]:
    """Return the name of the thread that computes the digest."""
    return {"all": threading.current_thread().name}


def confirmed() -> bool:
    """Return that the snapshot may be kept."""
    return True


class Bench:
    """A writer, its store, its clock and its metrics."""

    def __init__(self, *errors: Exception) -> None:
        self.store = HeldStore(*errors)
        self.clock = MemoryClock()
        self.metrics = Metrics()
        pace = Pace(snapshot_interval_records=100, snapshot_failures_max=2)
        self.writer = SnapshotWriter(self.store, SnapshotSettings(), pace, self.clock, self.metrics)

    def through(self) -> None:
        """Write one snapshot and wait for it."""
        self.store.let.release()
        self.writer.begin(example(), a_digest, confirmed)
        self.writer.wait()

    def counted(self, outcome: str) -> float | None:
        """Return the number of snapshots with this outcome."""
        return self.metrics.registry.get_sample_value("streamnb_snapshots_total", {"outcome": outcome})


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Return a bench whose thread ends with the test."""
    bench = Bench()
    yield bench
    bench.store.let.release(9)
    bench.writer.close()


def writers() -> list[str]:
    """Return the names of the threads that write snapshots."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("streamnb-snapshot")]


def test_a_snapshot_is_collected_once_and_only_when_it_is_kept(bench: Bench) -> None:
    """It has its number and positions; collecting never waits."""
    assert bench.writer.collect() is None
    bench.writer.begin(example(), a_digest, confirmed)
    assert bench.writer.collect() is None
    bench.store.let.release()
    bench.writer.wait()
    assert bench.writer.collect() == (1, ACCOUNTS)
    assert bench.writer.collect() is None
    assert (bench.counted("kept"), bench.counted("failed")) == (1.0, None)


def test_the_digest_is_the_threads_work(bench: Bench) -> None:
    """The written snapshot holds the digest."""
    bench.through()
    (thread,) = bench.store.threads
    assert thread != threading.current_thread().name
    assert [snapshot.digest for snapshot in bench.store.written] == [{"all": thread}]


def test_the_next_is_due_by_time_or_records_but_not_while_one_is_in_flight(bench: Bench) -> None:
    """The interval begins when the snapshot before was begun."""
    bench.writer.schedule()
    assert not bench.writer.is_due(99)
    assert bench.writer.is_due(100)
    bench.clock.advance(30.0)
    assert bench.writer.is_due(0)
    bench.writer.begin(example(), a_digest, confirmed)
    bench.clock.advance(31.0)
    assert not bench.writer.is_due(1000)
    bench.store.let.release()
    bench.writer.wait()
    bench.writer.collect()
    assert bench.writer.is_due(0)
    bench.through()
    bench.writer.collect()
    assert not bench.writer.is_due(0)


def test_a_refusal_is_forgiven_until_there_were_too_many_in_a_row() -> None:
    """A successful write resets the count; after a failure a whole interval passes."""
    refusals = [StorageError(f"No {i}.") for i in range(3)]
    bench = Bench(refusals[0])
    for refusal in (refusals[0], None, refusals[1], refusals[2]):
        bench.store._errors = [refusal] if refusal else []
        bench.clock.advance(60.0)
        bench.through()
        if refusal is None:
            assert bench.writer.collect() is not None
            continue
        with pytest.raises(StorageError, match=refusal.what):
            bench.writer.collect()
        if refusal is refusals[2]:
            with pytest.raises(StorageError, match=r"No 2\."):
                bench.writer.forgive(refusal)
            continue
        bench.clock.advance(29.0)
        bench.writer.forgive(refusal)
        bench.clock.advance(29.0)
        assert not bench.writer.is_due(0)
    assert (bench.counted("kept"), bench.counted("failed")) == (1.0, 3.0)
    bench.writer.close()


def test_a_directory_that_is_gone_is_a_fault_of_the_disk_and_not_of_the_settings() -> None:
    """It was there at the start: a volume that was unmounted has the exit code of a disk, 74."""
    bench = Bench(PathError("Cannot write snapshots/7: No such file or directory."))
    bench.through()
    with pytest.raises(StorageError, match="No such file") as caught:
        bench.writer.collect()
    assert caught.value.exit_code == 74
    bench.writer.close()


def test_whatever_goes_wrong_in_the_thread_is_raised_where_it_is_collected() -> None:
    """An error in the thread must not get lost."""
    bench = Bench(ZeroDivisionError("ours"))
    bench.through()
    with pytest.raises(ZeroDivisionError, match="ours"):
        bench.writer.collect()
    bench.writer.close()


@pytest.mark.parametrize("error", [None, StorageError("The disk is full.")])
def test_closing_ends_what_is_in_flight_and_the_thread(
    error: StorageError | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The snapshot is then in the store, or its error in the log."""
    bench = Bench(*([] if error is None else [error]))
    before = len(writers())
    bench.writer.begin(example(), a_digest, confirmed)
    assert len(writers()) == before + 1
    threading.Timer(0.05, bench.store.let.release).start()
    with caplog.at_level(logging.ERROR, logger="streamnb.snapshot_writer"):
        bench.writer.close()
    assert len(writers()) == before
    assert len(bench.store.written) == (error is None)
    assert ("The disk is full." in caplog.text) == (error is not None)
    bench.writer.close()


STUCK = """
import threading
from streamnb.engine.metrics import Metrics
from streamnb.base.snapshot import Snapshot
from streamnb.engine.snapshot_writer import SnapshotWriter
from streamnb.engine.settings import Pace, SnapshotSettings
from streamnb.engine.signals import StopOnSignals
from streamnb.transports.memory import MemoryClock

class Store:
    def write(self, snapshot):
        print("begun", flush=True)
        threading.Event().wait()

writer = SnapshotWriter(Store(), SnapshotSettings(), Pace(), MemoryClock(), Metrics())
with StopOnSignals(lambda: None, 0.2):
    writer.begin(Snapshot({}, {}, {}, {}, {}, {}), dict, lambda: True)
    writer.close()
"""


@pytest.mark.timeout(60)
def test_a_stop_past_its_deadline_ends_the_process_although_a_disk_hangs() -> None:
    """It exits with code 75, although the thread is in the middle of a write."""
    with subprocess.Popen(
        [sys.executable, "-c", STUCK], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 75
    assert b"did not stop within 0.2 s; the last snapshot stays in force" in said
