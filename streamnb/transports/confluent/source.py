"""A source of Kafka topics through confluent-kafka (librdkafka), several times faster than kafka-python.

It has the same contract as `streamnb.transports.kafka` and the same names for clusters, topics and
partitions, so that a snapshot made with one client resumes with the other. Two things differ:

- librdkafka 2.16 does not skip a record batch with a wrong checksum: it continues in the middle of the
  batch's bytes, at an arbitrary offset. A damaged batch therefore stops the stream here, and the error names
  its partition and offset. The other client, from the same snapshot, reports the batch as unreadable and
  continues.
- librdkafka itself retries without a time limit while no broker answers, and reports that to the logger
  ``kafka.librdkafka``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from streamnb.base import Partition, RecordBatch, Start
from streamnb.errors import TransportError
from streamnb.transports.confluent.client import (
    BOUNDS,
    REQUEST_TIMEOUT_S,
    Errors,
    brokers,
    build,
    cluster_id,
    create_topics,
    describe,
    describe_topics,
    librdkafka_settings,
    log,
    reason,
    topic_id,
    translated,
)
from streamnb.transports.confluent.error_codes import DAMAGED, END, GONE, LEADERLESS, MISSING, RETRIED
from streamnb.transports.confluent.records import Poll
from streamnb.transports.confluent.sink import ConfluentSink
from streamnb.transports.positions import position_lost
from streamnb.transports.topics import TopicSource, topic_gone

from confluent_kafka import (  # isort: skip  the client module reports a missing package first
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # isort: skip

__all__ = ["ConfluentSink", "ConfluentSource", "create_topics", "describe_topics"]

COMMIT_TIMEOUT_S = 3.0
COMMIT_STEP_S = 0.01
LOOK_AGAIN_S = 60.0  # between two requests for new partitions
LEADER_WAIT_S = 0.1
CLOSE_WAIT_S = 1.0
WRITTEN_AGE_S = 1.0
IDENTITY_TIMEOUT_S = 10.0  # each snapshot waits for it, the one at a stop too, which has 20 s
# The side consumer joins no group, but librdkafka 2.16 waits a session timeout in `close` if the user may not
# read the group: 45 s by default.
SIDE_CONSUMER = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 1000}
# If the user may not read the group, librdkafka looks for its coordinator forever and reports nothing.
NO_ANSWER = f"no answer within {COMMIT_TIMEOUT_S:.0f} s; check that this user may read the group"
NO_GROUP = "streamnb"  # librdkafka requires a `group.id`; under this one it joins and commits nothing


class ConfluentSource(TopicSource):
    """A source of Kafka topics that reads from the positions of a snapshot, through librdkafka.

    It assigns its partitions itself, without a consumer group, and reads with isolation level
    `read_committed`. It reports a record with a header name that is not UTF-8 as unreadable and continues.

    Parameters
    ----------
    topics : sequence of str
        Names of topics. They must exist when the source is opened.
    client : mapping
        Settings of librdkafka by its own names: ``bootstrap.servers``, ``security.protocol``,
        ``sasl.mechanism``, ...
    group : str, optional
        The consumer group to which `commit` commits positions, for lag tools only.
    partitions : sequence of int, optional
        The numbers of the partitions to read of each topic; by default all, also those added later.

    Raises
    ------
    SettingsError
        A setting is unknown, or the transport fixes it.
    """

    def __init__(
        self,
        topics: Sequence[str],
        client: Mapping[str, object],
        *,
        group: str | None = None,
        partitions: Sequence[int] | None = None,
    ) -> None:
        self._settings = librdkafka_settings(client)
        super().__init__(topics, brokers(self._settings), group, partitions)
        self._errors = Errors()
        self._admin: AdminClient | None = build(AdminClient, self._settings, self._errors)
        self._connected = False
        self._consumer: Consumer | None = None
        self._side_consumer: Consumer | None = None
        self._aside = threading.Lock()  # held while another thread than the one that polls asks the brokers
        self._unanswered = False
        self._answers: list[str] = []
        self._next_offsets: dict[Partition, int] = {}
        self._written: dict[Partition, int] = {}
        self._look_at_written_s = 0.0
        self._failure: TransportError | None = None
        self._look_again_s = time.monotonic() + LOOK_AGAIN_S

    def identity(self) -> Mapping[str, str]:
        """Return the ids of the cluster and the topics as Kafka's tools print them; old brokers lack some."""
        admin = self._connected_admin()
        found = describe(admin, self._topics, self._settings, IDENTITY_TIMEOUT_S)
        cluster = cluster_id(admin, self._settings, self._errors, IDENTITY_TIMEOUT_S)
        return self._identity(cluster, {name: topic_id(one.topic_id) for name, one in found.items()})

    def open(self, next_offsets: Mapping[Partition, int], start: Start) -> Mapping[Partition, int]:
        """Assign the partitions to read and seek, by the rules of `Source.open`.

        Raises
        ------
        PositionError
            A partition of `next_offsets` does not exist, begins after its position or ends before it.
        SettingsError
            A topic does not have a chosen partition.
        TransportError
            A topic does not exist, or no broker answers.
        """
        found = describe(self._connected_admin(), self._topics, self._settings)
        partitions = self._partitions({name: len(topic.partitions) for name, topic in found.items()})
        begin, end = self._ends(partitions)

        def at_time(at_ms: int) -> dict[Partition, int | None]:
            wanted = [TopicPartition(*one, at_ms) for one in partitions]
            with translated("Looking up positions", self._settings):
                found_at = self._connected_side_consumer().offsets_for_times(wanted, REQUEST_TIMEOUT_S)
            return {
                Partition(one.topic, one.partition): one.offset if one.offset >= 0 else None
                for one in found_at
            }

        positions = self._positions(next_offsets, start, begin, end, at_time)
        if self._consumer is None:
            self._consumer = self._new_consumer()
        with translated("Assigning the partitions", self._settings):
            self._consumer.assign([TopicPartition(*one, offset) for one, offset in positions.items()])
        self._next_offsets = positions
        return dict(sorted(positions.items()))

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """Return one batch for each partition whose position advanced, even if only over a gap.

        A gap is a range of offsets without a record to return: compacted or aborted records, transaction
        markers, or unreadable records, which the batch lists.

        Raises
        ------
        PositionError
            The log no longer holds the position.
        TransportError
            The client reported an error that it does not retry, or a record batch is damaged. Every later
            poll raises the same error.
        """
        if self._failure is not None:
            raise self._failure
        assert self._consumer is not None, "open() comes before poll()"
        if time.monotonic() >= self._look_at_written_s:
            self._look_at_written(self._consumer)
        with translated("Reading", self._settings):
            batches = self._batches(self._consumer, records_max, timeout_ms)
        if self._failure is not None and not batches:
            raise self._failure
        return batches

    def _look_at_written(self, consumer: Consumer) -> None:
        """Keep the high watermarks of the last fetch: another thread could not ask for them during a poll."""
        self._look_at_written_s = time.monotonic() + WRITTEN_AGE_S
        found = {
            one: consumer.get_watermark_offsets(TopicPartition(*one), cached=True)[1]
            for one in self._next_offsets
        }
        self._written = {one: at for one, at in found.items() if at >= 0}

    def added(self) -> Mapping[Partition, int]:
        """Assign the partitions that the topics have gained, and return their first offsets.

        It asks the brokers at most once per `LOOK_AGAIN_S` seconds. A source of chosen partitions takes none.
        """
        assert self._consumer is not None, "open() comes before added()"
        now_s = time.monotonic()
        if now_s < self._look_again_s:
            return {}
        self._look_again_s = now_s + LOOK_AGAIN_S
        try:
            found = describe(self._connected_admin(), self._topics, self._settings)
            counts = {name: len(topic.partitions) for name, topic in found.items()}
            new = self._gained(counts, self._next_offsets)
            begin = self._ends(new)[0]
        except TransportError as error:
            log.warning("The topics could not be checked for new partitions: %s", error)
            return {}
        if new:
            self._next_offsets |= begin
            with translated("Assigning new partitions", self._settings):
                every = [TopicPartition(*one, offset) for one, offset in self._next_offsets.items()]
                self._consumer.assign(every)
        return begin

    def _batches(self, consumer: Consumer, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """Return the records before the first failure, one batch per partition, and keep that failure."""
        ends: dict[tuple[str, int], int] = {}

        def handled(event: Message) -> bool:
            error, place = event.error(), (event.topic() or "", event.partition())
            assert error is not None
            if error.code() == END:
                # The offset of the next fetch, behind transaction markers and compacted records.
                ends[place] = event.offset()
            else:
                self._failure = self._failure_of(error, Partition(*place), event.offset())
            return self._failure is None  # records behind a damaged batch may come from arbitrary offsets

        poll = Poll(self._topics, handled)
        poll.read(consumer, records_max, timeout_ms)
        batches = []
        for place, at in ends.items():
            batch = poll.batch(place)
            batch.next_offset = max(batch.next_offset, at)
        for batch in poll.batches.values():
            if batch.next_offset > self._next_offsets[batch.partition]:
                batches.append(batch)
                self._next_offsets[batch.partition] = batch.next_offset
        return batches

    def _failure_of(self, error: KafkaError, partition: Partition, offset: int) -> TransportError | None:
        """Return the failure for an error that stops the stream; log one that librdkafka retries."""
        if error.code() in GONE:
            return position_lost(f"{partition} no longer holds the position {offset} ({reason(error)}).")
        if error.code() in DAMAGED:
            hint = 'Set `kind = "kafka"` for the source: it reports a damaged batch and continues after it.'
            return TransportError(f"{partition} is damaged at offset {offset}: {reason(error)}.", hint)
        # An error without a topic concerns the group, which only lag tools need.
        if not error.fatal() and (error.code() in RETRIED or not partition.topic):
            log.warning("Retrying to read from %s after an error: %s", self._brokers, reason(error))
            return None
        what = f"Reading {partition} from {self._brokers} failed: {reason(error)}."
        return TransportError(what, "Read the brokers' logs.")

    def end_offsets(self) -> Mapping[Partition, int]:
        """Return each partition's last stable offset now, the end of the log for `read_committed`.

        Raises
        ------
        MissingTopicError
            A topic was deleted.
        TransportError
            The brokers do not answer.
        """
        with self._aside:
            return self._ends(sorted(self._next_offsets))[1]

    def written_offsets(self) -> Mapping[Partition, int]:
        """Return each partition's high watermark, from the last fetch or, before the first one, now."""
        written = self._written
        unknown = {
            TopicPartition(*one): OffsetSpec.latest() for one in self._next_offsets if one not in written
        }
        if not unknown:
            return written
        with translated("Looking up the high watermarks", self._settings):
            # The side consumer, which reads committed records, would return the last stable offsets.
            answers = self._connected_admin().list_offsets(
                unknown, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=IDENTITY_TIMEOUT_S
            )
            asked = {Partition(one.topic, one.partition): at.result().offset for one, at in answers.items()}
        return written | asked

    def _committed_in_group(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        if self._unanswered:
            return {}
        with self._aside:
            try:
                asked = [TopicPartition(*one) for one in partitions]
                found = self._connected_side_consumer().committed(asked, COMMIT_TIMEOUT_S)
            except KafkaException:
                return {}  # the commit that follows fails too and says why
        return {Partition(one.topic, one.partition): one.offset for one in found if one.offset >= 0}

    def _commit_to_group(self, next_offsets: Mapping[Partition, int]) -> str:
        with self._aside:
            return self._commit_aside(next_offsets)

    def _commit_aside(self, next_offsets: Mapping[Partition, int]) -> str:
        consumer = self._connected_side_consumer()
        offsets = [TopicPartition(*one, offset) for one, offset in next_offsets.items()]
        deadline_s = time.monotonic() + COMMIT_TIMEOUT_S
        try:
            if self._unanswered:  # a new commit would wait behind the old one and delay the stream again
                consumer.poll(0)
                if not self._answers:
                    return NO_ANSWER
            self._answers.clear()
            # In librdkafka 2.16 the admin client's call for this aborts the process if a broker dies during
            # the call.
            consumer.commit(offsets=offsets, asynchronous=True)
            while not self._answers and time.monotonic() < deadline_s:
                consumer.poll(COMMIT_STEP_S)
        except KafkaException as error:
            self._answers.append(reason(error))
        self._unanswered = not self._answers
        return self._answers[-1] if self._answers else NO_ANSWER

    def _on_commit(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        """Store the outcome of a commit, empty on success; the side consumer calls this from its `poll`."""
        errors = [error, *(one.error for one in offsets)]
        self._answers.append(", ".join(sorted({reason(one) for one in errors if one is not None})))

    def close(self) -> None:
        """Close both consumers and drop the admin client. Closing twice does nothing."""
        opened = [self._consumer]
        if self._aside.acquire(
            timeout=CLOSE_WAIT_S
        ):  # closed under a request, librdkafka would use freed memory
            opened.append(self._side_consumer)
            self._aside.release()
        self._consumer = self._side_consumer = self._admin = None
        for consumer in opened:
            if consumer is not None:
                consumer.close()

    def _connected_side_consumer(self) -> Consumer:
        """Return a second consumer, which reads no records, for commits and offset lookups.

        A broker answers the requests of one connection in order: on the reading consumer's connection they
        would wait behind its fetch.
        """
        if self._side_consumer is None:
            self._side_consumer = self._new_consumer(on_commit=self._on_commit, **SIDE_CONSUMER)
        return self._side_consumer

    def _new_consumer(self, **more: object) -> Consumer:
        return build(
            Consumer,
            {**BOUNDS, **self._settings, **more},
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
        if not self._connected:
            cluster_id(self._admin, self._settings, self._errors)
            self._connected = True
        return self._admin

    def _ends(self, partitions: Sequence[Partition]) -> tuple[dict[Partition, int], dict[Partition, int]]:
        """Return the first offset and the last stable offset of each partition."""
        begin, end = {}, {}
        deadline_s = time.monotonic() + REQUEST_TIMEOUT_S
        for one in partitions:
            with translated(f"Looking up the ends of {one}", self._settings):
                begin[one], end[one] = self._ends_of(TopicPartition(*one), deadline_s)
        return begin, end

    def _ends_of(self, partition: TopicPartition, deadline_s: float) -> tuple[int, int]:
        """Return the low watermark and the last stable offset; retry while a leader is being elected.

        librdkafka 2.16 retries a fetch in that case, but not this request.
        """
        while True:
            try:
                low, high = self._connected_side_consumer().get_watermark_offsets(
                    partition, max(deadline_s - time.monotonic(), LEADER_WAIT_S)
                )
            except KafkaException as error:
                if error.args[0].code() in MISSING:
                    raise topic_gone(partition.topic, self._brokers) from None
                if error.args[0].code() not in LEADERLESS or time.monotonic() > deadline_s:
                    raise
                time.sleep(LEADER_WAIT_S)
            else:
                return low, high
