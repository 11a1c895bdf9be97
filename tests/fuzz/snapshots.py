"""Changed snapshots with correct checksums: ``python -m tests.fuzz.snapshots --runs 100000``.

Each run changes the table, the header or the numbers of a snapshot and corrects all checksums. Then the file
is read and restored, and the model learns and is frozen. The result must be a working model or an error of
one sentence, within a second and a few megabytes. Anything else is printed with the run that reproduces it.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import struct
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from crc32c import crc32c

from streamnb.base.batch import Batch
from streamnb.base.offsets import Account
from streamnb.base.record import Partition
from streamnb.base.snapshot import Snapshot
from streamnb.config import Settings, build_model, decode_settings, restore_model, snapshot_of
from streamnb.engine.guard import Guard, GuardSettings
from streamnb.engine.model import GUARD
from streamnb.errors import StreamnbError
from streamnb.storage import container, snapshot_file

PROLOGUE = 32
ENTRY = 80
SECONDS_MAX = 1.0
MIXED = {
    "model": {"head": "product"},
    "message": {"text": ["text"], "number": ["amount", "a", "b"], "category": ["country"], "flag": ["known"]},
    "views": [
        {"name": "coins", "reader": {"kind": "words"}, "event_model": {"kind": "bernoulli"}},
        {"name": "amount", "reader": {"kind": "number", "field": "amount"}},
        {"name": "country", "reader": {"kind": "categories", "fields": ["country"]}},
        {"name": "known", "reader": {"kind": "flags", "fields": ["known"]}},
        {
            "name": "both",
            "reader": {"kind": "numbers", "fields": ["a", "b"]},
            "event_model": {"kind": "multivariate"},
        },
        {
            "name": "range",
            "reader": {"kind": "numbers", "fields": ["a", "b"]},
            "event_model": {"kind": "binned", "bins": 2},
        },
    ],
}


def example() -> Snapshot:
    """Return a small snapshot of a model with two classes, a position and a lineage."""
    loaded = Settings()
    model = build_model(loaded)
    for text, label in (("win money now", "spam"), ("lunch at noon", "ham"), ("win a prize", "spam")) * 3:
        model.learn_one({"text": text}, label)
    snapshot = snapshot_of(loaded, model)
    snapshot.source = {"cluster": "c-1", "topic mail": "t-1"}
    snapshot.accounts = {Partition("mail", 0): Account(0, 11, scored=9, dead_lettered=1, gaps=1)}
    snapshot.lineage = [{"event": "begun from a snapshot", "digest": "00"}]
    snapshot.written_ms = 1_700_000_000_000
    snapshot.streamnb = "0.1.0"
    return snapshot.numbered(7)


def file_of(header: dict[str, Any], sections: dict[str, Any]) -> bytes:
    """Return the bytes of a container."""
    return b"".join(container.encode(header, sections))


def repaired(data: bytearray) -> bytes:
    """Return a file with all checksums corrected, of the sections where its table puts them."""
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
    """Return a file with its size and its header's checksum corrected."""
    n_sections, header_size = struct.unpack_from("<IQ", data, 12)
    head_size = PROLOGUE + header_size + ENTRY * n_sections
    head_end = head_size + -head_size % 4096
    struct.pack_into("<Q", data, 24, size)
    struct.pack_into("<QI", data, len(data) - 16, size, crc32c(bytes(data[:head_end])))
    return bytes(data)


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


def table_mutated(whole: bytes, draw: random.Random) -> bytes:
    """Return a file with one to three fields of its prologue or table changed, and correct checksums."""
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
    """Return the path of every value inside a JSON value."""
    found = [way] if way else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*way, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            found += places(inner, (*way, i))
    return found


def with_header(header: object, sections: dict[str, Any]) -> bytes:
    """Return a container with any header, even one that `container.encode` cannot write."""
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


def header_mutated(whole: container.Contents, draw: random.Random) -> bytes:
    """Return a container with junk in one to three places of its header."""
    header = json.loads(json.dumps(whole.header))
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        way = draw.choice(places(header))
        inner: Any = header
        for key in way[:-1]:
            inner = inner[key]
        if isinstance(inner, dict) and draw.random() < 0.1:
            del inner[way[-1]]
        else:
            inner[way[-1]] = json.loads(
                json.dumps(draw.choice(JUNK))
            )  # a copy, as the next round may change it
    return with_header(header, dict(whole.sections))


def numbers_mutated(whole: container.Contents, draw: random.Random) -> bytes:
    """Return a container with changed numbers, or with a section cut, doubled or replaced by another."""
    sections: dict[str, Any] = {name: array.copy() for name, array in whole.sections.items()}
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        name, other = draw.choice(list(sections)), draw.choice(list(sections))
        match draw.randrange(12):
            case 0:
                sections[name] = sections[name][: draw.randrange(len(sections[name]) + 1)]
            case 1:
                sections[name] = np.concatenate([sections[name], sections[name]])
            case 2:
                sections[name] = sections[other]
            case _ if sections[name].size:
                flat = sections[name].reshape(-1).view(np.uint8)
                size = sections[name].dtype.itemsize
                at = size * draw.randrange(sections[name].size)
                if sections[name].dtype.kind == "f":
                    far = draw.choice([np.nan, np.inf, -1.0, -0.0, 1e308, 5e-324, 2.0**53, draw.random()])
                    with np.errstate(over="ignore", under="ignore"):
                        flat[at : at + size] = np.array([far]).astype(sections[name].dtype).view(np.uint8)
                elif draw.random() < 0.5:
                    flat[at : at + size] = np.frombuffer(draw.randbytes(size), np.uint8)
                else:
                    flat[at] ^= 1 << draw.randrange(8)
    return file_of(whole.header, sections)


