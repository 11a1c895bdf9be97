"""Apache Kafka through confluent-kafka (librdkafka): a source and a sink.

The package knows librdkafka. It names clusters, topics and partitions exactly as `streamnb.transports.kafka`
does, so that a snapshot made with one client resumes with the other. It must not know kafka-python, what a
record contains, or who polls it. confluent-kafka is optional: without it, importing this package raises
`SettingsError`.
"""

from streamnb.transports.confluent.client import create_topics, describe_topics
from streamnb.transports.confluent.sink import ConfluentSink
from streamnb.transports.confluent.source import ConfluentSource
from streamnb.transports.confluent.transactions import ConfluentTransactions

__all__ = ["ConfluentSink", "ConfluentSource", "ConfluentTransactions", "create_topics", "describe_topics"]
