"""A snapshot of an earlier minor version gives the same model: the settings in it get today's names."""

from __future__ import annotations

from pathlib import Path

from streamnb.base.snapshot import Snapshot, differences
from streamnb.config import Settings, build_decoder, build_model, decode_settings
from streamnb.naive_bayes import NaiveBayes
from streamnb.storage import container, snapshot_file
from tests.support import strangers_reader

GOLDEN = Path(__file__).parents[1] / "golden"

# Written once by the code of container version 1.0, from four messages with labels true and false.
VERSION_1_0 = GOLDEN / "snapshot-v1.0.snb"
DIGEST = {
    "order_free": "37de38c463201b3ac69fb00b8f312799",
    "all": "976a634f68fd618c3bf77381957b0793",
}
SPAM = 0.974808739663487  # what that code said of "win 1,000"


def restored(path: Path) -> tuple[Snapshot, Settings, NaiveBayes]:
    """The snapshot in a file, its settings, and the model in it."""
    data = path.read_bytes()
    strangers_reader.read(data)
    snapshot = snapshot_file.decode(data)
    settings = decode_settings(snapshot.settings, "the snapshot")
    model = build_model(settings)
    model.restore(snapshot.values, snapshot.sections)
    return snapshot, settings, model


def other_statistics(snapshot: Snapshot, settings: Settings, model: NaiveBayes) -> list[str]:
    """Where a snapshot's statistics differ from its model's, but for the Unicode table of this Python."""
    now = {"message": build_decoder(settings).state_settings(), "model": model.state_settings()}
    return [line for line in differences(snapshot.statistics, now) if "unicode:" not in line]


def test_a_snapshot_of_version_1_0_gives_the_same_model() -> None:
    """Equal digest and statistics, equal score."""
    assert container.decode(VERSION_1_0.read_bytes()).minor == 0
    snapshot, settings, model = restored(VERSION_1_0)
    assert model.digest() == snapshot.digest == DIGEST
    assert other_statistics(snapshot, settings, model) == []
    assert model.predict_proba_one({"text": "win 1,000"})["spam"] == SPAM


def test_the_map_of_labels_of_version_1_0_is_the_label_values() -> None:
    """Under its new name, so that true is spam as before."""
    _, settings, _ = restored(VERSION_1_0)
    assert settings.message.label_values == {"true": "spam", "false": "ham"}
