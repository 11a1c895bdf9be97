"""The room that opens files: all or nothing, whatever the disk does."""

from __future__ import annotations

import errno
import gzip
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb import files
from streamnb.errors import DataError, DeliveryError, SettingsError, StorageError
from streamnb.files import LongLine, open_append, open_lines, write_new

CONTENT: list[bytes | memoryview] = [b"one", b"", memoryview(b"two"), b"three"]
WHOLE = b"onetwothree"


class Fault:
    """Stands before a function of `os` and refuses its n-th call, and every later one if sticky."""

    def __init__(self, real: Callable[..., object], number: int, nth: int, *, sticky: bool) -> None:
        self.real, self.number, self.nth, self.sticky = real, number, nth, sticky
        self.calls = 0

    def __call__(self, *arguments: object, **options: object) -> object:
        """Refuse, or do what the real function does."""
        self.calls += 1
        if self.calls == self.nth or (self.sticky and self.calls > self.nth):
            raise OSError(self.number, os.strerror(self.number))
        return self.real(*arguments, **options)


def run_python(script: str, *arguments: object, **options: object) -> subprocess.Popen[bytes]:
    """Another interpreter that can import streamnb."""
    environment = {**os.environ, "PYTHONPATH": str(Path(files.__file__).parents[1])}
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], env=environment, **options)  # type: ignore[call-overload, no-any-return]


@contextmanager
def unprivileged() -> Iterator[None]:
    """Give up root's powers for a while, where there are any."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def names(directory: Path) -> list[str]:
    """Everything in a directory, hidden names too."""
    return sorted(entry.name for entry in directory.iterdir())


# Whole files


def test_a_file_is_read_whole_up_to_its_bound(tmp_path: Path) -> None:
    """The bound itself is allowed, one byte more is not."""
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
    """Shorter: where the bytes are missed. Longer: at the end, all bytes having been there."""
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
    """As a network's file system does; what it refuses is said with the path."""
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
    """Configurations are mounted as links; a wrong encoding is said, not guessed."""
    path, link = tmp_path / "a", tmp_path / "link"
    files.write_text(path, "naïve\n")
    link.symlink_to(path)

    assert files.read_text(link, 7) == "naïve\n"
    with pytest.raises(DataError, match="more than 6 bytes"):
        files.read_text(path, 6)
    path.write_bytes(b"ab\xff")
    with pytest.raises(DataError, match="not UTF-8: byte 2"):
        files.read_text(path, 100)
    with pytest.raises(StorageError, match="Is a directory"):
        files.write_text(tmp_path, "")


def test_a_new_file_is_complete_private_and_read_only(tmp_path: Path) -> None:
    """Bytes and views of numbers go in as they are, in order."""
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
    """Not a file, not a dangling link, not what appears while the new content is written."""
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
    """Two writers of one name do not publish each other's half."""
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
    """Each call of the way is refused in turn; afterwards the same name can be written."""
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
    """Removing the temporary name may fail once; if it fails for ever the hint says what stays."""
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
    """What the caller raises while it makes the content comes through unchanged."""

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise MemoryError

    with pytest.raises(MemoryError):
        write_new(tmp_path / "a", broken())
    assert names(tmp_path) == []


