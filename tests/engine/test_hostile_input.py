"""Every kind of bad input through the whole engine: it goes on, and each record is accounted for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from weakref import ReferenceType, ref

import msgspec
import orjson
import pytest

from streamnb.base.batch import WEIGHT_MAX
from streamnb.base.record import Partition, RecordBatch
from streamnb.config import decode_settings
from streamnb.engine.dead_letters import CUT_BYTES, DeadLetterLimits
from streamnb.errors import SettingsError
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.model.view import TEXT_ONLY
from streamnb.transports.memory import MemoryLog, MemorySource
from streamnb.wire.message import Decoder, MessageFields
from tests.engine.test_engine import assert_everything_is_accounted_for, message, plain_loop, rig
from tests.fuzz.records import Fuzz

Rows = Sequence[tuple[bytes | None, str]]  # a record and the reason of its dead letter; "" if it is scored


def passed(rows: Rows) -> list[dict[str, object]]:
    """Send records through an engine, each between two good ones, and return their scores."""
    values: list[bytes | None] = []
    for i, (value, _) in enumerate(rows):
        values += [message(i, "lunch at noon", "ham"), value]
    it = rig([*values, message(len(rows), "win money", "spam")])
    summary = it.run()
    aside = {int(dict(one.headers)["streamnb.offset"]): one for one in it.aside.records(0)}
    reasons = {at: dict(one.headers)["streamnb.reason"].decode() for at, one in aside.items()}

    assert reasons == {2 * i + 1: reason for i, (_, reason) in enumerate(rows) if reason}
    for at, one in aside.items():
        whole = values[at]
        cut = whole is not None and len(whole) > DeadLetterLimits().bytes_max
        assert one.value == (whole[:CUT_BYTES] if cut and whole is not None else whole)
    assert summary.digest == plain_loop(it.log).digest()
    assert_everything_is_accounted_for(it, summary)
    return [score for score in it.published() if score["source"]["offset"] % 2]


def test_A1_what_is_not_one_json_document_is_put_aside() -> None:
    """Among these are empty values, white space, cut documents and trailing bytes."""
    broken = [b"", b" \r\n", b"hello", b'{"text": "a', b'{"text": "a"} x', b'{"text": "a"}\n{"text": "b"}']
    passed([(value, "json_syntax") for value in broken])


def test_A2_what_is_not_utf_8_is_put_aside() -> None:
    """Among these are overlong forms, surrogates, byte order marks and UTF-16."""
    broken = [b'{"text": "\xff"}', b'{"text": "\xc0\xaf"}', b'{"text": "\xed\xa0\x80"}']
    marked = [b'\xef\xbb\xbf{"text": "a"}', '{"text": "a"}'.encode("utf-16")]
    passed([(value, "encoding") for value in broken + marked])


def test_A3_half_a_surrogate_pair_is_put_aside() -> None:
    """If it were accepted, its score could not be encoded."""
    passed(
        [(b'{"text": "\\ud800"}', "lone_surrogate"), (b'{"id": "\\udfff", "text": "a"}', "lone_surrogate")]
    )


def test_A4_of_two_equal_keys_the_last_one_counts() -> None:
    """It counts for the score and for what is learned."""
    (score,) = passed([(b'{"id": "a", "text": "x", "label": "ham", "id": "b", "label": "spam"}', "")])

    assert score["id"] == "b"


def test_A5_deep_nesting_is_put_aside() -> None:
    """It is refused whether or not the brackets are closed."""
    passed([(b"[" * 10**6, "too_deep"), (b'{"a":' * 10**5 + b"1" + b"}" * 10**5, "too_deep")])


def test_A6_numbers_that_no_float_holds_are_put_aside() -> None:
    """NaN, infinities, 1e400 and 5,000 digits are refused; -0.0 and the smallest numbers are not."""
    none = [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"9" * 5000]
    rows: list[tuple[bytes | None, str]] = [(b'{"text": "a", "x": %b}' % n, "number_range") for n in none]
    passed([*rows, (b'{"text": "a", "x": -0.0}', ""), (b'{"text": "a", "x": 5e-324}', "")])


def test_A7_an_id_that_is_not_the_same_number_everywhere_is_put_aside() -> None:
    """2^53 itself is accepted."""
    big = [b"9007199254740993", b"18446744073709551616", b"1e300"]
    rows: list[tuple[bytes | None, str]] = [(b'{"text": "a", "id": %b}' % n, "number_range") for n in big]
    (score,) = passed([*rows, (b'{"text": "a", "id": 9007199254740992}', "")])

    assert score["id"] == 9007199254740992


def test_A8_values_of_another_type_do_not_become_text() -> None:
    """Wrong types are refused; a null label means no label."""
    rows: Rows = [(b'{"text": 7}', "schema"), (b'{"text": "a", "label": []}', "label")]
    empty = (b'{"text": "a", "label": ""}', "label")
    (score,) = passed([*rows, empty, (b'{"text": "a", "label": null}', "")])

    assert score["prediction"]


def test_A9_a_document_that_is_not_an_object_is_put_aside() -> None:
    """It is put aside although it is valid JSON."""
    passed([(value, "schema") for value in (b"null", b"[1]", b'"text"', b"7", b"true")])


def test_A10_unknown_fields_are_ignored_within_the_limit_of_bytes() -> None:
    """A record beyond the limit is not parsed."""
    large = b'{"text": "a", "more": "' + b"x" * 500_000 + b'"}'
    (score,) = passed([(large, ""), (b'{"text": "a", "more": "' + b"x" * (1 << 20) + b'"}', "oversized")])

    assert score["known_tokens"] == 0


def test_A11_a_tombstone_is_counted_as_such() -> None:
    """A tombstone's dead letter has no value either."""
    passed([(None, "tombstone")])


