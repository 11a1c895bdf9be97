"""Apache Kafka as a source and a sink, through confluent-kafka (librdkafka): several times as fast.

It stands behind the same protocols as `streamnb.transports.kafka`, keeps the same promises and names the
log in the same way, so that a snapshot made through one client resumes through the other. Two things differ:

- librdkafka 2.16 does not step over a record batch whose checksum is wrong: it goes on in the middle of
  the bytes and may land anywhere. A damaged batch therefore stops the stream, with its partition and offset;
  the other client reports it as unreadable and goes on, from the same snapshot.
- It tries again by itself, without end, while brokers are away; the logger ``kafka.librdkafka`` says so.
"""

# ruff: noqa: SLF001  librdkafka's own errors begin with an underscore

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from operator import methodcaller

from streamnb.base import Headers, Partition, RecordBatch, Start, Unreadable
from streamnb.errors import TransportError
from streamnb.transports.confluent.client import (
    REQUEST_TIMEOUT_S,
    Errors,
    brokers,
    build,
    client_settings,
    cluster_id,
    create_topics,
    describe,
    describe_topics,
    log,
    reason,
    translated,
)
from streamnb.transports.confluent.sink import ConfluentSink
from streamnb.transports.topics import TopicSource, position_lost, starting_positions

from confluent_kafka import (  # isort: skip  the room above says what to install where it is missing
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
    Uuid,
)
from confluent_kafka.admin import AdminClient  # isort: skip

__all__ = ["ConfluentSink", "ConfluentSource", "create_topics", "describe_topics"]

COMMIT_TIMEOUT_S = 3.0
COMMIT_STEP_S = 0.01
LOOK_AGAIN_S = 60.0
LEADER_WAIT_S = 0.1
# It joins no group; but to close it takes a session's time where one may not be read: 45 s by default.
ASKER = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 1000}
# Where a right is missing librdkafka looks for the group's coordinator for ever, and says nothing.
NO_ANSWER = f"no answer within {COMMIT_TIMEOUT_S:.0f} s; may this user read the group?"
NO_GROUP = "streamnb"  # librdkafka wants a name, under which it joins nothing and commits nothing
NO_TIMESTAMP = 0  # the type of a record's timestamp

_END = KafkaError._PARTITION_EOF
_GONE = {
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError._LOG_TRUNCATION,
    KafkaError.OFFSET_OUT_OF_RANGE,
}
_DAMAGED = {
    KafkaError._BAD_MSG,
    KafkaError._BAD_COMPRESSION,
    KafkaError._UNDERFLOW,
    KafkaError._NOT_IMPLEMENTED,
}
_LEADERLESS = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
}
_PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._UNKNOWN_TOPIC,  # a restarted broker may say so for a moment
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.REQUEST_TIMED_OUT,
}

# For a header's name that is not UTF-8, confluent-kafka 2.16 returns a list with a null pointer in it beside
# an exception. Called from C the mistake is seen and raised; a method call that Python has specialised does
# not look, and the process dies at the null pointer. Nor may it be asked twice: it raises only once.
_headers_of = methodcaller("headers")


