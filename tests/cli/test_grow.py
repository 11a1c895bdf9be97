"""`streamnb snapshot grow`: the engine resumes with other views, and learns each label once."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from streamnb.base import Batch, Partition
from streamnb.cli import app
from streamnb.config import grown, load_settings, load_snapshot, restore_model
from streamnb.errors import SnapshotError
from streamnb.storage import read_snapshot

WORDS = '{ name = "words", reader = { kind = "words" } }'
PAIRS = '{ name = "pairs", reader = { kind = "pairs" } }'
LINES = [{"text": f"win w{i % 5} w{i % 3}", "label": ("spam", "ham")[i % 2]} for i in range(30)]


def said(*words: object) -> str:
    """Run a command and return what it prints."""
    done = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def config_of(folder: Path, views: str, directory: str) -> Path:
    """Write a configuration that reads the file ``mail``."""
    path = folder / "mail.toml"
    path.write_text(
        f"""views = [{views}]
            source = {{ kind = "jsonl", path = "{folder / "mail"}" }}
            sink = {{ kind = "jsonl", path = "{folder / "scores"}" }}
            dead_letters.sink = {{ kind = "jsonl", path = "{folder / "dead"}" }}
            engine = {{ start = "earliest" }}
            snapshots = {{ directory = "{folder / directory}" }}
        """
    )
    return path


def test_the_engine_resumes_where_the_old_snapshot_ended(tmp_path: Path) -> None:
    """With the new view from there on, to the bit of a plain loop; the old configuration is refused."""
    mail, name = tmp_path / "mail", "snapshot-0000000001.snb"
    lines = [orjson.dumps(line).decode() + "\n" for line in LINES]
    mail.write_text("".join(lines[:20]))
    said("run", config_of(tmp_path, WORDS, "old"), "--until-end")
    (tmp_path / "new").mkdir()
    config = config_of(tmp_path, f"{WORDS}, {PAIRS}", "new")
    old, new = tmp_path / "old" / name, tmp_path / "new" / name
    printed = said("snapshot", "grow", old, "--config", config, "-o", new)
    assert printed.startswith('kept: ["words"]; new: ["pairs"]; dropped: []\n')
    said("snapshot", "verify", new)

    mail.write_text("".join(lines))
    said("run", config, "--until-end")
    resumed = read_snapshot(tmp_path / "new" / "snapshot-0000000002.snb")
    assert resumed.accounts[Partition(str(mail), 0)].scored == 30
    assert [event["event"] for event in resumed.lineage] == ["grown"]
    _, plain = restore_model(grown(load_settings(config), load_snapshot(old), old))
    for line in LINES[20:]:
        plain.step(Batch({"text": [line["text"]]}, [line["label"]]))
    assert resumed.digest == plain.digest()
    with pytest.raises(SnapshotError, match="Snapshot 2 was made with other settings"):
        said("run", config_of(tmp_path, WORDS, "new"), "--until-end")
