"""A source of Kafka topics through kafka-python.

The client's defaults lose or repeat records silently: it commits offsets automatically, jumps to the end of
the log when its position is out of range, reads the records of aborted transactions, and asks the broker to
create misspelt topics. `open` overrides these defaults, and `OWNED` forbids a user to change them back.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Mapping, Sequence
from uuid import UUID

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient, OffsetSpec
from kafka.errors import (
    KafkaError,
    LogTruncationError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
    UnsupportedCodecError,
)
from kafka.protocol.consumer import IsolationLevel
from kafka.structs import OffsetAndMetadata

from streamnb.base import DECOMPRESSED_BYTES_MAX, FETCHED_BYTES_MAX, Partition, RecordBatch, Start
from streamnb.errors import TransportError
from streamnb.transports.kafka.client import (
    brokers,
    connect,
    create_topics,
    describe,
    describe_topics,
    kafka_python_settings,
    translated,
)
from streamnb.transports.kafka.columns import batch_of
from streamnb.transports.kafka.records import Consumer
from streamnb.transports.kafka.sink import KafkaSink
from streamnb.transports.positions import position_lost
from streamnb.transports.topics import TopicSource, topic_gone

__all__ = ["KafkaSink", "KafkaSource", "create_topics", "describe_topics"]

log = logging.getLogger(__name__)

PARTITION_FETCH_BYTES_MAX = 1 << 20  # the client's default; many partitions get less each
RETRY_BUDGET_S = 120.0  # how long polls may raise only retriable errors before the source gives up
RETRY_PAUSE_S = 0.1
COMMIT_BUDGET_S = 3.0  # short, because only lag tools need the commit and the stream waits for it
CLOSE_TIMEOUT_S = 10.0
ADMIN_TIMEOUT_MS = 10_000  # each snapshot waits for the identity, the one at a stop too, which has 20 s


class KafkaSource(TopicSource):
    """A source of Kafka topics that reads from the positions of a snapshot, through kafka-python.

    It assigns its partitions itself, without a consumer group, and reads with isolation level
    `read_committed`. It reports a record that cannot be decoded as unreadable and continues behind it.

    Parameters
    ----------
    topics : sequence of str
        Names of topics. They must exist when the source is opened.
    client : mapping
        Settings of kafka-python by its own names: ``bootstrap_servers``, ``security_protocol``,
        ``sasl_mechanism``, ...
    group : str, optional
        The consumer group to which `commit` commits positions, for lag tools only.
    partitions : sequence of int, optional
        The numbers of the partitions to read of each topic; by default all, also those added later.
    decompressed_bytes_max : int
        The largest decompressed size of a record batch; a larger batch is unreadable.

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
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> None:
        self._settings = kafka_python_settings(client)
        super().__init__(topics, brokers(self._settings), group, partitions)
        self._decompressed_bytes_max = decompressed_bytes_max
        self._admin: KafkaAdminClient | None = None
        self._consumer: Consumer | None = None
        self._next_offsets: dict[TopicPartition, int] = {}
        self._retrying_since: float | None = None
        self._failure: TransportError | None = None

    def identity(self) -> Mapping[str, str]:
        """Return the ids of the cluster and the topics as Kafka's tools print them; old brokers lack some."""
        admin = self._connected_admin()
        found = describe(admin, self._topics, self._settings)
        with translated("Asking for the cluster's id", self._settings):
            cluster = admin.describe_cluster().get("cluster_id")
        return self._identity(cluster, {name: _topic_id(one.get("topic_id")) for name, one in found.items()})

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
        counts = {name: len(topic["partitions"]) for name, topic in found.items()}
        partitions = [TopicPartition(*one) for one in self._partitions(counts)]
        if self._consumer is None:
            self._consumer = connect(
                Consumer,
                {"metrics_enabled": False, "fetch_max_bytes": FETCHED_BYTES_MAX, **self._settings},
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="none",
                isolation_level="read_committed",
                allow_auto_create_topics=False,
                check_crcs=True,
                decompressed_bytes_max=self._decompressed_bytes_max,
            )
        consumer = self._consumer

        def at_time(at_ms: int) -> dict[Partition, int | None]:
            found_at = consumer.offsets_for_times(dict.fromkeys(partitions, at_ms))
            return {Partition(*one): None if at is None else at.offset for one, at in found_at.items()}

        with translated("Looking up positions", self._settings):
            begin = consumer.beginning_offsets(partitions)
            end = consumer.end_offsets(partitions)
            positions = self._positions(
                next_offsets,
                start,
                {Partition(*one): offset for one, offset in begin.items()},
                {Partition(*one): offset for one, offset in end.items()},
                at_time,
            )
            self._assign(consumer, partitions)
            for partition, offset in positions.items():
                consumer.seek(TopicPartition(*partition), offset)
        self._next_offsets = {TopicPartition(*partition): offset for partition, offset in positions.items()}
        return dict(sorted(positions.items()))

    def _assign(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Assign the partitions, and divide the bytes that fetches may take among them.

        The client holds one fetch of each partition, however many brokers send them.
        """
        if "max_partition_fetch_bytes" not in self._settings:
            share = FETCHED_BYTES_MAX // max(1, len(partitions))
            consumer.bound_fetches(min(share, PARTITION_FETCH_BYTES_MAX))
        consumer.assign(partitions)

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """Return one batch for each partition whose position advanced, even if only over a gap.

        A gap is a range of offsets without a record to return: compacted or aborted records, transaction
        markers, or unreadable records, which the batch lists.

        Raises
        ------
        PositionError
            The log no longer holds the position.
        TransportError
            The client raised an error that is not retriable, or only retriable errors for 120 s. Every later
            poll raises the same error.
        """
        if self._failure is not None:
            raise self._failure
        assert self._consumer is not None, "open() comes before poll()"
        try:
            found = self._consumer.poll(timeout_ms=timeout_ms, max_records=records_max)
        except KafkaError as error:
            # After an error that is not retriable, another poll of 3.0.12 may never return: keep the error.
            self._failure = self._poll_failure(error)
            if self._failure is not None:
                raise self._failure from error
            time.sleep(min(RETRY_PAUSE_S, timeout_ms / 1000))
            return []
        self._retrying_since = None
        batches = []
        for partition, before in self._next_offsets.items():
            next_offset = self._consumer.next_offset(partition)
            if next_offset != before:
                unreadable = self._consumer.take_unreadable(partition, next_offset)
                batches.append(batch_of(partition, found.get(partition, ()), next_offset))
                batches[-1].unreadable = unreadable
                self._next_offsets[partition] = next_offset
        return batches

    def added(self) -> Mapping[Partition, int]:
        """Assign the partitions that the topics have gained, from their first offsets, and return these.

        The client learns of new partitions within its ``metadata_max_age_ms``. If the brokers cannot give a
        partition's first offset yet, a later call asks again. A source of chosen partitions takes none.
        """
        assert self._consumer is not None, "open() comes before added()"
        counts = {topic: len(self._consumer.known_partitions(topic)) for topic in self._topics}
        new = [TopicPartition(*one) for one in self._gained(counts, self._next_offsets)]
        if not new:
            return {}
        try:
            begin = self._consumer.beginning_offsets(new)
        except KafkaError as error:
            names = ", ".join(f"{topic}-{number}" for topic, number in new)
            log.warning("New partitions %s cannot be read yet: %s", names, error)
            return {}
        self._assign(self._consumer, [*self._next_offsets, *new])  # keeps the positions of the others
        for partition, offset in begin.items():
            self._consumer.seek(partition, offset)
        self._next_offsets |= begin
        return {Partition(*one): offset for one, offset in begin.items()}

    def _poll_failure(self, error: KafkaError) -> TransportError | None:
        """Return the failure for an error that stops the stream; log a retriable one and return None."""
        if isinstance(error, OffsetOutOfRangeError | LogTruncationError):
            return position_lost(f"The log no longer holds the position ({error}).")
        if isinstance(error, UnsupportedCodecError):
            hint = "Install the codecs: pip install 'streamnb[codecs]'."
            return TransportError(f"A record batch cannot be decompressed ({error}).", hint)
        if not error.retriable:
            return TransportError(f"Reading from {self._brokers} failed: {error}.", "Read the brokers' logs.")
        now = time.monotonic()
        self._retrying_since = self._retrying_since or now
        if now - self._retrying_since < RETRY_BUDGET_S:
            log.warning("Retrying to read from %s after an error: %s", self._brokers, error)
            return None
        what = f"Reading from {self._brokers} has failed for {RETRY_BUDGET_S:.0f} s: {error}."
        return TransportError(what, "Check that the brokers run.")

    def end_offsets(self) -> Mapping[Partition, int]:
        """Return each partition's last stable offset now, the end of the log for `read_committed`.

        Raises
        ------
        MissingTopicError
            A topic was deleted.
        TransportError
            The brokers do not answer.
        """
        assert self._consumer is not None, "open() comes before end_offsets()"
        return self._ends(list(self._next_offsets), IsolationLevel.READ_COMMITTED)

    def written_offsets(self) -> Mapping[Partition, int]:
        """Return each partition's high watermark, from the last fetch or, before the first one, now."""
        consumer = self._consumer
        assert consumer is not None, "open() comes before written_offsets()"
        found = {one: consumer.highwater(one) for one in list(self._next_offsets)}
        unknown = [one for one, at in found.items() if at is None]
        asked = self._ends(unknown, IsolationLevel.READ_UNCOMMITTED) if unknown else {}
        return {Partition(*one): at for one, at in sorted(found.items()) if at is not None} | asked

    def _ends(self, partitions: Sequence[TopicPartition], isolation: IsolationLevel) -> dict[Partition, int]:
        admin = self._connected_admin()
        with translated("Looking up the ends of the topics", self._settings):
            # A broker answers the requests of one connection in order. The consumer's own request would wait
            # behind its fetch for up to `fetch_max_wait_ms`, so the admin client asks.
            try:
                ends = admin.list_partition_offsets(
                    dict.fromkeys(partitions, OffsetSpec.LATEST), isolation_level=isolation
                )
            except UnknownTopicOrPartitionError:
                found = describe(admin, self._topics, self._settings)
                for topic in self._topics:
                    if topic not in found:
                        raise topic_gone(topic, self._brokers) from None
                raise
        return {Partition(*partition): end.offset for partition, end in sorted(ends.items())}

    def _committed_in_group(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        try:
            asked = {self._group: [TopicPartition(*one) for one in partitions]}
            found = self._connected_admin().list_group_offsets(asked)[self._group]
        except (KafkaError, TransportError, OSError):
            return {}  # the commit that follows fails too and says why
        return {Partition(*one): at.offset for one, at in found.items() if at.offset >= 0}

    def _commit_to_group(self, next_offsets: Mapping[Partition, int]) -> str:
        offsets = {TopicPartition(*one): OffsetAndMetadata(at, "", -1) for one, at in next_offsets.items()}
        deadline = time.monotonic() + COMMIT_BUDGET_S
        while True:
            try:
                answers = self._connected_admin().alter_group_offsets(self._group, offsets)
                errors = {one for one in answers.values() if one.errno != 0}
                cause = ", ".join(sorted(one.__name__ for one in errors))
                retriable = all(one.retriable for one in errors)
            except (KafkaError, TransportError, OSError) as error:
                cause, retriable = str(error), getattr(error, "retriable", False)
            # A cluster's first commit creates the topic for committed offsets, which takes a moment.
            if not cause or not retriable or time.monotonic() >= deadline:
                return cause
            # The group's coordinator may have moved. kafka-python 3.0.12 caches it and never looks again.
            if self._admin is not None:
                self._admin._manager.cluster._coordinators.clear()  # noqa: SLF001
            time.sleep(RETRY_PAUSE_S)

    def close(self) -> None:
        """Close the consumer and the admin client. Closing twice does nothing."""
        consumer, self._consumer = self._consumer, None
        admin, self._admin = self._admin, None
        if consumer is not None:
            consumer.close(autocommit=False, timeout_ms=int(CLOSE_TIMEOUT_S * 1000))
        if admin is not None:
            admin.close()

    def _connected_admin(self) -> KafkaAdminClient:
        if self._admin is None:
            self._admin = connect(
                KafkaAdminClient, {"request_timeout_ms": ADMIN_TIMEOUT_MS, **self._settings}
            )
        return self._admin


def _topic_id(found: str | None) -> str:
    """Return a topic's id in Kafka's notation, or an empty string if the broker is too old to have one."""
    known = UUID(found) if found else UUID(int=0)
    return base64.urlsafe_b64encode(known.bytes).decode().rstrip("=") if known.int else ""
