"""The container: whatever happened to a file, it is read whole or refused, by us and by a stranger."""

from __future__ import annotations

import json
import random
import struct
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from streamnb import assembly, container
from streamnb.config import Settings, decode
from streamnb.errors import SnapshotError, StreamnbError
from streamnb.offsets import Account
from streamnb.record import Partition
from streamnb.snapshot import Snapshot, differences

GOLDEN = Path(__file__).parent / "golden" / "snapshot-v1.snb"
GOLDEN_DIGEST = {
    "order_free": "6f2c28bc12b8a5c9a3a2f642010bf57f",
    "all": "5ec8df497eba96a754b713d58387b875",
}

PROLOGUE = 32
ENTRY = 80


def example() -> Snapshot:
    """A small snapshot of a model with two classes, a position and a lineage."""
    loaded = Settings()
    model = assembly.model(loaded)
    for text, label in (("win money now", "spam"), ("lunch at noon", "ham"), ("win a prize", "spam")) * 3:
        model.learn_one({"text": text}, label)
    snapshot = assembly.snapshot_of(loaded, model)
    snapshot.source = {"cluster": "c-1", "topic mail": "t-1"}
    snapshot.accounts = {Partition("mail", 0): Account(0, 11, scored=9, dead_lettered=1, gaps=1)}
    snapshot.lineage = [{"event": "begun from a snapshot", "digest": "00"}]
    snapshot.written_ms = 1_700_000_000_000
    snapshot.streamnb = "0.1.0"
    return snapshot.numbered(7)


def file_of(header: dict[str, Any], sections: dict[str, Any]) -> bytes:
    """A container's bytes."""
    return b"".join(container.encode(header, sections))


@pytest.fixture(scope="module")
def small() -> bytes:
    """The smallest file with a section: prologue, header and table; one section; footer."""
    data = file_of({"format": "test"}, {"counts": np.arange(12, dtype=np.float64).reshape(3, 4)})
    assert len(data) == 2 * 4096 + 24
    return data


# ---- whole files

DTYPES: list[np.dtype[Any]] = [
    np.dtype("|u1"),
    np.dtype("<u4"),
    np.dtype("<u8"),
    np.dtype("<f8"),
]
SECTIONS = st.dictionaries(
    st.text("abcdefghijklmnopqrstuvwxyz_0123456789", min_size=1, max_size=32),
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays.arrays(
            dtype, arrays.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=40)
        )
    ),
    max_size=5,
)
HEADERS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-(2**63), 2**64 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
            st.text(max_size=5),
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(header=HEADERS, sections=SECTIONS)
def test_what_was_encoded_is_decoded(
    header: dict[str, Any], sections: dict[str, NDArray[np.generic]]
) -> None:
    """Header, names, types, shapes and every bit, by us and by a stranger."""
    data = file_of(header, sections)
    contents = container.decode(data)
    assert contents.header == header
    assert list(contents.sections) == list(sections)
    for name, array in sections.items():
        back = contents.sections[name]
        assert (back.dtype, back.shape) == (array.dtype, array.shape)
        assert back.tobytes() == array.tobytes()
        assert not back.flags.writeable
    assert len(data) % 4096 == 24
    strange_header, strange_sections = stranger_reads(data)
    assert strange_header == header
    for name, array in sections.items():
        assert np.array_equal(
            np.array(strange_sections[name]).reshape(array.shape), array, equal_nan=array.dtype.kind == "f"
        )


def test_a_view_of_an_array_is_written_as_it_reads() -> None:
    """Row by row, whatever its strides."""
    whole = np.arange(24, dtype=np.uint32).reshape(4, 6)
    for part in (whole.T, whole[::2, ::-1], whole[:, 2]):
        back = container.decode(file_of({}, {"a": part})).sections["a"]
        assert np.array_equal(back, part)


def test_sections_are_read_into_the_memory_that_is_given() -> None:
    """As much as each needs, and the arrays show it: nothing is copied on the way."""
    parts: dict[str, NDArray[Any]] = {
        "a": np.arange(5, dtype=np.uint8),
        "b": np.ones((3, 4)),
        "none": np.zeros((0, 2)),
    }
    given: list[bytearray] = []

    def allocate(size: int) -> memoryview:
        given.append(bytearray(size))
        return memoryview(given[-1])

    sections = container.decode(file_of({}, parts), allocate).sections
    assert [bytes(memory) for memory in given] == [array.tobytes() for array in parts.values()]
    given[1][:8] = np.float64(7.0).tobytes()
    assert sections["b"][0, 0] == 7.0
    assert all(np.array_equal(sections[name], parts[name]) for name in ("a", "none"))


