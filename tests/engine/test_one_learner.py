"""One learner per snapshot directory: a second is refused, and one that lost the lock writes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streamnb.base.snapshot import Snapshot
from streamnb.errors import FencedError, StorageError
from streamnb.storage.directory import SnapshotDirectory
from streamnb.storage.lock import lock_directory

HOLD = """
import sys
from pathlib import Path
from streamnb.storage.directory import SnapshotDirectory
from tests.engine.test_one_learner import EMPTY
store = SnapshotDirectory(Path(sys.argv[1]))
print(store.write(EMPTY), flush=True)
sys.stdin.readline()
print(store.write(EMPTY), flush=True)
"""
EMPTY = Snapshot({}, {}, {}, {}, {}, {})


def holder(directory: Path) -> subprocess.Popen[str]:
    """Start a process that holds the directory, writes a snapshot, and a second one on a line of input."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    return process


def test_B11_a_second_learner_is_refused_and_told_who_holds_the_directory(tmp_path: Path) -> None:
    """The error names its process and machine, even while the first one is stopped."""
    process = holder(tmp_path)
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(StorageError, match=f"another learner; the lock file names process {process.pid} on "):
        SnapshotDirectory(tmp_path)
    process.send_signal(signal.SIGCONT)
    process.communicate("\n")

    SnapshotDirectory(tmp_path).close()


def test_the_one_before_is_killed_and_the_next_has_the_next_epoch(tmp_path: Path) -> None:
    """Nobody has to remove a stale lock by hand."""
    epochs = []
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stdout.readline()
        process.kill()
        process.communicate()
        with lock_directory(tmp_path) as lock:
            epochs.append(lock.epoch)

    assert epochs == [2, 4]


def test_B12_a_learner_whose_directory_was_moved_and_taken_over_publishes_nothing_there(
    tmp_path: Path,
) -> None:
    """Its directory was moved and made again while it was stopped: its lock is on the old one."""
    directory = tmp_path / "snapshots"
    process = holder(directory)
    process.send_signal(signal.SIGSTOP)
    directory.rename(tmp_path / "moved")
    store = SnapshotDirectory(directory)
    store.write(EMPTY)
    process.send_signal(signal.SIGCONT)
    said, errors = process.communicate("\n")

    assert said == ""
    assert "FencedError" in errors
    assert f"process {os.getpid()} on" in errors
    assert store.write(EMPTY) == 2
    assert sorted(path.name for path in directory.glob(".*.tmp")) == []
    store.close()


def test_a_lock_that_the_file_system_let_slip_is_noticed(tmp_path: Path) -> None:
    """On a network file system two may hold the lock; then the later epoch counts."""
    store = SnapshotDirectory(tmp_path)
    store.write(EMPTY)
    (tmp_path / "lock").write_bytes(b"epoch 9, process 1 on elsewhere since yesterday\n")
    with pytest.raises(FencedError, match="the lock file names process 1 on elsewhere since yesterday"):
        store.write(EMPTY)
    store.close()

    assert len(list(tmp_path.glob("*.snb"))) == 1


def test_a_lock_file_of_an_earlier_version_is_taken_over(tmp_path: Path) -> None:
    """That file was empty."""
    (tmp_path / "lock").touch()
    with lock_directory(tmp_path) as lock:
        assert lock.epoch == 1
        lock.check()
