"""The container: a damaged file is refused, and an independent reader reads the same contents as streamnb."""

from __future__ import annotations

import json
import random
import struct
import sys
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from streamnb.base.frozen import floats
from streamnb.base.snapshot import differences
from streamnb.config import Settings, build_model, decode_settings, restore_model
from streamnb.errors import SnapshotError, StreamnbError
from streamnb.storage import container, snapshot_file
from streamnb.storage.container import Contents
from streamnb.storage.migrations import STEPS, migrated
from tests.fuzz.snapshots import (
    ENTRY,
    JUNK,
    PROLOGUE,
    example,
    file_of,
    fuzz,
    mixed_example,
    places,
    repaired,
    sealed,
    table_mutated,
    with_header,
)
from tests.support import strangers_reader

GOLDEN = Path(__file__).parents[1] / "golden" / "snapshot-v1.snb"
GOLDEN_DIGEST = {
    "order_free": "6f2c28bc12b8a5c9a3a2f642010bf57f",
    "all": "5ec8df497eba96a754b713d58387b875",
}


@pytest.fixture(scope="module")
def small() -> bytes:
    """Return a file with one section and no more: prologue, header, table, section, footer."""
    data = file_of({"format": "test"}, {"counts": np.arange(12, dtype=np.float64).reshape(3, 4)})
    assert len(data) == 2 * 4096 + 24
    return data


@pytest.fixture(scope="module")
def large() -> bytes:
    """Return a snapshot file of 64 KiB."""
    snapshot, tokens = example(), 480
    model = build_model(Settings())
    for i in range(tokens):
        model.learn_one({"text": f"token{i:04} again{i % 7}"}, "spam" if i % 2 else "ham")
    frozen = model.freeze()
    snapshot.values, snapshot.sections, snapshot.digest = frozen.values, frozen.sections, frozen.digest()
    data = b"".join(snapshot_file.encode(snapshot))
    assert abs(len(data) - (1 << 16)) <= 4096 + 24, len(data)
    return data


# ---- whole files

