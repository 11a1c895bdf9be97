"""Snapshots compared, merged and exported: by function, and by command."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from streamnb.base.offsets import Account
from streamnb.base.record import Partition
from streamnb.base.snapshot import Snapshot
from streamnb.cli import app
from streamnb.cli.snapshot import export_tables as export
from streamnb.cli.snapshot.diff import Change, snapshot_difference
from streamnb.cli.snapshot.merge import merged
from streamnb.config import (
    Settings,
    build_model,
    decode_settings,
    load_snapshot,
    restore_model,
    snapshot_of,
    verify_snapshot,
)
from streamnb.errors import SettingsError, SnapshotError, StreamnbError
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.storage import SnapshotDirectory, write_snapshot
from tests.fuzz.snapshots import mixed_example

MAIL = (("win money now", "spam"), ("lunch at noon", "ham"), ("win a prize", "spam"), ("noon meeting", "ham"))
LATER = (("win money money", "spam"), ("list of parcels", "list"))


def learned(
    mail: tuple[tuple[str, str], ...], partition: int = 0, settings: Settings | None = None
) -> Snapshot:
    """Return the snapshot of a model that has learned some mail from one partition."""
    loaded = settings or Settings()
    model = build_model(loaded)
    for text, label in mail:
        model.learn_one({"text": text}, label)
    snapshot = snapshot_of(loaded, model)
    snapshot.source = {"cluster": "c-1"}
    snapshot.accounts = {Partition("mail", partition): Account(0, len(mail), scored=len(mail))}
    return snapshot


def test_a_snapshot_does_not_differ_from_itself() -> None:
    """A second model that learned the same mail has the same state too."""
    for snapshot in (learned(MAIL), mixed_example()):
        assert snapshot_difference(snapshot, snapshot)[1:] == ([], [], [], 0, [])
    assert snapshot_difference(learned(MAIL), learned(MAIL)).same_state


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_export_has_a_row_for_each_count_above_0(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no other; a table longer than one write is whole."""
    monkeypatch.setattr(export, "_ROWS", 3)
    _, model = restore_model(learned(MAIL))
    expected = {
        ("words", token, label): float(n)
        for token, row in model.state.counts["words"].rows.items()
        for label, n in zip(model.classes_, row, strict=True)
        if n
    }
    path = tmp_path / f"counts{suffix}"
    export.write(path, export.COUNTS, export.counts(model))
    if suffix == ".csv":
        with path.open(newline="") as file:
            names, *rows = csv.reader(file)
    else:
        table = parquet.read_table(path)
        names, rows = table.column_names, [list(row.values()) for row in table.to_pylist()]
    assert names == list(export.COUNTS)
    assert len(rows) == len(expected) > 8
    assert {(view, token, label): float(n) for view, token, label, n in rows} == expected


def test_a_state_of_another_digest_is_not_verified(tmp_path: Path) -> None:
    """Every byte of such a file is under a right checksum: only the digest tells."""
    snapshot = learned(MAIL)
    write_snapshot(tmp_path / "good.snb", snapshot)
    assert verify_snapshot(tmp_path / "good.snb") == snapshot.digest["all"]
    for name in snapshot.digest:
        other = learned(LATER).digest[name]
        write_snapshot(tmp_path / f"{name}.snb", replace(snapshot, digest=snapshot.digest | {name: other}))
        with pytest.raises(SnapshotError, match="records the digest"):
            verify_snapshot(tmp_path / f"{name}.snb")


@pytest.mark.skipif(
    os.environ.get("STREAMNB_PURE", "") not in {"", "0"}, reason="the plain store has no index"
)
def test_an_index_in_which_tokens_are_not_found_is_not_verified(tmp_path: Path) -> None:
    """Its slots are numbers of rows, each once, so that a start would read it; but they are other rows."""
    snapshot = learned(MAIL)
    index = snapshot.sections["index"].copy()
    used = np.flatnonzero(index)
    index[used] = np.roll(index[used], 1)
    sections = {**snapshot.sections, "index": index}
    write_snapshot(tmp_path / "other.snb", replace(snapshot, sections=sections))
    with pytest.raises(SnapshotError, match="index"):
        verify_snapshot(tmp_path / "other.snb")


