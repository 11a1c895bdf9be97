"""Sources and sinks of JSON lines keep the engine's protocols."""

from __future__ import annotations

import base64
import errno
import gzip
import hashlib
import json
import os
import random
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import pytest

from streamnb.base.limits import POLL_BYTES_MAX
from streamnb.base.protocols import Sink, Source, Start
from streamnb.base.record import Partition, RecordBatch, Unreadable
from streamnb.errors import (
    DataError,
    DeliveryError,
    PathError,
    PositionError,
    ReaderGoneError,
    SettingsError,
    StorageError,
)
from streamnb.transports.jsonl import JsonlDeadLetters, JsonlSink, JsonlSource


def written(path: Path, content: bytes) -> str:
    """Write a file and return its path as a source takes it."""
    path.write_bytes(content)
    return str(path)


def poll_all(source: Source, records_max: int = 100) -> list[RecordBatch]:
    """Poll to the end and return every batch."""
    batches = []
    while not source.finished():
        batches += source.poll(records_max, 0)
    source.close()
    source.close()
    return batches


def test_a_line_is_a_record_and_its_number_the_offset(tmp_path: Path) -> None:
    """Blank lines count too; records of a file have no keys, timestamps or headers."""
    path = written(tmp_path / "a", b'{"text": "a"}\n\r\n{"text": "b"}')
    partition = Partition(path, 0)
    source: Source = JsonlSource(path, 100)
    assert source.open({}, "earliest") == {partition: 0}

    (batch,) = poll_all(source)

    assert batch == RecordBatch(
        partition=partition,
        offsets=[0, 1, 2],
        values=[b'{"text": "a"}', b"", b'{"text": "b"}'],
        keys=[None] * 3,
        timestamps_ms=[-1] * 3,
        headers=[()] * 3,
        next_offset=3,
    )
    assert source.end_offsets() is None
    line = b'{"text": "a"}\n'
    assert source.identity() == {
        "file": path,
        "hash of the first line": hashlib.blake2b(line, digest_size=8).hexdigest(),
    }


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_F17_appending_keeps_the_identity_and_replacing_changes_it(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """A file is known by its first line, once that has an end."""
    path = str(tmp_path / ("a.gz" if pack is gzip.compress else "a"))
    seen = []
    for content in (b"", b"on", b"one\n", b"one\ntwo", b"other\ntwo\nthree\n"):
        written(Path(path), pack(content))
        seen.append(JsonlSource(path, 100).identity())

    assert seen[0] == seen[1] == {"file": path}
    assert seen[2] == seen[3]
    assert len(seen[2]) == 2
    assert seen[4] != seen[3]


def test_F17_what_cannot_be_read_again_has_no_identity_beside_its_path(tmp_path: Path) -> None:
    """The identity of a named pipe must not take its first line away, and a missing file raises nothing."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "torn.gz").write_bytes(gzip.compress(b"one\ntwo\n")[:12])
    for name in ("pipe", "torn.gz", "missing"):
        path = str(tmp_path / name)
        assert JsonlSource(path, 100).identity() == {"file": path}


@pytest.mark.parametrize("name", ["a", "a.gz"])
@pytest.mark.parametrize("position", [0, 1, 7, 10])
def test_a_file_is_resumed_at_its_line(tmp_path: Path, name: str, position: int) -> None:
    """Every batch size gives the same records, and the end of the file is a valid position."""
    content = b"".join(b"%d\n" % i for i in range(10))
    path = written(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content)
    source = JsonlSource(path, 100)
    assert source.open({Partition(path, 0): position}, "earliest") == {Partition(path, 0): position}

    batches = poll_all(source, 4)

    offsets = [offset for batch in batches for offset in batch.offsets]
    assert offsets == list(range(position, 10))
    assert [value for batch in batches for value in batch.values] == [b"%d" % offset for offset in offsets]
    assert [batch.next_offset for batch in batches] == [min(end, 10) for end in range(position + 4, 14, 4)][
        : len(batches)
    ]


def test_F9_a_poll_is_bounded_in_bytes(tmp_path: Path) -> None:
    """The source has finished only after the last of several polls, and no line is lost between two."""
    lines = [b"%d %s" % (i, bytes(1 << 20)) for i in range(20)]
    source = JsonlSource(written(tmp_path / "a.jsonl", b"\n".join(lines)))
    source.open({}, "earliest")

    batches = poll_all(source)

    assert [value for batch in batches for value in batch.values] == lines
    assert len(batches) == 3
    assert max(sum(len(value or b"") for value in batch.values) for batch in batches) < POLL_BYTES_MAX + (
        2 << 20
    )
    assert [batch.next_offset for batch in batches] == list(accumulate(map(len, batches)))


def test_opening_again_begins_again(tmp_path: Path) -> None:
    """A second `open` closes the file and starts at the new position."""
    path = written(tmp_path / "a", b"0\n1\n")
    source = JsonlSource(path, 100)
    source.open({}, "earliest")
    assert [batch.values for batch in source.poll(1, 0)] == [[b"0"]]
    source.open({Partition(path, 0): 1}, "earliest")
    assert [batch.values for batch in poll_all(source)] == [[b"1"]]


def test_a_position_past_the_end_is_refused(tmp_path: Path) -> None:
    """A position of another log is refused too."""
    path = written(tmp_path / "a", b"0\n1\n")
    source = JsonlSource(path, 100)

    with pytest.raises(PositionError, match="has 2 lines, fewer than the snapshot's position 3"):
        source.open({Partition(path, 0): 3}, "earliest")
    with pytest.raises(PositionError, match="a position in mail-0"):
        source.open({Partition("mail", 0): 1}, "earliest")
    source.close()


@pytest.mark.parametrize("start", ["latest", 1_700_000_000_000])
def test_a_file_begins_only_at_its_beginning(tmp_path: Path, start: Start) -> None:
    """A file has no timestamps and no newest record, so only `earliest` is a valid start."""
    with pytest.raises(SettingsError) as caught:
        JsonlSource(written(tmp_path / "a", b""), 100).open({}, start)
    assert 'start = "earliest"' in caught.value.hint


def test_a_long_line_is_an_unreadable_offset(tmp_path: Path) -> None:
    """Its offset is exact and the lines around it are read, also if it is the only line of a batch."""
    source = JsonlSource(written(tmp_path / "a", b"ok\n" + b"x" * 101 + b"\nok\n" + b"y" * 300), 100)
    source.open({}, "earliest")

    first, second = poll_all(source, 3)

    assert (first.offsets, first.values, first.next_offset) == ([0, 2], [b"ok", b"ok"], 3)
    assert first.unreadable == [Unreadable(1, 2, "line of 101 bytes")]
    assert (second.offsets, second.values, second.next_offset) == ([], [], 4)
    assert second.unreadable == [Unreadable(3, 4, "line of 300 bytes")]
    assert len(second.keys) == len(second.timestamps_ms) == len(second.headers) == len(second) == 0


def test_an_unusable_file_is_a_data_error(tmp_path: Path) -> None:
    """A missing file fails at `open`, and a torn one after the records in front of the tear."""
    with pytest.raises(PathError, match="No such file"):
        JsonlSource(str(tmp_path / "missing"), 100).open({}, "earliest")

    whole = gzip.compress(b"".join(b"%d\n" % (i * i) for i in range(1000)))
    source = JsonlSource(written(tmp_path / "a.gz", whole[:-10]), 100)
    source.open({}, "earliest")
    with pytest.raises(DataError, match=r"a\.gz is torn or damaged after line"):
        poll_all(source, 10_000)
    source.close()


@pytest.mark.timeout(20)
def test_a_silent_pipe_does_not_hold_the_engine() -> None:
    """A poll returns the lines that have arrived, and ends after its timeout."""
    reading, writing = os.pipe()
    source = JsonlSource(f"/dev/fd/{reading}", 100)
    os.write(writing, b"0\n1\n2\n")
    source.open({Partition(f"/dev/fd/{reading}", 0): 1}, "earliest")
    os.close(reading)

    assert [(batch.offsets, batch.values) for batch in source.poll(100, 1000)] == [([1, 2], [b"1", b"2"])]
    began_s = time.monotonic()
    assert source.poll(100, 30) == []
    assert 0.02 < time.monotonic() - began_s < 5
    assert not source.finished()
    os.close(writing)
    assert source.poll(100, 1000) == []
    assert source.finished()
    source.close()


def test_standard_input_has_no_identity() -> None:
    """Nothing shows that it is the same input again."""
    assert JsonlSource("-", 100).identity() == {}


def test_a_sink_writes_one_line_per_value(tmp_path: Path) -> None:
    """It appends to the file, and leaves keys and headers out."""
    path = written(tmp_path / "a", b"old\n")
    for value in (b'{"id": 1}', b'{"id": 2}'):
        sink: Sink = JsonlSink(path)
        sink.publish(5, [value, b"{}"], [b"key", None], [[("h", b"1")], ()])
        sink.flush(1000)
        sink.close()
        sink.close()

    assert Path(path).read_bytes() == b'old\n{"id": 1}\n{}\n{"id": 2}\n{}\n'


@pytest.mark.parametrize("value", [None, b"two\nlines"])
def test_a_sink_writes_nothing_that_is_not_one_line(tmp_path: Path, value: bytes | None) -> None:
    """It does not even write the good values beside it."""
    sink = JsonlSink(str(tmp_path / "a"))
    with pytest.raises(AssertionError):
        sink.publish(0, [b"{}", value], [None, None], [(), ()])
    sink.close()

    assert (tmp_path / "a").read_bytes() == b""


@pytest.mark.parametrize("kind", [JsonlSink, JsonlDeadLetters])
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_refused_line_fails_every_delivery_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[JsonlSink | JsonlDeadLetters], call: str
) -> None:
    """The disk fails once, and the sink never recovers, because its last line may be torn."""
    sink: Sink = kind(str(tmp_path / "a"))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        if call == "fsync":
            sink.publish(0, [b"{}"], [None], [()])
            with pytest.raises(DeliveryError, match="No space left"):
                sink.flush(1000)
        else:
            with pytest.raises(DeliveryError, match="No space left"):
                sink.publish(0, [b"{}"], [None], [()])
    size = (tmp_path / "a").stat().st_size
    with pytest.raises(DeliveryError, match="No space left"):
        sink.publish(0, [b"{}"], [None], [()])
    with pytest.raises(DeliveryError, match="No space left"):
        sink.flush(1000)
    sink.close()
    assert (tmp_path / "a").stat().st_size == size


def test_a_sink_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    """The error comes from the constructor and names the path."""
    with pytest.raises(StorageError, match="No such file"):
        JsonlSink(str(tmp_path / "missing" / "a"))
    with pytest.raises(SettingsError, match="compressed"):
        JsonlDeadLetters(str(tmp_path / "a.gz"))


def test_a_reader_that_has_gone_is_known_by_the_error() -> None:
    """The error has a class of its own, so that the command line can end without an error message."""
    reading, writing = os.pipe()
    sink = JsonlSink(f"/dev/fd/{writing}")
    os.close(reading)
    with pytest.raises(ReaderGoneError):
        sink.publish(0, [b"{}"], [None], [()])
    sink.close()
    os.close(writing)


def test_a_dead_letter_keeps_every_byte(tmp_path: Path) -> None:
    """Keys and values keep all bytes; header values are text if they are UTF-8."""
    every = bytes(range(256)) + b"\n\xed\xa0\x80"
    headers = [
        ("reason", b"json_syntax"),
        ("raw", b"\xff\n"),
        ("twice", b"1"),
        ("twice", b"\xfe"),
        ("café", "naïve\0".encode()),
    ]
    sink: Sink = JsonlDeadLetters(str(tmp_path / "a"))
    sink.publish(0, [every, None, b""], [b"\n", None, b""], [headers, (), ()])
    sink.flush(1000)
    sink.close()

    lines = (tmp_path / "a").read_bytes().split(b"\n")
    assert len(lines) == 4
    first, second, third = (json.loads(line) for line in lines[:3])
    assert base64.b64decode(first["value"], validate=True) == every
    assert base64.b64decode(first["key"], validate=True) == b"\n"
    assert first["headers"] == {
        "reason": "json_syntax",
        "raw": {"base64": base64.b64encode(b"\xff\n").decode()},
        "twice": ["1", {"base64": base64.b64encode(b"\xfe").decode()}],
        "café": "naïve\0",
    }
    assert second == {"headers": {}, "key": None, "value": None}
    assert third == {"headers": {}, "key": "", "value": ""}


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz"])
def test_a_file_says_how_far_it_was_read(tmp_path: Path, suffix: str) -> None:
    """`share_read` rises to 1, also for a compressed file."""
    path = tmp_path / f"lines.{suffix}"
    draw = random.Random(1)
    lines = b"".join(b'"%x"\n' % draw.getrandbits(4096) for _ in range(2000))
    path.write_bytes(gzip.compress(lines) if suffix.endswith("gz") else lines)
    source = JsonlSource(str(path), 1 << 20)
    source.open({}, "earliest")
    shares: list[float] = []
    while not source.finished():
        source.poll(200, 10)
        share = source.share_read
        assert share is not None
        shares.append(share)
    source.close()
    assert shares == sorted(shares)
    assert 0.0 < shares[0] < 1.0
    assert shares[-1] == 1.0