DTYPES: list[np.dtype[Any]] = [
    np.dtype("|u1"),
    np.dtype("<u4"),
    np.dtype("<u8"),
    np.dtype("<f4"),
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
    """Header, names, types, shapes and every bit come back, from streamnb's reader and the stranger's."""
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
    strange_header, strange_sections = strangers_reader.read(data)
    assert strange_header == header
    for name, array in sections.items():
        assert np.array_equal(
            np.array(strange_sections[name]).reshape(array.shape), array, equal_nan=array.dtype.kind == "f"
        )


@settings(max_examples=150, deadline=None)
@given(
    header=st.one_of(HEADERS, st.just({"a": "a" * (1 << 24)}), st.just({"a": 1 << 70})),
    names=st.one_of(
        st.lists(st.text(max_size=40), max_size=3, unique=True),
        st.integers(60, 70).map(lambda n: [f"s{i}" for i in range(n)]),
    ),
    array=st.one_of(
        st.sampled_from(
            [np.zeros(3), np.zeros((2, 2, 2)), np.array(1.0), np.zeros((0, 1 << 40)), np.zeros(0)]
        ),
        st.sampled_from([np.zeros(3, "<f2"), np.zeros(3, ">f8"), np.zeros(2, "<i8"), np.zeros(2, "?")]),
    ),
)
def test_F3_what_is_encoded_is_read_and_the_rest_is_refused_before_a_byte_is_written(
    header: dict[str, Any], names: list[str], array: NDArray[np.generic]
) -> None:
    """Headers, names, types, shapes and numbers of sections, inside the reader's limits and outside them."""
    try:
        pieces = list(container.encode(header, dict.fromkeys(names, array)))
    except SnapshotError:
        return
    contents = container.decode(b"".join(pieces))
    assert contents.header == header
    assert list(contents.sections) == names
    assert all(np.array_equal(back, np.atleast_1d(array)) for back in contents.sections.values())


def test_F3_the_reader_accepts_what_lies_just_inside_its_limits() -> None:
    """64 sections and a header of 16 MiB are written and read; one more of either is refused."""
    some = {f"s{i}": np.zeros(1) for i in range(65)}
    assert len(container.decode(file_of({}, dict(list(some.items())[:64]))).sections) == 64
    with pytest.raises(SnapshotError, match="it has 65 sections, more than 64"):
        file_of({}, some)
    text = "a" * ((1 << 24) - len('{"a":""}'))
    assert container.decode(file_of({"a": text}, {})).header == {"a": text}
    with pytest.raises(SnapshotError, match=f"its header has {(1 << 24) + 1} bytes"):
        file_of({"a": text + "a"}, {})


def test_a_view_of_an_array_is_written_as_it_reads() -> None:
    """Arrays are written row by row, whatever their strides."""
    whole = np.arange(24, dtype=np.uint32).reshape(4, 6)
    for part in (whole.T, whole[::2, ::-1], whole[:, 2]):
        back = container.decode(file_of({}, {"a": part})).sections["a"]
        assert np.array_equal(back, part)


def test_sections_are_read_into_the_memory_that_is_given() -> None:
    """Each section gets exactly the bytes it needs, and its array is a view of them, not a copy."""
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
    """Sections are verified piece by piece; a flipped bit on either side of each edge is detected."""
    array = np.arange((3 << 18) + 5, dtype=np.uint64).view(np.uint8)[: (3 << 18) + 5]
    data = file_of({}, {"a": array})
    assert np.array_equal(container.decode(data).sections["a"], array)
    for edge in (0, 1 << 18, 2 << 18, 3 << 18, len(array)):
        for at in (edge - 1, edge):
            damaged = bytearray(data)
            damaged[4096 + at] ^= 1
            assert refused(bytes(damaged)), at


def test_nothing_is_allocated_that_the_file_could_not_fill(small: bytes) -> None:
    """A table with good checksums can state any size, so the file's length limits what is allocated."""

    def never(size: int) -> memoryview:
        raise AssertionError(size)

    for rows in (129, 600, 2**40, 2**61):  # of 32 bytes; 128 rows would fit if padding counted as numbers
        data = bytearray(small)
        struct.pack_into("<Q", data, data.index(b"counts") + 48, rows)
        with pytest.raises(SnapshotError):
            container.decode(sealed(data, len(data)), never)


def test_equal_contents_are_equal_bytes() -> None:
    """The order of the header's keys does not matter."""
    assert file_of({"a": 1, "b": {"c": 2, "d": 3}}, {}) == file_of({"b": {"d": 3, "c": 2}, "a": 1}, {})


# ---- damage


def refused(data: bytes) -> bool:
    """Return whether a file is refused with a `SnapshotError`; any other exception is passed on."""
    try:
        container.decode(data)
    except SnapshotError:
        return True
    return False


def bits_of(data: bytes, runs: int) -> Iterable[int]:
    """Return the bits to flip: all bits of a file, or a sample of `runs` if it has more."""
    return (
        range(8 * len(data)) if runs >= 8 * len(data) else random.Random(0).sample(range(8 * len(data)), runs)
    )


def unseen_flips(data: bytes, bits: Iterable[int]) -> list[int]:
    """Return those of the given bits whose flip is not detected."""
    damaged, missed = bytearray(data), []
    for at in bits:
        damaged[at >> 3] ^= 1 << (at & 7)
        if not refused(bytes(damaged)):
            missed.append(at)
        damaged[at >> 3] ^= 1 << (at & 7)
    assert not refused(bytes(damaged))
    return missed


def test_D7_every_flipped_bit_is_seen(small: bytes) -> None:
    """Every bit of prologue, header, table, padding, section and footer is flipped once."""
    assert unseen_flips(small, range(8 * len(small))) == []


def test_D7_no_flipped_bit_of_64_kib_is_missed(large: bytes, runs: int) -> None:
    """A snapshot with all its sections; ``--runs 524480`` flips every bit of it."""
    assert unseen_flips(large, bits_of(large, runs)) == []


def test_D6_every_truncation_is_seen(small: bytes, large: bytes) -> None:
    """Both files are cut at every byte."""
    assert [size for size in range(len(small)) if not refused(small[:size])] == []
    whole = memoryview(large)
    assert [size for size in range(len(large)) if not refused(bytes(whole[:size]))] == []


@pytest.mark.parametrize("more", [b"\0", b"x", b"\0" * 4096, b"SNB\nEND\n"])
def test_appended_bytes_are_seen(small: bytes, more: bytes) -> None:
    """That includes zeros, which a file system may leave after a crash, and a second copy of the file."""
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
def test_D9_what_is_no_snapshot_is_refused(data: bytes) -> None:
    """Other files are refused with a `SnapshotError`."""
    with pytest.raises(SnapshotError):
        container.decode(data)


def test_D9_a_zero_filled_page_is_seen(small: bytes) -> None:
    """A crash leaves zeros where a page was never written."""
    for at in range(0, len(small), 512):
        damaged = small[:at] + bytes(len(small[at : at + 512])) + small[at + 512 :]
        assert refused(damaged) == (damaged != small), at


def test_an_older_minor_version_is_brought_up_to_the_newest() -> None:
    """Migration applies one step per version; two invented steps are tested on the golden file."""

    def sequence_had_another_name(old: Contents) -> Contents:
        header = {"sequence" if key == "number" else key: value for key, value in old.header.items()}
        return old._replace(header=header)

    def counts_were_in_tens(old: Contents) -> Contents:
        counts = floats(old.sections, "counts", (None, 2)) * 10
        return old._replace(sections=old.sections | {"counts": counts})

    golden = container.decode(GOLDEN.read_bytes())
    old = golden._replace(
        header={"number" if key == "sequence" else key: value for key, value in golden.header.items()},
        sections=golden.sections | {"counts": floats(golden.sections, "counts", (None, 2)) / 10},
    )
    steps = {0: sequence_had_another_name, 1: counts_were_in_tens}

    new = migrated(old, newest=2, steps=steps)
    assert (new.minor, new.header) == (2, golden.header)
    assert np.allclose(new.sections["counts"], golden.sections["counts"])
    assert migrated(golden._replace(minor=3), newest=2, steps=steps).header == golden.header
    assert sorted(STEPS) == list(range(container.MINOR))


def test_another_major_version_is_named(small: bytes) -> None:
    """The error names another major version; a newer minor version is read."""
    for major in (0, 2, 65_535):
        other = small[:8] + struct.pack("<H", major) + small[10:]
        with pytest.raises(
            SnapshotError, match=rf"container version {major}\.{container.MINOR}; this streamnb reads 1\.x"
        ):
            container.decode(other)
    newer = bytearray(small)
    newer[10:12] = struct.pack("<H", 9)
    assert not refused(repaired(newer))


# ---- damage under correct checksums


def test_padding_holds_nothing(small: bytes) -> None:
    """Padding that is not zero is refused; otherwise two files could have the same contents and differ."""
    for at in (4095, 8191):
        data = bytearray(small)
        data[at] = 1
        assert refused(repaired(data))


def test_a_name_stands_once() -> None:
    """A name that occurs twice is refused; otherwise readers could choose different sections."""
    data = bytearray(file_of({}, {"a": np.zeros(3), "b": np.ones(3)}))
    assert not refused(repaired(data))
    data[data.index(b"b" + bytes(31))] = ord("a")
    assert refused(repaired(data))


def test_sections_lie_end_to_end(small: bytes) -> None:
    """Overlapping sections are refused, and so are bytes that belong to no section."""
    spare = bytearray(small[:-24] + bytes(4096) + small[-24:])
    assert refused(sealed(spare, len(spare)))
    both = bytearray(file_of({}, {"a": np.zeros(512), "b": np.zeros(512)}))
    del both[8192:12288]
    table_b = PROLOGUE + 2 + ENTRY
    (checksum,) = struct.unpack_from("<I", both, table_b - ENTRY + 72)
    struct.pack_into("<QI", both, table_b + 64, 4096, checksum)  # b is a, so its checksum is right
    with pytest.raises(SnapshotError, match="gives section 1 a wrong place"):
        container.decode(sealed(both, len(both)))


@pytest.mark.parametrize("columns", [2**31, 2**62, 2**63, 2**64 - 1])
def test_no_size_is_too_large_to_be_refused(columns: int) -> None:
    """A section with 0 rows and a huge number of columns has 0 bytes, and is still refused."""
    data = bytearray(file_of({}, {"a": np.zeros((0, 3))}))
    struct.pack_into("<Q", data, PROLOGUE + 2 + 56, columns)
    assert refused(sealed(data, len(data)))


def test_D8_no_content_does_harm(runs: int) -> None:
    """Random parts of a snapshot are changed under correct checksums; see `tests/fuzz/snapshots.py`."""
    harm, outcomes = fuzz(runs, seed=0)
    assert harm == []
    assert min(outcomes.values()) > 0, outcomes


def test_D8_no_table_does_harm() -> None:
    """1,000 random tables with correct checksums are read or refused, without much memory."""
    whole = b"".join(snapshot_file.encode(example()))
    assert repaired(bytearray(whole)) == whole
    draw = random.Random(20)
    outcomes = {"read": 0, "refused by the container": 0, "refused by the model": 0}
    decoded = []
    tracemalloc.start()
    try:
        for _ in range(1_000):
            data = table_mutated(whole, draw)
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            try:
                snapshot_file.decode(data)
                decoded.append(data)
            except SnapshotError:
                outcomes["refused by the container"] += 1
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before <= 2 * len(data)
    finally:
        tracemalloc.stop()
    for data in decoded:
        try:
            restore_model(snapshot_file.decode(data))
            outcomes["read"] += 1
        except SnapshotError:
            outcomes["refused by the model"] += 1
    assert min(outcomes.values()) > 0, outcomes


@pytest.mark.parametrize("ahead", [0, 1])
def test_D8_no_header_does_harm(ahead: int) -> None:
    """Junk at any place of the header, under correct checksums, gives a model or one error sentence.

    In a file of this version and of a newer one, which may have more keys.
    """
    whole = container.decode(b"".join(snapshot_file.encode(example())))
    more = {"required": ["counts"], "telepathy": 1} if ahead else {}
    text = json.dumps(whole.header | more)
    n_refused = 0
    for way in places(json.loads(text)):
        for junk in (*JUNK, "absent"):
            header = json.loads(text)
            inner: Any = header
            for key in way[:-1]:
                inner = inner[key]
            if junk == "absent":
                del inner[way[-1]]
            else:
                inner[way[-1]] = junk
            data = bytearray(with_header(header, dict(whole.sections)))
            data[10:12] = struct.pack("<H", container.MINOR + ahead)
            try:
                restore_model(snapshot_file.decode(repaired(data)))
            except StreamnbError as error:
                n_refused += 1
                refusal = error
            else:
                continue
            assert refusal.what
            assert "\n" not in refusal.what
    assert n_refused > 500


def test_a_number_of_messages_that_no_stream_has_is_refused() -> None:
    """Run 28664 of seed 1: it was restored, and the compiled driver stopped at the next message."""
    for learned in (2**53, 2**63):
        snapshot = example()
        snapshot.values = snapshot.values | {"learned": learned}
        with pytest.raises(SnapshotError, match="number of messages"):
            restore_model(snapshot)


def test_inverses_beyond_all_number_are_refused() -> None:
    """Run 488389 of seed 701: two inverses with a count of 1e308 were added up before they were checked."""
    snapshot = mixed_example()
    facts = "block4_inverse_facts"
    snapshot.sections = dict(snapshot.sections) | {facts: np.array([[1e308, 0.0, 0.0]] * 2)}
    with pytest.raises(SnapshotError, match="inverses"):
        restore_model(snapshot)


@pytest.mark.parametrize("name", ["block5_counts", "class_counts", "counts", "totals"])
def test_counts_whose_sum_overflows_are_refused(name: str) -> None:
    """Run 375157 of seed 703: two counts of 1e308 are finite, but scoring failed at the next number."""
    snapshot = mixed_example()
    much = {name: np.full_like(snapshot.sections[name], 1e308)}
    snapshot.sections = dict(snapshot.sections) | much
    with pytest.raises(SnapshotError, match="negative or too large count"):
        restore_model(snapshot)


def test_a_header_that_is_no_object_is_refused() -> None:
    """A header that is not JSON is refused too."""
    for header in (list[int](), "x", None, 7):
        with pytest.raises(SnapshotError, match="not an object"):
            container.decode(with_header(header, {}))
    data = bytearray(file_of({"a": 1}, {}))
    data[PROLOGUE] = ord("[")
    with pytest.raises(SnapshotError, match="not JSON"):
        container.decode(repaired(data))


# ---- the stranger's reader, written from the description in container.py without streamnb's code


def test_the_strangers_checksum_is_castagnolis() -> None:
    """It gives the published check value of CRC-32C, and agrees with the library that streamnb uses."""
    assert strangers_reader.crc32c(b"123456789") == 0xE3069283
    assert strangers_reader.crc32c(bytes(range(256))) == crc32c(bytes(range(256)))


def test_a_stranger_reads_a_snapshot_whole() -> None:
    """It reads classes, tokens with their counts, and the offset to resume from."""
    header, sections = strangers_reader.read(b"".join(snapshot_file.encode(example())))
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
    assert set(sections) == set(snapshot_file.decode(b"".join(snapshot_file.encode(example()))).sections)


# ---- large containers


def test_a_large_container_is_read_two_sections_at_a_time() -> None:
    """The contents are the same, each section is allocated once, and damage is reported by section."""
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


# ---- compatibility


def test_the_first_snapshot_is_read_for_ever() -> None:
    """The file in tests/golden was written once, and every later version must read the same model from it.

    Version 0.1.0 wrote it before its release. It replaced an earlier golden file with another layout of
    tokens, because no user had snapshots in that layout.
    """
    snapshot = snapshot_file.decode(GOLDEN.read_bytes())
    model = build_model(decode_settings(snapshot.settings, "the golden snapshot"))
    model.restore(snapshot.values, snapshot.sections)
    assert model.digest() == snapshot.digest == GOLDEN_DIGEST
    assert snapshot.sequence == 7
    assert snapshot.accounts == example().accounts
    assert snapshot.source == example().source
    noted = {"event": "unicode changed", "before": "14.0.0", "after": "16.0.0"}
    assert snapshot.lineage == [*example().lineage, noted]
    assert model.predict_one({"text": "win"}) == "spam"
    assert differences(snapshot.statistics["model"], model.state_settings()) == []
    strangers_reader.read(GOLDEN.read_bytes())


if __name__ == "__main__" and sys.argv[1:] == ["--write-golden"]:  # only for a new major version
    GOLDEN.parent.mkdir(exist_ok=True)
    with GOLDEN.open("xb") as file:
        file.writelines(snapshot_file.encode(example()))


def test_the_reader_has_the_limits_of_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sections and of the header's bytes, to one."""
    header = {"a": "b" * 100}
    size = len(json.dumps(header, separators=(",", ":")))
    data = bytes(file_of(header, {name: np.zeros(3) for name in "abc"}))
    for name, fits in (("SECTIONS_MAX", 3), ("HEADER_BYTES_MAX", size)):
        with monkeypatch.context() as patch:
            patch.setattr(container, name, fits)
            assert container.decode(data).header == header
            patch.setattr(container, name, fits - 1)
            with pytest.raises(SnapshotError, match="too large"):
                container.decode(data)
