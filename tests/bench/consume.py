"""Processor time per record of reading from Kafka: in columns, one by one, and by each client itself.

``python tests/bench/consume.py [--messages N] [--runs R] [--kafka ADDRESS] [--data DIR]``

The records are messages of the sms stream in a topic of three partitions on one broker. "In columns" and "one
by one" are the two paths of streamnb's source over kafka-python: compiled code that cuts the records of a
batch into columns, and the client's decoder. "Through confluent-kafka" is streamnb's source over librdkafka.
Beside them kafka-python and confluent-kafka themselves.

The processor time is that of all threads of this process, from the first poll until all records are there.
Everything runs once per run, one after the other; figures are medians of the runs, a ratio is the median of
the ratios within each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.base.protocols import Source
from tests.bench.kafka_loops import PARTITIONS
from tests.bench.record_costs import CONFLUENT, OVER_CONFLUENT, Cost, Ways, print_costs

POLL_RECORDS = 2000  # the default of `engine.batch_records_max`
POLL_MS = 500


class Consume(Ways):
    """The ways of reading one topic.

    Parameters
    ----------
    address : str
    lines : sequence of bytes
        The values of the topic's records.
    """

    def __init__(self, address: str, lines: Sequence[bytes]) -> None:
        super().__init__(address, lines)
        from streamnb.transports.kafka import KafkaSink

        sink = KafkaSink(self.topic, self.client)
        for number in range(PARTITIONS):
            values = list(lines[number::PARTITIONS])
            sink.publish(number, values, [None] * len(values), [()] * len(values))
        sink.flush(60_000)
        sink.close()

    def ways(self) -> dict[str, Callable[[], Cost]]:
        """Return what is measured, by name."""
        return {
            CONFLUENT: self.confluent,
            OVER_CONFLUENT: self.over_confluent,
            "in columns": lambda: self.ours(columns=True),
            "one by one": lambda: self.ours(columns=False),
            "kafka-python itself": self.raw,
        }

    def ours(self, *, columns: bool) -> Cost:
        """Read through streamnb's source."""
        from streamnb.transports.kafka import KafkaSource, records

        fit = records.columns_fit
        if not columns:
            records.columns_fit = lambda: False  # type: ignore[assignment]
        source = KafkaSource([self.topic], self.client)
        try:
            source.open({}, "earliest")
            return self._read(source)
        finally:
            records.columns_fit = fit
            source.close()

    def over_confluent(self) -> Cost:
        """Read through streamnb's source over librdkafka."""
        from streamnb.transports.confluent import ConfluentSource

        source = ConfluentSource([self.topic], {"bootstrap.servers": self.address})
        try:
            source.identity()  # connects
            return self._read(source, opened=False)
        finally:
            source.close()

    def _read(self, source: Source, *, opened: bool = True) -> Cost:
        costs: list[Cost] = []
        with self.timed(costs):
            if not opened:  # librdkafka begins to fetch as soon as it is told what
                source.open({}, "earliest")
            left = self.n
            while left:
                left -= sum(map(len, source.poll(POLL_RECORDS, POLL_MS)))
        return costs[0]

    def raw(self) -> Cost:
        """Read with kafka-python alone."""
        from kafka import KafkaConsumer, TopicPartition

        costs: list[Cost] = []
        consumer = KafkaConsumer(
            **self.client,
            group_id=None,
            enable_auto_commit=False,
            isolation_level="read_committed",
            metrics_enabled=False,
        )
        try:
            partitions = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            with self.timed(costs):
                left = self.n
                while left:
                    found = consumer.poll(timeout_ms=POLL_MS, max_records=POLL_RECORDS)
                    for records in found.values():
                        left -= sum(1 for record in records if record.value is not None)
        finally:
            consumer.close()
        return costs[0]

    def confluent(self) -> Cost:
        """Read with confluent-kafka alone."""
        from confluent_kafka import Consumer, TopicPartition

        costs: list[Cost] = []
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": self.topic,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        try:
            consumer.get_watermark_offsets(TopicPartition(self.topic, 0), 10)  # connects
            with self.timed(costs):  # librdkafka begins to fetch as soon as it is told what
                consumer.assign([TopicPartition(self.topic, number, 0) for number in range(PARTITIONS)])
                left = self.n
                while left:
                    found = consumer.consume(min(POLL_RECORDS, left), POLL_MS / 1000)
                    left -= sum(1 for message in found if message.value() is not None)
        finally:
            consumer.close()
        return costs[0]


if __name__ == "__main__":
    sys.exit(print_costs(Consume, "Processor time per record of reading from Kafka.", "read"))
