"""Files of state are published complete or not at all, whatever the disk does."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from streamnb.errors import DataError, StorageError
from streamnb.storage import files
from streamnb.storage.files import write_new
from tests.support.disk import Fault, names, run_python

CONTENT: list[bytes | memoryview] = [b"one", b"", memoryview(b"two"), b"three"]
WHOLE = b"onetwothree"


@contextmanager
def unprivileged() -> Iterator[None]:
    """Run a block without root's privileges, if the tests run as root."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


# Whole files


def test_a_file_is_read_whole_up_to_its_bound(tmp_path: Path) -> None:
    """A file of exactly `bytes_max` bytes is accepted, a longer one is refused."""
    path = tmp_path / "a"
    path.write_bytes(b"12345")

    with files.open_whole(path, 5) as file:
        held = bytearray(3)
        file.read_into(memoryview(held), 2)
        assert (file.size, bytes(held)) == (5, b"345")
    with pytest.raises(StorageError, match="No such file"), files.open_whole(tmp_path / "missing", 5):
        pass
    with (
        pytest.raises(StorageError, match="5 bytes, more than the 4 allowed"),
        files.open_whole(path, 4),
    ):
        pass


@pytest.mark.parametrize("size", [0, 3, 7])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, size: int) -> None:
    """A file that got shorter is refused while it is read, a longer one when it is closed."""
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    read: list[bytes] = []

    def read_while_it_changes() -> None:
        with files.open_whole(path, 10) as file:
            os.truncate(path, size)
            held = bytearray(5)
            file.read_into(memoryview(held), 0)
            read.append(bytes(held))

    with pytest.raises(StorageError, match="changed while it was read") as caught:
        read_while_it_changes()
    assert str(path) in caught.value.what
    assert read == ([b"12345"] if size == 7 else [])


def test_a_read_that_the_disk_gives_in_parts_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system may return fewer bytes than requested; an error of it names the path."""
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    held = bytearray(5)
    real = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, views, offset: real(fd, [views[0][:2]], offset))

    with files.open_whole(path, 5) as file:
        file.read_into(memoryview(held), 0)
        assert held == b"12345"
        monkeypatch.setattr(os, "preadv", Fault(real, errno.EIO, 2, sticky=False))
        file.read_into(memoryview(held), 0)
        with pytest.raises(StorageError, match=f"Cannot read {path}: {os.strerror(errno.EIO)}"):
            file.read_into(memoryview(held), 0)


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.symlink_to(__file__), "Too many levels of symbolic links"),
        (lambda path: path.mkdir(), "not a regular file"),
        (os.mkfifo, "not a regular file"),
    ],
    ids=["link", "directory", "pipe"],
)
def test_only_a_regular_file_is_read(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    """Links are not followed, and a pipe does not block."""
    make(tmp_path / "a")

    with pytest.raises(StorageError, match=reason) as caught, files.open_whole(tmp_path / "a", 1 << 20):
        pass
    assert str(tmp_path / "a") in caught.value.what
    assert caught.value.hint


def test_a_text_file_is_read_through_links_and_must_be_utf8(tmp_path: Path) -> None:
    """Configurations are often mounted as links; a wrong encoding is an error."""
    path, link = tmp_path / "a", tmp_path / "link"
    files.write_text(path, "naïve\n")
    link.symlink_to(path)

    assert files.read_text(link, 7) == "naïve\n"
    with pytest.raises(DataError, match="more than 6 bytes"):
        files.read_text(path, 6)
    path.write_bytes(b"ab\xff")
    with pytest.raises(DataError, match="not UTF-8 at byte 2"):
        files.read_text(path, 100)
    with pytest.raises(StorageError, match="Is a directory"):
        files.write_text(tmp_path, "")


def test_a_new_file_is_complete_private_and_read_only(tmp_path: Path) -> None:
    """Bytes and views of arrays are written unchanged and in order."""
    numbers = np.arange(3.0)
    path = tmp_path / "a.snb"

    chunks: list[bytes | memoryview] = [b"head", numbers.data, numbers.reshape(3, 1)[:0].data]
    written = write_new(path, iter(chunks))

    assert path.read_bytes() == b"head" + numbers.tobytes()
    assert written == path.stat().st_size == 28
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert path.stat().st_nlink == 1
    assert names(tmp_path) == ["a.snb"]


def test_a_name_that_exists_is_never_overwritten(tmp_path: Path) -> None:
    """A file, a dangling link, and a file created by another process while the content is written stay."""
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(b"old")
    link.symlink_to("nowhere")

    def slow() -> Iterator[bytes]:
        yield b"new"
        (tmp_path / "late").write_bytes(b"first")

    for name, chunks in (("a", iter([b"new"])), ("link", iter([b"new"])), ("late", slow())):
        with pytest.raises(StorageError, match="File exists"):
            write_new(tmp_path / name, chunks)
    assert names(tmp_path) == ["a", "late", "link"]
    assert (path.read_bytes(), (tmp_path / "late").read_bytes()) == (b"old", b"first")


def test_another_writers_temporary_file_is_left_alone(tmp_path: Path) -> None:
    """Otherwise two writers of one name could publish each other's partial content."""
    (tmp_path / ".a.tmp").write_bytes(b"theirs")

    with pytest.raises(StorageError, match=r"Cannot create .*\.a\.tmp: File exists"):
        write_new(tmp_path / "a", CONTENT)
    assert (tmp_path / ".a.tmp").read_bytes() == b"theirs"
    assert names(tmp_path) == [".a.tmp"]