def mixed_example() -> Snapshot:
    """Return a snapshot of a model with many kinds of views."""
    settings = decode_settings(MIXED, "the example")
    model = build_model(settings)
    for i in range(210):  # enough for the ranges to settle
        message = {"text": f"word{i % 5} a", "amount": 1.5 * i, "country": "nx"[i % 2], "known": i % 3 == 0}
        model.learn_one({**message, "a": float(i), "b": i * 0.5}, ("spam", "ham")[i % 2])
    return snapshot_of(settings, model)


def forgetful_example() -> Snapshot:
    """Return a snapshot of a model that forgets by time, with the state of a guard."""
    settings = decode_settings({"forgetting": {"half_life_s": 5.0}}, "the example")
    model, guard = build_model(settings), Guard(GuardSettings(source="country", learn_below=0.9))
    for i in range(40):
        fields = {"text": [f"word{i % 7} a"], "country": ["nx"[i % 2]]}
        batch = Batch(fields, [("spam", "ham")[i % 2]], times=[20.0 * i], partition="mail-0")
        guard.step(model, Partition("mail", 0), [i], batch)
    snapshot = snapshot_of(settings, model)
    values, sections = guard.freeze()
    return replace(
        snapshot, values={**snapshot.values, GUARD: values}, sections={**snapshot.sections, **sections}
    )


def outcome_of(data: bytes) -> str:
    """Return whether a file is read, or what refuses it; other exceptions are passed on."""
    try:
        snapshot = snapshot_file.decode(data)
    except StreamnbError as error:
        return _checked(error, "refused by the container")
    try:
        _, model = restore_model(snapshot)
    except StreamnbError as error:
        return _checked(error, "refused by the model")
    guard = Guard(GuardSettings(source="country"))
    try:
        guard.restore(snapshot.values.get(GUARD), snapshot.sections)
    except StreamnbError as error:
        return _checked(error, "refused by the guard")
    texts = ["win a prize", "word1 word2 a neurips", ""]
    numbers: list[object] = [1.0, None, 3.0]
    columns: dict[str, list[object]] = {"text": [*texts], "amount": numbers, "a": numbers, "b": numbers}
    columns["country"] = ["n", None, "neurips"]
    if all(isinstance(label, str) for label in model.classes_):
        with np.errstate(all="ignore"):  # numbers near 1e308 are possible, and their sums overflow
            batch = Batch(columns, [None, "spam", "ham"], times=[900.0, None, 1e9], partition="mail-0")
            guard.step(model, Partition("mail", 0), range(3), batch)
    frozen = model.freeze()
    assert frozen.digest() == model.digest()
    return "read"


def _checked(error: StreamnbError, outcome: str) -> str:
    assert error.what
    assert "\n" not in error.what
    return outcome


def fuzz(runs: int, seed: int, first: int = 0) -> tuple[list[str], Counter[str]]:
    """Change snapshots at random, and return the failures and the counts of outcomes.

    Parameters
    ----------
    runs : int
    seed : int
        Run i of a seed is always the same.
    first : int
        The first run's i.

    Returns
    -------
    list of str
        One line per failure.
    Counter of str
        How many snapshots were read, and how many were refused by each part of streamnb.
    """
    wholes = [
        b"".join(snapshot_file.encode(snapshot))
        for snapshot in (example(), mixed_example(), forgetful_example())
    ]
    contents = [container.decode(whole) for whole in wholes]
    assert [repaired(bytearray(whole)) for whole in wholes] == wholes
    harm, outcomes = [], Counter[str]()
    for i in range(first, first + runs):
        draw = random.Random(f"{seed}/{i}")
        which = draw.randrange(len(wholes))
        match draw.randrange(5):
            case 0:
                data = table_mutated(wholes[which], draw)
            case 1 | 2:
                data = header_mutated(contents[which], draw)
            case _:
                data = numbers_mutated(contents[which], draw)
        began_s = time.thread_time()
        try:
            outcomes[outcome_of(data)] += 1
        except Exception as error:  # noqa: BLE001 - any other exception is a failure
            harm.append(f"run {i} of seed {seed}: {error!r}")
        if (took_s := time.thread_time() - began_s) > SECONDS_MAX:
            harm.append(f"run {i} of seed {seed}: {took_s:.1f} s")
    return harm, outcomes


def _limit_memory(more_bytes: int) -> None:
    """Limit this process to `more_bytes` of further memory, so that a huge allocation is a MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    """Run the fuzzer, print the failures, and fail if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the first run, for example one that failed")
    wanted = parser.parse_args()
    fuzz(200, wanted.seed)
    _limit_memory(8 << 20)  # slack for the allocator; the files have only 60 KB
    began_s = time.perf_counter()
    harm, outcomes = fuzz(wanted.runs, wanted.seed, wanted.first)
    for line in harm:
        print(line)
    rate = wanted.runs / (time.perf_counter() - began_s)
    print(
        f"{wanted.runs} snapshots of seed {wanted.seed}: {len(harm)} did harm; {dict(outcomes)}; {rate:.0f}/s"
    )
    sys.exit(bool(harm))


if __name__ == "__main__":
    main()
