"""Polls of librdkafka, bounded in bytes, as columns; a message with undecodable headers is unreadable.

confluent-kafka hands over one object per message, and each of its attributes is a call. Here C code makes
these calls, one `map` per column over the messages of one `consume`: a loop in Python takes three times as
long. The objects of one `consume` are dropped before the next, so that their memory is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from operator import itemgetter

from confluent_kafka import Consumer, Message

from streamnb.base import POLL_BYTES_MAX, Headers, Partition, RecordBatch, Unreadable, record_bytes

NO_TIMESTAMP = 0  # the timestamp type of a record without one
CONSUMED_AT_ONCE = 64  # messages of unknown size; fewer at a time cost more

# For a header name that is not UTF-8, `Message.headers()` of confluent-kafka 2.16 sets an exception and still
# returns a list, with a null pointer in it. CPython detects that if C code makes the call, and raises a
# SystemError. A method call that the interpreter has specialised does not check, and the process crashes at
# the null pointer. `map` calls from C. Call it once per message: the second call does not raise.

_kind_of, _ms_of = itemgetter(0), itemgetter(1)


class Poll:
    """What one poll reads: a batch for each partition, and the client's events, which are handled at once.

    Parameters
    ----------
    topics : sequence of str
        The topics that the consumer reads.
    handled : callable
        Handles an event of the client, such as an error, and returns whether to go on behind it.

    Attributes
    ----------
    batches : dict of tuple to RecordBatch
        By topic and partition number, in the order in which their first records came.
    """

    def __init__(self, topics: Sequence[str], handled: Callable[[Message], bool]) -> None:
        self.batches: dict[tuple[str, int], RecordBatch] = {}
        self._numbers: dict[tuple[str, int], tuple[list[int], list[int]]] = {}  # their offsets and times
        self._topic = topics[0] if len(topics) == 1 else None
        self._handled = handled
        self._goes_on = True

    def batch(self, place: tuple[str, int]) -> RecordBatch:
        """Return the batch of a partition, which may still be empty."""
        batch = self.batches.get(place)
        if batch is None:
            offsets, times = self._numbers[place] = ([], [])
            batch = self.batches[place] = RecordBatch(Partition(*place), offsets, [], [], times, [], 0)
        return batch

    def read(self, consumer: Consumer, records_max: int, timeout_ms: int) -> None:
        """Read the next messages: none after `timeout_ms`, and about `POLL_BYTES_MAX` bytes of them.

        librdkafka returns messages by number, not by size. It is asked for as many as fit if the next are as
        large as those before, and for at most `CONSUMED_AT_ONCE`, by which the limit may be exceeded.
        """
        n = size = 0
        # `consume` alone would wait for all `records_max` messages. `poll` waits only for the first.
        first = consumer.poll(timeout_ms / 1000)
        new = [] if first is None else [first]
        while new:
            n += len(new)
            if any(map(Message.error, new)):
                new = self._without_events(new)
            size += self._add(new)
            fit = (POLL_BYTES_MAX - size) * n // max(1, size)
            at_once = min(CONSUMED_AT_ONCE, records_max - n, fit)
            new = consumer.consume(at_once, 0) if at_once > 0 and self._goes_on else []

    def _without_events(self, messages: Sequence[Message]) -> list[Message]:
        """Return the records among the messages, up to an event behind which nothing may be read."""
        records = []
        for message in messages:
            if message.error() is None:
                records.append(message)
            elif not self._handled(message):
                self._goes_on = False
                break
        return records

    def _add(self, messages: list[Message]) -> int:
        """Add records to the batches of their partitions, and return their bytes."""
        numbers = list(map(Message.partition, messages))
        if not numbers:
            return 0
        if self._topic is not None and numbers.count(numbers[0]) == len(numbers):  # nearly always
            return self._add_to((self._topic, numbers[0]), messages)
        places = list(zip(map(Message.topic, messages), numbers, strict=True))
        return sum(
            self._add_to(place, list(compress(messages, map(place.__eq__, places))))
            for place in dict.fromkeys(places)
        )

    def _add_to(self, place: tuple[str, int], messages: list[Message]) -> int:
        """Add records of one partition to its batch, and return their bytes."""
        batch = self.batch(place)
        batch.next_offset = messages[-1].offset() + 1
        size = sum(map(len, messages))  # of the values
        headers = _headers(messages)
        if any(headers):
            batch.unreadable += [one for one in headers if isinstance(one, Unreadable)]
            messages = [
                one for one, names in zip(messages, headers, strict=True) if not isinstance(names, Unreadable)
            ]
            # Kafka allows a header without a value; streamnb treats it as an empty value.
            known = [
                [(name, value or b"") for name, value in one or ()]
                for one in headers
                if not isinstance(one, Unreadable)
            ]
            batch.headers += known
            size += sum(record_bytes(None, None, one) for one in known)
        else:
            batch.headers += [()] * len(messages)
        keys = list(map(Message.key, messages))
        batch.keys += keys
        batch.values += map(Message.value, messages)
        offsets, times = self._numbers[place]
        offsets += map(Message.offset, messages)
        times += _times(messages)
        return size + sum(map(len, filter(None, keys)))


def _times(messages: Sequence[Message]) -> Sequence[int]:
    """Return the messages' timestamps in milliseconds, -1 for one without."""
    stamps = list(map(Message.timestamp, messages))
    if NO_TIMESTAMP in map(_kind_of, stamps):
        return [at_ms if kind != NO_TIMESTAMP else -1 for kind, at_ms in stamps]
    return list(map(_ms_of, stamps))


def _headers(messages: Sequence[Message]) -> list[Headers | Unreadable | None]:
    """Return each message's headers as the client decodes them, or the reason why they cannot be decoded."""
    decoded: list[Headers | Unreadable | None] = []
    rest = map(Message.headers, messages)
    while len(decoded) < len(messages):
        try:
            decoded.extend(rest)  # if it raises, those before stay, and `rest` continues behind
        except (SystemError, UnicodeDecodeError) as error:
            offset = messages[len(decoded)].offset()
            decoded.append(Unreadable(offset, offset + 1, str(error.__cause__ or error)))
    return decoded
