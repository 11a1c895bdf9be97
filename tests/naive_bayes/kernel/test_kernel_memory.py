"""The compiled store's memory: shown without a copy, taken over, left alone while somebody looks at it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from streamnb.base.frozen import Section
from streamnb.errors import SnapshotError
from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.statistics.counts import CountStore

pytestmark = pytest.mark.skipif(os.environ.get("STREAMNB_PURE", "") not in {"", "0"}, reason=_kernel.reason)

CLASSES = ["a", "b"]


def _grown(n: int) -> _kernel.CountStore:
    """Return a store of this many tokens, two views and two classes."""
    store = _kernel.CountStore(["words", "pairs"])
    store.add_class()
    store.add_class()
    for i in range(n):
        store["words" if i % 3 else "pairs"].add({f"token {i}": 1.0 + i % 5}, i % 2)
    return store


def _read(sections: Mapping[str, Section]) -> dict[str, Section]:
    """Sections as a snapshot's reader gives them: each in memory of its own."""
    read: dict[str, Section] = {}
    for key, array in sections.items():
        memory = _kernel.memory(array.nbytes)
        memory[:] = array.tobytes()
        read[key] = np.frombuffer(memory, array.dtype).reshape(array.shape)
    return read


def _restored_and_checked(store: _kernel.CountStore, sections: dict[str, Section]) -> None:
    store.restore(sections, 2)
    store.check_index()


def test_sections_that_were_read_are_taken_over() -> None:
    """Not copied: what was taken is no longer there to be taken twice, and the store learns on in it."""
    store = _grown(500)
    sections = _read(store.freeze())
    restored = _kernel.CountStore(["words", "pairs"])
    restored.restore(sections, 2)
    assert set(sections) == {"totals", "index_state"}
    restored["words"].add({"new": 1.0}, 0)
    store["words"].add({"new": 1.0}, 0)
    assert restored.digest(CLASSES).hex() == store.digest(CLASSES).hex()
    restored.check_index()


def test_sections_of_a_store_are_copied() -> None:
    """Two stores never share what one of them changes."""
    store = _grown(500)
    before, frozen = store.digest(CLASSES).hex(), store.freeze()
    for _ in range(2):
        restored = _kernel.CountStore(["words", "pairs"])
        restored.restore(frozen, 2)
        restored["words"].add({"new": 1.0}, 0)
        assert store.digest(CLASSES).hex() == before


def test_a_store_is_frozen_and_restored_while_it_grows() -> None:
    """Its index lies in two parts then; both are kept, and every token is found."""
    store = _grown(0)
    found = False
    for i in range(100_000):
        store["words"].add({f"token {i}": 1.0}, i % 2)
        if i < 91_750:  # seven tenths of 131,072 slots
            continue
        if i % 500 == 0:
            frozen = _read(store.freeze())
            found = found or "index_before" in frozen
            restored = _kernel.CountStore(["words", "pairs"])
            restored.restore(frozen, 2)
            restored.check_index()
            restored["words"].add({"new": 1.0, "token 5": 2.0}, 0)
            assert len(restored) == i + 2
    assert found


def test_what_was_frozen_stays_while_rare_tokens_are_let_go() -> None:
    """Eviction moves rows together; whoever still looks at the rows of before sees those."""
    store = _grown(3000)
    frozen, digest = store.freeze(), store.digest(CLASSES).hex()
    store.evict(2000)
    store["words"].add({f"later {i}": 1.0 for i in range(5000)}, 1)
    assert store.digest(CLASSES, frozen).hex() == digest
    assert not frozen["token_bytes"].flags.writeable


@pytest.mark.parametrize("damage", ["missing", "twice", "beyond", "short", "state", "of another type"])
def test_an_index_that_is_not_of_the_rows_is_refused(damage: str) -> None:
    """Whatever it says, no slot leads outside; what cannot be seen at once is seen by `check_index`."""
    sections = _read(_grown(200).freeze())
    index = sections["index"].copy()
    used = np.flatnonzero(index)
    if damage == "missing":
        index[used[0]] = 0
    elif damage == "twice":
        index[used[0]] = index[used[1]]
    elif damage == "beyond":
        index[used[0]] |= np.uint32(len(index) - 1)
    elif damage == "short":
        index = index[:128]
    elif damage == "state":
        sections["index_state"] = np.array([1, 5, 7, 3], np.uint64)
    else:
        index = index.astype(np.float64)
    sections["index"] = index
    restored = _kernel.CountStore(["words", "pairs"])
    with pytest.raises(SnapshotError):
        _restored_and_checked(restored, sections)


