"""What a snapshot costs: the stall while freezing, writing, loading, verifying; beside the bare file."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from streamnb.base.batch import Batch
from streamnb.config import load_snapshot, snapshot_of
from streamnb.storage import write_snapshot
from tests.bench.common import progress
from tests.bench.kernel_contenders import SPAM, built, shipped
from tests.bench.kernel_growth import Row, grow, labels_of, sizes_up_to, texts_of

FREEZES = 100
RUNS = 3


def by_snapshots(largest: int, folder: Path) -> list[Row]:
    """A row for one and for ten million tokens, two classes, the model of `spam.toml`.

    Parameters
    ----------
    largest : int
        Tokens.
    folder : Path
        On the disk that is to be measured.
    """
    rows = []
    for size in sizes_up_to(largest):
        if size >= 10**6:
            rows.append(one_size(size, folder))
            progress(f"snapshot of {size:,} tokens: frozen in {rows[-1]['stall, median ms']:.0f} ms")
    return rows


def one_size(size: int, folder: Path) -> Row:
    """Freeze between batches, then write and load in turn with a plain file of as many bytes, then verify."""
    settings = shipped(SPAM)
    model = built(settings, compiled=True)
    grow(model, 0, size)
    rng = np.random.default_rng(4)
    stalls = []
    for _ in range(FREEZES):
        texts = texts_of(rng.integers(0, size, 100_000))
        model.step(Batch({"text": texts}, labels_of(len(texts))))
        stalls.append(seconds(model.freeze))
    snapshot = snapshot_of(settings, model)
    del model
    file, plain = folder / "one.snb", folder / "plain"
    writes, plain_writes, loads, plain_loads = [], [], [], []
    for _ in range(RUNS):
        file.unlink(missing_ok=True)
        gc.collect()
        writes.append(seconds(lambda: write_snapshot(file, snapshot)))
        data = file.read_bytes()
        plain_writes.append(seconds(lambda data=data: write_plain(plain, data)))  # type: ignore[misc]
        del data
        loaded = built(settings, compiled=True)
        plain_loads.append(seconds(file.read_bytes))
        began = time.perf_counter()
        found = load_snapshot(file)
        loaded.restore(found.values, found.sections)
        loads.append(time.perf_counter() - began)
        del found
    began = time.perf_counter()
    assert loaded.digest() == snapshot.digest, "the snapshot is not the state that was frozen"
    verify = time.perf_counter() - began
    return {
        "model": SPAM,
        "vocabulary": size,
        "file, MB": file.stat().st_size / 1e6,
        "stall, median ms": median(stalls) * 1e3,
        "p99, ms": float(np.quantile(stalls, 0.99)) * 1e3,
        "write, ms": median(writes) * 1e3,
        "over plain write": median(ours / theirs for ours, theirs in zip(writes, plain_writes, strict=True)),
        "load, ms": median(loads) * 1e3,
        "over plain read": median(ours / theirs for ours, theirs in zip(loads, plain_loads, strict=True)),
        "digest, ms": verify * 1e3,
    }


def write_plain(path: Path, data: bytes) -> None:
    """A new file and its bytes on the disk."""
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def seconds(act: Callable[[], object]) -> float:
    """How long it takes; freeing the result is not counted."""
    began = time.perf_counter()
    result = act()
    took = time.perf_counter() - began
    del result
    return took
