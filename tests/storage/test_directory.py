"""The snapshot directory: which snapshot is in force, which ones stay, and how damaged ones are handled."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.snapshot import Snapshot
from streamnb.engine.settings import SnapshotSettings
from streamnb.errors import SnapshotError, StorageError
from streamnb.storage import files, inspect_directory, pin, read_snapshot, unpin, write_snapshot
from streamnb.storage.directory import SnapshotDirectory
from streamnb.storage.retention import Listed, expired


def example(learned: int = 0) -> Snapshot:
    """Return a snapshot that `learned` distinguishes from others."""
    return Snapshot(
        values={"learned": learned},
        sections={"counts": np.array([[float(learned)]])},
        digest={"all": "0"},
        statistics={},
        reading={},
        settings={},
    )


def names(directory: Path) -> list[str]:
    """Return the sorted names in a directory, without the lock."""
    return sorted(path.name for path in directory.iterdir() if path.name != "lock")


def filled(directory: Path, n: int, keep: int = 3) -> SnapshotDirectory:
    """Return a directory to which n snapshots were written."""
    store = SnapshotDirectory(directory, keep)
    for i in range(1, n + 1):
        assert store.write(example(i)) == i
    return store


def replace(path: Path, data: bytes) -> None:
    """Replace a file by one with other content and the same name."""
    path.unlink()
    path.write_bytes(data)


def learned(store: SnapshotDirectory) -> object:
    """Return the number by which the newest snapshot can be recognized."""
    newest = store.newest()
    return None if newest is None else newest.values["learned"]


def test_an_empty_directory_has_no_snapshot(tmp_path: Path) -> None:
    """A missing directory is created with its parents."""
    store = SnapshotDirectory(tmp_path / "a" / "b")
    assert store.newest() is None
    assert names(tmp_path / "a" / "b") == []
    store.close()


def test_numbers_rise_and_three_are_kept(tmp_path: Path) -> None:
    """Numbers continue after a restart."""
    store = filled(tmp_path, 5)
    assert names(tmp_path) == [f"snapshot-000000000{i}.snb" for i in (3, 4, 5)]
    store.close()
    store = SnapshotDirectory(tmp_path)
    newest = store.newest()
    assert newest is not None
    assert (newest.sequence, newest.values["learned"]) == (5, 5)
    assert store.write(example(6)) == 6
    assert names(tmp_path)[0] == "snapshot-0000000004.snb"
    store.close()


@pytest.mark.parametrize("too_much", ["header", "sections"])
def test_F3_a_snapshot_that_no_reader_accepts_does_not_replace_a_good_one(
    tmp_path: Path, too_much: str
) -> None:
    """It is refused before anything is pruned, and nothing of it is left."""
    store = filled(tmp_path, 2, keep=1)
    broken = example(3)
    if too_much == "header":
        broken.values["windows"] = "a" * (1 << 24)
    else:
        broken.sections |= {f"block{i}": np.zeros(1) for i in range(64)}
    for _ in range(2):
        with pytest.raises(SnapshotError, match="no reader would accept it"):
            store.write(broken)

    assert names(tmp_path) == ["snapshot-0000000002.snb"]
    assert learned(store) == 2
    store.close()


def test_F16_numbers_past_ten_digits_are_in_order(tmp_path: Path) -> None:
    """Sorted as text, the 10,000,000,000th snapshot would be the oldest: pruned at once, never resumed."""
    store = filled(tmp_path, 1)
    (tmp_path / "snapshot-0000000001.snb").rename(tmp_path / "snapshot-9999999999.snb")
    assert [store.write(example(n)) for n in (2, 3, 4)] == [10**10, 10**10 + 1, 10**10 + 2]

    assert learned(store) == 4
    assert names(tmp_path) == [f"snapshot-1000000000{i}.snb" for i in range(3)]
    store.close()


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_as_many_are_kept_as_was_asked_for(tmp_path: Path, keep: int) -> None:
    """The newest `keep` snapshots stay."""
    filled(tmp_path, 6, keep).close()
    assert names(tmp_path) == [f"snapshot-000000000{i}.snb" for i in range(7 - keep, 7)]


@pytest.mark.parametrize("damage", ["torn", "empty", "zeros", "flipped", "pickle"])
def test_a_torn_newest_falls_back_to_the_one_before(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning names the damaged file, and its number is not used again."""
    store = filled(tmp_path, 3)
    newest = tmp_path / "snapshot-0000000003.snb"
    data = newest.read_bytes()
    replace(
        newest,
        {
            "torn": data[:-1],
            "empty": b"",
            "zeros": bytes(len(data)),
            "flipped": data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
            "pickle": b"\x80\x04K\x01.",
        }[damage],
    )
    with caplog.at_level(logging.WARNING, logger="streamnb.snapshots"):
        assert learned(store) == 2
    assert [str(newest) in message for message in caplog.messages] == [True]
    assert store.write(example(9)) == 4
    assert learned(store) == 9
    store.close()


