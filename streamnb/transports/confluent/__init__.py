"""Kafka by librdkafka."""
