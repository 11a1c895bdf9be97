"""A topic of another format on a real broker: the run ends with 65 and the reasons, through both clients."""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path

import pytest

from streamnb.config import checks, load_settings
from streamnb.transports.kafka.source import KafkaSink, create_topics
from tests.transports.kafka.accidents import CLIENTS, Child
from tests.transports.kafka.test_pipeline import CONFIG, read_to_end

AVRO = b"\x00\x00\x00\x00\x07\x02a"
RECORDS = 1_500


@pytest.mark.parametrize("client", CLIENTS)
def test_N1_a_topic_of_which_no_record_is_a_message_ends_the_run(
    starter: subprocess.Popen[str], broker: str, tmp_path: Path, client: str
) -> None:
    """It stops within the first polls, names reason and address, and keeps no offset behind the records."""
    run = f"refused-{uuid.uuid4().hex[:12]}"
    create_topics({"bootstrap_servers": broker}, {f"{run}-{name}": 1 for name in ("mail", "scores", "dead")})
    sink = KafkaSink(f"{run}-mail", {"bootstrap_servers": broker})
    sink.publish(0, [AVRO] * RECORDS, [None] * RECORDS, [()] * RECORDS)
    sink.flush(60_000)
    sink.close()
    config, directory = tmp_path / "refused.toml", tmp_path / "snapshots"
    config.write_text(CONFIG.format(run=run, broker=broker, directory=directory, batch_records_max=200))
    child = Child(starter, config, broker, client, "snapshots.interval_s=60", until_end=True)

    assert child.ended() == 65
    said = "".join(child.said)
    assert f"dead letters, schema_registry: the first is {run}-mail-0 @ 0: The record is framed" in said
    assert "records became dead letters: " in said
    assert not list(directory.glob("*.snb"))
    assert sum(len(batch.values) for batch in read_to_end(broker, f"{run}-dead")) >= 100


@pytest.mark.parametrize("client", CLIENTS)
def test_N1_a_check_reads_the_newest_records(broker: str, tmp_path: Path, client: str) -> None:
    """Of two partitions: what came first is forgotten, and what is newest is named."""
    run = f"newest-{uuid.uuid4().hex[:12]}"
    create_topics({"bootstrap_servers": broker}, {f"{run}-{name}": 2 for name in ("mail", "scores", "dead")})
    text = CONFIG.format(run=run, broker=broker, directory=tmp_path / "snapshots", batch_records_max=200)
    text = text.replace('kind = "kafka"', f'kind = "{client}"')
    config = tmp_path / "newest.toml"
    config.write_text(f'{text}\n[confluent]\n"bootstrap.servers" = "{broker}"\n')
    source = dict(checks(load_settings(config)))["source"]
    assert source() == f"{run}-mail (2 partitions); no records yet"
    sink = KafkaSink(f"{run}-mail", {"bootstrap_servers": broker})
    values: list[bytes | None] = [*[AVRO] * 100, *[b'{"text": "win", "label": "spam"}'] * 18, None, AVRO]
    sink.publish(1, values, [None] * len(values), [()] * len(values))
    sink.flush(60_000)
    sink.close()
    found = source()

    assert "; 18 of the newest 20 records are messages; 1 tombstone (first " in found
    assert f"; 1 schema_registry (first {run}-mail-1 @ 119: " in found
    assert found.endswith("; 18 have a label: spam (18)")