@pytest.mark.parametrize("sticky", [False, True], ids=["once", "for_ever"])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS], ids=errno.errorcode.get)
@pytest.mark.parametrize(
    ("call", "reached"), [("open", 2), ("write", 3), ("fchmod", 1), ("fsync", 2), ("link", 1)]
)
def test_every_refusal_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, reached: int, number: int, *, sticky: bool
) -> None:
    """Each system call is refused in turn, and afterwards the same name can be written."""
    write_new(tmp_path / "old", CONTENT)
    for nth in range(1, reached + 1):
        with monkeypatch.context() as patch:
            fault = Fault(getattr(os, call), number, nth, sticky=sticky)
            patch.setattr(os, call, fault)
            with pytest.raises(StorageError, match=os.strerror(number)) as caught:
                write_new(tmp_path / "new", CONTENT)
            assert fault.calls == nth
        assert "new" in caught.value.what
        assert "by hand" not in caught.value.hint
        assert names(tmp_path) == ["old"]
        assert (tmp_path / "old").read_bytes() == WHOLE

    fault = Fault(getattr(os, call), number, reached + 1, sticky=sticky)
    monkeypatch.setattr(os, call, fault)
    assert write_new(tmp_path / "new", CONTENT) == len(WHOLE)
    assert fault.calls == reached


def test_what_cannot_be_removed_again_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If removing keeps failing, the hint names the files that are left."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", Fault(os.unlink, errno.EIO, 1, sticky=False))
        with pytest.raises(StorageError, match="Input/output error"):
            write_new(tmp_path / "a", CONTENT)
    assert names(tmp_path) == []

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", Fault(os.unlink, errno.EIO, 1, sticky=True))
        with pytest.raises(StorageError) as caught:
            write_new(tmp_path / "a", CONTENT)
    assert f"Remove {tmp_path / 'a'} and {tmp_path / '.a.tmp'} by hand" in caught.value.hint


def test_an_exception_in_the_content_leaves_nothing(tmp_path: Path) -> None:
    """An exception that the caller's iterator raises is passed on."""

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise MemoryError

    with pytest.raises(MemoryError):
        write_new(tmp_path / "a", broken())
    assert names(tmp_path) == []


def test_a_file_size_limit_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """The operating system refuses in the middle of a chunk."""
    write_new(tmp_path / "old", CONTENT)
    child = run_python(
        "import resource, sys; from pathlib import Path; from streamnb.storage.files import write_new\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "write_new(Path(sys.argv[1]), [b'x' * 600, b'y' * 600])",
        tmp_path / "new",
        stderr=subprocess.PIPE,
    )
    _, stderr = child.communicate()

    assert child.returncode == 1
    assert b"File too large" in stderr
    assert names(tmp_path) == ["old"]
    assert (tmp_path / "old").read_bytes() == WHOLE


KILLED = """
import os, signal, sys
from pathlib import Path
from streamnb.storage.files import write_new

path, nth, after = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "after"
calls = 0

def killed(real):
    def call(*arguments, **options):
        global calls
        calls += 1
        if calls == nth and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **options)
        if calls == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return call

for name in ("open", "write", "fchmod", "fsync", "link", "unlink"):
    setattr(os, name, killed(getattr(os, name)))
write_new(path, [b"one", b"two"])
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_at_any_call_leaves_all_or_nothing(tmp_path: Path, when: str) -> None:
    """The file is absent or complete, and a sweep removes temporary files."""
    seen = set()
    for nth in range(1, 20):
        path = tmp_path / f"{nth}.snb"
        status = run_python(KILLED, path, nth, when).wait()
        seen.add(path.exists())
        assert not path.exists() or path.read_bytes() == b"onetwo"
        files.sweep_temporary(tmp_path, lambda name: name.endswith(".snb"))
        assert all(not name.startswith(".") for name in names(tmp_path))
        if status == 0:
            break
        assert status == -signal.SIGKILL

    assert nth == 10  # nine calls: open, write twice, fchmod, fsync, link, unlink, open, fsync
    assert seen == {False, True}


# Directories


def test_a_directory_is_created_with_its_parents_and_privately(tmp_path: Path) -> None:
    """Creating it a second time does nothing."""
    path = tmp_path / "a" / "b"

    files.make_directory(path)
    files.make_directory(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_every_created_directory_is_made_durable_in_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory whose parent cannot be synced is an error, because a power cut could remove it."""
    for nth in (1, 2):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", Fault(os.fsync, errno.EIO, nth, sticky=False))
            with pytest.raises(StorageError, match="Input/output error"):
                files.make_directory(tmp_path / str(nth) / "b")


