"""A record becomes a message or is refused with a reason; no content raises an error."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamnb.base.record import Partition, RecordBatch
from streamnb.errors import RecordError
from streamnb.wire import message
from streamnb.wire.message import Decoder, MessageFields, Messages

PLAIN = Decoder(MessageFields())
RICH = Decoder(
    MessageFields(
        id="meta.id",
        label="meta.label",
        weight="meta.weight",
        text=("text", "mail.subject"),
        category=("colour",),
        number=("amount",),
        flag=("new",),
        label_values={"true": "spam", "false": "ham", "1": "one", "1.5": "half", "junk": "spam"},
    )
)


def records(*values: bytes | None) -> RecordBatch:
    """Return a record batch with these values."""
    n = len(values)
    return RecordBatch(Partition("mail", 0), range(n), list(values), [None] * n, [-1] * n, [()] * n, n)


def decode(value: bytes | None, decoder: Decoder = PLAIN) -> Messages:
    """Decode one record."""
    return decoder.decode(records(value))


def refusal(value: bytes | None, decoder: Decoder = PLAIN) -> RecordError:
    """Return why a record is refused; it must be."""
    messages = decode(value, decoder)
    assert messages.rows == messages.ids == []
    assert len(messages.batch) == 0
    ((row, error),) = messages.refused
    assert row == 0
    return error


def usable(fields: dict[str, Any], decoder: Decoder = PLAIN) -> Messages:
    """Decode one record that must be a message."""
    messages = decode(orjson.dumps(fields), decoder)
    assert messages.refused == []
    assert messages.rows == [0]
    return messages


HOSTILE: list[tuple[str, bytes | None, str]] = [
    ("not JSON", b"hello", "json_syntax"),
    ("empty", b"", "json_syntax"),
    ("whitespace", b" \r\n\t ", "json_syntax"),
    ("truncated", b'{"text": "a', "json_syntax"),
    ("truncated in an escape", b'{"text": "a\\u00', "json_syntax"),
    ("trailing bytes", b'{"text": "a"} x', "json_syntax"),
    ("two documents", b'{"text": "a"}\n{"text": "b"}', "json_syntax"),
    ("single quotes", b"{'text': 'a'}", "json_syntax"),
    ("a trailing comma", b'{"text": "a",}', "json_syntax"),
    ("a comment", b'{"text": "a"} // b', "json_syntax"),
    ("a raw control character", b'{"text": "a\x00b"}', "json_syntax"),
    ("NUL bytes", b"\0\0\0", "json_syntax"),
    ("not UTF-8", b'{"text": "\xff"}', "encoding"),
    ("Latin 1", '{"text": "é"}'.encode("latin-1"), "encoding"),
    ("cut in a character", '{"text": "é'.encode()[:-1], "encoding"),
    ("overlong", b'{"text": "\xc0\xaf"}', "encoding"),
    ("a raw surrogate", b'{"text": "\xed\xa0\x80"}', "encoding"),
    ("past Unicode", b'{"text": "\xf4\x90\x80\x80"}', "encoding"),
    ("a byte order mark", b'\xef\xbb\xbf{"text": "a"}', "encoding"),
    ("UTF-16", '{"text": "a"}'.encode("utf-16"), "encoding"),
    ("UTF-16, little-endian", '{"text": "a"}'.encode("utf-16-le"), "encoding"),
    ("UTF-16, big-endian", '{"text": "a"}'.encode("utf-16-be"), "encoding"),
    ("UTF-32", '{"text": "a"}'.encode("utf-32"), "encoding"),
    ("a lone high surrogate", b'{"text": "\\ud800"}', "lone_surrogate"),
    ("a lone low surrogate", b'{"text": "\\udc00"}', "lone_surrogate"),
    ("a broken pair", b'{"text": "\\ud800\\u0041"}', "lone_surrogate"),
    ("a lone surrogate in a key", b'{"\\udfff": 1, "text": "a"}', "lone_surrogate"),
    ("NaN", b'{"text": "a", "x": NaN}', "number_range"),
    ("Infinity", b'{"text": "\xc3\xa9", "x": Infinity}', "number_range"),
    ("minus Infinity", b'{"text": "a", "x": -Infinity}', "number_range"),
    ("NaN alone", b"NaN", "number_range"),
    ("1e400", b'{"text": "a", "x": 1e400}', "number_range"),
    ("5,000 digits", b'{"text": "a", "x": ' + b"9" * 5000 + b"}", "number_range"),
    ("nested 10^5", b'{"text": ' + b"[" * 10**5 + b"]" * 10**5 + b"}", "too_deep"),
    ("nested objects", b'{"a":' * 2000 + b"1" + b"}" * 2000, "too_deep"),
    ("10^6 brackets", b"[" * 10**6, "too_deep"),
    ("null", b"null", "schema"),
    ("a list", b'[{"text": "a"}]', "schema"),
    ("a string", b'"text"', "schema"),
    ("a number", b"7", "schema"),
    ("true", b"true", "schema"),
    ("text of a wrong type", b'{"text": 7}', "schema"),
    ("text in a list", b'{"text": ["a"]}', "schema"),
    ("text true", b'{"text": true}', "schema"),
    ("no text", b'{"body": "a"}', "missing_text"),
    ("text null", b'{"text": null}', "missing_text"),
    ("nothing at all", b"{}", "missing_text"),
    ("an empty label", b'{"text": "a", "label": ""}', "label"),
    ("a list as label", b'{"text": "a", "label": []}', "label"),
    ("an object as label", b'{"text": "a", "label": {}}', "label"),
    ("a number as label", b'{"text": "a", "label": 1}', "label"),
    ("a truth value as label", b'{"text": "a", "label": true}', "label"),
    ("a label of 257 bytes", b'{"text": "a", "label": "' + b"x" * 257 + b'"}', "label"),
    (
        "F8 a label of 256 characters",
        b'{"text": "a", "label": "' + "é".encode() * 256 + b'"}',
        "label",
    ),
    ("F8 a label of quotes", b'{"text": "a", "label": "' + b'\\"' * 129 + b'"}', "label"),
    ("F8 a label that turns a terminal red", b'{"text": "a", "label": "\\u001b[31m"}', "label"),
    ("F8 a label with a control of Latin-1", b'{"text": "a", "label": "a\\u0085b"}', "label"),
    ("F8 a label of white space", b'{"text": "a", "label": " \\u3000 "}', "label"),
    ("id 2^53 + 1", b'{"text": "a", "id": 9007199254740993}', "number_range"),
    ("id -2^53 - 1", b'{"text": "a", "id": -9007199254740993}', "number_range"),
    ("id 2^64", b'{"text": "a", "id": 18446744073709551616}', "number_range"),
    ("id 1e300", b'{"text": "a", "id": 1e300}', "number_range"),
    ("id 1.5", b'{"text": "a", "id": 1.5}', "schema"),
    ("id true", b'{"text": "a", "id": true}', "schema"),
    ("an empty id", b'{"text": "a", "id": ""}', "schema"),
    ("a list as id", b'{"text": "a", "id": [1]}', "schema"),
    ("an id of 1,025 characters", b'{"text": "a", "id": "' + b"x" * 1025 + b'"}', "schema"),
    ("a tombstone", None, "tombstone"),
    ("oversized", b'{"text": "' + b"a" * (1 << 20) + b'"}', "oversized"),
    ("oversized and no JSON", b"\xff" * ((1 << 20) + 1), "oversized"),
    ("framed for a schema registry", b'\0\0\0\0\x07{"text": "a"}', "schema_registry"),
    ("framed Avro", b"\0\0\0\x01\x02\x0cwin it\x02\x08spam", "schema_registry"),
]


@pytest.mark.parametrize(
    ("value", "reason"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE]
)
def test_a_record_that_cannot_be_used_is_refused_with_its_reason(value: bytes | None, reason: str) -> None:
    """The reason is in a known list, and the detail is one sentence, short enough for a header."""
    error = refusal(value)
    assert error.reason == reason
    assert 0 < len(error.what) < 500
    assert error.what.endswith(".")


def test_an_empty_id_is_refused_as_empty() -> None:
    """It is a string, so the sentence about types would not help."""
    what = "The id `id` is empty; leave it out of a message without an id."
    assert refusal(b'{"text": "a", "id": ""}').what == what


def test_every_reason_that_a_decoder_gives_is_met_here() -> None:
    """Four reasons are tested elsewhere: the engine, the client and a record's headers cause them."""
    met = {reason for _, _, reason in HOSTILE}
    assert met == set(RecordError.REASONS) - {"class_limit", "unreadable", "headers", "own_output"}