def test_none_whole_is_refused(tmp_path: Path) -> None:
    """An error names the directory; starting over silently would lose everything that was learned."""
    store = filled(tmp_path, 3)
    for name in names(tmp_path):
        replace(tmp_path / name, b"")
    with pytest.raises(SnapshotError, match=r"None of the 3 snapshots in .* can be used") as caught:
        store.newest()
    assert str(tmp_path) in caught.value.what
    assert "--rebuild" in caught.value.hint
    store.close()


@pytest.mark.parametrize(
    "name",
    [
        "README",
        "notes.snb",
        "snapshot-.snb",
        "snapshot-7.snb",
        "snapshot-٣.snb",
        "snapshot--000000001.snb",
        "snapshot-0000000009.snb.bak",
        "xsnapshot-0000000009.snb",
        ".snapshot-0000000009.snb",
        "snapshot-00000000099.snb",
    ],
)
def test_a_foreign_file_is_left_alone(tmp_path: Path, name: str) -> None:
    """Files with other names are not read, counted or removed."""
    store = filled(tmp_path, 3)
    (tmp_path / name).write_bytes(b"foreign")
    assert learned(store) == 3
    assert store.write(example(4)) == 4
    assert (tmp_path / name).read_bytes() == b"foreign"
    assert len(names(tmp_path)) == 4
    store.close()


def test_G8_a_link_in_a_snapshots_place_is_refused(tmp_path: Path) -> None:
    """A link could lead anywhere, and a directory is not a snapshot either."""
    store = filled(tmp_path, 1)
    (tmp_path / "snapshot-0000000002.snb").symlink_to(tmp_path / "snapshot-0000000001.snb")
    with pytest.raises(StorageError, match="snapshot-0000000002"):
        store.newest()
    (tmp_path / "snapshot-0000000002.snb").unlink()
    (tmp_path / "snapshot-0000000002.snb").mkdir()
    with pytest.raises(StorageError, match="is not a regular file"):
        store.newest()
    store.close()


