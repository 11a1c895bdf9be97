"""An engine that moves columns publishes and learns what one does that moves single records.

The oracle is the engine with ``STREAMNB_PURE=1``: plain modules, which read and write record by record.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kafka import KafkaProducer

from streamnb.base import Headers
from streamnb.transports.kafka.source import create_topics
from tests.support.raw_batches import CODECS, RawProducer, raw_batch, raw_record
from tests.transports.kafka.test_pipeline import Pipeline, pipeline, read_to_end

Row = tuple[bytes | None, bytes | None, Headers]

ODD: list[Row] = [  # a value, a key, headers
    *(
        (value, None, ())
        for value in (
            b"",
            b"hello",
            b'{"text": "a',
            b'{"text": "a"} x',
            b'{"text": "\xff"}',
            b'\xef\xbb\xbf{"text": "a"}',
            '{"text": "a"}'.encode("utf-16"),
            b'{"text": "\\ud800"}',
            b"[" * 5_000,
            b'{"text": "a", "x": NaN}',
            b'{"text": "a", "x": 1e400}',
            b'{"text": "a", "x": %b}' % (b"9" * 5_000),
            b'{"text": "a", "id": 9007199254740993}',
            b'{"text": 7}',
            b'{"text": ["a"]}',
            b'{"label": "spam"}',
            b'{"text": "a", "label": []}',
            b'{"text": "a", "label": ""}',
            b'{"text": "a", "label": "%b"}' % (b"l" * 5_000),
            b"[1, 2]",
            b'"text"',
            b'{"text": "%b"}' % (b"x" * 1_100_000),
            b'{"text": ""}',
            b'{"text": "%b"}' % (b"w" * 100_000),
            b'{"id": "a", "text": "x", "label": "ham", "id": "b", "label": "spam"}',
            b'{"text": "\\u0000 \\u2028 caf\\u00e9 \\ud83d\\ude00", "label": "ham"}',
        )
    ),
    (None, b"tombstone", ()),
    (b'{"text": "a large key"}', b"k" * 70_000, ()),
    (b'{"text": "a key of no bytes"}', b"", ()),
    (b'{"text": "many headers"}', None, [("h", b"v")] * 1_001),
    (b'{"text": "our own", "label": "ham"}', b"key", [("streamnb.reason", b"schema")]),
    (b'{"text": "with a header", "label": "ham"}', b"key", [("h\xe9", b"\xff"), ("h", b"")]),
]


def fill(pipe: Pipeline) -> None:
    """Send lines and odd records with every codec, then lines in transactions, half of which are aborted."""
    topic, lines = f"{pipe.run}-mail", iter(pipe.lines * 2)
    raw = RawProducer(pipe.broker)
    for codec in CODECS:
        name = None if codec == "none" else codec
        with KafkaProducer(
            bootstrap_servers=pipe.broker, compression_type=name, linger_ms=50, max_request_size=2_000_000
        ) as producer:
            for value, key, headers in mixed(lines):
                producer.send(topic, value, key, list(headers), partition=0)
            producer.flush(30)
        null_header, not_utf8 = b"\x02h\x01", b"\x02\xff\x02v"
        records = [
            raw_record(i, next(lines), key=b"k", after_ms=9 - i, n_headers=1, header=header)
            for i, header in enumerate((null_header, not_utf8, null_header))
        ]
        raw.send(topic, raw_batch(records, codec, first_ms=1_000, max_ms=1_009))
    raw.close()
    producer = KafkaProducer(bootstrap_servers=pipe.broker, transactional_id=f"fill-{pipe.run}")
    producer.init_transactions()
    for number in range(8):
        producer.begin_transaction()
        for _ in range(20):
            producer.send(topic, next(lines), partition=0)
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close(10)


def mixed(lines: Iterator[bytes]) -> Iterator[Row]:
    """Yield every odd record, with ten lines before each."""
    for row in ODD:
        for _ in range(10):
            yield next(lines), None, ()
        yield row


def outcome(
    pipe: Pipeline, name: str, scores: str, environment: dict[str, str]
) -> tuple[list[Row], list[Row], dict[str, str]]:
    """Run an engine over the topic; return its scores, its dead letters, and the digest of its model."""
    topics = f"{pipe.run}-{name}-scores", f"{pipe.run}-{name}-dead"
    create_topics({"bootstrap_servers": pipe.broker}, dict.fromkeys(topics, 1))
    directory = pipe.directory / name
    changes = [
        f"sink.topic={topics[0]}",
        f"dead_letters.sink.topic={topics[1]}",
        "dead_letters.ratio_max=1.0",
        f"snapshots.directory={directory}",
        f"engine.scores={scores}",
        f"source.group={pipe.run}-{name}",
    ]
    words = [sys.executable, "-m", "streamnb", "run", str(pipe.config), "--until-end"]
    words += [word for change in changes for word in ("--set", change)]
    done = subprocess.run(words, env=os.environ | environment, capture_output=True, check=False, timeout=200)

    assert done.returncode == 0, done.stderr.decode()
    published, aside = (rows_of(pipe.broker, topic) for topic in topics)
    return published, aside, replace(pipe, directory=directory).digest()


def rows_of(broker: str, topic: str) -> list[Row]:
    """Return the records of a topic, without the time at which a dead letter was made."""
    return [
        (value, key, [header for header in headers if header[0] != "streamnb.dead_lettered_ms"])
        for records in read_to_end(broker, topic)
        for value, key, headers in zip(records.values, records.keys, records.headers, strict=True)
    ]


@pytest.mark.parametrize("scores", ["at_least_once", "exactly_once"])
def test_scores_and_dead_letters_are_equal_to_the_byte(broker: str, tmp_path: Path, scores: str) -> None:
    """Every codec, 32 kinds of odd records, headers that cannot be read, and aborted transactions."""
    pipe = pipeline(broker, tmp_path, "mailbox", 1)
    fill(pipe)
    columns = outcome(pipe, "columns", scores, {})
    records = outcome(pipe, "records", scores, {"STREAMNB_PURE": "1"})

    assert columns == records
    published, aside, _ = columns
    assert len(published) > len(pipe.lines)
    assert len(aside) > 20 * len(CODECS)