def test_A12_a_text_without_tokens_is_scored_and_says_so() -> None:
    """With a label, it is learned for the class's share."""
    (score, labelled) = passed([(b'{"text": ""}', ""), (b'{"text": " \\t", "label": "ham"}', "")])

    assert score["flags"] == labelled["flags"] == ["empty"]


def test_A13_long_tokens_and_many_of_them_are_cut() -> None:
    """A megabyte of either takes about as long as one of ordinary words does in the same run."""

    def seconds(*texts: str) -> tuple[float, list[dict[str, object]]]:
        rows: Rows = [(orjson.dumps({"text": text}), "") for text in texts]
        took: list[float] = []
        for _ in range(3):
            began_s = time.thread_time()  # of the processor: other programs do not lengthen it
            scores = passed(rows)
            took.append(time.thread_time() - began_s)
        return min(took), scores

    words = "free cash now " * 70_000
    ordinary_s, _ = seconds(words, words)
    took_s, (one, many) = seconds("a" * 1_000_000, " ".join(str(i) for i in range(150_000)))

    assert one["flags"] == many["flags"] == ["truncated"]
    assert took_s < 20 * ordinary_s


@pytest.mark.parametrize("written", ["sink", "dead_letters.sink"])
def test_A21_what_is_written_is_never_read_again(written: str) -> None:
    """Such settings are refused at the start."""
    from streamnb.config import check_endpoints

    endpoints: dict[str, dict[str, object]] = {
        "source": {"kind": "kafka", "topics": ["mail", "other"]},
        "sink": {"kind": "kafka", "topic": "scores"},
    }
    aside: dict[str, object] = {"kind": "kafka", "topic": "dead"}
    (endpoints["sink"] if written == "sink" else aside)["topic"] = "other"
    with pytest.raises(SettingsError, match="is used for more than one of"):
        check_endpoints(decode_settings({**endpoints, "dead_letters": {"sink": aside}}, "test"))


# ---- what our parser does where others disagree

LENIENT = "accepted"
TABLE_J: list[tuple[str, bytes, str, str, str]] = [  # what, bytes, ours, json, msgspec
    ("a literal NaN", b'{"text": "a", "x": NaN}', "number_range", LENIENT, "DecodeError"),
    ("a literal Infinity", b'{"text": "a", "x": Infinity}', "number_range", LENIENT, "DecodeError"),
    ("1e400", b'{"text": "a", "x": 1e400}', "number_range", LENIENT, "ValidationError"),
    ("equal keys", b'{"text": "a", "text": "b"}', "", LENIENT, LENIENT),
    ("half a pair", b'{"text": "\\ud800"}', "lone_surrogate", LENIENT, "DecodeError"),
    (
        "depth 100,000",
        b'{"text": ' + b"[" * 10**5 + b"]" * 10**5 + b"}",
        "too_deep",
        "RecursionError",
        "RecursionError",
    ),
    ("2^64", b'{"text": "a", "x": 18446744073709551616}', "", LENIENT, LENIENT),
    ("an id of 2^64", b'{"text": "a", "id": 18446744073709551616}', "number_range", LENIENT, LENIENT),
    (
        "5,000 digits",
        b'{"text": "a", "x": ' + b"9" * 5000 + b"}",
        "number_range",
        "ValueError",
        "ValidationError",
    ),
    ("a byte order mark", b'\xef\xbb\xbf{"text": "a"}', "encoding", LENIENT, "DecodeError"),
    ("UTF-16", '{"text": "a"}'.encode("utf-16-le"), "encoding", LENIENT, "DecodeError"),
    ("not UTF-8", b'{"text": "\xff"}', "encoding", "UnicodeDecodeError", "UnicodeDecodeError"),
]