def test_a_move_and_a_replacement_are_durable_at_each_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new name is synced before the old one goes, then its absence: a power cut leaves one or both."""
    synced: list[tuple[str, list[str]]] = []
    real = files.sync_directory

    def noted(directory: Path) -> None:
        synced.append((directory.name, sorted(path.name for path in directory.iterdir())))
        real(directory)

    home = tmp_path / "home"
    files.make_directory(home / "aside")
    files.write_new(home / "a", [b"1"])
    monkeypatch.setattr(files, "sync_directory", noted)
    files.move(home / "a", home / "aside")
    assert synced == [("aside", ["a"]), ("home", ["aside"])]
    assert (home / "aside" / "a").read_bytes() == b"1"

    files.write_new(home / "b", [b"old"])
    synced.clear()
    files.write_over(home / "b", [b"new"])
    assert synced == [("home", [".b.new", "aside", "b"]), ("home", ["aside", "b"])]
    assert (home / "b").read_bytes() == b"new"


def test_what_cannot_be_a_directory_of_snapshots_is_refused(tmp_path: Path) -> None:
    """A file, a path through a file, a dangling link, and a directory that every user can write in."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)

    for name, reason in (
        ("file", "is not a directory"),
        ("file/below", "Not a directory"),
        ("link", "File exists"),
        ("open", "Every user can write"),
    ):
        with pytest.raises(StorageError, match=reason) as caught:
            files.make_directory(tmp_path / name)
        assert str(tmp_path / name) in caught.value.what


def test_an_unwritable_directory_is_refused() -> None:
    """It is refused at the start, not only at the first snapshot."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o555)
        with unprivileged(), pytest.raises(StorageError, match="This user cannot write in"):
            files.make_directory(path)
        with unprivileged(), pytest.raises(StorageError, match="Permission denied"):
            files.make_directory(path / "below")


def test_names_are_listed_by_suffix_and_files_removed(tmp_path: Path) -> None:
    """The list is sorted and without hidden names; removing a file twice is an error."""
    for name in ("b.snb", "a.snb", ".c.snb", ".d.snb.tmp", "lock"):
        (tmp_path / name).touch()

    assert files.list_names(tmp_path, ".snb") == ["a.snb", "b.snb"]
    files.remove(tmp_path / "a.snb")
    assert files.list_names(tmp_path, ".snb") == ["b.snb"]
    with pytest.raises(StorageError, match=r"Cannot remove .*a\.snb: No such file"):
        files.remove(tmp_path / "a.snb")
    with pytest.raises(StorageError, match="Cannot list"):
        files.list_names(tmp_path / "missing", ".snb")


def test_a_removal_that_is_not_durable_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory is synced after the removal, and a failure to do so is reported."""
    (tmp_path / "a").touch()
    monkeypatch.setattr(os, "fsync", Fault(os.fsync, errno.EIO, 1, sticky=False))

    with pytest.raises(StorageError, match="Input/output error"):
        files.remove(tmp_path / "a")


def test_F16_only_temporary_files_of_our_names_are_swept(tmp_path: Path) -> None:
    """Files with similar names stay, and so do directories and links."""
    for name in (".b.snb.tmp", ".a.tmp", ".a.snb.tmp", "c.tmp", ".d", "e.snb", "e.snb.tmp", ".e.snb.tmp.tmp"):
        (tmp_path / name).touch()
    (tmp_path / ".d.snb.tmp").mkdir()
    (tmp_path / ".f.snb.tmp").symlink_to(tmp_path / "e.snb")
    before = names(tmp_path)

    assert files.sweep_temporary(tmp_path, lambda name: name.endswith(".snb")) == [".a.snb.tmp", ".b.snb.tmp"]
    assert set(before) - set(names(tmp_path)) == {".a.snb.tmp", ".b.snb.tmp"}


def test_a_directory_is_checked_without_being_made(tmp_path: Path) -> None:
    """What could not be made is refused, and nothing is created."""
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "a" / "b"):
        files.make_directory(path, create=False)
    assert names(tmp_path) == ["file"]
    for path, why in (
        (tmp_path / "file", "is not a directory"),
        (tmp_path / "file" / "a", "Cannot create the directory"),
    ):
        with pytest.raises(StorageError, match=why):
            files.make_directory(path, create=False)
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        for below in (Path(name), Path(name) / "below"):
            with unprivileged(), pytest.raises(StorageError, match="his user cannot write in"):
                files.make_directory(below, create=False)
