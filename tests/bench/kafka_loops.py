"""What `throughput.py` measures over Kafka: the engine and two bare loops by client, on one broker."""

from __future__ import annotations

import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import orjson

from deploy.kafka.broker import Broker, BrokerError
from streamnb.base.protocols import Sink, Source
from streamnb.config import Settings
from streamnb.config.endpoints import ConfluentInput, ConfluentOutput, KafkaInput, KafkaOutput
from streamnb.config.settings import DeadLetterSettings
from tests.bench.loops import assembled, base_settings, timed

PARTITIONS = 3


class KafkaLoops:
    """The engine and the bare loops over one broker, on topics of their own that are deleted at the end.

    Parameters
    ----------
    address : str
    lines : sequence of bytes
        Produced into the input topic, spread over its partitions.
    score : dict
        What a bare loop publishes for each.
    """

    def __init__(self, address: str, lines: Sequence[bytes], score: dict[str, object]) -> None:
        from streamnb.transports.kafka.source import KafkaSink, create_topics

        self.client: dict[str, object] = {"bootstrap_servers": address}
        self.confluent: dict[str, object] = {"bootstrap.servers": address}
        self.n = len(lines)
        self.score = score
        self.size = base_settings().engine.batch_records_max
        name = f"streamnb-bench-{uuid.uuid4().hex[:8]}"
        self.mail, self.scores, self.dead = (f"{name}-{kind}" for kind in ("mail", "scores", "dead"))
        create_topics(self.client, dict.fromkeys((self.mail, self.scores, self.dead), PARTITIONS))
        sink = KafkaSink(self.mail, self.client)
        for partition in range(PARTITIONS):
            values = lines[partition::PARTITIONS]
            sink.publish(partition, values, [None] * len(values), [()] * len(values))
        sink.flush(60_000)
        sink.close()

    def close(self) -> None:
        """Delete the topics."""
        from kafka.admin import KafkaAdminClient

        admin = KafkaAdminClient(**self.client)
        admin.delete_topics([self.mail, self.scores, self.dead])
        admin.close()

    def engine(self, folder: Path) -> float:
        """The engine from topic to topic."""
        return timed(assembled(self._settings(), folder), self.n)

    def engine_exactly_once(self, folder: Path) -> float:
        """The same with scores in transactions, under a group that has committed nothing yet."""
        group = f"streamnb-bench-{uuid.uuid4().hex[:8]}"
        return timed(assembled(self._settings(group, scores="exactly_once"), folder), self.n)

    def _settings(self, group: str = "", **engine: object) -> Settings:
        settings = base_settings()
        return msgspec.structs.replace(
            settings,
            kafka=self.client,
            source=KafkaInput((self.mail,), group=group),
            sink=KafkaOutput(self.scores),
            dead_letters=DeadLetterSettings(sink=KafkaOutput(self.dead)),
            engine=msgspec.structs.replace(settings.engine, **engine),
        )

    def confluent_engine(self, folder: Path) -> float:
        """The engine from topic to topic through librdkafka."""
        return timed(assembled(self._confluent_settings(), folder), self.n)

    def confluent_engine_exactly_once(self, folder: Path) -> float:
        """The same with scores in transactions, under a group that has committed nothing yet."""
        group = f"streamnb-bench-{uuid.uuid4().hex[:8]}"
        return timed(assembled(self._confluent_settings(group, scores="exactly_once"), folder), self.n)

    def _confluent_settings(self, group: str = "", **engine: object) -> Settings:
        settings = base_settings()
        return msgspec.structs.replace(
            settings,
            confluent=self.confluent,
            source=ConfluentInput((self.mail,), group=group or None),
            sink=ConfluentOutput(self.scores),
            dead_letters=DeadLetterSettings(sink=ConfluentOutput(self.dead)),
            engine=msgspec.structs.replace(settings.engine, **engine),
        )

    def bare(self, _folder: Path) -> float:
        """Consume, decode, encode, produce with streamnb's source and sink."""
        from streamnb.transports.kafka.source import KafkaSink, KafkaSource

        return self._bare(KafkaSource([self.mail], self.client), KafkaSink(self.scores, self.client))

    def confluent_bare(self, _folder: Path) -> float:
        """Do the same with the source and the sink over librdkafka."""
        from streamnb.transports.confluent.source import ConfluentSink, ConfluentSource

        source = ConfluentSource([self.mail], self.confluent)
        return self._bare(source, ConfluentSink(self.scores, self.confluent))

    def _bare(self, source: Source, sink: Sink) -> float:
        try:
            source.open({}, "earliest")
            began, left = time.perf_counter(), self.n
            while left:
                for records in source.poll(self.size, 200):
                    values: list[bytes | None] = []
                    for value in records.values:
                        assert value is not None
                        self.score["id"] = orjson.loads(value).get("id")
                        values.append(orjson.dumps(self.score))
                    sink.publish(records.partition.number, values, records.keys, [()] * len(values))
                    left -= len(values)
            sink.flush(60_000)
            return self.n / (time.perf_counter() - began)
        finally:
            source.close()
            sink.close()

    def raw(self, _folder: Path) -> float:
        """Do the same with kafka-python and nothing around it."""
        from kafka import KafkaConsumer, KafkaProducer, TopicPartition

        from streamnb.transports.topics import BATCH_BYTES, LINGER_MS

        consumer = KafkaConsumer(
            **self.client, enable_auto_commit=False, isolation_level="read_committed", metrics_enabled=False
        )
        producer = KafkaProducer(
            **self.client, acks="all", linger_ms=LINGER_MS, batch_size=BATCH_BYTES, metrics_enabled=False
        )
        try:
            partitions = [TopicPartition(self.mail, number) for number in range(PARTITIONS)]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            consumer.end_offsets(partitions)
            began, left = time.perf_counter(), self.n
            while left:
                for partition, records in consumer.poll(timeout_ms=200, max_records=self.size).items():
                    for record in records:
                        self.score["id"] = orjson.loads(record.value).get("id")
                        producer.send(self.scores, orjson.dumps(self.score), partition=partition.partition)
                    left -= len(records)
            producer.flush()
            return self.n / (time.perf_counter() - began)
        finally:
            consumer.close()
            producer.close()

    def confluent_raw(self, _folder: Path) -> float:
        """Do the same with confluent-kafka and nothing around it."""
        from confluent_kafka import Consumer, Producer, TopicPartition

        from streamnb.transports.topics import LINGER_MS

        consumer = Consumer(
            {
                **self.confluent,
                "group.id": "bench",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        producer = Producer(
            {
                **self.confluent,
                "enable.idempotence": True,
                "linger.ms": LINGER_MS,
                "delivery.report.only.error": True,
                "queue.buffering.max.messages": self.n + 1,  # it refuses more, and this loop does not wait
            }
        )
        try:
            consumer.get_watermark_offsets(TopicPartition(self.mail, 0), 10)
            producer.list_topics(self.scores, 10)
            consumer.assign([TopicPartition(self.mail, number, 0) for number in range(PARTITIONS)])
            began, left = time.perf_counter(), self.n
            while left:
                for record in consumer.consume(min(self.size, left), 0.2):
                    assert record.error() is None
                    self.score["id"] = orjson.loads(record.value()).get("id")
                    producer.produce(self.scores, orjson.dumps(self.score), partition=record.partition())
                    left -= 1
            assert producer.flush(60) == 0
            return self.n / (time.perf_counter() - began)
        finally:
            consumer.close()


@contextmanager
def broker(given: str | None) -> Iterator[str | None]:
    """The address of a broker: the one given, or a real one of our own; ``None`` where there can be none."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        own = Broker(Path(folder))
        try:
            own.start()
        except BrokerError as error:
            print(f"The Kafka rows are left out. {error}", file=sys.stderr)
            yield None
            return
        try:
            yield own.address
        finally:
            own.stop()
