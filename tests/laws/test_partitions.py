"""Several engines, each over some partitions, learn together what one engine learns over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from streamnb.base.snapshot import Snapshot
from streamnb.cli import app
from streamnb.cli.snapshot.merge import merged
from streamnb.config import Settings, build_model, model_description
from streamnb.engine.engine import Engine
from streamnb.engine.model import Model
from streamnb.errors import PositionError, SnapshotError
from streamnb.storage import read_snapshot, write_snapshot
from streamnb.storage.directory import SnapshotDirectory
from streamnb.transports.memory import CRASH, Crash, MemoryLog, MemoryRecord, MemorySource
from streamnb.wire.message import Decoder, MessageFields
from tests.engine.test_engine import MemoryStore, Rig, addresses, filled, message, put_aside, stream

DIRECTORY = "snapshots"


def engine_over(it: Rig, store: MemoryStore, partitions: Sequence[int] | None) -> Engine:
    """Return an engine of the default settings over some partitions, with a store of its own."""
    chosen = Settings()
    model = Model("test", build_model(chosen), Decoder(MessageFields()), None, model_description(chosen))
    return it.engine(source=MemorySource(it.log, partitions), store=store, model=model)


def run(it: Rig, store: MemoryStore, partitions: Sequence[int] | None) -> Snapshot:
    """Run engines to the ends of the partitions, past every crash, and return the newest snapshot."""
    while True:
        engine = engine_over(it, store, partitions)
        try:
            engine.run()
            break
        except Crash:
            continue
        finally:
            engine.close()
    newest = store.newest()
    assert newest is not None
    return newest


def begun_with(snapshot: Snapshot) -> MemoryStore:
    """Return a store with one snapshot, as a directory into which its file was copied."""
    store = MemoryStore()
    store.write(snapshot)
    return store


def over_all(log: MemoryLog) -> Snapshot:
    """Return the snapshot of one engine over all partitions."""
    whole = MemoryLog(len(log.end))
    for element in log.elements:
        if isinstance(element, MemoryRecord):
            whole.append(element.value, element.partition, element.key, element.headers, element.timestamp_ms)
    return run(Rig(whole, MemoryStore), MemoryStore(), None)


def same(one: Snapshot, other: Snapshot) -> bool:
    """Return whether two snapshots hold the same counts and the same offsets and outcomes."""
    order_free = one.digest["order_free"] == other.digest["order_free"]
    return order_free and one.accounts == other.accounts and one.values["learned"] == other.values["learned"]


@given(st.lists(st.integers(0, 2), min_size=4, max_size=4), st.integers(0, 10**6), st.integers(0, 90))
@settings(max_examples=15)
def test_engines_over_disjoint_partitions_are_merged_to_one_over_all(
    owners: list[int], seed: int, crash_at: int
) -> None:
    """However the partitions are divided, and whenever an engine dies; one engine then goes on from there.

    Every record has a score or a dead letter. Only the order-free part of the state is equal: see the grades
    of exactness in docs/guarantees.md.
    """
    values: list[Any] = stream(90, seed)
    values.insert(crash_at, CRASH)
    it = Rig(filled(values, 4), MemoryStore)
    divided = [[p for p in range(4) if owners[p] == owner] for owner in range(3)]
    parts = [run(it, MemoryStore(), part) for part in divided if part]
    both = merged(*parts) if len(parts) > 1 else parts[0]
    assert same(both, over_all(it.log))
    every = {(n, offset) for n, end in enumerate(it.log.end) for offset in range(end)}
    assert set(addresses(it.scores)) | put_aside(it.aside) == every

    for i, value in enumerate(stream(40, seed + 1)):
        it.log.append(value, i % 4)
    assert same(run(it, begun_with(both), None), over_all(it.log))


def test_several_engines_go_on_from_a_merged_snapshot_and_are_merged_with_it() -> None:
    """They may divide the partitions in another way; what the merged snapshot holds counts once."""
    it = Rig(filled(stream(80), 4), MemoryStore)
    base = merged(run(it, MemoryStore(), [0, 1]), run(it, MemoryStore(), [2, 3]))
    for divided in ([[0], [1, 3], [2]], [[0, 1, 2], [3]]):
        for i, value in enumerate(stream(40, seed=len(it.log.elements))):
            it.log.append(value, i % 4)
        parts = [run(it, begun_with(base), part) for part in divided]
        with pytest.raises(SnapshotError, match="would count twice"):
            merged(*parts)
        base = merged(*parts, base=base)
        assert same(base, over_all(it.log))


def test_a_partition_that_moves_to_another_engine_is_not_counted_twice() -> None:
    """The second engine reads it from the beginning, and the first one's snapshot still has its offset."""
    it = Rig(filled(stream(60), 3), MemoryStore)
    stores = [MemoryStore(), MemoryStore()]
    run(it, stores[0], [0, 1])
    run(it, stores[1], [2])
    parts = [run(it, stores[0], [0]), run(it, stores[1], [1, 2])]
    what = "memory-1 was read twice: offsets 0 to 19 in the first snapshot and offsets 0 to 19 in the second"
    with pytest.raises(SnapshotError, match=what):
        merged(*parts)


