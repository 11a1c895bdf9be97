"""Apache Kafka through kafka-python: source, sink, and transactions for scores exactly once.

It knows kafka-python, the ways in which that client loses records or hangs, and what is done about each.
"""

from streamnb.transports.kafka.client import create_topics, describe_topics
from streamnb.transports.kafka.sink import KafkaSink
from streamnb.transports.kafka.source import KafkaSource
from streamnb.transports.kafka.transactions import KafkaTransactions

__all__ = ["KafkaSink", "KafkaSource", "KafkaTransactions", "create_topics", "describe_topics"]
