"""Lines of a file into a topic, as they are."""

from __future__ import annotations

from collections.abc import Mapping

from streamnb.cli.history import LINE_BYTES_MAX
from streamnb.transports.jsonl import JsonlSource
from streamnb.transports.kafka.source import KafkaSink, create_topics, describe_topics

FLUSH_TIMEOUT_MS = 60_000


def produce(path: str, topic: str, client: Mapping[str, object], create: int = 0) -> tuple[int, int]:
    """Send line n to partition n modulo how many there are.

    Parameters
    ----------
    path : str
        ``-`` is standard input, ``.gz`` is unpacked.
    topic : str
    client : mapping
        The Kafka client's settings.
    create : int
        Make the topic with so many partitions, if it is missing; 0 does not.

    Returns
    -------
    (int, int)
        Records sent, and partitions.

    Raises
    ------
    StreamnbError
        The file cannot be read, or the topic cannot be written.
    """
    if create and topic not in describe_topics(client, [topic]):
        create_topics(client, {topic: create})
    source = JsonlSource(path, LINE_BYTES_MAX)
    sink = KafkaSink(topic, client)
    sent = 0
    try:
        partitions = describe_topics(client, [topic])[topic]
        source.open({}, "earliest")
        while not source.finished():
            for records in source.poll(2000, 200):
                lines = list(zip(records.offsets, records.values, strict=True))
                for number in range(partitions):
                    values = [value for offset, value in lines if offset % partitions == number]
                    sink.publish(number, values, [None] * len(values), [()] * len(values))
                sent += len(lines)
        sink.flush(FLUSH_TIMEOUT_MS)
    finally:
        source.close()
        sink.close()
    return sent, partitions
