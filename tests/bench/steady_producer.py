"""Sends messages at a fixed rate: ``python tests/bench/steady_producer.py ADDRESS TOPIC MESSAGES RATE FILE``.

`FILE` holds the messages, one a line, which are sent over and over; with the rate 0 they are sent as fast as
the client takes them. The timestamp of a record is the time at which it was due, so that what delays this
program counts as latency. It prints by how many milliseconds its last record was late.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

PARTITIONS = 3
PAUSE_S = 0.001


def main() -> None:
    """Send the messages, and wait until the broker has them."""
    from confluent_kafka import Producer

    address, topic, messages, per_s, file = sys.argv[1:]
    lines, n, rate = Path(file).read_bytes().splitlines(), int(messages), float(per_s)
    producer = Producer(
        {
            "bootstrap.servers": address,
            "linger.ms": 1,
            "queue.buffering.max.messages": n + 1,
            "delivery.report.only.error": True,
        }
    )
    producer.list_topics(topic, 10)  # connects
    began_s, sent, due_s = time.time(), 0, 0.0
    while sent < n:
        now_s = time.time()
        due = min(n, int((now_s - began_s) * rate) + 1) if rate else min(n, sent + 1000)
        for i in range(sent, due):
            due_s = began_s + i / rate if rate else now_s
            producer.produce(
                topic, lines[i % len(lines)], partition=i % PARTITIONS, timestamp=int(1000 * due_s)
            )
        sent = due
        producer.poll(PAUSE_S if rate else 0)
    late_s = time.time() - due_s
    assert producer.flush(120) == 0
    print(f"{1000 * late_s:.0f}")


if __name__ == "__main__":
    main()
