"""The fields that compiled code reads are those that orjson reads, and it leaves whatever is doubtful."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamnb.base import twins
from streamnb.wire import message
from streamnb.wire.fields import column_at, read_fields
from tests.fuzz.json_records import DECODERS, campaign, compare

Read = Callable[[list[bytes | None], Sequence[str], int], tuple[list[list[Any]], list[int]]]

_COMPILED = twins.load("streamnb.wire._fields")
TWINS: list[Read] = [read_fields, _COMPILED.read_fields] if _COMPILED else [read_fields]
compiled = pytest.mark.skipif(not twins.WANTED, reason="STREAMNB_PURE is set")

PATHS = ("id", "x", "meta.id", "meta.deep.x", "é")
RICH = json.dumps(
    {
        "id": "m/1",
        "text": 'a "quoted"\nline \\ \U0001f600 é',
        "label": "spam",
        "weight": 2.5,
        "meta": {"id": 17, "label": None, "kind": {"new": True, "amount": -0.125}, "new": False},
        "mail": {"subject": "日本語", "to": ["a", {"b": [1e3, -2, 0.5]}, []]},
        "amount": 12.75,
        "é": "\x7f",
    }
)
RECORDS = [RICH.encode(), json.dumps(json.loads(RICH), ensure_ascii=False, indent=1).encode()]


def read_one(value: bytes, read: Read, path: str = "x") -> object:
    """Return the value at a path of a record, which must be taken."""
    columns, left = read([value], [path], 1000)
    assert left == []
    return columns[0][0]


def left(value: bytes | None, paths: Sequence[str] = PATHS, bytes_max: int = 1 << 20) -> bool:
    """Return whether the compiled reader leaves a record, between two that it reads."""
    assert _COMPILED is not None
    good = b'{"id": "first"}', b'{"id": "last"}'
    columns, rows = _COMPILED.read_fields([good[0], value, good[1]], paths, bytes_max)
    assert (columns[0][0], columns[0][2]) == ("first", "last")
    if rows == [1]:
        assert [column[1] for column in columns] == [None] * len(paths)
        return True
    assert rows == []
    return False


@pytest.mark.parametrize("read", TWINS)
def test_a_column_has_what_orjson_reads_at_its_path(read: Read) -> None:
    """A path may lead through objects and past what is none; a key may be empty, escaped or not ASCII."""
    values: list[bytes | None] = [
        b'{"id": "a", "meta": {"id": 1, "deep": {"x": true}}, "x": 0.5}',
        b' { "x" : null , "other" : [ 1 , { "id" : 2 } ] , "\\u00e9" : -7 }\r\n\t',
        '{"meta": 5, "é": "é", "i\\u0064": "\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\ud83d\\ude00"}'.encode(),
        b'{"meta": {"deep": [], "id": false}}',
        b"{}",
    ]
    columns, rows = read(values, PATHS, 1000)
    assert rows == []
    assert columns == [
        ["a", None, '"\\/\b\f\n\r\tA😀', None, None],
        [0.5, None, None, None, None],
        [1, None, None, False, None],
        [True, None, None, None, None],
        [None, -7, "é", None, None],
    ]


@pytest.mark.parametrize("read", TWINS)
def test_without_records_or_paths_there_is_nothing_to_read(read: Read) -> None:
    """There is a column for each path all the same."""
    assert read([], ["id", "a.b"], 10) == ([[], []], [])
    assert read([b"{}"], [], 10) == ([], [])


@pytest.mark.parametrize("read", TWINS)
def test_a_record_without_a_value_and_a_large_one_are_left(read: Read) -> None:
    """A record of as many bytes as are allowed is read."""
    value = b'{"x": 1}'
    assert read([value], ["x"], len(value)) == ([[1]], [])
    assert read([value], ["x"], len(value) - 1) == ([[None]], [0])
    assert read([None], ["x"], 10) == ([[None]], [0])


def test_the_decoder_reads_with_compiled_code_if_there_is_some() -> None:
    """Without it the plain twin reads; `twins` warns once that it is slow."""
    assert message._read_fields is (_COMPILED.read_fields if _COMPILED else read_fields)


@compiled
@pytest.mark.parametrize(
    "value",
    [
        *(b"", b" ", b"null", b"7", b'"id"', b"[]", b'[{"id": 1}]', b"{", b"}", b"{]", b'{"id"', b'{"id":'),
        *(b'{"id": 1', b'{"id": 1,', b'{"id": 1,}', b'{,"id": 1}', b'{"id" 1}', b'{"id":: 1}', b'{"id": 1}}'),
        *(
            b'{"id": 1} x',
            b'{"id": 1}{}',
            b'{"id": 1}\0',
            b"{'id': 1}",
            b"{id: 1}",
            b'{"id": }',
            b'{1: "id"}',
        ),
        *(b'{"a": [1,]}', b'{"a": [,1]}', b'{"a": [1 2]}', b'{"a": [1}', b'{"a": {"b": 1]}', b'{"a": [}'),
        *(b'{"a": nul}', b'{"a": nulll}', b'{"a": True}', b'{"a": tru', b'{"a": NaN}', b'{"a": -Infinity}'),
        *(
            b'{"a": 01}',
            b'{"a": 1.}',
            b'{"a": .5}',
            b'{"a": -}',
            b'{"a": +1}',
            b'{"a": 1.2.3}',
            b'{"a": 0x1}',
        ),
        *(
            b'{"a": 1e}',
            b'{"a": 1e+}',
            b'{"a": 1.e5}',
            b'{"a": 1e5.0}',
            b'{"a": -e5}',
            b'{"a": 1e400}',
            b'{"a": ' + b"9" * 310 + b"}",
            b'{"a": "\\x41"}',
            b'{"a": "\\u12g4"}',
            b'{"a": "\\',
        ),
        *(b'{"a": "\n"}', b'{"a": "\0"}', b'{"a": "\x1f"}', b'{"a\t": 1}', b'{"a": "b}', b'{"a": "\\u00'),
        *(b'{"a": "\\ud800"}', b'{"a": "\\udc00"}', b'{"a": "\\ud800\\u0041"}', b'{"\\ud800x": 1}'),
        *(b'{"a": "\xff"}', b'{"a": "\xc0\xaf"}', b'{"a": "\xed\xa0\x80"}', b'{"\xc3": 1}', b'{"a": "\xc3'),
        *(b'{"a": "\xf4\x90\x80\x80"}', b'\xef\xbb\xbf{"id": 1}', b'{"a": "\xc3\\u00a9"}', b'{\x0b"a": 1}'),
        *('{"id": 1}'.encode("utf-16"), '{"id": 1}'.encode("utf-16-le"), b'\0\0\0\0\7{"id": 1}'),
    ],
)
def test_what_is_no_json_object_is_left(value: bytes) -> None:
    """Also where the fault is in a value or a key that nobody wants; orjson agrees."""
    for whole in (value, value.replace(b'"a', b'"id'), b" \n" + value):
        assert left(whole)
        with contextlib.suppress(orjson.JSONDecodeError):
            assert not isinstance(orjson.loads(whole), dict)


@compiled
@pytest.mark.parametrize(
    "value",
    [
        b'{"id": 1, "id": 1}',
        b'{"id": 1, "i\\u0064": 2}',
        b'{"meta": {"id": 1}, "meta": {"deep": {"x": 2}}}',
        b'{"meta": 1, "meta": {"id": 2}}',
        b'{"id": []}',
        b'{"id": {"x": 1}}',
        b'{"a": 1E-005}',
        b'{"a": 1e+100}',
        b'{"a": ' + b"1" * 201 + b"}",
        b'{"a": 0.' + b"1" * 200 + b"}",
        b'{"a": ' + b"[" * 32 + b"]" * 32 + b"}",
        b'{"a": ' * 33 + b"1" + b"}" * 33,
        b'{"meta": {"id": 1, "a": ' + b'{"a": ' * 31 + b"1" + b"}" * 33,
    ],
)
def test_doubtful_records_are_left(value: bytes) -> None:
    """They are JSON, but another parser might read them differently, or take much room for them."""
    assert left(value)
    assert isinstance(orjson.loads(value), dict)


@compiled
@pytest.mark.parametrize(
    "value",
    [
        b'{"a": 1, "a": [], "a": {"id": 1, "id": 2}}',
        b'{"meta": {"id": 1}, "id": {"id": 2}}'.replace(b'"id": {', b'"a": {'),
        b'{"a": {"id": 1}, "meta": [{"id": 1}, {"id": 2}], "x": 3}',
        b'{"a": 12345678901234567890.5, "id": 999999999999999}',
        b'{"a": -' + b"1" * 200 + b"}",
        b'{"a": ' + b"9" * 200 + b'e99, "meta": {"a": [1E+5, 1.5e-7]}}',
        b'{"id": 1e5, "x": -1.5E+300}',
        b'{"id": 12345678901234567890, "meta": {"deep": {"x": 0.123456789012345678}}}',
        b'{"id": 1e-400, "x": 5e-324}',
        b'{"a": ' + b"[" * 31 + b"]" * 31 + b"}",
        b'{"a": ' * 32 + b"1" + b"}" * 32,
        b'{"\\ud83d\\ude00": "\\u0000", "a": "\xf4\x8f\xbf\xbf"}',
        *RECORDS,
    ],
)
def test_usual_records_are_read(value: bytes) -> None:
    """What nobody wants may occur twice, be a list or have many digits."""
    assert not left(value)
    columns, _ = read_fields([value], PATHS, 1 << 20)
    assert _COMPILED is not None
    assert _COMPILED.read_fields([value], PATHS, 1 << 20)[0] == columns


@compiled
@pytest.mark.parametrize(
    "text",
    [
        *("0", "-0", "7", "-7", "999999999999999", "-999999999999999", "0.0", "-0.0", "0.1", "-1.5", "12.50"),
        *("0.3", "2.675", "0.00000000000001", "99999999999999.9", "9.99999999999999", "-123456.789012345"),
        *("0.12345678901234567", "9007199254740993.0", "1e5", "1E-3", "5e-324", "1.7976931348623157e308"),
        *(
            "7.038531e-26",
            "9214843084008499",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775809",
        ),
    ],
)
def test_numbers_are_those_of_orjson(text: str) -> None:
    """An integer stays one, a decimal number is the nearest double, and -0.0 keeps its sign."""
    of_fields(b'{"x": %b}' % text.encode())


def of_fields(value: bytes) -> None:
    """Compare a value at `x` with orjson's, if the record is taken; -0.0 differs from 0.0, and 1 from 1.0."""
    assert _COMPILED is not None
    columns, rows = _COMPILED.read_fields([value], ["x"], 1 << 20)
    if not rows:
        assert repr(columns[0]) == repr(column_at([orjson.loads(value)], "x"))