def test_the_good_go_on_among_the_bad() -> None:
    """`rows` gives the position of each message among the records."""
    messages = PLAIN.decode(records(b"{", b'{"text": "a", "id": "x"}', None, b'{"text": "b"}', b"[]"))
    assert messages.rows == [1, 3]
    assert messages.ids == ["x", None]
    assert messages.batch.fields == {"text": ["a", "b"]}
    assert messages.batch.labels == [None, None]
    assert messages.batch.weights is None  # 1 for all
    assert [(row, error.reason) for row, error in messages.refused] == [
        (0, "json_syntax"),
        (2, "tombstone"),
        (4, "schema"),
    ]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (b"null", "The record is null, not a JSON object."),
        (b"[1]", "The record is a list, not a JSON object."),
        (b'{"text": {}}', "Field `text` must be a string, not an object."),
        (b'{"text": 7.5}', "Field `text` must be a string, not a number."),
        (b'{"text": false}', "Field `text` must be a string, not false."),
    ],
)
def test_a_refusal_names_the_kind_of_value_as_json_does(value: bytes, what: str) -> None:
    """An operator may not know Python's names of types."""
    assert refusal(value).what == what


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b'{"text": ""}', ""),
        (b' {"text": "a"} \n', "a"),
        (b'{"text": "a\\u0000b"}', "a\0b"),
        (b'{"text": "\\ud83d\\ude00"}', "😀"),
        ('{"text": "\u202e\u200b😀"}'.encode(), "\u202e\u200b😀"),
        (b'{"text": "a", "x": -0.0, "y": 5e-324, "z": 1e308}', "a"),
        (b'{"text": "a", "x": ' + b"[" * 1000 + b"]" * 1000 + b"}", "a"),
        (b'{"text": "a", "x": "' + b"y" * 10**6 + b'"}', "a"),
        (b'{"text": "first", "text": "last"}', "last"),
    ],
)
def test_what_is_odd_but_whole_is_a_message(value: bytes, text: str) -> None:
    """Unknown fields are ignored, whatever they hold; if a key occurs twice, the last value counts."""
    assert decode(value).batch.fields == {"text": [text]}


