"""Messages of librdkafka as columns; a message whose headers cannot be decoded is reported as unreadable."""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller

from confluent_kafka import Message

from streamnb.base import Headers, Partition, RecordBatch, Unreadable

NO_TIMESTAMP = 0  # the timestamp type of a record without one

# For a header name that is not UTF-8, `Message.headers()` of confluent-kafka 2.16 sets an exception and still
# returns a list, with a null pointer in it. CPython detects that if C code makes the call, and raises a
# SystemError. A method call that the interpreter has specialised does not check, and the process crashes at
# the null pointer. `methodcaller` calls from C. Call it once per message: the second call does not raise.
_headers_of = methodcaller("headers")


def batch_of(partition: Partition, messages: Sequence[Message], next_offset: int) -> RecordBatch:
    """Return the messages of one partition as a batch that ends before `next_offset`."""
    headers: list[Headers] = []
    unreadable: list[Unreadable] = []
    readable: list[Message] = []
    for message in messages:
        try:
            names = _headers_of(message)
        except (SystemError, UnicodeDecodeError) as error:
            offset = message.offset()
            unreadable.append(Unreadable(offset, offset + 1, str(error.__cause__ or error)))
        else:
            # Kafka allows a header without a value; streamnb treats it as an empty value.
            headers.append([(name, value or b"") for name, value in names] if names else ())
            readable.append(message)
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