def test_a_section_of_many_pieces_is_verified_at_their_edges() -> None:
    """It is read and checked a piece at a time."""
    array = np.arange((3 << 18) + 5, dtype=np.uint64).view(np.uint8)[: (3 << 18) + 5]
    data = file_of({}, {"a": array})
    assert np.array_equal(container.decode(data).sections["a"], array)
    for edge in (0, 1 << 18, 2 << 18, 3 << 18, len(array)):
        for at in (edge - 1, edge):
            damaged = bytearray(data)
            damaged[4096 + at] ^= 1
            assert refused(bytes(damaged)), at


def test_nothing_is_allocated_that_the_file_could_not_fill(small: bytes) -> None:
    """A table under good checksums may ask for anything."""

    def never(size: int) -> memoryview:
        raise AssertionError(size)

    for rows in (129, 600, 2**40, 2**61):  # of 32 bytes; 128 would fit, padding taken for numbers
        data = bytearray(small)
        struct.pack_into("<Q", data, data.index(b"counts") + 48, rows)
        with pytest.raises(SnapshotError):
            container.decode(sealed(data, len(data)), never)


def test_equal_contents_are_equal_bytes() -> None:
    """Whatever order the header's keys were given in."""
    assert file_of({"a": 1, "b": {"c": 2, "d": 3}}, {}) == file_of({"b": {"d": 3, "c": 2}, "a": 1}, {})


# ---- damage


def refused(data: bytes) -> bool:
    """Whether a file is refused, and not in any other way than it should be."""
    try:
        container.decode(data)
    except SnapshotError:
        return True
    return False


def test_every_flipped_bit_is_seen(small: bytes) -> None:
    """All of them: prologue, header, table, padding, section, footer."""
    damaged = bytearray(small)
    missed = []
    for at in range(len(damaged)):
        for bit in range(8):
            damaged[at] ^= 1 << bit
            if not refused(bytes(damaged)):
                missed.append((at, bit))
            damaged[at] ^= 1 << bit
    assert missed == []
    assert not refused(bytes(damaged))


def test_every_truncation_is_seen(small: bytes) -> None:
    """At every byte."""
    assert [size for size in range(len(small)) if not refused(small[:size])] == []


@pytest.mark.parametrize("more", [b"\0", b"x", b"\0" * 4096, b"SNB\nEND\n"])
def test_appended_bytes_are_seen(small: bytes, more: bytes) -> None:
    """Zeros as well, as a file system leaves them after a crash; a file twice over, too."""
    assert refused(small + more)
    assert refused(small + small)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 24,
        b"\0" * 8216,
        b"\x89SNB\r\n\x1a\n",
        b"\x89SNB\n\x1a\n" + b"\0" * 100,
        b"\x80\x04pickle.",
    ],
    ids=["empty", "zeros", "many zeros", "magic alone", "text mode", "a pickle"],
)
def test_what_is_no_snapshot_is_refused(data: bytes) -> None:
    """In one sentence."""
    with pytest.raises(SnapshotError):
        container.decode(data)


def test_a_zero_filled_page_is_seen(small: bytes) -> None:
    """What a crash leaves where a page was never written."""
    for at in range(0, len(small), 512):
        damaged = small[:at] + bytes(len(small[at : at + 512])) + small[at + 512 :]
        assert refused(damaged) == (damaged != small), at


def test_another_major_version_is_named(small: bytes) -> None:
    """A newer minor one is read."""
    for major in (0, 2, 65_535):
        other = small[:8] + struct.pack("<H", major) + small[10:]
        with pytest.raises(SnapshotError, match=rf"container version {major}\.0; this streamnb reads 1\.x"):
            container.decode(other)
    newer = bytearray(small)
    newer[10:12] = struct.pack("<H", 9)
    assert not refused(repaired(newer))


# ---- damage by somebody who can compute checksums