@pytest.mark.parametrize(
    ("label", "read"),
    [
        (None, None),
        ("spam", "spam"),
        ("true", "true"),
        (" x ", " x "),
        ("x" * 256, "x" * 256),
        ("é" * 128, "é" * 128),
        ("\u200d👩", "\u200d👩"),
    ],
)
def test_a_label_is_a_string_as_it_stands(label: str | None, read: str | None) -> None:
    """Strings are not changed, and null means no label."""
    assert usable({"text": "a", "label": label}).batch.labels == [read]


@pytest.mark.parametrize(
    ("label", "read"),
    [
        (True, "spam"),
        (False, "ham"),
        (1, "one"),
        (1.5, "half"),
        ("junk", "spam"),
        ("true", "spam"),
        ("other", "other"),
        (None, None),
    ],
)
def test_a_named_label_stands_for_its_class(label: object, read: str | None) -> None:
    """`labels` maps a label's JSON to a class; a string that is not in it is the class itself."""
    assert usable({"text": "a", "meta": {"label": label}}, RICH).batch.labels == [read]


@pytest.mark.parametrize("label", [b"2", b"1.0", b"1e0", b"[]", b"{}", b"[true]", b'""'])
def test_a_label_that_is_not_named_is_refused(label: bytes) -> None:
    """1 is in the mapping and 1.0 is not, so 1.0 does not become a class by accident."""
    assert refusal(b'{"text": "a", "meta": {"label": ' + label + b"}}", RICH).reason == "label"


def test_a_list_is_no_label_even_if_it_is_named() -> None:
    """Only strings, numbers, true and false can be mapped to a class."""
    assert (
        refusal(b'{"text": "a", "label": []}', Decoder(MessageFields(label_values={"[]": "x"}))).reason
        == "label"
    )


