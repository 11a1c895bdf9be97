"""Odd record batches through both readers: ``python -m tests.fuzz.kafka_batches --runs N --seed S``.

A fetch is a few batches of every codec, with headers, keys, gaps and transactions, whose bytes are changed
before or after the checksum was made. It is taken in pieces, some of which end at the poll's budget. The
records, the unreadable offsets with their causes, the positions and the errors must be the same in columns
and one by one. A difference is printed with the seed that reproduces it.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from types import SimpleNamespace
from typing import NamedTuple

from kafka import TopicPartition
from kafka.protocol.consumer import IsolationLevel
from kafka.record.memory_records import MemoryRecords

from streamnb.base import Unreadable
from streamnb.transports.kafka import records
from streamnb.transports.kafka.columns import Columns, batch_of
from tests.support.raw_batches import (
    APPEND_TIME,
    CODECS,
    CONTROL,
    TRANSACTIONAL,
    raw_batch,
    raw_record,
    varint,
)

PLACE = TopicPartition("fuzz", 0)
UNPACKED_MAX = 1 << 16
TAKES_MAX = 2_000
OFFSET_MAX = (1 << 63) - 1
PRODUCERS = (-1, -1, -1, 4, 5)
ODD_NUMBERS = (-(1 << 63), (1 << 63) - 1, -1, -2, -5, 0, 1, 63, 64, 1 << 31, 1 << 40, 100_001)
HEADERS = (
    b"\0\0",
    b"\0\1",
    varint(1) + b"a" + varint(-1),
    varint(2) + "é".encode() + varint(3) + b"\0\1\2",
    varint(1) + b"\xff" + varint(1) + b"x",
    varint(3) + b"\xed\xa0\x80" + varint(0),
    varint(-1) + varint(0),
    varint(9) + b"streamnb.",
)


class Take(NamedTuple):
    """One call of the client: how many records it wants, and how many bytes are left for them."""

    n: int
    bytes_left: int


class Fetch(NamedTuple):
    """The bytes of a fetch and how it is read."""

    data: bytes
    offset: int
    aborted: tuple[tuple[int, int], ...]
    takes: tuple[Take, ...]


def outcome(fetch: Fetch, *, in_columns: bool) -> tuple[list[str], Counter[str]]:
    """Return everything that a reader lets be seen of a fetch, and how many records it took in which way."""
    budget, unreadable = records._Budget(), list[tuple[TopicPartition, Unreadable]]()
    seen: list[str] = []
    ways: Counter[str] = Counter()
    try:
        part = records._PartitionRecords(
            budget, unreadable, UNPACKED_MAX, in_columns, fetch.offset, PLACE, MemoryRecords(fetch.data),
            isolation_level=IsolationLevel.READ_COMMITTED,
            aborted_transactions=[
                SimpleNamespace(first_offset=first, producer_id=producer) for first, producer in fetch.aborted
            ],
        )  # fmt: skip
        for i in range(TAKES_MAX):
            take = fetch.takes[i % len(fetch.takes)]
            budget.left = take.bytes_left
            taken = part.take(take.n)
            for piece in taken:
                ways["columns" if isinstance(piece, Columns) else "singly"] += (
                    len(piece) if isinstance(piece, Columns) else 1
                )
            assert len(taken) <= take.n
            batch = batch_of(PLACE, taken, part.next_fetch_offset)
            assert len(batch) == len(taken)
            state = (budget.left, part.leader_epoch, part.bytes_read, part.records_read, unreadable)
            seen.append(f"{batch} {state}")
            if part.record_iterator is None:
                break
    except Exception as error:  # noqa: BLE001 part of what is compared
        seen.append(f"{error!r} {unreadable}")
    ways["unreadable"] += sum(one.next_offset - one.first_offset for _, one in unreadable)
    return seen, ways


def compare(fetch: Fetch) -> Counter[str]:
    """Read a fetch in both ways and return how many records were taken in which way.

    Raises
    ------
    AssertionError
        The ways differ.
    """
    plain, _ = outcome(fetch, in_columns=False)
    columns, ways = outcome(fetch, in_columns=True)
    for i, (one, other) in enumerate(zip(plain, columns, strict=False)):
        assert one == other, f"take {i} of {fetch!r}:\n{one}\n{other}"
    assert len(plain) == len(columns), f"{len(plain)} takes are {len(columns)} of {fetch!r}"
    return ways


def drawn(draw: random.Random) -> Fetch:
    """Return a random fetch."""
    batches, base = [], draw.choice((0, 0, 7, 1 << 40, (1 << 63) - 9))
    first = base
    for _ in range(draw.randrange(1, 5)):
        batch, size = _batch(base, draw)
        batches.append(batch)
        base = min(base + size + draw.choice((0, 0, 0, 3)), OFFSET_MAX)
    data = b"".join(batches)
    if draw.random() < 0.1:
        data = _changed(data, draw)
    aborted = tuple(
        (first + draw.randrange(30), draw.choice((4, 5))) for _ in range(draw.choice((0, 0, 1, 2)))
    )
    takes = tuple(
        Take(draw.choice((1, 2, 5, 1000)), draw.choice((8 << 20, 8 << 20, 1, 50, 300)))
        for _ in range(draw.randrange(1, 4))
    )
    return Fetch(data, min(first + draw.choice((0, 0, 0, 1, 4, 30)), OFFSET_MAX), aborted, takes)


def _batch(base: int, draw: random.Random) -> tuple[bytes, int]:
    """Return a batch and how many offsets it has."""
    count = draw.choice((0, 1, 2, 3, 8, 20))
    deltas = sorted(draw.sample(range(count + 4), count)) if draw.random() < 0.4 else list(range(count))
    if draw.random() < 0.05:
        draw.shuffle(deltas)
    found = [_record(delta, draw) for delta in deltas]
    producer = draw.choice(PRODUCERS)
    attributes = draw.choice((0, 0, 0, APPEND_TIME)) | (TRANSACTIONAL if producer > 0 else 0)
    if producer > 0 and draw.random() < 0.2:
        attributes |= CONTROL
        found = [raw_record(0, b"\0" * 6, key=bytes((0, 0, 0, draw.randrange(2))))]
    stated = len(found)
    match draw.randrange(12):
        case 0:
            stated += draw.choice((-1, 1, 5, 1 << 30))
        case 1:
            found.append(draw.randbytes(draw.randrange(1, 5)))
        case 2 | 3 | 4:
            found = [_changed(b"".join(found), draw)]
    last = deltas[-1] if deltas and draw.random() < 0.9 else count + draw.choice((-1, 0, 4))
    batch = raw_batch(
        found,
        draw.choice(list(CODECS)),
        first_ms=draw.choice((0, 1_700_000_000_000, -1, (1 << 63) - 2)),
        max_ms=draw.choice((0, 1_700_000_000_999, -1)),
        base_offset=base,
        attributes=attributes,
        producer=producer,
        last_delta=last,
        count=max(-(1 << 31), stated),
    )
    return batch, max(count, last) + 1


def _record(delta: int, draw: random.Random) -> bytes:
    value = None if draw.random() < 0.1 else draw.randbytes(draw.choice((0, 1, 20, 70, 300)))
    key = None if draw.random() < 0.6 else draw.randbytes(draw.choice((0, 1, 9, 80)))
    after_ms = draw.choice((0, 1, 5, -3, 1000, -(1 << 40), draw.choice(ODD_NUMBERS)))
    n = 0 if draw.random() < 0.7 else draw.choice((1, 2, 3, 40))
    name = draw.choice(HEADERS[:4]) if draw.random() < 0.8 else draw.choice(HEADERS)
    if draw.random() < 0.02:
        delta = draw.choice(ODD_NUMBERS)
    return raw_record(delta, value, key=key, after_ms=after_ms, n_headers=n, header=name)


def _changed(data: bytes, draw: random.Random) -> bytes:
    """Return bytes with a few of them changed, dropped, doubled or replaced."""
    blob = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        at = draw.randrange(len(blob) + 1)
        match draw.randrange(7):
            case 0:
                del blob[at : at + draw.randrange(1, 9)]
            case 1:
                blob[at:at] = blob[at : at + draw.randrange(1, 90)]
            case 2:
                blob[at : at + 1] = varint(draw.choice(ODD_NUMBERS))
            case 3:
                blob[at:at] = b"\x80" * draw.choice((1, 2, 8, 9, 10)) + draw.choice((b"\0", b"\1", b"\2"))
            case 4:
                del blob[at:]
            case _ if at < len(blob):
                blob[at] ^= 1 << draw.randrange(8)
    return bytes(blob)


def campaign(runs: int, seed: int) -> Counter[str]:
    """Compare so many random fetches.

    Raises
    ------
    AssertionError
        The ways differ; the error has the seed and the number of the run.
    """
    total: Counter[str] = Counter()
    for number in range(runs):
        fetch = drawn(random.Random(f"{seed} {number}"))
        try:
            total += compare(fetch)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, run {number}: {error}") from error
    return total


def main() -> int:
    """Run and print what was read."""
    parser = argparse.ArgumentParser(description="Odd record batches, read in columns and one by one.")
    parser.add_argument("--runs", type=int, default=20_000, help="how many fetches (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if not records.columns_fit():
        print("the compiled reader was not built, or is not wanted", file=sys.stderr)
        return 1
    try:
        total = campaign(options.runs, options.seed)
    except AssertionError as error:
        print(error)
        return 1
    print(f"{options.runs:,} fetches: " + ", ".join(f"{n:,} {way}" for way, n in sorted(total.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