def repaired(data: bytearray) -> bytes:
    """A file with every checksum that its own table asks for."""
    n_sections, header_size, size = struct.unpack_from("<IQQ", data, 12)
    table = PROLOGUE + header_size
    head_size = table + ENTRY * n_sections
    head_end = head_size + -head_size % 4096
    if head_end > len(data) - 24 or n_sections > 1000:
        return bytes(data)
    for i in range(n_sections):
        at = table + ENTRY * i
        kind = bytes(data[at + 32 : at + 40]).rstrip(b"\0")
        _, rows, columns, offset = struct.unpack_from("<QQQQ", data, at + 40)
        item = int(kind[2:]) if kind[2:].isdigit() else 1
        end = offset + rows * columns * item
        end += -end % 4096
        if end <= len(data):
            struct.pack_into("<I", data, at + 72, crc32c(bytes(data[offset:end])))
    return sealed(data, size)


def sealed(data: bytearray, size: int) -> bytes:
    """A file with its size and its header's checksum, if the header fits."""
    n_sections, header_size = struct.unpack_from("<IQ", data, 12)
    head_size = PROLOGUE + header_size + ENTRY * n_sections
    head_end = head_size + -head_size % 4096
    struct.pack_into("<Q", data, 24, size)
    struct.pack_into("<QI", data, len(data) - 16, size, crc32c(bytes(data[:head_end])))
    return bytes(data)


def test_padding_holds_nothing(small: bytes) -> None:
    """Bytes that no reader looks at, under good checksums: two files of one content would differ."""
    for at in (4095, 8191):
        data = bytearray(small)
        data[at] = 1
        assert refused(repaired(data))


def test_a_name_stands_once() -> None:
    """Which of the two counts would be each reader's choice."""
    data = bytearray(file_of({}, {"a": np.zeros(3), "b": np.ones(3)}))
    assert not refused(repaired(data))
    data[data.index(b"b" + bytes(31))] = ord("a")
    assert refused(repaired(data))


def test_sections_lie_end_to_end(small: bytes) -> None:
    """None over another, none beyond the table."""
    spare = bytearray(small[:-24] + bytes(4096) + small[-24:])
    assert refused(sealed(spare, len(spare)))
    both = bytearray(file_of({}, {"a": np.zeros(512), "b": np.zeros(512)}))
    del both[8192:12288]
    table_b = PROLOGUE + 2 + ENTRY
    struct.pack_into("<QI", both, table_b + 64, 4096, 0)  # b over a, which leaves nothing to be checked
    assert refused(sealed(both, len(both)))


@pytest.mark.parametrize("columns", [2**31, 2**62, 2**63, 2**64 - 1])
def test_no_size_is_too_large_to_be_refused(columns: int) -> None:
    """Nothing times as many columns as one likes is still nothing."""
    data = bytearray(file_of({}, {"a": np.zeros((0, 3))}))
    struct.pack_into("<Q", data, PROLOGUE + 2 + 56, columns)
    assert refused(sealed(data, len(data)))


FIELDS = (
    ("<Q", 16),  # bytes of header
    ("<I", 12),  # sections
    ("<Q", 24),  # bytes of the file
)
ENTRY_FIELDS = (
    ("<B", 0),
    ("<B", 31),
    ("<8s", 32),
    ("<Q", 40),
    ("<Q", 48),
    ("<Q", 56),
    ("<Q", 64),
    ("<I", 76),
)