def test_a_mapping_to_nothing_is_refused() -> None:
    """An empty class name would look like no class."""
    assert (
        refusal(b'{"text": "a", "label": true}', Decoder(MessageFields(label_values={"true": ""}))).reason
        == "label"
    )


@pytest.mark.parametrize("label", ["spam", "ham"])
def test_of_two_labels_the_last_one_counts(label: str) -> None:
    """JSON parsers usually take the last of two equal keys, and streamnb's formats promise it."""
    value = b'{"text": "a", "label": "first", "label": "' + label.encode() + b'"}'
    assert decode(value).batch.labels == [label]


@pytest.mark.parametrize("number", [0, 7, -7, 2**53, -(2**53)])
def test_an_integer_id_stays_an_integer(number: int) -> None:
    """Integers up to 2^53 are exact in every JSON parser."""
    assert usable({"text": "a", "id": number}).ids == [number]
    assert usable({"text": "a", "id": str(2**70)}).ids == [str(2**70)]
    assert usable({"text": "a", "id": None}).ids == [None]


def test_a_dot_steps_into_an_object() -> None:
    """A path that does not exist is an absent field."""
    messages = usable(
        {
            "meta": {"id": "m", "label": "x", "weight": 2.5},
            "mail": {"subject": "hi"},
            "colour": 3,
            "amount": 7,
            "new": False,
        },
        RICH,
    )
    assert messages.ids == ["m"]
    assert messages.batch.labels == ["x"]
    assert messages.batch.weights == [2.5]
    assert messages.batch.fields == {
        "text": [None],
        "mail.subject": ["hi"],
        "colour": [3],
        "amount": [7.0],
        "new": [False],
    }
    astray = usable({"text": "a", "meta": "m", "mail": ["subject"]}, RICH)
    assert (astray.ids, astray.batch.labels, astray.batch.weights) == ([None], [None], [1.0])
    assert astray.batch.fields["mail.subject"] == [None]


def test_without_text_fields_any_field_makes_a_message() -> None:
    """One present field is enough; a record with none of them is refused."""
    decoder = Decoder(MessageFields(text=(), number=("amount",), flag=("new",)))
    assert usable({"new": True}, decoder).batch.fields == {"amount": [None], "new": [True]}
    assert refusal(b'{"text": "a"}', decoder).reason == "missing_text"


@pytest.mark.parametrize(
    "weight", [b"0", b"-1", b"0.0", b"-0.0", b"9e-10", b"5e-324", b"1e10", b"1000000001", b"1e101"]
)
def test_a_weight_out_of_range_is_refused(weight: bytes) -> None:
    """A weight of almost 0 would be no evidence, and a huge one would outweigh everything else."""
    value = b'{"text": "a", "meta": {"weight": ' + weight + b"}}"
    assert refusal(value, RICH).reason == "number_range"


@pytest.mark.parametrize("weight", [b'"2"', b"true", b"[]", b"{}"])
def test_a_weight_of_another_type_is_refused(weight: bytes) -> None:
    """Values are not converted to numbers."""
    assert refusal(b'{"text": "a", "meta": {"weight": ' + weight + b"}}", RICH).reason == "schema"


@pytest.mark.parametrize(("weight", "read"), [(1e9, 1e9), (1e-9, 1e-9), (3, 3.0), (None, 1.0)])
def test_a_weight_is_a_number_from_1e_minus_9_to_1e9(weight: float | None, read: float) -> None:
    """It is 1 if it is absent."""
    assert usable({"text": "a", "meta": {"weight": weight}}, RICH).batch.weights == [read]


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("colour", b"[]", "schema"),
        ("colour", b"{}", "schema"),
        ("amount", b'"7"', "schema"),
        ("amount", b"true", "schema"),
        ("amount", b"1e101", "number_range"),
        ("amount", b"-1e101", "number_range"),
        ("new", b"1", "schema"),
        ("new", b'"true"', "schema"),
    ],
)
def test_a_field_of_another_type_is_refused(field: str, value: bytes, reason: str) -> None:
    """The error names the field."""
    error = refusal(b'{"text": "a", "' + field.encode() + b'": ' + value + b"}", RICH)
    assert error.reason == reason
    assert f"`{field}`" in error.what


