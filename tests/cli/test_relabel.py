"""`streamnb snapshot relabel`: its settings, offsets and lineage, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

import streamnb
from streamnb.base import Account, Label, Partition, Snapshot
from streamnb.cli import app
from streamnb.cli.snapshot.relabel import names_of, relabelled
from streamnb.config import (
    build_model,
    decode_settings,
    load_snapshot,
    restore_model,
    snapshot_of,
    verify_snapshot,
)
from streamnb.errors import SettingsError, StorageError
from streamnb.storage import SnapshotDirectory, read_snapshot, write_snapshot
from tests.fuzz.snapshots import forgetful_example, mixed_example

TICKETS = (("charged twice", "billing"), ("line dead", "repair"), ("noise", "line"), ("refund", "billing"))
SETTINGS = {
    "model": {"head": "product", "classes": ["billing", "repair"]},
    "prior": {"kind": "fixed", "p": {"billing": 0.5, "repair": 0.2, "line": 0.3}},
    "message": {"label_values": {"1": "billing", "2": "line"}},
    "output": {"abstain": {"between": {"billing": [0.2, 0.9], "repair": [0.3, 0.8], "line": [0.1, 0.9]}}},
}


def tickets(renamed: Mapping[Label, Label], settings: dict[str, object]) -> Snapshot:
    """Return the snapshot of an engine that has learned the tickets under these labels."""
    decoded = decode_settings(settings, "here")
    model = build_model(decoded)
    for text, label in TICKETS:
        model.learn_one({"text": text}, renamed.get(label, label))
    snapshot = snapshot_of(decoded, model)
    snapshot.source, snapshot.sequence = {"cluster": "c-1"}, 7
    snapshot.accounts = {Partition("tickets", 0): Account(0, 4, scored=4)}
    snapshot.lineage = [{"event": "rebuilt"}]
    return snapshot


def test_the_result_is_what_would_have_been_learned_with_its_settings() -> None:
    """Every setting that names a class has the new label; offsets stay, and the lineage names the change."""
    straight: dict[str, object] = {
        "model": {"head": "product", "classes": ["payments", "repair"]},
        "prior": {"kind": "fixed", "p": {"payments": 0.5, "repair": 0.5}},
        "message": {"label_values": {"1": "payments", "2": "repair"}},
        "output": {"abstain": {"between": {"payments": [0.2, 0.9], "repair": [0.3, 0.8]}}},
    }
    names: dict[Label, Label] = {"billing": "payments", "line": "repair"}
    old, wanted = tickets({}, SETTINGS), tickets(names, straight)
    result = relabelled(old, names)

    assert (result.digest, result.settings) == (wanted.digest, wanted.settings)
    assert (result.statistics, result.reading) == (wanted.statistics, wanted.reading)
    assert (result.source, result.accounts, result.sequence) == (old.source, old.accounts, 7)
    event = {"event": "relabelled", "labels": names, "digest": old.digest["all"]}
    assert result.lineage == [{"event": "rebuilt"}, event]
    assert old.settings == tickets({}, SETTINGS).settings


@pytest.mark.parametrize("example", [mixed_example, forgetful_example])
def test_every_kind_of_snapshot_is_whole_afterwards(example: object, tmp_path: Path) -> None:
    """Verified, restored, and with what is not the model's own, such as the guard's windows."""
    assert callable(example)
    old: Snapshot = example()
    path = tmp_path / "new.snb"
    write_snapshot(path, relabelled(old, {"spam": "ham"}))
    verify_snapshot(path)
    new = load_snapshot(path)
    _, model = restore_model(new)
    assert model.classes_ == ["ham"]
    assert model.learned_ == old.values["learned"]
    assert new.values.get("guard") == old.values.get("guard")


def said(*words: object) -> str:
    """Run a command and return what it prints."""
    done = CliRunner().invoke(app, ["snapshot", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_writes_a_snapshot_that_other_commands_read(tmp_path: Path) -> None:
    """Verify and inspect; a file that exists stays as it is."""
    old, new = tmp_path / "old.snb", tmp_path / "new.snb"
    write_snapshot(old, tickets({}, SETTINGS))
    assert "classes payments, repair;" in said("relabel", old, "-o", new, "billing=payments", "line=repair")
    assert "intact" in said("verify", new)
    assert '"relabelled"' in said("inspect", new)
    assert list(read_snapshot(new).accounts) == [Partition("tickets", 0)]
    before = new.read_bytes()
    with pytest.raises(StorageError, match=r"new\.snb: File exists"):
        said("relabel", old, "-o", new, "billing=money")
    assert new.read_bytes() == before


@pytest.mark.parametrize("kind", [streamnb.NaiveBayes, streamnb.MultinomialNB])
def test_a_model_saved_from_python_is_relabelled_too(kind: type[streamnb.NaiveBayes], tmp_path: Path) -> None:
    """`streamnb.load` returns the class that was saved."""
    old, new = tmp_path / "old.snb", tmp_path / "new.snb"
    model, straight = kind(), kind()
    for i, (text, _) in enumerate(TICKETS):
        x: Any = text if kind is streamnb.MultinomialNB else {"text": text}
        model.learn_one(x, "12"[i % 2])
        straight.learn_one(x, "13"[i % 2])
    model.save(old)
    said("relabel", old, "-o", new, "2=3")
    again = streamnb.load(new)
    assert type(again) is kind
    assert again.digest() == straight.digest()


def test_the_parameters_of_a_saved_model_name_the_new_labels(tmp_path: Path) -> None:
    """Its declared classes and the prior it was given."""
    prior = streamnb.FixedPrior({"ham": 0.5, "spam": 0.25, "junk": 0.25})
    streamnb.NaiveBayes(classes=["ham", "spam", "junk"], prior=prior).save(tmp_path / "old.snb")
    said("relabel", tmp_path / "old.snb", "-o", tmp_path / "new.snb", "spam=junk")
    again = streamnb.load(tmp_path / "new.snb")
    assert again.classes == ["ham", "junk"]
    assert again.prior == streamnb.FixedPrior({"ham": 0.5, "junk": 0.5})


def test_integers_are_renamed_to_integers(tmp_path: Path) -> None:
    """As the command line has only text, a label is read as the classes are."""
    model = streamnb.NaiveBayes(classes=[1, 2])
    for i, (text, _) in enumerate(TICKETS):
        model.learn_one({"text": text}, 1 + i % 2)
    model.save(tmp_path / "old.snb")
    said("relabel", tmp_path / "old.snb", "-o", tmp_path / "new.snb", "2=7")
    assert streamnb.load(tmp_path / "new.snb").classes_ == [1, 7]


@pytest.mark.parametrize(
    ("renamed", "reason"),
    [
        (["billing"], "'billing' does not give a class a new label"),
        (["billing=a", "billing=b"], "The class 'billing' is renamed twice"),
    ],
)
def test_an_argument_that_is_not_class_and_label_is_wrong_usage(renamed: list[str], reason: str) -> None:
    """The exit code is that of a wrong option."""
    with pytest.raises(SettingsError, match=reason):
        names_of(renamed, tickets({}, {}))


@pytest.mark.parametrize(
    ("renamed", "reason"),
    [
        (["eggs=ham"], "there is no class 'eggs'; the classes are: billing, repair, line"),
        (["billing= "], "the new label of 'billing' is empty"),
        (["billing=repair", "repair=line"], "'repair' is both a new label and a class to rename"),
    ],
)
def test_labels_that_are_not_clear_are_refused(renamed: list[str], reason: str) -> None:
    """The hint tells how to exchange two labels."""
    snapshot = tickets({}, {})
    with pytest.raises(SettingsError, match=reason) as caught:
        relabelled(snapshot, names_of(renamed, snapshot))
    assert "run the command three times, with a temporary label" in caught.value.hint


@pytest.mark.parametrize("stream_is", ["relabelled too", "as before"])
def test_the_engine_resumes_at_the_offsets_of_the_old_snapshot(tmp_path: Path, stream_is: str) -> None:
    """From a file under its number in a new directory; it learns on as if it had known the new labels."""
    lines = [orjson.dumps({"text": text, "label": label}).decode() for text, label in TICKETS]
    later = [line.replace("billing", "payments") if stream_is == "relabelled too" else line for line in lines]
    mapping = "" if stream_is == "relabelled too" else 'label_values = { billing = "payments" }'
    stream, config = tmp_path / "tickets.jsonl", tmp_path / "tickets.toml"

    def ran(directory: str, message: str) -> Snapshot:
        config.write_text(
            f"""message = {{ {message} }}
                source = {{ kind = "jsonl", path = "{stream}" }}
                sink = {{ kind = "jsonl", path = "{tmp_path / "scores"}" }}
                dead_letters.sink = {{ kind = "jsonl", path = "{tmp_path / "dead"}" }}
                engine = {{ start = "earliest" }}
                snapshots = {{ directory = "{tmp_path / directory}" }}
            """
        )
        done = CliRunner().invoke(app, ["run", str(config), "--until-end"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        store = SnapshotDirectory(tmp_path / directory)
        newest = store.newest()
        store.close()
        assert newest is not None
        return newest

    stream.write_text("\n".join(lines) + "\n")
    ran("old", "")
    (tmp_path / "new").mkdir()
    name = "snapshot-0000000001.snb"
    options = ["--map-labels"] if mapping else []
    said("relabel", tmp_path / "old" / name, "-o", tmp_path / "new" / name, "billing=payments", *options)
    stream.write_text("\n".join([*lines, *later]) + "\n")
    resumed = ran("new", mapping)
    assert resumed.accounts[Partition(str(stream), 0)].scored == 8
    assert resumed.values["classes"] == ["payments", "repair", "line"]
    assert [event["event"] for event in resumed.lineage] == ["relabelled"]
    stream.write_text("\n".join([*lines, *lines]).replace("billing", "payments") + "\n")
    assert resumed.digest == ran("straight", "").digest
