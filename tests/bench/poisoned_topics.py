"""Topics that attack an engine: its labels, its clock, its memory, its account of records.

Each yields batches as a hostile producer would write them. In all of them some messages are good, so that the
engine has no reason to stop, and so that one sees whether it goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import orjson

from tests.support.raw_batches import raw_batch, raw_record

MIB = 1 << 20
BATCH_BYTES = 900_000
DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
LONG = "𐐀𐐁𐐂𐐃𐐄𐐅𐐆𐐇"  # letters of four bytes
MANY_CLASSES = 3_000


class Transaction(NamedTuple):
    """Messages of one Kafka transaction."""

    values: Sequence[bytes]
    committed: bool


Sent = bytes | Transaction
Draw = random.Random


class Topic(NamedTuple):
    """A topic that attacks.

    Parameters
    ----------
    what : str
        For the table.
    batches : function of a random number generator and a number of messages
        What is sent, in order.
    settings : tuple of str
        What the engine needs, as for ``--set``.
    unbounded : tuple of str
        The clients that documentedly do not bound the memory that it takes.
    """

    what: str
    batches: Callable[[Draw, int], Iterator[Sent]]
    settings: tuple[str, ...] = ()
    unbounded: tuple[str, ...] = ()


def message(draw: Draw, label: object = None, **more: object) -> bytes:
    """Return a good message of words out of 2,000, with a label of its own choice if none is given."""
    words = [f"w{int(draw.paretovariate(0.8)) % 2_000}" for _ in range(15)]
    return orjson.dumps({"text": " ".join(words), "label": label or draw.choice(["spam", "ham"]), **more})


def packed(values: Iterator[bytes | None], codec: str = "none") -> Iterator[bytes]:
    """Yield batches of values, of about `BATCH_BYTES` before they are compressed."""
    records: list[bytes] = []
    size = 0
    for value in values:
        if records and size + len(value or b"") > BATCH_BYTES:
            yield raw_batch(records, codec, first_ms=NOW_MS, max_ms=NOW_MS)
            records, size = [], 0
        records.append(raw_record(len(records), value))
        size += len(records[-1])
    if records:
        yield raw_batch(records, codec, first_ms=NOW_MS, max_ms=NOW_MS)


def alone(value: bytes | None, codec: str = "none", **more: object) -> bytes:
    """Return a batch of one record."""
    return raw_batch([raw_record(0, value, **more)], codec, first_ms=NOW_MS, max_ms=NOW_MS)  # type: ignore[arg-type]


def clean(draw: Draw, n: int) -> Iterator[Sent]:
    """Good messages only."""
    yield from packed(message(draw) for _ in range(n))


def invented_labels(draw: Draw, n: int) -> Iterator[Sent]:
    """Every token is new, and of the labels one in twenty."""

    def value() -> bytes:
        label = f"l{draw.getrandbits(30)}" if draw.random() < 0.05 else draw.choice(["spam", "ham"])
        text = " ".join(f"t{draw.getrandbits(40)}" for _ in range(15))
        return orjson.dumps({"text": text, "label": label})

    yield from packed(value() for _ in range(n))


def odd_labels(draw: Draw, n: int) -> Iterator[Sent]:
    """Labels at and beyond the limit of bytes, of every type, with control characters and surrogates."""
    kinds = [
        *(
            "x" * 254,
            "x" * 255,
            "é" * 127,
            "é" * 128,
            "\\" * 127,
            '"' * 128,
            "",
            " ",
            "\t",
            "\x00",
            "\x1b[31m",
        ),
        *("\u202espam", "\u200b", "spam ", "SPAM", "\ufeff", 0, 1, -1, 1.5, 1e300, 2**63, True, False),
        *([], {}, [1], {"spam": 1}, ["spam"], "null", "true", "1", "NaN", "__proto__", "a" * 100_000),
    ]

    def value(i: int) -> bytes:
        if i % 4 == 0:
            # Each is a class of its own: 254 bytes, and the twelve characters in front differ.
            return message(draw, f"{draw.getrandbits(40):012x}" + "y" * 242)
        if i % 4 == 1:
            return message(draw, kinds[i // 4 % len(kinds)] or "ham")
        return message(draw)

    yield from packed(value(i) for i in range(n))
    yield alone(b'{"text": "a", "label": "\\ud800"}')
    yield alone(b'{"text": "a", "label": 1e400}')
    yield alone(b'{"text": "a", "label": null}')
    yield alone(b'{"text": "a", "label": "spam", "label": {}}')


def timestamps(draw: Draw, n: int) -> Iterator[Sent]:
    """Timestamps of -1, 0, the year 292277026, far past and far future in turn, and in small steps."""
    ends = (-1, 0, 1, (1 << 63) - 1, 1 << 62, -(1 << 63), 10**15, 10**15 + 1, 253_402_300_800_000)
    near = NOW_MS
    for i in range(n // 20):
        near += draw.choice([1_000, 60_000, 3_599_000])
        stamp = (near, ends[i % len(ends)], near + (-1) ** i * 400 * DAY_MS, near)[i % 4]
        records = [raw_record(j, message(draw)) for j in range(20)]
        yield raw_batch(records, first_ms=stamp, max_ms=stamp)
    # One batch whose first timestamp and deltas overflow 64 bits when they are added.
    for first, delta in ((1 << 62, 1 << 62), (-(1 << 62), -(1 << 62)), (0, -1)):
        records = [raw_record(0, message(draw)), raw_record(1, message(draw), after_ms=delta)]
        yield raw_batch(records, first_ms=first, max_ms=max(first, first + delta) % (1 << 63))


def compressed_bombs(draw: Draw, n: int) -> Iterator[Sent]:
    """Batches of all codecs that expand a thousandfold, below and above the limit of 32 MiB."""
    for codec, sizes in {
        "gzip": (30, 31, 200, 900),
        "zstd": (30, 31, 200, 900),
        "lz4": (30, 31, 200),
        "snappy": (15, 18),
    }.items():
        for size in sizes:
            yield from packed(message(draw) for _ in range(max(1, n // 100)))
            yield alone(bytes(size * MIB), codec)
            # Many records that are each allowed, in one batch.
            value = orjson.dumps({"text": "a", "label": "spam", "x": " " * 1_000_000})
            if size < 100:
                yield raw_batch([raw_record(i, value) for i in range(size - 1)], codec)
    yield from packed(message(draw) for _ in range(max(1, n // 100)))


def small_bombs(draw: Draw, n: int) -> Iterator[Sent]:
    """Compressed batches of a hundred thousand small records each, half of them not messages."""
    many = min(10 * n, 200_000)
    for _ in range(max(1, n // 10_000)):
        yield from packed(message(draw) for _ in range(max(1, n // 100)))
        for value in (b'{"text":"a","label":"spam"}', b"{}", b"", None):
            yield raw_batch([raw_record(i, value) for i in range(many // 4)], "zstd")
        yield raw_batch([raw_record(i, b'{"text":"a"}') for i in range(many // 2)], "gzip")


def large_records(draw: Draw, n: int) -> Iterator[Sent]:
    """Records around 1 MiB, uncompressed and random, of text, of an unread field, and of no message."""
    for i in range(max(10, n // 100)):
        size = MIB - draw.choice([0, 40, 100, 1_000])
        words = " ".join(f"{draw.getrandbits(40):x}" for _ in range(size // 11))
        noise = draw.randbytes(size // 2).hex()
        yield alone(orjson.dumps({"text": words, "label": draw.choice("ab")}))
        yield alone(message(draw, x=noise))
        yield alone(b"\xff" * size)
        yield alone(b'{"text":"' + b"a" * size + b'"}', key=b"k" * (100_000 if i % 2 else 60_000))


def huge_records(draw: Draw, n: int) -> Iterator[Sent]:
    """Records of 5 to 60 MiB, which a topic takes only if its `max.message.bytes` was raised."""
    for size in (5, 20, 60):
        yield alone(draw.randbytes(size * MIB // 2).hex().encode())
        yield alone(b'{"text":"' + draw.randbytes(size * MIB // 2).hex().encode() + b'"}')
        yield from packed(message(draw) for _ in range(n // 100))


def json_bombs(draw: Draw, n: int) -> Iterator[Sent]:
    """Nested JSON, arrays of a million objects, long integers, and names of fields of a megabyte."""
    head = b'{"text":"a","label":"spam","x":'
    kinds = [
        head + b"[" * 1_020 + b"]" * 1_020 + b"}",
        head + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 180_000,
        head + b"[" + b"{}," * 340_000 + b"{}]}",
        head + b"[" + b"[]," * 340_000 + b"[]]}",
        head + b"[" + b'{"":1},' * 148_000 + b"{}]}",
        head + b"{" + b",".join(b'"%x":1' % i for i in range(90_000)) + b"}}",
        head + b"9" * 1_000_000 + b"}",
        head + b"-" + b"9" * 300 + b"}",
        head + b"0." + b"1" * 1_000_000 + b"}",
        b'{"text":"a","label":"spam","' + b"n" * 1_000_000 + b'":1}',
        b'{"text":"a","label":"spam",'
        + b",".join(b'"' + b"%x" % i * 200 + b'":1' for i in range(800))
        + b"}",
        b'{"text":"' + b"\\u0041" * 170_000 + b'","label":"ham"}',
        b'{"text":"' + "ﷺ".encode() * 300_000 + b'","label":"ham"}',
        b'{"text":"' + "İ".encode() * 500_000 + b'","label":"ham"}',
        b'{"text":"' + b"e" + "́".encode() * 500_000 + b'","label":"ham"}',
        b'{"id":"' + b"i" * 1_000_000 + b'","text":"a"}',
    ]
    for _ in range(max(2, n // 1_000)):
        for kind in kinds:
            yield from packed(message(draw) for _ in range(10))
            yield alone(kind, "gzip")
    for kind in kinds:  # many in one batch: a poll of them must not be parsed at once
        if len(kind) < MIB:
            yield raw_batch([raw_record(i, kind) for i in range(20)], "gzip")


def long_categories(draw: Draw, n: int) -> Iterator[Sent]:
    """Categories of nearly 1 MiB, all different."""
    for i in range(n // 10):
        yield alone(message(draw, sender=f"{i}" + "x" * 1_000_000))


def long_tokens(draw: Draw, n: int) -> Iterator[Sent]:
    """Messages of 400 tokens of 64 letters of four bytes, all new."""

    def value() -> bytes:
        text = " ".join("".join(draw.choices(LONG, k=64)) for _ in range(400))
        return orjson.dumps({"text": text, "label": draw.choice("ab")})

    yield from packed(value() for _ in range(n // 10))


def many_classes(draw: Draw, n: int) -> Iterator[Sent]:
    """Labels of 3,000 classes."""
    yield from packed(message(draw, f"class {i % MANY_CLASSES}") for i in range(n))


def many_headers(draw: Draw, n: int) -> Iterator[Sent]:
    """Records of 1,000 to a million headers, of headers with a bad name, and of large headers."""
    for count in (1_000, 1_001, 100_000, 300_000, 1_000_000):
        yield from packed(message(draw) for _ in range(n // 100))
        yield alone(message(draw), "gzip", n_headers=count)
        records = [raw_record(i, message(draw), n_headers=1_000) for i in range(1_000)]
        yield raw_batch(records, "gzip")
    yield alone(message(draw), n_headers=3, header=b"\x04\xff\xfe\x01")
    yield alone(message(draw), n_headers=3, header=b"\x02a\x01")
    yield alone(message(draw), "gzip", n_headers=60, header=b"\x02a" + b"\x80\x89\x7a" + bytes(1_000_000))
    yield from packed(message(draw) for _ in range(n // 100))


def millions_of_headers(draw: Draw, n: int) -> Iterator[Sent]:
    """Records with 31 million empty headers each, of 64 kB as they are sent."""
    for _ in range(3):
        yield from packed(message(draw) for _ in range(n // 100))
        yield alone(message(draw), "gzip", n_headers=31_000_000)
    yield from packed(message(draw) for _ in range(n // 100))


def nothing(draw: Draw, n: int) -> Iterator[Sent]:
    """Empty values, tombstones, control batches, and transactions that were aborted."""
    kinds: list[bytes | None] = [b"", None, b" ", b"null", b"{}", b"[]", b"0"]
    for i in range(max(1, n // 200)):
        yield from packed(iter([message(draw) for _ in range(20)]))
        yield from packed(iter([kinds[(i + j) % len(kinds)] for j in range(8)]))
        yield Transaction([message(draw) for _ in range(10)], committed=False)
        yield Transaction([message(draw) for _ in range(10)], committed=i % 3 > 0)
    yield Transaction([message(draw)], committed=False)


def filled_and_bombs(draw: Draw, n: int) -> Iterator[Sent]:
    """As many new tokens as the counts may take, and then bombs of every kind."""

    def value() -> bytes:
        text = " ".join(f"t{draw.getrandbits(40)}" for _ in range(200))
        return orjson.dumps({"text": text, "label": draw.choice("ab")})

    yield from packed((value() for _ in range(n)), "zstd")
    for codec in ("gzip", "lz4", "zstd"):
        yield alone(bytes(31 * MIB), codec)
        large = orjson.dumps({"text": "a", "x": " " * 1_000_000})
        yield raw_batch([raw_record(i, large) for i in range(30)], codec)
        yield raw_batch([raw_record(i, b"\xff" * 1_000_000) for i in range(30)], codec)
    bomb = b'{"text":"a","x":[' + b"{}," * 340_000 + b"{}]}"
    yield raw_batch([raw_record(i, bomb) for i in range(20)], "gzip")
    yield from packed(value() for _ in range(10))


HALF_LIFE = ("forgetting.half_life_s=3600.0",)
CATEGORY = 'reader={kind="categories", fields=["sender"]}'
CATEGORIES = (
    'message.category=["sender"]',
    f'views=[{{name="words", reader={{kind="words"}}}}, {{name="who", {CATEGORY}}}]',
)
TOPICS: dict[str, Topic] = {
    "clean": Topic("good messages, to compare with", clean),
    "invented-labels": Topic("every token new, 5 % of the labels too", invented_labels),
    "odd-labels": Topic("labels of 256 bytes, and labels that are no text", odd_labels),
    "timestamps": Topic("-1, 0, year 292277026, past and future in turn", timestamps, HALF_LIFE),
    "compressed-bombs": Topic("batches that expand a thousandfold", compressed_bombs, (), ("confluent",)),
    "small-bombs": Topic("batches of very many small records", small_bombs, (), ("confluent",)),
    "large-records": Topic("records around 1 MiB", large_records),
    "huge-records": Topic("records of 5 to 60 MiB", huge_records, (), ("kafka", "confluent")),
    "json-bombs": Topic("deep JSON, a million objects, long numbers and names", json_bombs),
    "long-categories": Topic("categories of 1 MB, all different", long_categories, CATEGORIES),
    "long-tokens": Topic("tokens of 64 letters of four bytes, all new", long_tokens),
    "many-classes": Topic("3,000 labels, 32 classes allowed", many_classes),
    "3000-classes": Topic("3,000 classes", many_classes, (f"model.classes_max={MANY_CLASSES}",)),
    "headers": Topic("up to a million headers, bad and large ones", many_headers),
    "millions-of-headers": Topic("31 million empty headers", millions_of_headers, (), ("confluent",)),
    "nothing": Topic("empty values, tombstones, control batches, aborted transactions", nothing),
    "filled-and-bombs": Topic(
        "counts filled to the limit, and then bombs", filled_and_bombs, (), ("confluent",)
    ),
}
