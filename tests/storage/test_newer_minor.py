"""A file of a newer minor version is read without the parts that this version does not know, or refused."""

from __future__ import annotations

import logging
import struct
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from streamnb import load
from streamnb.base.frozen import Section
from streamnb.config import restore_model, verify_snapshot
from streamnb.errors import SettingsError, SnapshotError
from streamnb.storage import SnapshotDirectory, container, read_snapshot, snapshot_file
from streamnb.storage.container import MAJOR, MINOR
from streamnb.storage.newer_minor import NAMES_MAX
from tests.fuzz.snapshots import example, file_of, repaired
from tests.support import strangers_reader

VERSION = rf"{MAJOR}\.{MINOR + 1}"


def newer(header: dict[str, Any], sections: dict[str, Section], minor: int = MINOR + 1) -> bytes:
    """Return the bytes of the example's file with more parts, as a newer minor version would write them."""
    old = container.decode(b"".join(snapshot_file.encode(example())))
    values = cast("dict[str, Any]", old.header["values"]) | header.pop("values", {})
    data = bytearray(file_of({**old.header, "values": values, **header}, {**old.sections, **sections}))
    data[10:12] = struct.pack("<H", minor)
    return repaired(data)


def parts_of_tomorrow() -> bytes:
    """Return a file with a key, a value and a section that nothing else depends on."""
    header = {"telepathy": {"a": 1}, "values": {"mood": 3}}
    return newer(header, {"auras": np.array([[1.0, 2.0]]), "block9": np.zeros(3)})


@pytest.mark.parametrize("ahead", [1, 2, 60_000])
def test_parts_of_a_newer_version_are_ignored_with_one_warning(
    ahead: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The model, its digest and the offsets are those of the same file without these parts."""
    path = tmp_path / "model.snb"
    path.write_bytes(newer({"telepathy": 1, "values": {"mood": 3}}, {"auras": np.zeros(3)}, MINOR + ahead))
    strangers_reader.read(path.read_bytes())
    snapshot = read_snapshot(path)
    (warning,) = caplog.messages
    assert warning == (
        f"{path} has container version {MAJOR}.{MINOR + ahead}, newer than {MAJOR}.{MINOR} of this streamnb; "
        "ignored: 'telepathy', 'values.mood', 'auras'"
    )
    known = snapshot_file.decode(b"".join(snapshot_file.encode(example())))
    assert snapshot.sections.keys() == known.sections.keys()
    assert (snapshot.values, snapshot.accounts) == (known.values, known.accounts)
    _, model = restore_model(snapshot)
    assert model.digest() == snapshot.digest == known.digest


def test_every_reader_reads_a_newer_version(tmp_path: Path) -> None:
    """The directory of an engine, `snapshot verify`, and Python."""
    path = tmp_path / "snapshot-0000000007.snb"
    path.write_bytes(parts_of_tomorrow())
    assert verify_snapshot(path) == example().digest["all"]
    assert load(path).predict_one({"text": "win"}) == "spam"
    directory = SnapshotDirectory(tmp_path)
    newest = directory.newest()
    directory.close()
    assert newest is not None
    assert newest.accounts == example().accounts


def test_what_is_read_is_written_again_as_a_file_of_this_version(caplog: pytest.LogCaptureFixture) -> None:
    """Without the unknown parts, so it is a complete file; reading it gives no warning."""
    again = b"".join(snapshot_file.encode(snapshot_file.decode(parts_of_tomorrow())))
    caplog.clear()
    assert snapshot_file.decode(again).digest == example().digest
    assert container.decode(again).minor == MINOR
    assert caplog.messages == []


def test_a_newer_version_that_adds_nothing_gives_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """There is nothing to ignore."""
    assert snapshot_file.decode(newer({}, {})).digest == example().digest
    assert caplog.messages == []


@pytest.mark.parametrize("part", ["telepathy", "auras", "values.mood", "settings.telepathy", "absent"])
def test_a_required_part_that_is_not_known_is_refused(part: str) -> None:
    """The error names the version and the part, and the hint the version to use."""
    data = newer(
        {"telepathy": 1, "values": {"mood": 3}, "required": ["counts", part]}, {"auras": np.zeros(3)}
    )
    with pytest.raises(
        SnapshotError, match=f"container version {VERSION}, and .* is the newest .* Without '{part}', which"
    ) as caught:
        snapshot_file.decode(data)
    assert "or a newer one" in caught.value.hint


def test_required_parts_that_are_known_are_read() -> None:
    """Keys of the header, values and sections."""
    required = ["lineage", "values.classes", "values.forgetting", "counts", "block3_moments"]
    assert snapshot_file.decode(newer({"required": required}, {})).digest == example().digest


@pytest.mark.parametrize("required", [None, "counts", {"counts": 1}, [1], [["counts"]]])
def test_a_list_of_required_parts_that_is_none_is_refused(required: object) -> None:
    """It could have named anything."""
    with pytest.raises(SnapshotError, match="`required` is not a list of names"):
        snapshot_file.decode(newer({"required": required}, {}))


def test_a_file_of_this_version_requires_known_parts_only() -> None:
    """A model with trust names the sections that hold it; a list with another name is damage."""
    snapshot_file.decode(newer({"required": ["head_trust", "token_trust"]}, {}, MINOR))
    with pytest.raises(SnapshotError, match="auras"):
        snapshot_file.decode(newer({"required": ["auras"]}, {}, MINOR))


def test_a_setting_that_is_not_known_is_refused() -> None:
    """A model of other settings is another model; the error names the setting."""
    data = newer({"settings": {"telepathy": 1}}, {})
    with pytest.raises(SettingsError, match="`telepathy` is not a setting"):
        restore_model(snapshot_file.decode(data))


def test_a_warning_of_many_parts_is_one_short_line(caplog: pytest.LogCaptureFixture) -> None:
    """Names from a file are escaped, and the first few are enough."""
    caplog.set_level(logging.WARNING)
    snapshot_file.decode(newer({f"new\n{i}": i for i in range(1_000)}, {}))
    (warning,) = caplog.messages
    assert "\n" not in warning
    assert warning.count("new\\n") == NAMES_MAX
    assert warning.endswith(f", {1_000 - NAMES_MAX} more")