@compiled
@settings(max_examples=500)
@given(
    st.integers(0, 10**15 - 1),
    st.integers(0, 14),
    st.booleans(),
)
def test_decimal_numbers_of_fifteen_digits_are_taken(digits: int, places: int, negative: bool) -> None:
    """Each is the double that orjson and Python read."""
    text = f"{digits:0{places + 1}}"
    text = ("-" if negative else "") + (f"{text[:-places]}.{text[-places:]}" if places else text)
    assert _COMPILED is not None
    found = read_one(f'{{"x": {text}}}'.encode(), _COMPILED.read_fields)
    assert repr(found) == repr(orjson.loads(text))
    assert found == float(text)


@compiled
@pytest.mark.parametrize("special", ["", '\\"', "\\n", "\\u00e9", "é", "\\ud83d\\ude00", "😀", "\x7f"])
def test_strings_are_read_wherever_their_special_characters_are(special: str) -> None:
    """Strings are read in runs of several bytes, and the last bytes of a record one by one."""
    assert _COMPILED is not None
    for before in range(36):
        for after in (*range(18), 40):
            text = "a" * before + special + "b" * after
            for value in (f'{{"x":"{text}"}}'.encode(), f'{{"{text}":1,"x":"{text}","y":"{text}"}}'.encode()):
                assert read_one(value, _COMPILED.read_fields) == orjson.loads(value)["x"]