@pytest.mark.parametrize("bytes_max", [12, 13])
def test_the_limit_of_bytes_is_itself_allowed(bytes_max: int) -> None:
    """A record with more than `bytes_max` bytes is refused."""
    decoder = Decoder(MessageFields(bytes_max=bytes_max))
    value = b'{"text": ""}'
    assert decode(value, decoder).rows == [0]
    assert refusal(value + b" " * (bytes_max - 11), decoder).reason == "oversized"


def test_what_it_reads_is_part_of_the_statistics() -> None:
    """Other fields or labels would count other things."""
    assert RICH.state_settings() != PLAIN.state_settings()
    for other in (MessageFields(text=("body",)), MessageFields(label="y"), MessageFields(weight="w")):
        assert Decoder(other).state_settings() != PLAIN.state_settings()


def test_a_limit_and_a_name_are_no_part_of_the_statistics() -> None:
    """A change of a limit or of the id's path must not invalidate a model's state."""
    assert Decoder(MessageFields(id="key", bytes_max=7)).state_settings() == PLAIN.state_settings()


def test_labels_are_part_of_the_statistics() -> None:
    """The mapping from labels to classes is compared too."""
    assert RICH.state_settings()["labels"] == {
        "true": "spam",
        "false": "ham",
        "1": "one",
        "1.5": "half",
        "junk": "spam",
    }


def holds_what_is_promised(messages: Messages) -> None:
    """Check that there is one message or one refusal, and that the columns have the promised types."""
    assert len(messages.rows) + len(messages.refused) == 1
    for _, error in messages.refused:
        assert error.reason in RecordError.REASONS
    for message_id in messages.ids:
        assert message_id is None or (isinstance(message_id, str) and message_id) or type(message_id) is int
    for label in messages.batch.labels:
        assert label is None or (isinstance(label, str) and 2 < len(orjson.dumps(label)) <= 258)
    for weight in messages.batch.weights or ():
        assert weight is not None
        assert 1e-9 <= weight <= 1e9
    for column in messages.batch.fields.values():
        assert len(column) == len(messages.rows)


NEAR_MISSES = st.builds(
    lambda good, at, bad: good[:at] + bad + good[at:],
    st.just(b'{"id": 1, "text": "win", "label": "spam", "meta": {"id": 2, "label": true, "weight": 3}}'),
    st.integers(0, 90),
    st.binary(max_size=3),
)


@settings(max_examples=500)
@given(value=st.one_of(st.binary(), NEAR_MISSES))
@example(b"\0" * 6)
def test_no_bytes_raise(value: bytes) -> None:
    """Any bytes give a message or a refusal with a known reason."""
    for decoder in (PLAIN, RICH):
        holds_what_is_promised(decode(value, decoder))


def test_of_several_faults_the_first_counts() -> None:
    """The order is id, label, weight, the fields by type, and last the missing text."""
    meta: dict[str, Any] = {"id": 1.5, "label": [], "weight": 0}
    message = {"meta": meta, "text": 7, "colour": [], "amount": "x", "new": 1}
    faults: list[tuple[dict[str, Any], str, str]] = [
        (meta, "id", "id `meta.id`"),
        (meta, "label", "label `meta.label`"),
        (meta, "weight", "weight"),
        *((message, field, f"`{field}`") for field in ("text", "colour", "amount", "new")),
    ]
    for holder, key, what in faults:
        assert what in refusal(orjson.dumps(message), RICH).what
        del holder[key]
    assert refusal(orjson.dumps(message), RICH).reason == "missing_text"


VALUES = st.one_of(
    st.sampled_from([value for _, value, _ in HOSTILE if value is None or len(value) < 2000]),
    st.just(b'{"id": "m", "text": "win", "label": "spam"}'),
    NEAR_MISSES,
)


