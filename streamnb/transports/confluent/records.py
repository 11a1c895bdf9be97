"""Polls of librdkafka, bounded in bytes, as columns; a message with undecodable headers is unreadable."""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller

from confluent_kafka import Consumer, Message

from streamnb.base import POLL_BYTES_MAX, Headers, Partition, RecordBatch, Unreadable, record_bytes

NO_TIMESTAMP = 0  # the timestamp type of a record without one
CONSUMED_AT_ONCE = 64  # messages of unknown size; fewer at a time cost more

# For a header name that is not UTF-8, `Message.headers()` of confluent-kafka 2.16 sets an exception and still
# returns a list, with a null pointer in it. CPython detects that if C code makes the call, and raises a
# SystemError. A method call that the interpreter has specialised does not check, and the process crashes at
# the null pointer. `methodcaller` calls from C. Call it once per message: the second call does not raise.
_headers_of = methodcaller("headers")
_key_of = methodcaller("key")


Read = tuple[Message, Headers | Unreadable]
"""A record, or an event of the client, with its headers, or the reason why they cannot be decoded."""


def taken(consumer: Consumer, records_max: int, timeout_ms: int) -> list[Read]:
    """Return the next messages: none after `timeout_ms`, and about `POLL_BYTES_MAX` bytes of them.

    librdkafka returns messages by number, not by size. It is asked for as many as fit if the next are as
    large as those before, and for at most `CONSUMED_AT_ONCE`, by which the limit may be exceeded.
    """
    found: list[Read] = []
    size = 0
    # `consume` alone would wait for all `records_max` messages. `poll` waits only for the first.
    first = consumer.poll(timeout_ms / 1000)
    new = [] if first is None else [first]
    while new:
        headers = _headers(new)
        found += zip(new, headers, strict=True)
        # One call of each function for all messages is several times as fast as a loop over them.
        size += sum(map(len, new)) + sum(map(len, filter(None, map(_key_of, new))))
        size += sum(
            record_bytes(None, None, one) for one in headers if one and not isinstance(one, Unreadable)
        )
        fit = (POLL_BYTES_MAX - size) * len(found) // max(1, size)
        n = min(CONSUMED_AT_ONCE, records_max - len(found), fit)
        new = consumer.consume(n, 0) if n > 0 else []
    return found


def _headers(messages: Sequence[Message]) -> list[Headers | Unreadable]:
    """Return each message's headers, or the reason why they cannot be decoded."""
    decoded: list[Headers | Unreadable | None] = []
    rest = map(_headers_of, messages)
    while len(decoded) < len(messages):
        try:
            decoded.extend(rest)  # if it raises, those before stay, and `rest` continues behind
        except (SystemError, UnicodeDecodeError) as error:
            offset = messages[len(decoded)].offset()
            decoded.append(Unreadable(offset, offset + 1, str(error.__cause__ or error)))
    if not any(decoded):
        return [()] * len(messages)
    # Kafka allows a header without a value; streamnb treats it as an empty value.
    return [
        one if isinstance(one, Unreadable) else [(name, value or b"") for name, value in one or ()]
        for one in decoded
    ]


def batch_of(partition: Partition, found: Sequence[Read], next_offset: int) -> RecordBatch:
    """Return the messages of one partition as a batch that ends before `next_offset`."""
    readable: list[Message] = []
    headers: list[Headers] = []
    unreadable: list[Unreadable] = []
    for message, names in found:
        if isinstance(names, Unreadable):
            unreadable.append(names)
        else:
            readable.append(message)
            headers.append(names)
    stamps = [message.timestamp() for message in readable]
    return RecordBatch(
        partition=partition,
        offsets=[message.offset() for message in readable],
        values=[message.value() for message in readable],
        keys=[message.key() for message in readable],
        timestamps_ms=[at_ms if kind != NO_TIMESTAMP else -1 for kind, at_ms in stamps],
        headers=headers,
        next_offset=next_offset,
        unreadable=unreadable,
    )
