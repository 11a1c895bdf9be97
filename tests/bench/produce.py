"""Processor time per record of publishing to Kafka: in columns, one by one, and by each client itself.

``python tests/bench/produce.py [--messages N] [--runs R] [--kafka ADDRESS] [--data DIR]``

The records are scores of the sms stream, in the batches in which the engine publishes them, to a topic of
three partitions on one broker. "In columns" and "one by one" are the two paths of streamnb's sink over
kafka-python: rows appended to open batches by one call, and a `send` for each. "Through confluent-kafka" is
streamnb's sink over librdkafka. In transactions, a quarter of a second of records at most goes into one.
Beside them kafka-python and confluent-kafka themselves, with the same settings.

The processor time is that of all threads of this process, up to the last acknowledgement. Everything runs
once per run, one after the other; figures are medians of the runs, a ratio is the median of the ratios within
each.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.base.protocols import Sink, Transactions
from streamnb.base.record import Partition
from streamnb.transports.topics import BATCH_BYTES, LINGER_MS
from tests.bench.kafka_loops import PARTITIONS
from tests.bench.loops import a_score, base_settings
from tests.bench.record_costs import CONFLUENT, OVER_CONFLUENT, Cost, Ways, print_costs

TRANSACTION_S = 0.25  # as `engine.transaction_interval_ms`

Piece = tuple[int, list[bytes]]
"""A partition, and values that are published to it by one call."""


class Produce(Ways):
    """The ways of publishing the same records to one topic.

    Parameters
    ----------
    address : str
    lines : sequence of bytes
        Messages, for each of which a score is published.
    """

    def __init__(self, address: str, lines: Sequence[bytes]) -> None:
        super().__init__(address, lines)
        score, size = a_score(lines), base_settings().engine.batch_records_max
        values = [orjson.dumps(score | {"id": orjson.loads(line).get("id")}) for line in lines]
        self.pieces: list[Piece] = [
            (at // size % PARTITIONS, values[at : at + size]) for at in range(0, self.n, size)
        ]

    def ways(self) -> dict[str, Callable[[], Cost]]:
        """Return what is measured, by name."""
        return {
            CONFLUENT: self.confluent,
            OVER_CONFLUENT: self.over_confluent,
            "in columns": lambda: self.ours(columns=True),
            "one by one": lambda: self.ours(columns=False),
            "kafka-python itself": self.raw,
            "through confluent-kafka, in transactions": self.over_confluent_in_transactions,
            "in columns, in transactions": lambda: self.in_transactions(columns=True),
            "one by one, in transactions": lambda: self.in_transactions(columns=False),
        }

    def ours(self, *, columns: bool) -> Cost:
        """Publish through streamnb's sink."""
        from streamnb.transports.kafka import KafkaSink

        sink = KafkaSink(self.topic, self.client)
        assert sink._producer is not None
        if not columns:
            sink._producer.rows = None
        return self._publish(sink)

    def over_confluent(self) -> Cost:
        """Publish through streamnb's sink over librdkafka."""
        from streamnb.transports.confluent import ConfluentSink

        return self._publish(ConfluentSink(self.topic, {"bootstrap.servers": self.address}))

    def _publish(self, sink: Sink) -> Cost:
        costs: list[Cost] = []
        try:
            sink.publish(0, [b"warm"], [None], [()])
            sink.flush(60_000)
            with self.timed(costs):
                for number, values in self.pieces:
                    sink.publish(number, values, [None] * len(values), [()] * len(values))
                sink.flush(60_000)
        finally:
            sink.close()
        return costs[0]

    def in_transactions(self, *, columns: bool) -> Cost:
        """Publish through streamnb's sink, as for scores exactly once."""
        from streamnb.transports.kafka import KafkaSink, KafkaTransactions

        transactions = KafkaTransactions(self.client, f"group-{uuid.uuid4().hex[:8]}")
        if not columns:
            transactions.producer.rows = None
        sink = KafkaSink(self.topic, self.client, transactions=transactions)
        return self._commit(transactions, sink)

    def over_confluent_in_transactions(self) -> Cost:
        """Publish through streamnb's sink over librdkafka, as for scores exactly once."""
        from streamnb.transports.confluent import ConfluentSink, ConfluentTransactions

        client = {"bootstrap.servers": self.address}
        transactions = ConfluentTransactions(client, f"group-{uuid.uuid4().hex[:8]}")
        return self._commit(transactions, ConfluentSink(self.topic, client, transactions=transactions))

    def _commit(self, transactions: Transactions, sink: Sink) -> Cost:
        costs: list[Cost] = []
        read = Partition(self.topic, 0)
        try:
            transactions.recover([read])
            transactions.begin()
            sink.publish(0, [b"warm"], [None], [()])
            transactions.commit({read: 1})
            with self.timed(costs):
                transactions.begin()
                began_s = time.perf_counter()
                for number, values in self.pieces:
                    if time.perf_counter() > began_s + TRANSACTION_S:
                        transactions.commit({read: 1})
                        transactions.begin()
                        began_s = time.perf_counter()
                    sink.publish(number, values, [None] * len(values), [()] * len(values))
                transactions.commit({read: 1})
        finally:
            sink.close()
            transactions.close()
        return costs[0]

    def raw(self) -> Cost:
        """Publish with kafka-python alone."""
        from kafka import KafkaProducer

        costs: list[Cost] = []
        producer = KafkaProducer(
            **self.client, acks="all", linger_ms=LINGER_MS, batch_size=BATCH_BYTES, metrics_enabled=False
        )
        try:
            producer.send(self.topic, b"warm", partition=0).get(60)
            with self.timed(costs):
                for number, values in self.pieces:
                    for value in values:
                        producer.send(self.topic, value, partition=number)
                producer.flush()
        finally:
            producer.close()
        return costs[0]

    def confluent(self) -> Cost:
        """Publish with confluent-kafka alone."""
        from confluent_kafka import Producer

        costs: list[Cost] = []
        producer = Producer(
            {
                "bootstrap.servers": self.address,
                "enable.idempotence": True,
                "linger.ms": LINGER_MS,
                "delivery.report.only.error": True,
            }
        )
        producer.produce(self.topic, b"warm", partition=0)
        assert producer.flush(60) == 0
        with self.timed(costs):
            for number, values in self.pieces:
                for value in values:
                    producer.produce(self.topic, value, partition=number)
            assert producer.flush(60) == 0
        return costs[0]


if __name__ == "__main__":
    sys.exit(print_costs(Produce, "Processor time per record of publishing to Kafka.", "published"))