@pytest.mark.parametrize("statistics_only", [False, True])
def test_N9_a_snapshot_is_not_merged_with_itself(*, statistics_only: bool) -> None:
    """Nor with a copy of it: every message would count twice."""
    first, copied = learned(MAIL), learned(MAIL)
    with pytest.raises(SnapshotError, match="every message would count twice"):
        merged(first, copied, statistics_only=statistics_only)
    without_offsets = [snapshot_of(Settings(), restore_model(one)[1]) for one in (first, copied)]
    with pytest.raises(SnapshotError, match="every message would count twice"):
        merged(*without_offsets, statistics_only=statistics_only)
    assert merged(first, learned(MAIL, partition=1)).values["learned"] == 8


def test_what_differs_is_named_and_the_most_changed_counts_first() -> None:
    """Settings, offsets, classes and counts each have their lines."""
    words = decode_settings({"tokens": {"rule": "words"}}, "here")
    found = snapshot_difference(learned(MAIL), learned((*MAIL, *LATER)), top=2)

    assert not found.same_state
    assert found.settings == []
    assert found.offsets == ["next_offset.mail-0: 4 -> 6"]
    assert found.classes == ["list: null -> 1.0", "spam: 2.0 -> 3.0"]
    assert found.tokens_changed == 5
    assert found.most_changed[0] == Change("words", "money", "spam", 177 / 256, (177 + 281) / 256)
    assert len(found.most_changed) == 2
    assert (
        snapshot_difference(learned(MAIL), learned(MAIL, settings=words))
        .settings[0]
        .startswith("statistics.model")
    )


def test_merged_is_what_one_model_would_have_learned_of_both() -> None:
    """The order-free digest is equal to the bit, and the offsets of both are kept."""
    first, second = learned(MAIL), learned(LATER, partition=1)
    both = merged(first, second)

    assert both.digest["order_free"] == learned((*MAIL, *LATER)).digest["order_free"]
    assert both.accounts == {**first.accounts, **second.accounts}
    assert both.lineage == [{"event": "merged", "digests": [first.digest["all"], second.digest["all"]]}]
    assert restore_model(both)[1].digest() == both.digest


def test_snapshots_of_the_same_partition_are_merged_only_without_offsets() -> None:
    """The same holds for two clusters whose topics have one name."""
    first, second = learned(MAIL), learned(LATER)
    with pytest.raises(SnapshotError, match="mail-0 was read twice: offsets 0 to 3 in the first"):
        merged(first, second)
    other = learned(LATER, partition=1)
    other.source = {"cluster": "c-2"}
    with pytest.raises(
        SnapshotError, match="cluster is c-1 in the first snapshot and c-2 in the second"
    ) as caught:
        merged(first, other)
    assert "--statistics-only" in caught.value.hint
    assert merged(first, second, statistics_only=True).accounts == {}
    with pytest.raises(SnapshotError, match="cannot be merged"):
        merged(first, mixed_example())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_exported_counts_are_the_models(tmp_path: Path, suffix: str) -> None:
    """The table has every count that is not 0, also of tokens with quotes, commas and line breaks."""
    snapshot = learned((*MAIL, *LATER, ('a, "b"\nc', "ham")))
    _, model = restore_model(snapshot)
    path = tmp_path / f"counts.{suffix}"
    export.write(path, export.COUNTS, export.counts(model))
    if suffix == "csv":
        with path.open(newline="", encoding="utf-8") as file:
            names, *rows = csv.reader(file)
        found = [(view, token, label, float(n)) for view, token, label, n in rows]
    else:
        table = parquet.read_table(path)
        names = table.column_names
        found = [tuple(row.values()) for row in table.to_pylist()]

    assert tuple(names) == export.COUNTS
    assert found == list(export.counts(model))
    assert sum(n for *_, n in found) == sum(model.state.counts["words"].totals)