def test_slots_are_refused_from_the_first_row_that_does_not_exist() -> None:
    """At a start, before anything is looked up: each bound of a hostile index, by one."""
    rows, sections = 200, _read(_grown(200).freeze())
    index = sections["index"]
    mask = np.uint32(len(index) - 1)
    used = np.flatnonzero(index)

    past = index.copy()
    past[used[0]] = (past[used[0]] & ~mask) | np.uint32(rows + 1)
    full = np.zeros(256, np.uint32)
    full[:rows] = np.arange(1, rows + 1)
    version, seed, *_ = sections["index_state"].tolist()
    moving = np.array([version, seed, rows + 1, rows + 1], np.uint64)
    assert rows * 10 > len(full) * 7
    for name, damaged in (("index", past), ("index", full), ("index_state", moving)):
        restored = _kernel.CountStore(["words", "pairs"])
        with pytest.raises(SnapshotError, match="index"):
            restored.restore(sections | {name: damaged}, 2)
    last = np.array([version, seed, rows, rows], np.uint64)
    _restored_and_checked(_kernel.CountStore(["words", "pairs"]), sections | {"index_state": last})


@pytest.mark.parametrize("compiled", [True, False])
def test_halves_of_surrogate_pairs_are_no_text(compiled: bool) -> None:
    """As CESU-8 writes a character beyond the first plane; UTF-8 has four bytes for it."""
    kind: type[_kernel.CountStore | CountStore] = _kernel.CountStore if compiled else CountStore
    store = CountStore(["words"])
    store.add_class()
    store["words"].add({"abcdef": 1.0, "\U0001f600..": 1.0}, 0)
    sections = store.freeze()
    blob = sections["token_bytes"].copy()
    kind(["words"]).restore(dict(sections), 1)
    for half in (b"\xed\xa0\xbd\xed\xb8\x80", b"...\xed\xb8\x80", b"\xed\xa0\x80..."):
        blob[:6] = list(half)
        with pytest.raises(SnapshotError):
            kind(["words"]).restore(dict(sections) | {"token_bytes": blob}, 1)


def test_F19_each_store_draws_a_seed_of_its_own() -> None:
    """A sender who has the source does not know which tokens collide."""
    seeds = {int(_grown(3).freeze()["index_state"][1]) for _ in range(20)}
    assert len(seeds) == 20
    assert min(seeds) > 0


def test_an_index_of_another_hash_is_built_anew() -> None:
    """A later version may hash otherwise; its rows are the same."""
    store = _grown(200)
    sections = _read(store.freeze())
    sections["index_state"] = np.array([2, 5, 7, 3], np.uint64)
    restored = _kernel.CountStore(["words", "pairs"])
    restored.restore(sections, 2)
    restored.check_index()
    assert restored.digest(CLASSES).hex() == store.digest(CLASSES).hex()


@pytest.mark.parametrize(
    ("tokens", "kinds", "gone"), [(700, 5, 211), (30_000, 2, 9_000), (12_000, 1, 11_000)]
)
def test_eviction_is_the_plain_one_where_many_are_as_rare(tokens: int, kinds: int, gone: int) -> None:
    """Of equals the smaller hash goes first, however many they are; the mass is summed in that order."""
    plain, compiled = CountStore(["words", "pairs"]), _kernel.CountStore(["words", "pairs"])
    stores: list[CountStore | _kernel.CountStore] = [plain, compiled]
    for store in stores:
        store.add_class()
        store.add_class()
        for i in range(tokens):
            store["words" if i % 3 else "pairs"].add({f"token {i}": 0.1 + i % kinds}, i % 2)
        store.evict(gone)
    assert {view: dict(compiled[view].rows.items()) for view in plain} == {
        view: plain[view].rows for view in plain
    }
    assert compiled.evicted_mass == plain.evicted_mass
    compiled.check_index()


OUT_OF_MEMORY = """
import resource
from pathlib import Path
from streamnb import TEXT_ONLY, NaiveBayes

def row(letter):
    return {"text": " ".join(f"{letter}{i:050d}" for i in range(60_000))}

model = NaiveBayes(TEXT_ONLY, half_life_s=1.0, time_skew_max_s=1e9)
model.learn_one({"text": "early"}, "y", at=0.0)
model.learn_one(row("a"), "x", at=63.0)
before, late = model.class_counts_["x"], row("b")
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2_000_000, -1))
try:
    LEARN
except MemoryError:
    print(model.state.decay.landmark, model.learned_, model.class_counts_["x"] == before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the limit needs the memory in use")
@pytest.mark.parametrize(
    "learn",
    [
        'model.learn_one(late, "x", at=64.0)',
        'model.learn_many([late, late], ["x", "x"], at=[64.0, 64.0])',
        'model.learn_many([late, {"text": "soon"}], ["x", "x"], at=[64.0, 200.0])',
    ],
    ids=["one", "many", "many of which a later one moves it further"],
)
def test_F21_sums_and_landmark_move_together_when_memory_runs_out(learn: str) -> None:
    """The late message moves the landmark; then there is no room for its words."""
    ran = subprocess.run(
        [sys.executable, "-c", OUT_OF_MEMORY.replace("LEARN", learn)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert ran.stdout == "64 2 True\n"
