"""librdkafka's error codes, sorted by what the source does about them."""

# ruff: noqa: SLF001  the names of librdkafka's local errors begin with an underscore

from __future__ import annotations

from confluent_kafka import KafkaError

END = KafkaError._PARTITION_EOF
GONE = {KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE}
DAMAGED = {
    KafkaError._BAD_MSG,
    KafkaError._BAD_COMPRESSION,
    KafkaError._UNDERFLOW,
    KafkaError._NOT_IMPLEMENTED,
}
LEADERLESS = {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE}
MISSING = {KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART}
RETRIED = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError.REQUEST_TIMED_OUT,
    *MISSING,  # a restarted broker may answer this for a moment
}