def test_a_snapshot_is_never_overwritten(tmp_path: Path) -> None:
    """`write_snapshot`, which takes no lock, does not overwrite one either."""
    path = tmp_path / "begun.snb"
    assert write_snapshot(path, example(1)) == path.stat().st_size
    with pytest.raises(StorageError, match="exists"):
        write_snapshot(path, example(2))
    assert read_snapshot(path).values == {"learned": 1}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The error names a file that is missing or is not a snapshot."""
    path = tmp_path / "a.snb"
    with pytest.raises(StorageError, match="No such file"):
        read_snapshot(path)
    path.write_bytes(b"{}")
    with pytest.raises(SnapshotError, match="does not begin like a snapshot") as caught:
        read_snapshot(path)
    assert str(path) in caught.value.what


def test_what_a_crash_left_half_written_is_swept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The next start removes a half-written file, which never had a snapshot's name."""
    filled(tmp_path, 2).close()
    left = tmp_path / ".snapshot-0000000003.snb.tmp"
    left.write_bytes(b"\x89SNB")
    with caplog.at_level(logging.INFO, logger="streamnb.snapshots"):
        store = SnapshotDirectory(tmp_path)
    assert str(left) in caplog.text
    assert not left.exists()
    assert learned(store) == 2
    assert store.write(example(3)) == 3
    store.close()


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir])
@pytest.mark.parametrize(
    "name", [".notes.tmp", ".snapshot-1.snb.tmp", ".snapshot-0000000009.snb.new.tmp", ".lock.tmp"]
)
def test_F16_a_foreign_temporary_file_is_not_swept(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    """Another program may use the directory too."""
    make(tmp_path / name)
    filled(tmp_path, 2).close()

    assert (tmp_path / name).exists()


def test_F16_a_directory_in_a_temporary_files_place_does_not_block_the_start(tmp_path: Path) -> None:
    """It is left alone, and the snapshots before it can be read."""
    filled(tmp_path, 2).close()
    (tmp_path / ".snapshot-0000000003.snb.tmp").mkdir()
    (tmp_path / ".snapshot-0000000002.snb.pinned.tmp").touch()
    store = SnapshotDirectory(tmp_path)

    assert learned(store) == 2
    with pytest.raises(StorageError, match=r"Cannot create .*\.snapshot-0000000003\.snb\.tmp"):
        store.write(example(3))
    assert not (tmp_path / ".snapshot-0000000002.snb.pinned.tmp").exists()
    store.close()


def state_of(directory: Path) -> list[tuple[str, int, int]]:
    """Return names, sizes and times of change of everything in a directory."""
    found = [(path, path.lstat()) for path in sorted(directory.rglob("*"))]
    return [(str(path), status.st_size, status.st_mtime_ns) for path, status in found]


def test_F16_an_inspection_changes_nothing(tmp_path: Path) -> None:
    """It finds what a learner would find, creates no directory and removes no file."""
    assert inspect_directory(tmp_path / "absent" / "a") is None
    assert state_of(tmp_path) == []
    store = filled(tmp_path / "kept", 2)
    with pytest.raises(StorageError, match="in use by another learner"):
        inspect_directory(tmp_path / "kept")
    store.close()
    (tmp_path / "kept" / ".snapshot-0000000003.snb.tmp").touch()
    before = state_of(tmp_path)
    newest = inspect_directory(tmp_path / "kept")

    assert newest is not None
    assert newest.values == {"learned": 2}
    assert state_of(tmp_path) == before


HOLDER = """
import sys
from pathlib import Path
from streamnb.storage.directory import SnapshotDirectory
store = SnapshotDirectory(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_directory_held_by_another_process_is_refused(tmp_path: Path) -> None:
    """The holder's half-written file is not removed, and the directory is free once the holder was killed."""
    filled(tmp_path, 1).close()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        writing = tmp_path / ".snapshot-0000000002.snb.tmp"
        writing.write_bytes(b"")
        with pytest.raises(StorageError, match="in use by another learner") as caught:
            SnapshotDirectory(tmp_path)
        assert str(tmp_path) in caught.value.what
        assert writing.exists()
        holder.kill()
    store = SnapshotDirectory(tmp_path)
    assert learned(store) == 1
    store.close()
    store.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"interval_s": 0.0},
        {"interval_s": float("nan")},
        {"keep": 0},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    """Intervals must be above 0, and at least one snapshot must be kept."""
    with pytest.raises(ValueError, match="must be"):
        SnapshotSettings(**wrong)  # type: ignore[arg-type]


# ---- which ones stay

HOUR = 3_600_000


