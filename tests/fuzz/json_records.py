"""Odd JSON records through both readers of fields: ``python -m tests.fuzz.json_records --runs N --seed S``.

A record is a message of a stream or a generated object that was changed a few times: bytes changed, cut,
doubled or escaped, values replaced by odd ones, keys added that are there already, objects nested deeply. A
batch of them must give the same messages and the same refusals whichever twin reads the fields, and each
value that the compiled one reads must be orjson's. The first difference is printed with its record.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import orjson

from streamnb.base import Partition, RecordBatch, twins
from streamnb.wire import message
from streamnb.wire.fields import column_at, read_fields
from streamnb.wire.message import Decoder, MessageFields
from tests.bench.common import DATA, read_lines, stream_path

COMPILED = twins.load("streamnb.wire._fields")
BATCH = 500
STREAMS = ("sms", "enron1")
DECODERS = (
    Decoder(MessageFields()),
    Decoder(
        MessageFields(
            id="meta.id",
            label="meta.label",
            weight="weight",
            text=("text", "mail.subject"),
            category=("kind", "id"),
            number=("amount",),
            flag=("new",),
            label_values={"true": "spam", "1": "one", "0.5": "half"},
        )
    ),
    Decoder(
        MessageFields(
            label="mail",
            text=("", "mail.text", "meta..a", "é", "text"),
            category=("meta.kind.new", "kind"),
            number=("meta.kind.amount", "mail.weight"),
            flag=("meta.new",),
            bytes_max=700,
        )
    ),
)
NAMES = ("id", "text", "label", "weight", "amount", "kind", "new", "meta", "mail", "subject", "", "a", "é")
ODD_VALUES = (
    *(b"null", b"true", b"false", b"[]", b"{}", b"NaN", b"Infinity", b"-", b"nul", b"truee", b"True", b"'a'"),
    *(b"0", b"-0", b"-0.0", b"01", b"1.", b".5", b"+1", b"1e5", b"1E400", b"5e-324", b"1e-9", b"0.1e1"),
    *(b"9007199254740993", b"123456789012345", b"1234567890123456", b"18446744073709551616", b"-7", b"0.5"),
    *(
        b"9" * 199 + b".5",
        b"9" * 200,
        b"9" * 201,
        b"9" * 200 + b"e99",
        b"1e99",
        b"1e100",
        b"9" * 300,
        b"1" * 310,
        b"0." + b"0" * 320 + b"1",
    ),
    *(b'""', b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\ud83d\\ude00"', b'"\\u0000"', b'"\\x41"', b'"\\'),
    *(b'"\xf0\x9f\x92\xb0"', b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\xaf"', b'"\xf4\x90\x80\x80"', b'"\xc3'),
    *(b'"' + b"x" * 300 + b'"', b'"' + b"\\n" * 40 + b'"', b'"a\x7f\x1f"', b'"\t"', '"\u202e日本"'.encode()),
    *(b"[1,2,[3]]", b'[{"id":1,"id":2}]', b"[1,]", b'{"id":1}', b'{"label":"a","label":"b"}', b'{"a":1,}'),
)
PIECES = (
    *(b"{", b"}", b"[", b"]", b'"', b"\\", b"\\u", b"\\ud83d", b":", b",", b" ", b"\n", b"\t", b"\r", b"\0"),
    *(
        b"\x0b",
        b"\x1f",
        b"\x7f",
        b"\x80",
        b"\xc3",
        b"\xc3\xa9",
        b"\xe2\x82",
        b"\xef\xbb\xbf",
        b"-",
        b"0",
        b"e9",
    ),
    *(b".", b"\\n", b"\\/", b"\\u0041", b"\\u00e9", b"//", b"/*", b"null", b" " * 40),
)
WORDS = (
    "win",
    "money\n",
    'the "prize"',
    "back\\slash",
    "Ünïcode",
    "日本語",
    "💰",
    "\0",
    "\x7f",
    "a" * 70,
    "",
)


def outcome(decoder: Decoder, values: list[bytes | None]) -> bytes:
    """Return everything that a decoder makes of some records; a float differs from an integer."""
    n = len(values)
    records = RecordBatch(Partition("fuzz", 0), range(n), values, [None] * n, [-1] * n, [()] * n, n)
    messages = decoder.decode(records)
    refused = [(row, why.reason, why.what) for row, why in messages.refused]
    batch = messages.batch
    return orjson.dumps([messages.rows, messages.ids, batch.labels, batch.weights, batch.fields, refused])


def compare(decoder: Decoder, values: list[bytes | None]) -> Counter[str]:
    """Decode records with both twins, and return how many were read by which or refused.

    Raises
    ------
    AssertionError
        The twins differ, or what the compiled one read is not what orjson reads.
    """
    left: list[int] = []

    def compiled(
        values: list[bytes | None], paths: Sequence[str], bytes_max: int
    ) -> tuple[list[list[object]], list[int]]:
        columns, rows = COMPILED.read_fields(values, paths, bytes_max)  # type: ignore[union-attr]
        gone = set(rows)
        taken = [row for row in range(len(values)) if row not in gone]
        objects = [found for row in taken if (found := _parsed(values[row])) is not None]
        assert len(objects) == len(taken), "a record was read that is not a JSON object"
        for path, column in zip(paths, columns, strict=True):
            mine = [column[row] for row in taken]
            assert orjson.dumps(mine) == orjson.dumps(column_at(objects, path)), f"field {path!r}"
            assert not any(column[row] is not None for row in rows), f"field {path!r} of a row that was left"
        left.extend(rows)
        return columns, rows

    outcomes = []
    for read in (read_fields, compiled):
        message._read_fields = read
        try:
            outcomes.append(outcome(decoder, values))
        finally:
            message._read_fields = COMPILED.read_fields if COMPILED else read_fields
    plain, other = outcomes
    assert plain == other, f"plain {plain!r}, compiled {other!r}"
    n_refused = len(orjson.loads(plain)[-1])
    rejected = sum(1 for row in left if _parsed(values[row]) is None)
    return Counter(
        {
            "read by compiled code": len(values) - len(left),
            "left to orjson and read": len(left) - rejected,
            "left to orjson and not an object": rejected,
            "refused in all": n_refused,
        }
    )


def _parsed(value: bytes | None) -> dict[str, object] | None:
    """Return a record's JSON object, if it is one."""
    try:
        parsed = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return None
    return parsed if isinstance(parsed, dict) else None


