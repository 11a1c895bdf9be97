"""Apache Kafka through kafka-python: a source, a sink, and transactions for exactly-once scores.

It knows kafka-python, and works around each defect that makes this client lose records or hang.
tests/transports/kafka/README.md lists the defects with the tests that show them. The compiled
`_batches` extracts records from the client's batches, as columns. `rows` appends columns to the client's open
batches, with the compiled `_sink`. The transport must not know librdkafka, what a record contains, or who
polls it.
"""

from streamnb.transports.kafka.client import create_topics, describe_topics
from streamnb.transports.kafka.sink import KafkaSink
from streamnb.transports.kafka.source import KafkaSource
from streamnb.transports.kafka.transactions import KafkaTransactions

__all__ = ["KafkaSink", "KafkaSource", "KafkaTransactions", "create_topics", "describe_topics"]