@given(
    times=st.lists(st.integers(0, 40 * HOUR), min_size=1, max_size=60).map(sorted),
    pinned=st.sets(st.integers(0, 59)),
    keep=st.integers(1, 5),
    hours=st.integers(0, 30),
)
def test_the_newest_the_hourly_and_the_pinned_stay(
    times: list[int], pinned: set[int], keep: int, hours: int
) -> None:
    """No others stay, and pruning after each snapshot keeps the same ones as pruning once at the end."""
    held = [Listed(n, at, n in pinned) for n, at in enumerate(times)]
    stay = {one.sequence for one in held} - set(expired(held, keep, hours))

    assert set(range(len(times))[-keep:]) <= stay
    assert pinned & set(range(len(times))) <= stay
    others = stay - pinned - set(range(len(times))[-keep:])
    of_hours = [times[n] // HOUR for n in others]
    assert len(set(of_hours)) == len(of_hours) <= hours
    assert all(times[-1] // HOUR - hour < hours for hour in of_hours)
    one_by_one: list[Listed] = []
    for one in held:
        one_by_one.append(one)
        gone = set(expired(one_by_one, keep, hours))
        one_by_one = [left for left in one_by_one if left.sequence not in gone]
    assert {one.sequence for one in one_by_one} == stay


def test_of_an_hour_the_first_snapshot_stays() -> None:
    """It is the one from before most of what was learned in that hour, whenever a snapshot is written."""
    held = [Listed(n, 10 * HOUR + n * HOUR // 4) for n in range(8)]  # two hours of four snapshots
    assert expired(held, keep=1, keep_hours=2) == [1, 2, 3, 5, 6]
    assert expired(held, keep=1, keep_hours=1) == [0, 1, 2, 3, 5, 6]


def aged(directory: Path, sequence: int, hours: float) -> None:
    """Make a snapshot look `hours` older."""
    path = directory / f"snapshot-{sequence:010d}.snb"
    then = path.stat().st_mtime - 3600 * hours
    os.utime(path, (then, then))


def test_an_hourly_and_a_pinned_snapshot_outlive_the_newest_three(tmp_path: Path) -> None:
    """The hourly one stays until 24 hours have passed, the pinned one until it is unpinned."""
    store = SnapshotDirectory(tmp_path, 3, keep_hours=24)
    for i in range(1, 4):
        store.write(example(i))
    pin(tmp_path, 2)
    pin(tmp_path, 2)
    aged(tmp_path, 1, 5)
    aged(tmp_path, 2, 4.9)
    for i in range(4, 9):
        store.write(example(i))
    kept = [int(name[9:19]) for name in names(tmp_path) if name.endswith(".snb")]
    assert {1, 2, 6, 7, 8} <= set(kept)
    assert len(kept) <= 6, "one more if a new hour begins during this test"
    unpin(tmp_path, 2)
    aged(tmp_path, 1, 25)
    store.write(example(9))
    kept = [int(name[9:19]) for name in names(tmp_path) if name.endswith(".snb")]
    assert 1 not in kept
    with pytest.raises(StorageError, match="No such file"):
        pin(tmp_path, 1)
    with pytest.raises(StorageError, match="No such file"):
        unpin(tmp_path, 7)
    store.close()


def test_what_cannot_be_removed_does_not_undo_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The new snapshot is in force even if an expired one cannot be removed."""
    store = filled(tmp_path, 3)

    def refuse(path: Path) -> None:
        raise StorageError(f"Cannot remove {path}: Input/output error.")

    with monkeypatch.context() as patch:
        patch.setattr(files, "remove", refuse)
        assert store.write(example(4)) == 4
    assert "an expired snapshot was not removed. Cannot remove" in caplog.text
    assert learned(store) == 4
    assert store.write(example(5)) == 5
    assert len(names(tmp_path)) == 3
    store.close()


def test_rolling_back_puts_a_kept_snapshot_in_force_and_the_newer_ones_aside(tmp_path: Path) -> None:
    """It gets a new number and an event in its lineage, and nothing is deleted."""
    store = filled(tmp_path, 5, keep=4)
    assert store.roll_back(3) == 6
    newest = store.newest()
    assert newest is not None
    assert (newest.sequence, newest.values["learned"]) == (6, 3)
    assert newest.lineage == [{"event": "rolled back", "to": 3, "from": 5}]
    assert names(tmp_path / "set-aside") == ["snapshot-0000000004.snb", "snapshot-0000000005.snb"]
    assert store.write(example(7)) == 7
    with pytest.raises(StorageError, match="No such file"):
        store.roll_back(5)
    assert learned(store) == 7
    store.close()


def test_a_number_that_was_set_aside_is_not_used_again(tmp_path: Path) -> None:
    """Two different snapshots with one number could be confused, even if one of them was set aside."""
    store = filled(tmp_path, 3)
    with pytest.raises(SnapshotError, match=r"Snapshot 3 in .* is intact"):
        store.set_aside_all()
    for name in names(tmp_path):
        replace(tmp_path / name, b"")
    assert len(store.set_aside_all()) == 3
    assert store.set_aside_all() == []
    assert store.newest() is None
    assert store.write(example(9)) == 4
    store.close()