def generated(draw: random.Random) -> bytes:
    """Return a random JSON object, mostly of the names that decoders read."""
    found = {name: _value(draw, 0) for name in draw.sample(NAMES, draw.randrange(1, 7))}
    if draw.random() < 0.5:
        found["text"] = "".join(draw.choices(WORDS, k=draw.randrange(6)))
    return json.dumps(
        found,
        ensure_ascii=draw.random() < 0.5,
        indent=draw.choice((None, None, None, 1)),
        separators=draw.choice((None, (",", ":"), (" ,\t", " :\r\n"))),
    ).encode()


def _value(draw: random.Random, depth: int) -> object:
    kind = draw.randrange(10 if depth < 3 else 8)
    if kind < 3:
        return "".join(draw.choices(WORDS, k=draw.randrange(4)))
    if kind == 3:
        return draw.choice((None, True, False))
    if kind == 4:
        return draw.randrange(-(10 ** draw.randrange(1, 22)), 10 ** draw.randrange(1, 22))
    if kind < 7:
        return round(draw.gauss(0, 10 ** draw.randrange(6)), draw.randrange(1, 9))
    if kind == 7:
        return draw.gauss(0, 1) * 10.0 ** draw.randrange(-12, 12)
    if kind == 8:
        return [_value(draw, depth + 1) for _ in range(draw.randrange(3))]
    return {name: _value(draw, depth + 1) for name in draw.sample(NAMES, draw.randrange(4))}


def number(draw: random.Random) -> bytes:
    """Return a decimal number of up to forty digits, mostly of about fifteen, not always JSON."""
    digits = "".join(draw.choices("0123456789", k=draw.choice((1, 2, 5, 14, 15, 15, 16, 17, 40))))
    if draw.random() < 0.8:
        digits = digits.lstrip("0") or "0"
    if draw.random() < 0.7:
        at = draw.randrange(len(digits) + 1)
        digits = f"{digits[:at] if draw.random() < 0.9 else ''}.{digits[at:]}"
        digits = "0" + digits if digits[0] == "." else digits
    sign, exponent = draw.choice(("", "", "-")), draw.choice(("", "", "", "e3", "E-7", "e+300"))
    return f"{sign}{digits}{exponent}".encode()


