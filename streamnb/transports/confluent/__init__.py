"""Apache Kafka through confluent-kafka (librdkafka): source and sink, several times as fast as kafka-python.

It knows librdkafka, and names logs as `streamnb.transports.kafka` does, so that a snapshot made through one
client resumes through the other.
"""

from streamnb.transports.confluent.client import create_topics, describe_topics
from streamnb.transports.confluent.sink import ConfluentSink
from streamnb.transports.confluent.source import ConfluentSource

__all__ = ["ConfluentSink", "ConfluentSource", "create_topics", "describe_topics"]