@compiled
@pytest.mark.parametrize("fault", [b"\0", b"\x1f", b"\xff", b"\xc3", b"\\", b"\\u12", b"\\ud800"])
def test_strings_are_left_wherever_their_fault_is(fault: bytes) -> None:
    """No run hides it."""
    for before in range(36):
        for after in (0, 1, 7, 15, 16, 17, 40):
            text = b"a" * before + fault + b"z" * after
            for value in (b'{"id":"' + text + b'"}', b'{"a":"' + text + b'"}', b'{"' + text + b'":1}'):
                with pytest.raises(orjson.JSONDecodeError):
                    orjson.loads(value)
                assert left(value)


@compiled
def test_records_are_read_alike_wherever_they_are_cut_or_changed() -> None:
    """Each of their beginnings, and each of their bytes changed to each special one."""
    for record in RECORDS:
        values: list[bytes | None] = [record[:end] for end in range(len(record) + 1)]
        values += [record[:at] + record[at + 1 :] for at in range(len(record))]
        for byte in b'"\\{}[],: \0\x1f\x80\xff0-.eu':
            values += [record[:at] + bytes((byte,)) + record[at + 1 :] for at in range(len(record))]
        for decoder in DECODERS:
            compare(decoder, values)


NAMES = st.sampled_from(
    ["id", "text", "label", "weight", "meta", "mail", "subject", "kind", "amount", "new", ""]
)
ANY_JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.decimals(-10, 10, places=3).map(float),
        st.text(st.characters(exclude_categories=()), max_size=20),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=5)),
    max_leaves=15,
)


