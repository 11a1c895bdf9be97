"""A snapshot of an earlier minor version gives the same model: the settings in it get today's names."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamnb.base.snapshot import Snapshot, differences
from streamnb.config import Settings, build_decoder, build_model, decode_settings
from streamnb.naive_bayes import Ends, NaiveBayes
from streamnb.storage import container, snapshot_file
from streamnb.storage.migrations import migrated
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


def test_what_version_1_0_kept_whole_is_kept_whole() -> None:
    """`tokens.whole` under its new name, in settings and statistics: 1,000 is still one token."""
    _, settings, model = restored(VERSION_1_0)
    assert settings.tokens.keep_whole == ("urls", "numbers")
    assert "1,000" in model.counts["words"].rows


def test_the_reader_edges_of_version_1_0_is_ends() -> None:
    """Under its new kind; the view keeps the name that the user gave it, which the digest holds."""
    _, settings, model = restored(VERSION_1_0)
    view = settings.views[2]
    assert (view.name, view.reader) == ("edges", Ends(n=2))
    assert "hwin" in model.counts["edges"].rows


@pytest.mark.parametrize("part", ["settings", "statistics"])
def test_a_damaged_header_of_version_1_0_is_refused(part: str) -> None:
    """Without its settings or statistics it is no snapshot, in any version."""
    old = container.decode(VERSION_1_0.read_bytes())
    for damaged in ({k: v for k, v in old.header.items() if k != part}, old.header | {part: [1]}):
        after = migrated(old._replace(header=damaged)).header
        assert after.keys() == damaged.keys()
        assert after.get(part) == damaged.get(part)


def test_settings_of_no_known_form_are_left_to_their_reader() -> None:
    """The step does not stumble over what a stranger put there."""
    old = container.decode(VERSION_1_0.read_bytes())
    strange = {"message": 3, "tokens": [], "views": [None, {"reader": 1}, {"reader": {"kind": []}}]}
    header = migrated(old._replace(header=old.header | {"settings": strange})).header
    assert header["settings"] == strange