class ConfluentSource(TopicSource):
    """Topics of Kafka, read from positions that the engine keeps.

    Partitions are assigned, never joined for; records of aborted transactions are not read. A record with a
    header whose name is not UTF-8 is reported as unreadable and the stream goes on.

    Parameters
    ----------
    topics : sequence of str
        Topics that exist.
    client : mapping
        Settings of librdkafka by its own names: ``bootstrap.servers``, ``security.protocol``,
        ``sasl.mechanism``, ...
    group : str, optional
        The consumer group under which `commit` leaves positions for lag tools.

    Raises
    ------
    SettingsError
        A setting is unknown, or the transport's own.
    """

    def __init__(
        self, topics: Sequence[str], client: Mapping[str, object], *, group: str | None = None
    ) -> None:
        self._settings = client_settings(client)
        super().__init__(topics, brokers(self._settings), group)
        self._errors = Errors()
        self._admin: AdminClient | None = build(AdminClient, self._settings, self._errors)
        self._cluster: str | None = None
        self._consumer: Consumer | None = None
        self._asker: Consumer | None = None
        self._unanswered = False
        self._answers: list[str] = []
        self._next_offsets: dict[Partition, int] = {}
        self._failure: TransportError | None = None
        self._look_again_s = time.monotonic() + LOOK_AGAIN_S

    def identity(self) -> Mapping[str, str]:
        """The ids of the cluster and of each topic, as Kafka's own tools print them, where it has them."""
        found = describe(self._connected_admin(), self._topics, self._settings)
        return self._identity(self._cluster, {name: _topic_id(one.topic_id) for name, one in found.items()})

    def open(self, next_offsets: Mapping[Partition, int], start: Start) -> Mapping[Partition, int]:
        """Take every partition of the topics and seek, as `Source.open` says.

        Raises
        ------
        PositionError
            The log begins after, or ends before, a position, or its partition is gone.
        TransportError
            A topic does not exist, or no broker answers.
        """
        found = describe(self._connected_admin(), self._topics, self._settings)
        partitions = self._partitions({name: len(topic.partitions) for name, topic in found.items()})
        begin, end = self._ends(partitions)

        def at_time(at_ms: int) -> dict[Partition, int | None]:
            asked = [TopicPartition(*one, at_ms) for one in partitions]
            with translated("Looking up positions", self._settings):
                found_at = self._asking().offsets_for_times(asked, REQUEST_TIMEOUT_S)
            return {
                Partition(one.topic, one.partition): one.offset if one.offset >= 0 else None
                for one in found_at
            }

        positions = starting_positions(next_offsets, start, begin, end, at_time)
        if self._consumer is None:
            self._consumer = self._new_consumer()
        with translated("Taking the partitions", self._settings):
            self._consumer.assign([TopicPartition(*one, offset) for one, offset in positions.items()])
        self._next_offsets = positions
        return dict(sorted(positions.items()))

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """One batch for each partition that moved on, be it only over a gap or an unreadable record.

        Raises
        ------
        PositionError
            The log no longer holds the position.
        TransportError
            The brokers refuse, or a record batch is damaged; from then on every poll says so.
        """
        if self._failure is not None:
            raise self._failure
        assert self._consumer is not None, "open() comes before poll()"
        with translated("Reading", self._settings):
            # `consume` alone would wait for `records_max` records; this waits for the first.
            first = self._consumer.poll(timeout_ms / 1000)
            if first is None:
                return []
            messages = [first, *self._consumer.consume(records_max - 1, 0)] if records_max > 1 else [first]
        batches = self._batches(messages)
        if self._failure is not None and not batches:
            raise self._failure
        return batches

    def added(self) -> Mapping[Partition, int]:
        """Take the partitions that the topics have gained, from their beginning; asked for once a minute."""
        assert self._consumer is not None, "open() comes before added()"
        now_s = time.monotonic()
        if now_s < self._look_again_s:
            return {}
        self._look_again_s = now_s + LOOK_AGAIN_S
        try:
            found = describe(self._connected_admin(), self._topics, self._settings)
            known = {
                Partition(name, number)
                for name, topic in found.items()
                for number in range(len(topic.partitions))
            }
            new = sorted(known - self._next_offsets.keys())
            begin = self._ends(new)[0]
        except TransportError as error:
            log.warning("It is not known whether the topics have more partitions: %s", error)
            return {}
        if new:
            self._next_offsets |= begin
            with translated("Taking new partitions", self._settings):
                every = [TopicPartition(*one, offset) for one, offset in self._next_offsets.items()]
                self._consumer.assign(every)
        return begin

    def _batches(self, messages: Iterable[Message]) -> list[RecordBatch]:
        """The records before the first failure by partition, and the offsets they reach."""
        records: dict[tuple[str, int], list[Message]] = {}
        ends: dict[tuple[str, int], int] = {}
        for message in messages:
            error = message.error()
            place = (
                message.topic() or "",
                message.partition(),
            )  # quicker to make than a `Partition`
            if error is None:
                if place in records:
                    records[place].append(message)
                else:
                    records[place] = [message]
            elif error.code() == _END:
                # Where the next fetch begins: behind markers of transactions and what was compacted away.
                ends[place] = message.offset()
            else:
                self._failure = self._failure_of(error, Partition(*place), message.offset())
                if self._failure is not None:
                    break  # what follows may be from anywhere
        batches = []
        for place in records | ends:
            partition, found = Partition(*place), records.get(place, [])
            next_offset = max(ends.get(place, 0), found[-1].offset() + 1 if found else 0)
            if next_offset > self._next_offsets[partition]:
                batches.append(_batch(partition, found, next_offset))
                self._next_offsets[partition] = next_offset
        return batches

    def _failure_of(self, error: KafkaError, partition: Partition, offset: int) -> TransportError | None:
        """What an error means for the stream; ``None`` for one that passes."""
        if error.code() in _GONE:
            return position_lost(f"{partition} no longer holds the position {offset} ({reason(error)}).")
        if error.code() in _DAMAGED:
            hint = 'Read it through `kind = "kafka"`, which reports damaged records and goes on.'
            return TransportError(f"{partition} is damaged at offset {offset}: {reason(error)}.", hint)
        # Without a topic it is about the group, which only lag tools need.
        if not error.fatal() and (error.code() in _PASSING or not partition.topic):
            log.warning("Reading from %s is tried again: %s", self._brokers, reason(error))
            return None
        what = f"Reading {partition} from {self._brokers} failed: {reason(error)}."
        return TransportError(what, "See the brokers' logs.")

    def end_offsets(self) -> Mapping[Partition, int]:
        """The offset after the last committed record of each partition now."""
        return self._ends(sorted(self._next_offsets))[1]

    def _commit_to_group(self, next_offsets: Mapping[Partition, int]) -> str:
        asker = self._asking()
        offsets = [TopicPartition(*one, offset) for one, offset in next_offsets.items()]
        deadline_s = time.monotonic() + COMMIT_TIMEOUT_S
        try:
            if self._unanswered:  # another would wait behind it, and hold up the stream again
                asker.poll(0)
                if not self._answers:
                    return NO_ANSWER
            self._answers.clear()
            # The admin client's call for this ends the process (librdkafka 2.16) when a broker dies under it.
            asker.commit(offsets=offsets, asynchronous=True)
            while not self._answers and time.monotonic() < deadline_s:
                asker.poll(COMMIT_STEP_S)
        except KafkaException as error:
            self._answers.append(reason(error))
        self._unanswered = not self._answers
        return self._answers[-1] if self._answers else NO_ANSWER

    def _take_answer(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        errors = [error, *(one.error for one in offsets)]
        self._answers.append(", ".join(sorted({reason(one) for one in errors if one is not None})))

    def close(self) -> None:
        """Let go of the topics."""
        opened = (self._consumer, self._asker)
        self._consumer = self._asker = self._admin = None
        for consumer in opened:
            if consumer is not None:
                consumer.close()

    def _asking(self) -> Consumer:
        """A consumer that reads nothing: a broker answers one connection's requests in turn, fetches too."""
        if self._asker is None:
            self._asker = self._new_consumer(on_commit=self._take_answer, **ASKER)
        return self._asker

    def _new_consumer(self, **more: object) -> Consumer:
        return build(
            Consumer,
            {**self._settings, **more},
            self._errors,
            group_id=self._group or NO_GROUP,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            auto_offset_reset="error",
            isolation_level="read_committed",
            check_crcs=True,
            enable_partition_eof=True,
        )

    def _connected_admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = build(AdminClient, self._settings, self._errors)
        if self._cluster is None:
            self._cluster = cluster_id(self._admin, self._settings, self._errors)
        return self._admin

    def _ends(self, partitions: Sequence[Partition]) -> tuple[dict[Partition, int], dict[Partition, int]]:
        """The first offset of each partition, and the one after the last committed record."""
        begin, end = {}, {}
        for one in partitions:
            with translated(f"Looking up the ends of {one}", self._settings):
                begin[one], end[one] = self._ends_of(TopicPartition(*one))
        return begin, end

    def _ends_of(self, partition: TopicPartition) -> tuple[int, int]:
        """Asked again while its leader is being chosen: unlike a poll, librdkafka gives this question up."""
        deadline_s = time.monotonic() + REQUEST_TIMEOUT_S
        while True:
            try:
                low, high = self._asking().get_watermark_offsets(partition, REQUEST_TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].code() not in _LEADERLESS or time.monotonic() > deadline_s:
                    raise
                time.sleep(LEADER_WAIT_S)
            else:
                return low, high


def _topic_id(found: Uuid | None) -> str:
    """A topic's id in Kafka's own notation; empty where the broker is too old to have one."""
    if found is None or set(str(found)) == {"A"}:  # sixteen bytes of zero
        return ""
    return str(found).replace("+", "-").replace("/", "_").rstrip("=")  # librdkafka's base64 is another


def _batch(partition: Partition, messages: Sequence[Message], next_offset: int) -> RecordBatch:
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
            # Nothing that reads headers here tells one without a value from an empty one.
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
