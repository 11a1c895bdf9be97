"""Limits of one record: beyond them it is put aside, and the stream goes on."""

from __future__ import annotations

import pytest

from streamnb.base.record import Headers, Partition, RecordBatch
from streamnb.errors import DataError
from streamnb.transports.memory import MemoryLog
from streamnb.wire.message import Decoder, MessageFields
from tests.engine.test_engine import Rig, message, rig

LABELLED = b'{"text": "win", "label": "spam"}'


def reasons(key: bytes | None = None, headers: Headers = (), value: bytes = LABELLED) -> list[str]:
    """Why one record among two others is refused, if it is; the others never are."""
    values: list[bytes | None] = [LABELLED, value, LABELLED]
    records = RecordBatch(
        Partition("mail", 0), range(3), values, [None, key, b"k"], [-1] * 3, [(), headers, ()], 3
    )
    messages = Decoder(MessageFields(), key_bytes_max=10, headers_max=3).decode(records)

    assert {0, 2} <= set(messages.rows)
    assert all(row == 1 for row, _ in messages.refused)
    return [error.reason for _, error in messages.refused]


def test_a_key_at_its_limit_is_taken_and_one_byte_more_is_not() -> None:
    """The score carries it."""
    assert reasons(b"0123456789") == []
    assert reasons(b"0123456789a") == ["oversized"]


def test_A16_headers_at_their_limit_are_taken_and_one_more_is_not() -> None:
    """Whatever they hold."""
    assert reasons(headers=[("a", b"")] * 3) == []
    assert reasons(headers=[("a", b"")] * 4) == ["headers"]


def test_A16_a_hundred_thousand_headers_become_a_stub() -> None:
    """Not a dead letter of as many."""
    log = MemoryLog()
    log.append(message(0, "lunch", "ham"), headers=[("h", b"x")] * 100_000)
    it = Rig(log, rig([]).store)
    with pytest.raises(DataError, match="None of the 1 records read is a message: 1 headers"):
        it.run()
    (aside,) = it.aside.records(0)

    assert dict(aside.headers)["streamnb.reason"] == b"headers"
    assert len(aside.headers) < 10


def test_F11_a_label_in_a_record_that_streamnb_wrote_is_refused() -> None:
    """A dead letter that comes back would teach what nobody checked; without a label it is scored."""
    ours: Headers = [("streamnb.reason", b"label"), ("trace", b"1")]

    assert reasons(headers=ours) == ["own_output"]
    assert reasons(headers=ours, value=b'{"text": "win"}') == []
    assert reasons(headers=[("trace", b"1")]) == []


def test_a_large_key_does_not_stop_the_stream() -> None:
    """Nearly as large as a record may be: with its score it would be refused by the broker, for ever."""
    log = MemoryLog()
    log.append(message(0, "lunch", "ham"), key=b"k" * 1_000_000)
    log.append(message(1, "lunch", "ham"), key=b"k")
    it = Rig(log, rig([]).store)
    summary = it.run()
    (aside,) = it.aside.records(0)

    assert (summary.scored, summary.dead_letters) == (1, 1)
    assert len(aside.key or b"") == 4096
