"""What `docs/privacy.md` says about message text in snapshots, scores, dead letters, log and metrics."""

from __future__ import annotations

import base64
import logging
import stat
from pathlib import Path

import orjson
import pytest
from prometheus_client import generate_latest

from streamnb.config import build_engine, load_settings
from streamnb.engine import Metrics

TAUGHT, UNTAUGHT, REFUSED, SENDER = "zyxtaught", "zyxuntaught", "zyxrefused", "zyxsender"
LINES = [
    {"id": "zyxid-1", "text": f"win {TAUGHT}", "sender": SENDER, "label": "spam"},
    {"id": "zyxid-2", "text": "lunch at noon", "sender": SENDER, "label": "ham"},
    {"id": "zyxid-3", "text": f"{TAUGHT} {UNTAUGHT}", "sender": SENDER},
    {"id": "zyxid-4", "text": REFUSED, "label": 5},
]
SETTINGS = """
message = { category = ["sender"] }
source = { kind = "jsonl", path = "mail.jsonl" }
sink = { kind = "jsonl", path = "scores.jsonl" }
dead_letters.sink = { kind = "jsonl", path = "dead.jsonl" }
dead_letters.ratio_max = 1.0
engine = { start = "earliest" }
guard = { source = "sender" }
snapshots = { directory = "snapshots" }
"""


@pytest.fixture
def metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Metrics:
    """A run over the lines, in a folder that is now the current one."""
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    Path("mail.jsonl").write_bytes(b"\n".join(map(orjson.dumps, LINES)))
    Path("settings.toml").write_text(SETTINGS)
    found = Metrics()
    engine = build_engine(load_settings(Path("settings.toml")), metrics=found)
    try:
        engine.run()
    finally:
        engine.close()
    return found


def test_a_snapshot_holds_the_tokens_of_labelled_messages_alone(metrics: Metrics) -> None:
    """Nothing of what was only scored or refused, and the guard's sources as hashes."""
    del metrics
    (path,) = Path("snapshots").glob("*.snb")
    held = path.read_bytes()

    assert TAUGHT.encode() in held
    for text in (UNTAUGHT, REFUSED, SENDER, "zyxid"):
        assert text.encode() not in held
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_scores_hold_no_text_unless_they_are_explained(metrics: Metrics) -> None:
    """An id, and no token."""
    del metrics
    scores = Path("scores.jsonl").read_text()

    assert "zyxid-1" in scores
    assert TAUGHT not in scores
    assert SENDER not in scores


def test_a_dead_letter_holds_the_record_and_its_label(metrics: Metrics) -> None:
    """Its bytes unchanged; the detail quotes the label and not the text."""
    del metrics
    (letter,) = (orjson.loads(line) for line in Path("dead.jsonl").read_bytes().splitlines())

    assert base64.b64decode(letter["value"]) == orjson.dumps(LINES[3])
    assert "5" in letter["headers"]["streamnb.detail"]
    assert REFUSED not in letter["headers"]["streamnb.detail"]


def test_log_and_metrics_hold_nothing_of_a_message_but_its_class(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    """At every level of the log, and on the whole page."""
    page = generate_latest(metrics.registry).decode()
    log = "\n".join(record.getMessage() for record in caplog.get_records("setup"))

    assert "spam" in page
    assert "ready at" in log
    for text in (TAUGHT, UNTAUGHT, REFUSED, SENDER, "zyxid"):
        assert text not in page
        assert text not in log