@compiled
@settings(max_examples=150)
@given(st.lists(st.one_of(ANY_JSON, st.dictionaries(NAMES, ANY_JSON)), max_size=4), st.booleans())
@example([{"text": "\ud800"}, {"id": float("nan")}, [], "text", None], True)
def test_any_json_is_decoded_alike(documents: list[object], in_ascii: bool) -> None:
    """Python's encoder also writes NaN, lone surrogates and long integers."""
    values: list[bytes | None] = [
        json.dumps(document, ensure_ascii=in_ascii).encode("utf-8", "surrogatepass") for document in documents
    ]
    for decoder in DECODERS:
        compare(decoder, values)


@compiled
@settings(max_examples=300)
@given(
    st.lists(st.one_of(st.none(), st.binary(), st.just(b"{}"), st.just(RECORDS[0])), max_size=4),
    st.integers(0, len(RECORDS[0])),
    st.integers(0, len(RECORDS[0])),
    st.binary(max_size=4),
)
def test_any_bytes_are_decoded_alike(values: list[bytes | None], start: int, end: int, piece: bytes) -> None:
    """Also a record in which some bytes were replaced."""
    changed = RECORDS[0][:start] + piece + RECORDS[0][end:]
    for decoder in DECODERS:
        compare(decoder, [*values, changed])


@compiled
def test_equal_keys_in_other_objects_do_not_count_as_twice() -> None:
    """Each record and each object has its own keys."""
    assert _COMPILED is not None
    value = b'{"id": 1, "x": 2, "meta": {"id": 3, "deep": {"x": 4, "id": 5}}}'
    assert _COMPILED.read_fields([value, value], PATHS, 1000) == (
        [[1, 1], [2, 2], [3, 3], [4, 4], [None, None]],
        [],
    )


@compiled
def test_a_path_may_end_where_another_one_goes_on() -> None:
    """A value is at the one or below the other; an object at the first is left to orjson."""
    assert _COMPILED is not None
    values = [b'{"a": 1}', b'{"a": {"b": 2}}', b'{"a": null}', b'{"a": "x", "b": {"b": 3}}']
    assert _COMPILED.read_fields(values, ["a.b", "a"], 1000) == ([[None] * 4, [1, None, None, "x"]], [1])


@compiled
def test_random_records_are_decoded_alike() -> None:
    """`make fuzz` compares more of them."""
    total = campaign(4000, seed=0)
    assert total["read by compiled code"] > 500
    assert total["left to orjson and read"] > 500