def test_the_exported_weights_score_as_the_model_does(tmp_path: Path) -> None:
    """Log odds are the intercept and the sum of the weights of a message's words."""
    settings = decode_settings({"model": {"head": "product"}}, "here")
    snapshot = learned(MAIL, settings=settings)
    _, model = restore_model(snapshot)
    rows = {row[:2]: row for row in export.weights(snapshot)}
    text = "win noon"
    score = rows["", ""][3] + 177 / 256 * sum(rows["words", word][3] for word in text.split())

    assert {row[2] for row in rows.values()} == {"ham"}
    assert score == pytest.approx(
        model.score_one({"text": text}).log_odds[0][0 if model.classes_[0] == "ham" else 1]
    )
    calibrated = list(export.weights(learned(MAIL), ("spam", "ham")))
    assert calibrated[0][2] == "spam"
    assert len(calibrated) == len(rows)
    with pytest.raises(SettingsError, match="two of the classes learned"):
        list(export.weights(learned((*MAIL, *LATER))))
    with pytest.raises(SettingsError, match=r"The format of .*counts\.xlsx is not known"):
        export.write(tmp_path / "counts.xlsx", export.COUNTS, [])


def test_the_commands_print_what_they_did(tmp_path: Path) -> None:
    """Each snapshot command is run once."""
    first, second, both = tmp_path / "a.snb", tmp_path / "b.snb", tmp_path / "c.snb"
    write_snapshot(first, learned(MAIL))
    write_snapshot(second, learned(LATER, partition=1))

    def said(*words: object) -> str:
        done = CliRunner().invoke(app, ["snapshot", *map(str, words)], catch_exceptions=False)
        assert done.exit_code == 0
        return done.stdout

    assert "6 messages, offsets of 2 partitions" in said("merge", first, second, "-o", both)
    assert "words: 'money' in spam" in said("diff", first, both)
    assert '"tokens_changed":5' in said("diff", first, both, "--json")
    assert "counts.csv" in said("export", both, "-o", tmp_path / "counts.csv")
    assert "weights.csv" in said("export", first, "-o", tmp_path / "weights.csv", "--weights")
    with pytest.raises(StreamnbError, match="does not name two classes"):
        said("export", first, "-o", tmp_path / "other.csv", "--weights", "--classes", "spam")

    store = SnapshotDirectory(tmp_path / "kept")
    for n in range(2, 5):
        store.write(learned(MAIL[:n]))
    with pytest.raises(StreamnbError, match="in use by another learner"):
        said("rollback", tmp_path / "kept", 1)
    assert "is kept until unpinned" in said("pin", tmp_path / "kept", 1)
    assert "no longer" in said("unpin", tmp_path / "kept", 1)
    store.close()
    assert "snapshot 4 is a copy of snapshot 1" in said("rollback", tmp_path / "kept", 1)
    store = SnapshotDirectory(tmp_path / "kept")
    newest = store.newest()
    store.close()
    assert newest is not None
    assert newest.digest == learned(MAIL[:2]).digest
    with pytest.raises(SettingsError, match="not a directory"):
        said("rollback", tmp_path / "nowhere", 1)
    assert not (tmp_path / "nowhere").exists()


def test_F16_a_rollback_that_fails_changes_nothing(tmp_path: Path) -> None:
    """In a wrong directory it leaves no lock and removes no file."""
    words = ["snapshot", "rollback", str(tmp_path), "1"]
    (tmp_path / ".snapshot-0000000001.snb.tmp").touch()
    (tmp_path / ".mine.tmp").touch()
    with pytest.raises(StreamnbError, match=r"snapshot-0000000001\.snb: No such file"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.tmp", ".snapshot-0000000001.snb.tmp"]
    (tmp_path / "snapshot-0000000001.snb").write_bytes(b"torn")
    with pytest.raises(StreamnbError, match="cannot be used"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert (tmp_path / ".snapshot-0000000001.snb.tmp").exists()


@pytest.mark.parametrize("command", ["pin", "unpin", "rollback"])
def test_G8_a_snapshot_is_named_by_its_number_alone(command: str, tmp_path: Path) -> None:
    """A path in place of the number is refused."""
    SnapshotDirectory(tmp_path / "kept").close()
    for name in ("../../etc/passwd", "snapshot-0000000001.snb", "-1", "1e3"):
        result = CliRunner().invoke(app, ["snapshot", command, str(tmp_path / "kept"), "--", name])
        assert result.exit_code == 2, result.output


def test_a_merged_snapshot_can_be_loaded_and_verified(tmp_path: Path) -> None:
    """Its file is a snapshot like any other."""
    path = tmp_path / "both.snb"
    write_snapshot(path, merged(learned(MAIL), learned(LATER, partition=1)))
    _, model = restore_model(load_snapshot(path))
    assert isinstance(model, NaiveBayes)
    assert verify_snapshot(path) == model.digest()["all"]