@settings(max_examples=300)
@given(values=st.lists(VALUES, max_size=6))
@example([b'{"text": "a", "label": 1}', b'{"text": "b", "label": true}', b'{"text": "c", "label": "1"}'] * 2)
@example(
    [b'{"text": "a", "meta": {"label": 1, "id": 1.5}, "new": 1}', b'{"text": 1, "new": 1, "amount": ""}']
)
def test_many_records_are_decoded_as_each_alone(values: list[bytes | None]) -> None:
    """A record's neighbours do not change its message, or the reason for which it is refused."""
    for decoder in (PLAIN, RICH):
        together = decoder.decode(records(*values))
        alone = [decode(value, decoder) for value in values]
        good = [one for one in alone if one.rows]
        assert together.rows == [row for row, one in enumerate(alone) if one.rows]
        assert together.ids == [one.ids[0] for one in good]
        assert together.batch.labels == [one.batch.labels[0] for one in good]
        if decoder is RICH:
            assert together.batch.weights == [(one.batch.weights or [])[0] for one in good]
        for path, column in together.batch.fields.items():
            read = [one.batch.fields[path][0] for one in good]
            assert [(type(value), value) for value in column] == [(type(value), value) for value in read]
        refused = [(row, error) for row, one in enumerate(alone) for _, error in one.refused]
        assert [(row, error.reason, error.what) for row, error in together.refused] == [
            (row, error.reason, error.what) for row, error in refused
        ]


ANY_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["id", "text", "label", "weight", "meta", "mail", "subject", "colour", "amount", "new"]
            ),
            inner,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=500)
@given(value=ANY_JSON)
def test_no_json_raises(value: object) -> None:
    """Python's encoder also writes NaN, lone surrogates and long integers."""
    data = json.dumps(value).encode()
    for decoder in (PLAIN, RICH):
        holds_what_is_promised(decode(data, decoder))


def test_F4_a_timestamp_that_no_model_takes_is_refused_if_times_are_read() -> None:
    """The largest timestamp that is accepted is one that a model accepts; without a half-life all are."""
    batch = records(*[b'{"text": "a"}'] * 5, None)
    batch.timestamps_ms = [-1, 0, 10**15, 10**15 + 1, 1 << 62, 1 << 62]
    messages = Decoder(MessageFields(), timed=True).decode(batch)

    assert messages.rows == [0, 1, 2]
    assert messages.batch.times == [None, 0.0, 1e12]
    assert [(row, error.reason) for row, error in messages.refused] == [
        (3, "number_range"),
        (4, "number_range"),
        (5, "tombstone"),
    ]
    assert "4611686018427387904 ms" in messages.refused[1][1].what
    assert PLAIN.decode(batch).rows == [0, 1, 2, 3, 4]


VALUES = st.lists(
    st.one_of(
        st.none(),
        st.binary(max_size=30),
        st.fixed_dictionaries(
            {"text": st.one_of(st.text(max_size=9), st.integers(0, 9))},
            optional={
                "meta": st.fixed_dictionaries({}, optional={"label": st.sampled_from(["a", True, {}])})
            },
        ).map(orjson.dumps),
    ),
    max_size=12,
)


@given(VALUES, st.integers(1, 60), st.booleans())
def test_a_batch_that_is_parsed_in_parts_is_decoded_as_a_whole(
    values: list[bytes | None], parsed_bytes: int, timed: bool
) -> None:
    """The same rows, columns and refusals, wherever it is cut."""
    decoder = Decoder(RICH.fields, timed=timed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message, "PARSED_BYTES", parsed_bytes)
        cut = decoder.decode(records(*values))
    whole = decoder.decode(records(*values))
    assert (cut.rows, cut.ids, cut.batch) == (whole.rows, whole.ids, whole.batch)
    assert [(row, str(why)) for row, why in cut.refused] == [(row, str(why)) for row, why in whole.refused]


@pytest.mark.parametrize("first", [b"{}", b"1e100"], ids=["skipped by compiled code", "left to orjson"])
def test_F9_records_that_parse_to_forty_times_their_size_are_not_parsed_at_once(first: bytes) -> None:
    """A dozen megabytes of empty objects, each valid JSON, in one poll."""
    bomb = b'{"text": "a", "x": [' + b",".join([first] + [b"{}"] * 340_000) + b"]}"
    assert len(bomb) < MessageFields().bytes_max
    tracemalloc.start()
    try:
        messages = PLAIN.decode(records(*[bomb] * 12))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert messages.batch.fields == {"text": ["a"] * 12}
    assert peak < 80e6  # all at once take 290 MB and more
