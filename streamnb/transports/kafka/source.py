"""Apache Kafka as a source and a sink, through kafka-python.

The client's defaults lose or double records silently: it commits by itself, jumps to the end where a
position is gone, reads aborted transactions, creates misspelt topics and buffers without bound. Each of
them is overridden here, and none can be set back.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Mapping, Sequence
from uuid import UUID

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient, OffsetSpec
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import (
    KafkaError,
    LogTruncationError,
    OffsetOutOfRangeError,
    UnsupportedCodecError,
)
from kafka.protocol.consumer import IsolationLevel
from kafka.structs import OffsetAndMetadata

from streamnb.base import Headers, Partition, RecordBatch, Start
from streamnb.errors import TransportError
from streamnb.transports.kafka.client import (
    brokers,
    client_settings,
    connect,
    create_topics,
    describe,
    describe_topics,
    translated,
)
from streamnb.transports.kafka.records import Consumer
from streamnb.transports.kafka.sink import KafkaSink
from streamnb.transports.topics import TopicSource, gone, starting_positions

__all__ = ["KafkaSink", "KafkaSource", "create_topics", "describe_topics"]

log = logging.getLogger(__name__)

DECOMPRESSED_BYTES_MAX = 64 << 20
RETRY_BUDGET_S = 120.0
RETRY_PAUSE_S = 0.1
COMMIT_BUDGET_S = 3.0
CLOSE_TIMEOUT_S = 10.0


class KafkaSource(TopicSource):
    """Topics of Kafka, read from positions that the engine keeps.

    Partitions are assigned, never joined for; records of aborted transactions are not read. A record that
    cannot be decoded is reported as unreadable and the stream goes on.

    Parameters
    ----------
    topics : sequence of str
        Topics that exist.
    client : mapping
        Settings of kafka-python by its own names: ``bootstrap_servers``, ``security_protocol``,
        ``sasl_mechanism``, ...
    group : str, optional
        The consumer group under which `commit` leaves positions for lag tools.
    decompressed_bytes_max : int
        A record batch that unpacks to more is unreadable.

    Raises
    ------
    SettingsError
        A setting is unknown, or the transport's own.
    """

    def __init__(
        self,
        topics: Sequence[str],
        client: Mapping[str, object],
        *,
        group: str | None = None,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> None:
        self._settings = client_settings(client)
        super().__init__(topics, brokers(self._settings), group)
        self._decompressed_bytes_max = decompressed_bytes_max
        self._admin: KafkaAdminClient | None = None
        self._consumer: Consumer | None = None
        self._next_offsets: dict[TopicPartition, int] = {}
        self._retrying_since: float | None = None
        self._failure: TransportError | None = None

    def identity(self) -> Mapping[str, str]:
        """The ids of the cluster and of each topic, as Kafka's own tools print them, where it has them."""
        admin = self._connected_admin()
        found = describe(admin, self._topics, self._settings)
        with translated("Asking for the cluster's id", self._settings):
            cluster = admin.describe_cluster().get("cluster_id")
        return self._identity(cluster, {name: _topic_id(one.get("topic_id")) for name, one in found.items()})

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
        counts = {name: len(topic["partitions"]) for name, topic in found.items()}
        partitions = [TopicPartition(*one) for one in self._partitions(counts)]
        if self._consumer is None:
            self._consumer = connect(
                Consumer,
                {"metrics_enabled": False, **self._settings},
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
            positions = starting_positions(
                next_offsets,
                start,
                {Partition(*one): offset for one, offset in begin.items()},
                {Partition(*one): offset for one, offset in end.items()},
                at_time,
            )
            consumer.assign(partitions)
            for partition, offset in positions.items():
                consumer.seek(TopicPartition(*partition), offset)
        self._next_offsets = {TopicPartition(*partition): offset for partition, offset in positions.items()}
        return dict(sorted(positions.items()))

    def poll(self, records_max: int, timeout_ms: int) -> list[RecordBatch]:
        """One batch for each partition that moved on, be it only over a gap or an unreadable record.

        Raises
        ------
        PositionError
            The log no longer holds the position.
        TransportError
            The brokers refuse, or have answered nothing but passing errors for 120 s; from then on every
            poll says so.
        """
        if self._failure is not None:
            raise self._failure
        assert self._consumer is not None, "open() comes before poll()"
        try:
            found = self._consumer.poll(timeout_ms=timeout_ms, max_records=records_max)
        except KafkaError as error:
            # After any error but a passing one the client must not be polled again: it may never return.
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
                batches.append(_batch(partition, found.get(partition, ()), next_offset))
                batches[-1].unreadable = unreadable
                self._next_offsets[partition] = next_offset
        return batches

    def added(self) -> Mapping[Partition, int]:
        """Take the partitions that the topics have gained, from their beginning.

        The client hears of them within its ``metadata_max_age_ms``. Where the brokers do not say yet where a
        partition begins, it is asked for again later.
        """
        assert self._consumer is not None, "open() comes before added()"
        known = {
            TopicPartition(topic, number)
            for topic in self._topics
            for number in self._consumer.known_partitions(topic)
        }
        new = sorted(known - self._next_offsets.keys())
        if not new:
            return {}
        try:
            begin = self._consumer.beginning_offsets(new)
        except KafkaError as error:
            log.warning("%s cannot be read yet: %s", ", ".join(f"{t}-{n}" for t, n in new), error)
            return {}
        self._consumer.assign([*self._next_offsets, *new])  # the others stay where they are
        for partition, offset in begin.items():
            self._consumer.seek(partition, offset)
        self._next_offsets |= begin
        return {Partition(*one): offset for one, offset in begin.items()}

    def _poll_failure(self, error: KafkaError) -> TransportError | None:
        if isinstance(error, OffsetOutOfRangeError | LogTruncationError):
            return gone(f"The log no longer holds the position ({error}).")
        if isinstance(error, UnsupportedCodecError):
            hint = "Install it: pip install 'kafka-python[snappy,lz4,zstd]'."
            return TransportError(f"A record's compression cannot be undone here ({error}).", hint)
        if not error.retriable:
            return TransportError(f"Reading from {self._brokers} failed: {error}.", "See the brokers' logs.")
        now = time.monotonic()
        self._retrying_since = self._retrying_since or now
        if now - self._retrying_since < RETRY_BUDGET_S:
            log.warning("Reading from %s is tried again: %s", self._brokers, error)
            return None
        what = f"Reading from {self._brokers} has failed for {RETRY_BUDGET_S:.0f} s: {error}."
        return TransportError(what, "Check that the brokers run.")

    def end_offsets(self) -> Mapping[Partition, int]:
        """The offset after the last committed record of each partition now."""
        assert self._consumer is not None, "open() comes before end_offsets()"
        admin = self._connected_admin()
        with translated("Looking up the ends of the topics", self._settings):
            # A broker answers one connection's requests in turn: the consumer would wait behind its own
            # fetch, up to `fetch_max_wait_ms`, and the stream with it.
            ends = admin.list_partition_offsets(
                dict.fromkeys(self._next_offsets, OffsetSpec.LATEST),
                isolation_level=IsolationLevel.READ_COMMITTED,
            )
        return {Partition(*partition): end.offset for partition, end in sorted(ends.items())}

    def _tell_group(self, next_offsets: Mapping[Partition, int]) -> str:
        offsets = {TopicPartition(*one): OffsetAndMetadata(at, "", -1) for one, at in next_offsets.items()}
        deadline = time.monotonic() + COMMIT_BUDGET_S
        while True:
            try:
                answers = self._connected_admin().alter_group_offsets(self._group, offsets)
                refused = {one for one in answers.values() if one.errno != 0}
                said = ", ".join(sorted(one.__name__ for one in refused))
                passes = all(one.retriable for one in refused)
            except (KafkaError, TransportError, OSError) as error:
                said, passes = str(error), getattr(error, "retriable", False)
            # A cluster's first commit makes the topic that commits are kept in: asking again helps.
            if not said or not passes or time.monotonic() >= deadline:
                return said
            if self._admin is not None:  # who keeps them may have changed, which the client does not look at
                self._admin._manager.cluster._coordinators.clear()  # noqa: SLF001
            time.sleep(RETRY_PAUSE_S)

    def close(self) -> None:
        """Let go of the topics."""
        consumer, self._consumer = self._consumer, None
        admin, self._admin = self._admin, None
        if consumer is not None:
            consumer.close(autocommit=False, timeout_ms=int(CLOSE_TIMEOUT_S * 1000))
        if admin is not None:
            admin.close()

    def _connected_admin(self) -> KafkaAdminClient:
        if self._admin is None:
            self._admin = connect(KafkaAdminClient, self._settings)
        return self._admin


def _topic_id(found: str | None) -> str:
    """A topic's id in Kafka's own notation; empty where the broker is too old to have one."""
    known = UUID(found) if found else UUID(int=0)
    return base64.urlsafe_b64encode(known.bytes).decode().rstrip("=") if known.int else ""


def _batch(partition: TopicPartition, records: Sequence[ConsumerRecord], next_offset: int) -> RecordBatch:
    return RecordBatch(
        partition=Partition(*partition),
        offsets=[record.offset for record in records],
        values=[record.value for record in records],
        keys=[record.key for record in records],
        timestamps_ms=[record.timestamp for record in records],
        headers=[_headers(record.headers) if record.headers else () for record in records],
        next_offset=next_offset,
    )


def _headers(found: Sequence[tuple[str, bytes | None]]) -> Headers:
    # Kafka knows a header without a value; nothing that reads headers here tells it from an empty one.
    return [(name, value or b"") for name, value in found]