def mutated(value: bytes, other: bytes, draw: random.Random) -> bytes:
    """Return a record that was changed once; `other` is one to take a piece from."""
    at = draw.randrange(len(value) + 1)
    match draw.randrange(14):
        case 0:
            return value[:at] + draw.choice(PIECES) + value[at:]
        case 1:
            return value[:at]
        case 2:
            return value[:at] + draw.randbytes(1) + value[at + 1 :]
        case 3:
            return value[:at] + value[at + draw.randrange(1, 9) :]
        case 4:
            return value[:at] + value[at - draw.randrange(1, 40) :]
        case 5:
            return value[:at] + other[draw.randrange(len(other) + 1) :]
        case 6:
            return value[:at] + b"".join(b"\\u%04x" % byte for byte in value[at : at + 2]) + value[at + 2 :]
        case 7 | 8:
            colon = value.find(b":", at)
            if colon < 0:
                return value
            end = value.find(b",", colon)
            odd = number(draw) if draw.random() < 0.5 else draw.choice(ODD_VALUES)
            return value[: colon + 1] + odd + (value[end:] if end > 0 else b"}")
        case 9:
            space = draw.choice((b" ", b"\n", b"\r\n", b"\t ", b"\x0c"))
            mark = draw.choice((b",", b":", b"{", b"}", b'"'))
            return value.replace(mark, draw.choice((space + mark, mark + space)), draw.randrange(1, 3))
        case 10:
            levels = draw.choice((1, 30, 31, 32, 33, 40))
            opened, closed = draw.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'{"meta":', b"}")))
            deep = opened * levels + draw.choice((value, b"1", b"")) + closed * levels
            return _with(value, draw, deep)
        case _:
            return _with(value, draw, number(draw) if draw.random() < 0.3 else draw.choice(ODD_VALUES))


def _with(value: bytes, draw: random.Random, field: bytes) -> bytes:
    """Return a record with one field more."""
    name = draw.choice(NAMES)
    key = draw.choice((f'"{name}"', json.dumps(name), '"' + "".join(f"\\u{ord(c):04X}" for c in name) + '"'))
    odd = key.encode() + draw.choice((b":", b": ", b" :")) + field
    return value[:-1] + b"," + odd + b"}" if draw.random() < 0.5 else b"{" + odd + b"," + value[1:]


def campaign(runs: int, seed: int, lines: Sequence[bytes] = ()) -> Counter[str]:
    """Compare so many random records; half of them come from `lines`, if there are any.

    Raises
    ------
    AssertionError
        The twins differ; the error has the record.
    """
    total: Counter[str] = Counter()
    for batch in range(-(-runs // BATCH)):
        draw = random.Random(f"{seed} {batch}")
        pool = [generated(draw) for _ in range(BATCH // 10)]
        pool += draw.choices(lines, k=len(pool)) if lines else []
        values: list[bytes | None] = []
        for _ in range(min(BATCH, runs - batch * BATCH)):
            value = draw.choice(pool)
            for _ in range(draw.choice((0, 1, 1, 1, 2, 3))):
                value = mutated(value, draw.choice(pool), draw)
            values.append(value if draw.random() < 0.999 else None)
        decoder = DECODERS[batch % len(DECODERS)]
        try:
            total += compare(decoder, values)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, batch {batch}: {_culprit(decoder, values, error)}") from error
    return total


def _culprit(decoder: Decoder, values: list[bytes | None], error: AssertionError) -> str:
    """Return the first record in which the twins differ by itself, or the difference of the batch."""
    for value in values:
        try:
            compare(decoder, [value])
        except AssertionError as alone:
            return f"record {value!r}: {alone}"
    return str(error)


def main() -> int:
    """Run and print what was read."""
    parser = argparse.ArgumentParser(description="Odd JSON records, read by compiled code and by orjson.")
    parser.add_argument("--runs", type=int, default=20_000, help="how many records (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the streams (%(default)s)")
    options = parser.parse_args()
    if COMPILED is None:
        print("the compiled reader was not built, or is not wanted", file=sys.stderr)
        return 1
    paths = [stream_path(options.data, name) for name in STREAMS]
    lines = [line for path in paths if path.is_file() for line in read_lines(path)]
    began_s = time.perf_counter()
    try:
        total = campaign(options.runs, options.seed, lines)
    except AssertionError as error:
        print(error)
        return 1
    took_s = time.perf_counter() - began_s
    counts = ", ".join(f"{n:,} {what}" for what, n in total.items())
    print(f"{options.runs:,} records, {len(lines):,} lines of streams: {counts}; {took_s:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
