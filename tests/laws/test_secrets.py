"""A password is in no log, error, snapshot, page or `repr`: a canary goes in, and what comes out is read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamnb.config import load_settings, model_description
from streamnb.engine.metrics import Metrics
from streamnb.errors import SettingsError
from streamnb.transports.confluent.client import librdkafka_settings
from streamnb.transports.confluent.source import ConfluentSource
from streamnb.transports.kafka.source import KafkaSource
from tests.support.streams import lines_of

ROOT = Path(__file__).parents[2]

CANARY = "canary-5f3a91"
SECRETS = """
[kafka]
bootstrap_servers = "127.0.0.1:1"
security_protocol = "SASL_PLAINTEXT"
sasl_mechanism = "PLAIN"
sasl_plain_username = "streamnb"
sasl_plain_password = { env = "CANARY" }

[confluent]
bootstrap.servers = "127.0.0.1:1"
sasl.password = { env = "CANARY" }

[engine]
start = "earliest"
"""
FILES = """
[source]
kind = "jsonl"
path = "mail.jsonl"
[sink]
kind = "jsonl"
path = "scores.jsonl"
[dead_letters.sink]
kind = "jsonl"
path = "dead.jsonl"
[snapshots]
directory = "kept"
"""
TOPICS = """
[source]
kind = "kafka"
topics = ["mail"]
[sink]
kind = "kafka"
topic = "scores"
[dead_letters.sink]
kind = "kafka"
topic = "dead"
[snapshots]
directory = "kept"
"""


def said(folder: Path, *words: str) -> bytes:
    """What a command prints, on either stream."""
    command = [sys.executable, "-m", "streamnb", *words]
    environment = {**os.environ, "CANARY": CANARY, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False, timeout=120)
    return done.stdout + done.stderr


def test_G11_a_password_is_in_nothing_that_a_run_leaves_behind(tmp_path: Path) -> None:
    """Logs, scores, dead letters, snapshots, and what the commands say of them."""
    (tmp_path / "mail.jsonl").write_bytes(b"\n".join([*lines_of("mailbox")[:300], b"not json"]))
    (tmp_path / "run.toml").write_text(SECRETS + FILES)
    printed = said(tmp_path, "run", "run.toml", "--until-end", "--verbose")
    assert b"stopped after 301 records" in printed
    (snapshot,) = (tmp_path / "kept").glob("*.snb")
    for words in (("snapshot", "inspect", str(snapshot)), ("snapshot", "verify", str(snapshot))):
        printed += said(tmp_path, *words)

    assert CANARY.encode() not in printed
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 5
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []


def test_G11_a_password_is_in_no_error_of_a_client(tmp_path: Path) -> None:
    """A broker that is not there is named; how one would have logged in is not."""
    (tmp_path / "run.toml").write_text(SECRETS + TOPICS)
    soon = ("--set", "kafka.bootstrap_timeout_ms=500")
    printed = said(tmp_path, "run", "run.toml", "--verbose", *soon)

    assert b"127.0.0.1:1" in printed
    assert CANARY.encode() not in printed


def test_G11_a_password_is_in_no_repr_and_on_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings hold the name of the variable; what holds the value shows only the brokers."""
    monkeypatch.setenv("CANARY", CANARY)
    config = tmp_path / "run.toml"
    config.write_text(SECRETS + FILES.replace("kept", str(tmp_path / "kept")))
    settings = load_settings(config)
    metrics = Metrics()
    source = KafkaSource(["mail"], {"bootstrap_servers": "127.0.0.1:1", "sasl_plain_password": CANARY})

    secrets = {"sasl.password": CANARY, "sasl.oauthbearer.config": CANARY}
    other = ConfluentSource(["mail"], {"bootstrap.servers": "127.0.0.1:1", **secrets})
    checked = librdkafka_settings({"bootstrap.servers": "127.0.0.1:1", **secrets})

    for shown in (
        repr(other),
        repr(checked),
        repr(settings),
        repr(model_description(settings)),
        repr(source),
        repr(metrics),
    ):
        assert CANARY not in shown


@pytest.mark.parametrize(
    "line",
    [
        f'kafka.sasl_plain_password = "{CANARY}"',
        f'kafka.proxy_url = "socks5://me:{CANARY}@127.0.0.1:1"',
        f'confluent."sasl.oauthbearer.config" = "principal=me secret={CANARY}"',
        f'confluent.sasl.oauthbearer.config = "{CANARY}"',
        f'confluent.ssl.key.pem = "{CANARY}"',
    ],
)
def test_G11_a_password_written_out_is_refused_without_being_repeated(line: str, tmp_path: Path) -> None:
    """The error names the key and not its value."""
    config = tmp_path / "run.toml"
    config.write_text(line)
    with pytest.raises(SettingsError, match=r"the secret .* is written in the file") as caught:
        load_settings(config)
    assert CANARY not in str(caught.value)