def test_a_file_size_limit_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """The kernel itself refuses, half-way through a chunk."""
    write_new(tmp_path / "old", CONTENT)
    child = run_python(
        "import resource, sys; from pathlib import Path; from streamnb.files import write_new\n"
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
from streamnb.files import write_new

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
    """The name is absent or complete; what else is left is swept."""
    seen = set()
    for nth in range(1, 20):
        path = tmp_path / f"{nth}.snb"
        status = run_python(KILLED, path, nth, when).wait()
        seen.add(path.exists())
        assert not path.exists() or path.read_bytes() == b"onetwo"
        files.sweep_temporary(tmp_path)
        assert all(not name.startswith(".") for name in names(tmp_path))
        if status == 0:
            break
        assert status == -signal.SIGKILL

    assert nth == 10  # nine calls: open, write twice, fchmod, fsync, link, unlink, open, fsync
    assert seen == {False, True}


# Directories


def test_a_directory_is_created_with_its_parents_and_privately(tmp_path: Path) -> None:
    """Twice is as good as once."""
    path = tmp_path / "a" / "b"

    files.make_directory(path)
    files.make_directory(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_every_created_directory_is_made_durable_in_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that a power cut could take back is an error."""
    for nth in (1, 2):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", Fault(os.fsync, errno.EIO, nth, sticky=False))
            with pytest.raises(StorageError, match="Input/output error"):
                files.make_directory(tmp_path / str(nth) / "b")


def test_what_cannot_be_a_directory_of_snapshots_is_refused(tmp_path: Path) -> None:
    """A file, a path through a file, a dangling link, a directory open to all."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)

    for name, reason in (
        ("file", "is not a directory"),
        ("file/below", "Not a directory"),
        ("link", "File exists"),
        ("open", "Every user may write"),
    ):
        with pytest.raises(StorageError, match=reason) as caught:
            files.make_directory(tmp_path / name)
        assert str(tmp_path / name) in caught.value.what


def test_an_unwritable_directory_is_refused() -> None:
    """At the start, not at the first snapshot."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o555)
        with unprivileged(), pytest.raises(StorageError, match="cannot be written by this user"):
            files.make_directory(path)
        with unprivileged(), pytest.raises(StorageError, match="Permission denied"):
            files.make_directory(path / "below")


def test_names_are_listed_by_suffix_and_files_removed(tmp_path: Path) -> None:
    """Sorted, without what is hidden; a second removal is an error."""
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
    """The directory is forced to the disk after the removal."""
    (tmp_path / "a").touch()
    monkeypatch.setattr(os, "fsync", Fault(os.fsync, errno.EIO, 1, sticky=False))

    with pytest.raises(StorageError, match="Input/output error"):
        files.remove(tmp_path / "a")


def test_only_temporary_files_are_swept(tmp_path: Path) -> None:
    """A file that only looks similar stays."""
    for name in (".b.snb.tmp", ".a.tmp", "c.tmp", ".d", "e.snb"):
        (tmp_path / name).touch()

    assert files.sweep_temporary(tmp_path) == [".a.tmp", ".b.snb.tmp"]
    assert names(tmp_path) == [".d", "c.tmp", "e.snb"]


def test_a_lock_is_exclusive_and_dies_with_its_holder(tmp_path: Path) -> None:
    """Another process holds it until it is killed; then it is free without any cleaning."""
    child = run_python(
        "import sys, time; from pathlib import Path; from streamnb.files import lock_directory\n"
        "lock = lock_directory(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)",
        tmp_path,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    with pytest.raises(StorageError) as caught:
        files.lock_directory(tmp_path)
    holder = f"another learner, process {child.pid} on "
    assert caught.value.what.startswith(f"The snapshot directory {tmp_path} is in use by {holder}")
    assert caught.value.hint

    child.kill()
    child.communicate()
    with files.lock_directory(tmp_path), pytest.raises(StorageError, match="another learner"):
        files.lock_directory(tmp_path)
    lock = files.lock_directory(tmp_path)
    lock.close()
    lock.close()


def test_a_lock_needs_its_directory(tmp_path: Path) -> None:
    """And is no link to somewhere else."""
    with pytest.raises(StorageError, match="No such file"):
        files.lock_directory(tmp_path / "missing")
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="symbolic links"):
        files.lock_directory(tmp_path)
    assert names(tmp_path) == ["lock"]


# Lines in


def every_line(path: Path, line_bytes_max: int, n: int) -> Iterator[bytes | LongLine]:
    """Every line of an input, n at a time."""
    with open_lines(path, line_bytes_max) as reader:
        while not reader.ended:
            yield from reader.read_lines(n)


def read_all(path: Path, line_bytes_max: int = 100, n: int = 1000) -> list[bytes | LongLine]:
    """Every line of an input at once."""
    return list(every_line(path, line_bytes_max, n))


def test_lines_lose_their_terminator_and_nothing_else(tmp_path: Path) -> None:
    r"""Blank lines count, ``\r\n`` ends a line, ``\r`` alone does not, the last newline may lack."""
    path = tmp_path / "a"
    for content, lines in (
        (b"", []),
        (b"\n", [b""]),
        (b"a\n\r\n\nb\r\nc", [b"a", b"", b"", b"b", b"c"]),
        (b" a\rb \r\r\nc\r", [b" a\rb \r", b"c\r"]),
    ):
        path.write_bytes(content)
        assert read_all(path) == lines


def expected(content: bytes, line_bytes_max: int) -> list[bytes | LongLine]:
    """The definition of a line, written down plainly."""
    *lines, last = content.split(b"\n")
    lines = [line.removesuffix(b"\r") for line in lines] + ([last] if last else [])
    return [line if len(line) <= line_bytes_max else LongLine(len(line)) for line in lines]


@given(
    content=st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n", b"\xff\x00"])).map(b"".join),
    line_bytes_max=st.integers(1, 6),
    chunk_bytes=st.integers(1, 7),
    n=st.integers(1, 4),
    packed=st.booleans(),
)
@settings(deadline=None)
def test_lines_do_not_depend_on_how_they_are_read(
    content: bytes, line_bytes_max: int, chunk_bytes: int, n: int, *, packed: bool
) -> None:
    """Whatever the size of a read, of a batch and of the longest line."""
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        path = Path(directory) / ("a.gz" if packed else "a")
        path.write_bytes(gzip.compress(content) if packed else content)
        patch.setattr(files, "_CHUNK_BYTES", chunk_bytes)

        assert read_all(path, line_bytes_max, n) == expected(content, line_bytes_max)


def test_the_bound_of_a_line_is_its_own_length(tmp_path: Path) -> None:
    """The terminator does not count; the line after a long one is read."""
    path = tmp_path / "a"
    path.write_bytes(b"12345\r\n123456\r\n" + b"x" * 1_000_000 + b"\nlast")

    assert read_all(path, 5) == [b"12345", LongLine(6), LongLine(1_000_000), b"last"]


def test_a_long_line_is_passed_in_bounded_memory(tmp_path: Path) -> None:
    """A small gzip file may hold a line of any length."""
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"\0" * (1 << 27), 1) + gzip.compress(b"\nnext\n"))

    tracemalloc.start()
    lines = read_all(path, 1000)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert lines == [LongLine(1 << 27), b"next"]
    assert peak_bytes < 1 << 21


def test_many_long_lines_are_returned_in_smaller_batches(tmp_path: Path) -> None:
    """Fewer lines than asked for, rather than any amount of memory."""
    path = tmp_path / "a"
    path.write_bytes((b"x" * (1 << 20) + b"\n") * 40)

    with open_lines(path, 1 << 20) as reader:
        sizes = []
        while lines := reader.read_lines(1000):
            sizes.append(len(lines))

    assert sum(sizes) == 40
    assert max(sizes) <= 18


def test_skipping_says_how_many_lines_there_were(tmp_path: Path) -> None:
    """More than there are is no error here; the end is known then."""
    path = tmp_path / "a"
    path.write_bytes(b"".join(b"%d\n" % i for i in range(10_000)))

    with open_lines(path, 100) as reader:
        assert reader.skip(9_998) == 9_998
        assert reader.read_lines(1) == [b"9998"]
        assert not reader.ended
        assert reader.skip(5) == 1
        assert reader.ended
        assert reader.read_lines(5) == []


def test_a_torn_gzip_file_gives_its_lines_and_then_an_error(tmp_path: Path) -> None:
    """Cut at every byte: no line is invented, and the end is never reported."""
    content = b"".join(b'{"text": "%d"}\n' % (i * i) for i in range(50))
    whole = gzip.compress(content)
    lines = expected(content, 100)
    path = tmp_path / "a.gz"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        got: list[bytes | LongLine] = []
        with pytest.raises(DataError) as caught:
            got.extend(every_line(path, 100, 7))
        assert got == lines[: len(got)]
        assert str(path) in caught.value.what
        assert size == 0 or f"after line {len(got)}:" in caught.value.what
    assert got == lines  # only the checksum's last byte lacked


def test_a_damaged_gzip_file_is_an_error_that_stays(tmp_path: Path) -> None:
    """Damage in the middle, in the checksum, or behind the end; asking again does not help."""
    whole = gzip.compress(os.urandom(1000).hex().encode() + b"\n")
    path = tmp_path / "a.gz"
    for damaged in (whole[:300] + b"\0" * 9 + whole[309:], whole[:-6] + b"\0" + whole[-5:], whole + b"junk"):
        path.write_bytes(damaged)
        with open_lines(path, 10_000) as reader:
            for _ in range(2):
                with pytest.raises(DataError, match="torn or damaged after line"):
                    reader.skip(100)


def test_an_input_that_cannot_be_read_is_a_data_error(tmp_path: Path) -> None:
    """Missing, a directory, or a pipe that claims to be compressed."""
    reading, writing = os.pipe()
    (tmp_path / "pipe.gz").symlink_to(f"/dev/fd/{reading}")
    for path, reason in ((tmp_path / "missing", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(DataError, match=reason):
            open_lines(path, 100)
    with pytest.raises(DataError, match="not a regular file") as caught:
        open_lines(tmp_path / "pipe.gz", 100)
    assert "zcat" in caught.value.hint
    os.close(reading)
    os.close(writing)


@pytest.mark.timeout(20)
def test_a_pipe_gives_what_has_come() -> None:
    """Lines flow as they are written; a half line waits for its end; silence ends after the timeout."""
    reading, writing = os.pipe()
    with open_lines(f"/dev/fd/{reading}", 100) as reader:
        os.close(reading)
        os.write(writing, b"one\ntwo\nth")
        assert reader.read_lines(1) == [b"one"]
        assert reader.read_lines(1000) == [b"two"]
        began_s = time.monotonic()
        assert reader.read_lines(1000, timeout_ms=50) == []
        assert 0.04 < time.monotonic() - began_s < 5
        assert not reader.ended

        def finish() -> None:
            os.write(writing, b"ree\nlast")
            os.close(writing)

        later = threading.Timer(0.05, finish)
        later.start()
        assert reader.read_lines(1000) == [b"three"]
        assert reader.read_lines(1000) == [b"last"]
        assert reader.read_lines(1000) == []
        assert reader.ended
        later.join()


def test_standard_input_and_output_are_a_dash() -> None:
    """And stay open when the reader and the appender are closed."""
    child = run_python(
        "import os; from streamnb.files import open_append, open_lines\n"
        "reader, out = open_lines('-', 100), open_append('-')\n"
        "while not reader.ended: out.write(reader.read_lines(10))\n"
        "out.sync(); out.close(); reader.close(); os.fstat(0); os.write(1, b'open')",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    stdout, _ = child.communicate(b"a\r\nb\n\nc")

    assert stdout == b"a\nb\n\nc\nopen"
    assert child.returncode == 0


# Lines out


def test_lines_are_appended_and_a_torn_one_stays_alone(tmp_path: Path) -> None:
    """A file that a killed writer left in the middle of a line is not glued to."""
    path = tmp_path / "a"
    with open_append(path) as out:
        out.write([b"one", b"two"])
        out.write([])
        out.sync()
    path.write_bytes(path.read_bytes() + b"tor")
    for _ in range(2):
        with open_append(path) as out:
            out.write([b"new"])
            out.close()

    assert path.read_bytes() == b"one\ntwo\ntor\nnew\nnew\n"


def test_what_cannot_be_appended_to_is_refused(tmp_path: Path) -> None:
    """A directory, a missing parent, a compressed file."""
    with pytest.raises(StorageError, match="Is a directory"):
        open_append(tmp_path)
    with pytest.raises(StorageError, match="No such file"):
        open_append(tmp_path / "missing" / "a")
    with pytest.raises(SettingsError) as caught:
        open_append(tmp_path / "a.gz")
    assert "without `.gz`" in caught.value.hint
    assert names(tmp_path) == []


def test_a_reader_that_has_gone_ends_delivery() -> None:
    """The command line knows it by the cause."""
    reading, writing = os.pipe()
    with open_append(f"/dev/fd/{writing}") as out:
        out.write([b"read"])
        out.sync()
        os.close(reading)
        for _ in range(2):
            with pytest.raises(DeliveryError) as caught:
                out.write([b"lost"])
            assert isinstance(caught.value.__cause__, BrokenPipeError)
    os.close(writing)


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_after_a_refused_line_nothing_more_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A second fsync could claim success for lost lines, so there is none."""
    path = tmp_path / "a"
    with open_append(path) as out:
        out.write([b"one"])
        fault = Fault(getattr(os, call), errno.EIO, 1, sticky=False)
        monkeypatch.setattr(os, call, fault)
        for _ in range(3):
            with pytest.raises(StorageError, match="Input/output error"):  # noqa: PT012 - either may be refused
                out.write([b"two"])
                out.sync()
        assert fault.calls == 1
    assert path.read_bytes() == (b"one\n" if call == "write" else b"one\ntwo\n")