CONFIG = """
[source]
kind = "jsonl"
path = "{path}.jsonl"
[sink]
kind = "jsonl"
path = "{path}-scores.jsonl"
[dead_letters.sink]
kind = "jsonl"
path = "{path}-dead.jsonl"
[engine]
start = "earliest"
[snapshots]
directory = "{path}-snapshots"
"""


def over_lines(path: Path, lines: Sequence[bytes], *words: str) -> Path:
    """Run the command over a file of lines, and return the path of its newest snapshot."""
    path.with_suffix(".jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    config = path.with_suffix(".toml")
    config.write_text(CONFIG.format(path=path))
    done = CliRunner().invoke(app, ["run", str(config), "--until-end", *words])
    assert done.exit_code == 0, done.output
    return max(Path(f"{path}-snapshots").glob("*.snb"))


def test_engines_over_the_parts_of_a_file_are_merged_to_one_over_the_file(tmp_path: Path) -> None:
    """A file is one partition, so each engine has a file; the merged model is for `run --from`."""
    lines = [message(i, text, label) for i, (text, label) in enumerate(mail())]
    parts = [over_lines(tmp_path / f"part{n}", lines[n::2]) for n in range(2)]
    whole = over_lines(tmp_path / "whole", lines)
    words = ["snapshot", "merge", *map(str, parts), "-o", str(tmp_path / "merged.snb")]
    refused = CliRunner().invoke(app, words)
    assert "--statistics-only" in str(getattr(refused.exception, "hint", ""))
    done = CliRunner().invoke(app, [*words, "--statistics-only"])
    assert done.exit_code == 0, done.output
    found = read_snapshot(tmp_path / "merged.snb")
    assert found.digest["order_free"] == read_snapshot(whole).digest["order_free"]
    assert found.values["learned"] == sum(label is not None for _, label in mail())

    further = over_lines(tmp_path / "further", lines[:10], "--from", str(tmp_path / "merged.snb"))
    assert read_snapshot(further).values["learned"] == found.values["learned"] + sum(
        label is not None for _, label in mail()[:10]
    )


def mail() -> list[tuple[str, str | None]]:
    """Return texts with their labels, of which some have none."""
    words, labels = ("win", "money", "lunch", "at", "noon", "neurips"), ("spam", "ham", None, "spam", "list")
    return [(f"{words[n % 6]} {words[n % 5]} {n // 7}", labels[n % 5]) for n in range(120)]


def test_the_file_of_a_merged_snapshot_is_resumed_from_another_directory(tmp_path: Path) -> None:
    """It is copied into an empty directory under the name of a first snapshot."""
    it = Rig(filled(stream(40), 2), MemoryStore)
    both = merged(run(it, MemoryStore(), [0]), run(it, MemoryStore(), [1]))
    write_snapshot(tmp_path / "merged.snb", both)
    (tmp_path / DIRECTORY).mkdir()
    target = tmp_path / DIRECTORY / "snapshot-0000000001.snb"
    target.write_bytes((tmp_path / "merged.snb").read_bytes())
    store = SnapshotDirectory(tmp_path / DIRECTORY)
    newest = store.newest()
    assert newest is not None
    assert same(newest, both)
    store.close()
    it.log.delete_before(1, 20)
    it.log.append(b'{"text": "later", "label": "ham"}', 1)
    engine = engine_over(it, begun_with(newest), None)
    assert engine.run().records == 1
    engine.close()


def test_another_log_is_not_gone_on_with() -> None:
    """The merged snapshot has the identity of the log of its parts."""
    it = Rig(filled(stream(40), 2), MemoryStore)
    both = merged(run(it, MemoryStore(), [0]), run(it, MemoryStore(), [1]))
    it.log.topic_id = "memory-2"
    with pytest.raises(PositionError, match="was re-created"):
        run(it, begun_with(both), None)