@pytest.mark.parametrize(
    ("value", "ours", "plain", "other"), [row[1:] for row in TABLE_J], ids=[row[0] for row in TABLE_J]
)
def test_J_parsers_disagree_and_ours_refuses_what_they_do_not_agree_on(
    value: bytes, ours: str, plain: str, other: str
) -> None:
    """A record that some parsers accept and others refuse is not learned, except one with equal keys."""
    records = RecordBatch(Partition("mail", 0), [0], [value], [None], [-1], [()], 1)
    refused = Decoder(MessageFields()).decode(records).refused

    assert [error.reason for _, error in refused] == ([ours] if ours else [])
    assert verdict(json.loads, value) == plain
    assert verdict(msgspec.json.decode, value) == other


def verdict(loads: Callable[[bytes], object], value: bytes) -> str:
    """Return what a parser does with a document."""
    try:
        loads(value)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        return type(error).__name__
    return LENIENT


def test_fuzzed_records_are_scored_or_put_aside_each_of_them() -> None:
    """They are decoded, scored, learned and encoded; `python -m tests.fuzz.records --runs N` runs more."""
    counts = Fuzz(seed=0).run(100_000)

    assert counts["records"] == counts["scored"] + counts["put aside"] == 100_000
    assert min(counts["scored"], counts["put aside"]) > 10_000


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -1.0, 0.0, 1e308])
def test_F5_an_invalid_weight_changes_nothing(weight: float) -> None:
    """If it were learned, every later score would be NaN."""
    model = NaiveBayes(TEXT_ONLY)
    model.learn_one({"text": "win money"}, "spam")
    before = model.digest()
    with pytest.raises(ValueError, match="weight"):
        model.learn_one({"text": "win money"}, "ham", w=weight)

    assert model.digest() == before


def test_F6_the_heaviest_labels_add_up_exactly() -> None:
    """A thousand weights of 1e9 add up to 1e12, and a weight of 1 still adds 1 to that."""
    model = NaiveBayes(TEXT_ONLY, head="product")
    for _ in range(1000):
        model.learn_one({"text": "win"}, "spam", w=WEIGHT_MAX)
    model.learn_one({"text": "win"}, "spam")
    model.learn_one({"text": "lunch"}, "ham")

    assert list(model.freeze().sections["class_counts"].ravel()) == [1e12 + 1, 1.0]
    assert sum(model.predict_proba_one({"text": "lunch"}).values()) == pytest.approx(1.0, abs=1e-12)


class Column(list[bytes | None]):
    """A list that a weak reference can point to."""


class WatchingSource(MemorySource):
    """Keeps a weak reference to each column of values that it returned."""

    def __init__(self, log: MemoryLog) -> None:
        super().__init__(log)
        self.columns: list[ReferenceType[Column]] = []
        self.held: list[int] = []

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """Note how many earlier columns are still in memory, and return the next batches."""
        self.held.append(sum(column() is not None for column in self.columns))
        batches = super().poll(records_max, timeout_ms)
        for batch in batches:
            batch.values = column = Column(batch.values)
            self.columns.append(ref(column))
        return batches


@pytest.mark.parametrize("broken", [False, True])
def test_F9_the_records_of_a_poll_are_gone_before_the_next_poll(broken: bool) -> None:
    """Otherwise two records of 60 MB, of two polls, would be in memory beside the batch that is decoded."""
    it = rig([message(i, "win money", "spam") if i % 3 or not broken else b"{" for i in range(50)])
    source = WatchingSource(it.log)
    it.run(source=source)

    assert len(source.columns) > 5
    assert set(source.held) == {0}
