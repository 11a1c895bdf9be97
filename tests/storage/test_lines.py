"""Reading and appending lines: whole lines or an error, never part of a line."""

from __future__ import annotations

import errno
import gzip
import os
import subprocess
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb.errors import DataError, PathError, ReaderGoneError, SettingsError, StorageError
from streamnb.storage import lines as lines_module
from streamnb.storage.lines import LongLine, open_append, open_lines
from tests.support.disk import Fault, names, run_python

# Lines in


def every_line(path: Path, line_bytes_max: int, n: int) -> Iterator[bytes | LongLine]:
    """Yield every line of an input, read n at a time."""
    with open_lines(path, line_bytes_max) as reader:
        while not reader.ended:
            yield from reader.read_lines(n)


def read_all(path: Path, line_bytes_max: int = 100, n: int = 1000) -> list[bytes | LongLine]:
    """Return every line of an input."""
    return list(every_line(path, line_bytes_max, n))


def test_lines_lose_their_terminator_and_nothing_else(tmp_path: Path) -> None:
    r"""Blank lines count, ``\r\n`` ends a line, ``\r`` alone does not, the last newline may be missing."""
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
    """Return the lines of some content by the simplest definition, as the oracle."""
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
    """The sizes of reads and batches do not change the lines."""
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        path = Path(directory) / ("a.gz" if packed else "a")
        path.write_bytes(gzip.compress(content) if packed else content)
        patch.setattr(lines_module, "_CHUNK_BYTES", chunk_bytes)

        assert read_all(path, line_bytes_max, n) == expected(content, line_bytes_max)


def test_the_bound_of_a_line_is_its_own_length(tmp_path: Path) -> None:
    """The terminator does not count towards the limit, and the line after a long one is read."""
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
    """Memory stays bounded because a call may return fewer lines than requested."""
    path = tmp_path / "a"
    path.write_bytes((b"x" * (1 << 20) + b"\n") * 40)

    with open_lines(path, 1 << 20) as reader:
        sizes = []
        while lines := reader.read_lines(1000):
            sizes.append(len(lines))

    assert sum(sizes) == 40
    assert max(sizes) <= 9


def test_skipping_says_how_many_lines_there_were(tmp_path: Path) -> None:
    """Skipping past the end is not an error, and the reader knows afterwards that it has ended."""
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
    """A file cut at any byte gives only whole lines of the original, and then an error instead of an end."""
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
    assert got == lines  # in the last round only one byte of the checksum is missing


def test_a_damaged_gzip_file_is_an_error_that_stays(tmp_path: Path) -> None:
    """Damage in the data, in the checksum or after the end is an error, and the error stays."""
    whole = gzip.compress(os.urandom(1000).hex().encode() + b"\n")
    path = tmp_path / "a.gz"
    for damaged in (whole[:300] + b"\0" * 9 + whole[309:], whole[:-6] + b"\0" + whole[-5:], whole + b"junk"):
        path.write_bytes(damaged)
        with open_lines(path, 10_000) as reader:
            for _ in range(2):
                with pytest.raises(DataError, match="torn or damaged after line"):
                    reader.skip(100)


def test_an_input_that_cannot_be_read_is_a_wrong_path(tmp_path: Path) -> None:
    """A missing file, a directory, and a pipe whose name ends in ``.gz``."""
    reading, writing = os.pipe()
    (tmp_path / "pipe.gz").symlink_to(f"/dev/fd/{reading}")
    for path, reason in ((tmp_path / "missing", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(PathError, match=reason):
            open_lines(path, 100)
    with pytest.raises(PathError, match="not a regular file") as caught:
        open_lines(tmp_path / "pipe.gz", 100)
    assert "zcat" in caught.value.hint
    os.close(reading)
    os.close(writing)


@pytest.mark.timeout(20)
def test_a_pipe_gives_what_has_come() -> None:
    """Lines are returned as they arrive, half a line waits for its end, and a timeout returns nothing."""
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
    """Closing the reader and the appender leaves standard input and output open."""
    child = run_python(
        "import os; from streamnb.storage.lines import open_append, open_lines\n"
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
    """New lines are not joined to a torn line that a killed writer left at the end."""
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
    """A directory, a file in a missing directory, and a compressed file."""
    with pytest.raises(StorageError, match="Is a directory"):
        open_append(tmp_path)
    with pytest.raises(StorageError, match="No such file"):
        open_append(tmp_path / "missing" / "a")
    with pytest.raises(SettingsError) as caught:
        open_append(tmp_path / "a.gz")
    assert "without `.gz`" in caught.value.hint
    assert names(tmp_path) == []


def test_a_reader_that_has_gone_ends_delivery() -> None:
    """The error has a class of its own, so that the command line can end without an error message."""
    reading, writing = os.pipe()
    with open_append(f"/dev/fd/{writing}") as out:
        out.write([b"read"])
        out.sync()
        os.close(reading)
        for _ in range(2):
            with pytest.raises(ReaderGoneError):
                out.write([b"lost"])
    os.close(writing)


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_after_a_refused_line_nothing_more_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A second fsync could report success for lost lines, so none is called."""
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


def test_a_new_file_of_lines_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    """As snapshots are: its lines hold ids and words of messages. A file that was there keeps its mode."""
    before = os.umask(0)
    try:
        (tmp_path / "shared").touch(0o664)
        for name, mode in (("new", 0o600), ("shared", 0o664)):
            open_append(tmp_path / name).close()
            assert (tmp_path / name).stat().st_mode & 0o777 == mode
    finally:
        os.umask(before)


def test_a_file_of_lines_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot may cover a score only once it is on the disk."""
    synced: list[int] = []
    with open_append(tmp_path / "scores.jsonl") as out:
        out.write([b"{}"])
        monkeypatch.setattr(os, "fsync", synced.append)
        out.sync()
        assert len(synced) == 1