def mutated(whole: bytes, draw: random.Random) -> bytes:
    """The file with one to three fields of its prologue or table changed, and the checksums made good."""
    data = bytearray(whole)
    n_sections, header_size = struct.unpack_from("<IQ", whole, 12)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        if draw.random() < 0.1:
            form, at = draw.choice(FIELDS)
        else:
            form, at = draw.choice(ENTRY_FIELDS)
            at += PROLOGUE + header_size + ENTRY * draw.randrange(n_sections)
        if form == "<8s":
            kinds = [b"|u1", b"<u4", b"<u8", b"<f8", b">f8", b"|O", b"<i8", b"|V9", b"", b"\xff"]
            struct.pack_into(form, data, at, draw.choice(kinds))
            continue
        bits = 8 * struct.calcsize(form)
        (now,) = struct.unpack_from(form, data, at)
        near = now + draw.choice([-4096, -8, -1, 1, 2, 8, 4096])
        far = draw.choice(
            [0, 1, 2, 3, 255, 4096, 2**31, 2**32 - 1, 2**61, 2**63, 2**64 - 1, draw.getrandbits(64)]
        )
        struct.pack_into(form, data, at, draw.choice([near, far, now * 2, now // 2]) % (1 << bits))
    return repaired(data)


def test_no_table_does_harm() -> None:
    """5,000 of them with good checksums: read, or refused; never another exception, nor much memory."""
    whole = b"".join(example().encode())
    assert repaired(bytearray(whole)) == whole
    draw = random.Random(20)
    outcomes = {"read": 0, "refused by the container": 0, "refused by the model": 0}
    decoded = []
    tracemalloc.start()
    try:
        for _ in range(5_000):
            data = mutated(whole, draw)
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            try:
                Snapshot.decode(data)
                decoded.append(data)
            except SnapshotError:
                outcomes["refused by the container"] += 1
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before <= 2 * len(data)
    finally:
        tracemalloc.stop()
    for data in decoded:
        try:
            assembly.restored(Snapshot.decode(data))
            outcomes["read"] += 1
        except SnapshotError:
            outcomes["refused by the model"] += 1
    assert min(outcomes.values()) > 0, outcomes


JUNK: tuple[object, ...] = (
    None,
    True,
    -1,
    2**63,
    0.5,
    "",
    "x",
    [],
    {},
    [[]],
    {"x": {}},
    ["spam", "spam"],
    ["ham", "spam"],
    [True, "x"],
    json.loads("[" * 300 + "]" * 300),
)


def places(value: object, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a JSON value."""
    found = [way] if way else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*way, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            found += places(inner, (*way, i))
    return found


def test_no_header_does_harm() -> None:
    """Junk at every place of it, under good checksums: a model, or one sentence."""
    whole = container.decode(b"".join(example().encode()))
    text = json.dumps(whole.header)
    n_refused = 0
    for way in places(whole.header):
        for junk in (*JUNK, "absent"):
            header = json.loads(text)
            inner: Any = header
            for key in way[:-1]:
                inner = inner[key]
            if junk == "absent":
                del inner[way[-1]]
            else:
                inner[way[-1]] = junk
            data = with_header(header, dict(whole.sections))
            try:
                assembly.restored(Snapshot.decode(data))
            except StreamnbError as error:
                n_refused += 1
                refusal = error
            else:
                continue
            assert refusal.what
            assert "\n" not in refusal.what
    assert n_refused > 500


def with_header(header: object, sections: dict[str, Any]) -> bytes:
    """A container with a header that streamnb itself would not write (it nests too deep, perhaps)."""
    text = json.dumps(header).encode()
    plain = file_of({}, sections)
    (n_sections,) = struct.unpack_from("<I", plain, 12)
    old_head = PROLOGUE + 2 + ENTRY * n_sections
    old_start = old_head + -old_head % 4096
    head_size = PROLOGUE + len(text) + ENTRY * n_sections
    moved = head_size + -head_size % 4096 - old_start
    table = bytearray(plain[PROLOGUE + 2 : old_head])
    for i in range(n_sections):
        (offset,) = struct.unpack_from("<Q", table, ENTRY * i + 64)
        struct.pack_into("<Q", table, ENTRY * i + 64, offset + moved)
    head = bytearray(plain[:PROLOGUE]) + text + table + bytes(-head_size % 4096)
    struct.pack_into("<QQ", head, 16, len(text), len(plain) + moved)
    return repaired(head + bytearray(plain[old_start:]))


def test_a_header_that_is_no_object_is_refused() -> None:
    """Nor one that is no JSON."""
    for header in (list[int](), "x", None, 7):
        with pytest.raises(SnapshotError, match="not an object"):
            container.decode(with_header(header, {}))
    data = bytearray(file_of({"a": 1}, {}))
    data[PROLOGUE] = ord("[")
    with pytest.raises(SnapshotError, match="not JSON"):
        container.decode(repaired(data))


# ---- a stranger, who has read the description in container.py and has none of our code


def stranger_reads(data: bytes) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Header and sections (rows of numbers), everything checked."""
    magic, major, _minor, n_sections, header_size, file_size = struct.unpack_from("<8sHHIQQ", data, 0)
    assert magic == b"\x89SNB\r\n\x1a\n"
    assert major == 1
    assert file_size == len(data)
    end, footer_size, head_checksum, zero = struct.unpack_from("<8sQII", data, file_size - 24)
    assert end == b"SNB\nEND\n"
    assert footer_size == file_size
    assert zero == 0
    table = 32 + header_size
    start = table + 80 * n_sections
    while start % 4096:
        assert data[start] == 0
        start += 1
    assert crc32c(data[:start]) == head_checksum
    header = json.loads(data[32:table].decode("utf-8"))
    sections = {}
    for i in range(n_sections):
        entry = struct.unpack_from("<32s8sQQQQII", data, table + 80 * i)
        name, kind, dimensions, rows, columns, offset, checksum, zero = entry
        assert offset == start
        assert zero == 0
        letter, size = {b"|u1": ("B", 1), b"<u4": ("I", 4), b"<u8": ("Q", 8), b"<f8": ("d", 8)}[
            kind.rstrip(b"\0")
        ]
        numbers = struct.unpack_from(f"<{rows * columns}{letter}", data, offset)
        start = offset + rows * columns * size
        while start % 4096:
            assert data[start] == 0
            start += 1
        assert crc32c(data[offset:start]) == checksum
        if dimensions == 2:
            sections[name.rstrip(b"\0").decode()] = [
                list(numbers[row * columns : (row + 1) * columns]) for row in range(rows)
            ]
        else:
            sections[name.rstrip(b"\0").decode()] = list(numbers)
    assert start == file_size - 24
    return header, sections


def test_a_stranger_reads_a_snapshot_whole() -> None:
    """Classes, tokens with their counts, and the offset to go on from."""
    header, sections = stranger_reads(b"".join(example().encode()))
    assert header["format"] == "streamnb snapshot"
    assert header["values"] == {"classes": ["spam", "ham"], "learned": 9}
    assert header["accounts"][0][:2] == ["mail", 0]
    assert header["accounts"][0][2]["next_offset"] == 11
    assert sections["class_counts"] == [[6.0, 3.0]]
    tokens, bounds = {}, sections["token_bounds"]
    for start, end, counts in zip(bounds[:-1], bounds[1:], sections["counts"], strict=True):
        assert end % 256 == 0  # the number of the only view
        tokens[bytes(sections["token_bytes"][start // 256 : end // 256]).decode()] = counts
    once = 177 / 256  # ln(1 + 1) in 256ths
    assert tokens["win"] == [6 * once, 0.0]
    assert tokens["lunch"] == [0.0, 3 * once]
    assert set(tokens) == {"win", "money", "now", "lunch", "at", "noon", "a", "prize"}
    assert set(sections) == set(Snapshot.decode(b"".join(example().encode())).sections)


# ---- large ones


def test_a_large_container_is_read_two_sections_at_a_time() -> None:
    """With the same result, each section in the memory that was given for it, and damage named by section."""
    parts = {f"part{i}": np.random.default_rng(i).integers(0, 2**63, 700_000, np.uint64) for i in range(3)}
    given: list[int] = []

    def allocate(size: int) -> memoryview:
        given.append(size)
        return memoryview(bytearray(size))

    data = bytearray(file_of({"a": 1}, parts))
    assert len(data) > 1 << 24
    contents = container.decode(bytes(data), allocate)
    assert list(contents.sections) == list(parts)
    assert all(np.array_equal(contents.sections[name], part) for name, part in parts.items())
    assert given == [5_600_000] * 3
    data[len(data) // 2] ^= 1
    with pytest.raises(SnapshotError, match="the checksum of section `part1` is wrong"):
        container.decode(bytes(data))


# ---- for ever


def test_the_first_snapshot_is_read_for_ever() -> None:
    """The file in tests/golden was written once, and gives the same model ever after.

    By version 0.1.0, before its release: it took the place of one whose tokens lay in other sections, which
    nobody had.
    """
    snapshot = Snapshot.decode(GOLDEN.read_bytes())
    model = assembly.model(decode(snapshot.settings, "the golden snapshot"))
    model.restore(snapshot.values, snapshot.sections)
    assert model.digest() == snapshot.digest == GOLDEN_DIGEST
    assert snapshot.sequence == 7
    assert snapshot.accounts == example().accounts
    assert snapshot.source == example().source
    assert snapshot.lineage == example().lineage
    assert model.predict_one({"text": "win"}) == "spam"
    changes = differences(snapshot.statistics["model"], model.statistics())
    assert [line for line in changes if not line.startswith("unicode:")] == []  # Python's own tables move on
    stranger_reads(GOLDEN.read_bytes())


if __name__ == "__main__" and sys.argv[1:] == ["--write-golden"]:  # only ever for a new major version
    GOLDEN.parent.mkdir(exist_ok=True)
    with GOLDEN.open("xb") as file:
        file.writelines(example().encode())
