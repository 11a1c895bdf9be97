"""Columns of librdkafka's messages hold what a loop over the messages finds; this needs no broker."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base import POLL_BYTES_MAX, Partition, RecordBatch
from streamnb.transports.confluent.records import CONSUMED_AT_ONCE, Poll

CONTENT = st.none() | st.binary(max_size=8)
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=3), CONTENT), max_size=2)
STAMP = st.tuples(st.sampled_from([0, 1, 2]), st.integers(-1, 9))
END = KafkaError._PARTITION_EOF
STOP = KafkaError._BAD_MSG


class Consumer:
    """Hands over these messages, as librdkafka's consumer does."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.left = list(messages)

    def poll(self, _timeout: float) -> Message | None:
        """Return the next message."""
        return self.left.pop(0) if self.left else None

    def consume(self, n: int, _timeout: float) -> list[Message]:
        """Return the next `n` messages."""
        found, self.left = self.left[:n], self.left[n:]
        return found


@st.composite
def logs(draw: st.DrawFn, topics: Sequence[str]) -> list[Message]:
    """Messages of several partitions, with events between them."""
    found: list[Message] = []
    for offset in range(draw(st.integers(0, 30))):
        place = draw(st.sampled_from(topics)), draw(st.integers(0, 1))
        error = draw(st.sampled_from([None] * 9 + [END, STOP]))
        found.append(
            Message(
                topic=place[0],
                partition=place[1],
                offset=offset,
                value=draw(CONTENT),
                key=draw(CONTENT),
                headers=draw(HEADERS),
                timestamp=draw(STAMP),
                error=None if error is None else KafkaError(error),
            )
        )
    return found


def plain(messages: Sequence[Message]) -> dict[tuple[str, int], RecordBatch]:
    """Return what a loop over the messages finds."""
    batches: dict[tuple[str, int], RecordBatch] = {}
    for message in messages:
        error = message.error()
        if error is not None and error.code() == STOP:
            break
        if error is None:
            place = message.topic(), message.partition()
            batch = batches.setdefault(place, RecordBatch(Partition(*place), [], [], [], [], [], 0))
            kind, at_ms = message.timestamp()
            batch.offsets = [*batch.offsets, message.offset()]
            batch.timestamps_ms = [*batch.timestamps_ms, at_ms if kind else -1]
            batch.values.append(message.value())
            batch.keys.append(message.key())
            batch.headers.append([(name, content or b"") for name, content in message.headers() or ()])
            batch.next_offset = message.offset() + 1
    return batches


@pytest.mark.parametrize("topics", [["a"], ["a", "b"]])
@given(st.data())
def test_a_poll_reads_what_a_loop_over_its_messages_reads(topics: list[str], data: st.DataObject) -> None:
    """Events are handled in order, once each, up to the one behind which nothing may be read."""
    messages = data.draw(logs(topics))
    events: list[int] = []

    def handled(event: Message) -> bool:
        error = event.error()
        assert error is not None
        events.append(event.offset())
        return bool(error.code() != STOP)

    poll = Poll(topics, handled)
    poll.read(Consumer(messages), 100, 0)
    expected = plain(messages)
    for batch in poll.batches.values():
        batch.headers = [list(one) for one in batch.headers]
    assert poll.batches == expected
    failed = [one.error() for one in messages]
    stop = next((i for i, one in enumerate(failed) if one is not None and one.code() == STOP), len(failed))
    assert (
        events
        == [one.offset() for one, error in zip(messages, failed, strict=True) if error][
            : sum(one is not None for one in failed[: stop + 1])
        ]
    )


def test_a_poll_ends_at_its_bound_in_records_or_bytes() -> None:
    """It asks for no more records than that; the size of the next is judged by those before."""
    large = POLL_BYTES_MAX // 10
    for size, records_max, expected in ((10, 500, 500), (10, 3, 3), (large, 500, 10)):
        consumer = Consumer(
            [Message(topic="a", partition=0, offset=i, value=bytes(size)) for i in range(600)]
        )
        poll = Poll(["a"], lambda _: True)
        poll.read(consumer, records_max, 0)
        assert len(poll.batches["a", 0]) == expected
    assert CONSUMED_AT_ONCE < 500
