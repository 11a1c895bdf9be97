"""A snapshot of an earlier minor version gives the same model: the settings in it get today's names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from streamnb.base.snapshot import Snapshot, differences
from streamnb.config import Settings, build_decoder, build_model, decode_settings, restore_model
from streamnb.errors import SettingsError, SnapshotError
from streamnb.naive_bayes import (
    Categorical,
    Categories,
    Dirichlet,
    Ends,
    Forgetting,
    Laplace,
    LearnedPrior,
    NaiveBayes,
    Numbers,
    View,
    WordPairs,
    Words,
)
from streamnb.naive_bayes.features.alphabet import UNICODE
from streamnb.storage import container, snapshot_file
from streamnb.storage.migrations import migrated
from tests.support import strangers_reader

GOLDEN = Path(__file__).parents[1] / "golden"

# Written once by the code of container version 1.0, from four messages with labels true and false.
VERSION_1_0 = GOLDEN / "snapshot-v1.0.snb"
VERSION_1_1 = GOLDEN / "snapshot-v1.1.snb"  # the same by the code of version 1.1
DIGEST = {
    "order_free": "37de38c463201b3ac69fb00b8f312799",
    "all": "976a634f68fd618c3bf77381957b0793",
}
UNICODE_CHANGED = {"event": "unicode changed", "before": "14.0.0", "after": "16.0.0"}
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
    """Where a snapshot's statistics differ from its model's."""
    now = {"message": build_decoder(settings).state_settings(), "model": model.state_settings()}
    return differences(snapshot.statistics, now)


def test_a_snapshot_of_version_1_0_gives_the_same_model() -> None:
    """Equal digest and statistics, equal score."""
    assert container.decode(VERSION_1_0.read_bytes()).minor == 0
    snapshot, settings, model = restored(VERSION_1_0)
    assert model.digest() == snapshot.digest == DIGEST
    assert other_statistics(snapshot, settings, model) == []
    assert model.predict_proba_one({"text": "win 1,000"})["spam"] == SPAM


def test_a_snapshot_of_version_1_1_gives_the_same_model() -> None:
    """The same four messages, learned and written by the code of version 1.1: the same state."""
    assert container.decode(VERSION_1_1.read_bytes()).minor == 1
    snapshot, settings, model = restored(VERSION_1_1)
    assert model.digest() == snapshot.digest == DIGEST
    assert other_statistics(snapshot, settings, model) == []
    assert model.predict_proba_one({"text": "win 1,000"})["spam"] == SPAM


def test_both_versions_say_the_same() -> None:
    """Settings and statistics of the older file are, after the migration, those that the newer one has."""
    old, new = (snapshot_file.decode(path.read_bytes()) for path in (VERSION_1_0, VERSION_1_1))
    assert differences(old.settings, new.settings) == []
    assert differences(old.statistics, new.statistics) == []


def test_the_map_of_labels_of_version_1_0_is_the_label_values() -> None:
    """Under its new name, so that true is spam as before."""
    _, settings, _ = restored(VERSION_1_0)
    assert settings.message.label_values == {"true": "spam", "false": "ham"}


def test_what_version_1_0_kept_whole_is_kept_whole() -> None:
    """`tokens.whole` under its new name, in settings and statistics: 1,000 is still one token."""
    _, settings, model = restored(VERSION_1_0)
    assert settings.tokens.keep_whole == ("urls", "numbers")
    assert "1,000" in model.state.counts["words"].rows


def test_the_reader_edges_of_version_1_0_is_ends() -> None:
    """Under its new kind; the view keeps the name that the user gave it, which the digest holds."""
    _, settings, model = restored(VERSION_1_0)
    view = settings.views[2]
    assert (view.name, view.reader) == ("edges", Ends(n=2))
    assert "hwin" in model.state.counts["edges"].rows


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


# ---- settings that are constants since version 1.1


def migrated_settings(**changes: object) -> tuple[dict[str, Any], list[Any]]:
    """Settings and lineage after the migration of the golden file, with other tables in its settings."""
    old = container.decode(VERSION_1_0.read_bytes())
    settings = cast("dict[str, Any]", old.header["settings"])
    header = migrated(old._replace(header=old.header | {"settings": settings | changes})).header
    *lineage, last = cast("list[Any]", header["lineage"])
    assert last == UNICODE_CHANGED
    return cast("dict[str, Any]", header["settings"]), lineage


def view(reader: Mapping[str, object], event_model: Mapping[str, object]) -> dict[str, object]:
    """The settings of a view, as version 1.0 wrote them."""
    return {"name": "v", "reader": reader, "event_model": event_model}


def test_constants_are_dropped_from_settings_that_have_their_value() -> None:
    """All of them; the settings are then a file's, and nothing is noted."""
    settings, lineage = migrated_settings(
        prior={"kind": "learned", "smoothing": 0.0},
        views=[
            view({"kind": "characters", "characters_max": 3000}, {"kind": "multinomial"}),
            view({"kind": "numbers", "fields": ["a"]}, {"kind": "binned", "bins": 3, "warm_up": 200}),
            view(
                {"kind": "numbers", "fields": ["a"]}, {"kind": "multivariate", "messages_per_coordinate": 1.0}
            ),
        ],
    )
    assert len(decode_settings(settings, "the snapshot").views) == 3
    assert [event["event"] for event in lineage] == ["begun from a snapshot"]


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        (
            {"tokens": {"message_tokens_max": 100}},
            r"tokens\.message_tokens_max` can no longer be set; it is always 65536",
        ),
        (
            {"views": [view({"kind": "characters", "characters_max": 500}, {"kind": "multinomial"})]},
            r"views\[0\]\.reader\.characters_max` can no longer be set; it is always 3000",
        ),
        (
            {"views": [view({"kind": "numbers"}, {"kind": "binned", "warm_up": 50})]},
            r"views\[0\]\.event_model\.warm_up` can no longer be set; it is always 200",
        ),
        (
            {"forgetting": {"half_life_s": 60.0, "time_skew_max_s": 5.0}},
            r"forgetting\.time_skew_max_s` can no longer be set; it is always 3600",
        ),
    ],
)
def test_a_snapshot_that_learned_with_another_value_is_refused(
    changes: dict[str, object], setting: str
) -> None:
    """Its counts mean something else than those of this version."""
    settings, _ = migrated_settings(**changes)
    with pytest.raises(SettingsError, match=f"the snapshot: `{setting}"):
        decode_settings(settings, "the snapshot")


def test_a_value_that_no_state_depends_on_is_dropped() -> None:
    """Limits of records, the clock of a model that ignores time, the wait for edges that are given."""
    settings, lineage = migrated_settings(
        message={"key_bytes_max": 5, "headers_max": 5},
        forgetting={"half_life_s": None, "half_life_messages": 9.0, "time_skew_max_s": 5.0},
        views=[view({"kind": "numbers", "fields": ["a"]}, {"kind": "binned", "edges": [1.0], "warm_up": 5})],
    )
    loaded = decode_settings(settings, "the snapshot")
    assert loaded.forgetting == Forgetting(half_life_messages=9.0)
    assert len(lineage) == 1


def test_a_value_that_changes_only_the_reading_is_dropped_with_a_note() -> None:
    """The counts are the same, and the lineage says that they are read otherwise from now on."""
    numbers = {"kind": "numbers", "fields": ["a"]}
    settings, lineage = migrated_settings(
        prior={"kind": "learned", "smoothing": 2.0},
        views=[view(numbers, {"kind": "multivariate", "messages_per_coordinate": 5.0})],
    )
    assert decode_settings(settings, "the snapshot").prior == LearnedPrior()
    assert lineage[-1] == {
        "event": "settings fixed",
        "changes": ["prior.smoothing: 2.0 -> 0.0", "event_models.v.messages_per_coordinate: 5.0 -> 1.0"],
    }


# ---- views of one category or number, which are blocks of one name since version 1.2

# Written by the code of version 1.1, from 50 messages of three classes, with readers `category` and `number`.
FIELDS_1_1 = GOLDEN / "snapshot-v1.1-fields.snb"
FIELDS_DIGEST = {  # that of the same messages learned by version 1.2
    "order_free": "eb01e097ac297d169f1805e435bfb3a3",
    "all": "961b5e84a749fb40ea84d28e13453aa3",
}
SAID_1_1: list[
    tuple[dict[str, object], dict[str, float]]
] = [  # what the code of version 1.1 said of three messages
    (
        {"text": "news money lunch lunch", "sender": "ann", "lane": "b", "age": 34.76448695596685},
        {"ham": 0.2982898787915889, "news": 0.2546776370295923, "spam": 0.4470324841788187},
    ),
    (
        {"text": "win news lunch é", "sender": None, "lane": "b", "age": 48.486063768021765},
        {"ham": 0.27208370231610035, "news": 0.31354963618623943, "spam": 0.41436666149766005},
    ),
    (
        {"text": "win win money win", "sender": "ann", "lane": "b", "age": 37.31354148320506},
        {"ham": 0.2586491362150087, "news": 0.2544448771853389, "spam": 0.48690598659965234},
    ),
]


def test_a_category_and_a_number_of_version_1_1_score_to_the_bit_as_before() -> None:
    """Their tokens, moments and settings are rewritten; the digest is that of the rewritten state."""
    assert container.decode(FIELDS_1_1.read_bytes()).minor == 1
    snapshot, settings, model = restored(FIELDS_1_1)
    assert model.digest() == snapshot.digest == FIELDS_DIGEST
    assert other_statistics(snapshot, settings, model) == []
    for message, posterior in SAID_1_1:
        assert model.predict_proba_one(message) == posterior


def test_the_shorthands_of_version_1_1_are_blocks_in_settings_and_statistics() -> None:
    """One draw of a multinomial is a categorical; the smoothing stays."""
    snapshot, settings, _ = restored(FIELDS_1_1)
    who, lane = settings.views[1], settings.views[3]
    assert (who.reader, who.event_model) == (Categories(fields=("sender",)), Categorical(Laplace(1.0)))
    assert lane.event_model == Categorical(Dirichlet(2.0), "smooth")
    assert settings.views[2].reader == Numbers(fields=("amount",))
    written = cast("dict[str, Any]", snapshot.reading["event_models"])
    assert written["lane"] == lane.reading_settings


@pytest.mark.parametrize("pure", [False, True], ids=["in order", "damaged"])
@given(st.data())
@settings_of_hypothesis(max_examples=60, deadline=None)
def test_a_damaged_snapshot_of_version_1_1_is_refused_or_read(pure: bool, data: st.DataObject) -> None:
    """Any error is a `SnapshotError`, wherever the damage is."""
    old = container.decode(FIELDS_1_1.read_bytes())
    sections = dict(old.sections)
    if pure:
        name = data.draw(st.sampled_from(sorted(sections)))
        array = sections[name].copy().reshape(-1)
        array[data.draw(st.integers(0, max(0, len(array) - 1)))] = data.draw(st.sampled_from([0, 3, 255]))
        rows = data.draw(st.integers(0, len(sections[name])))
        sections[name] = array.reshape(sections[name].shape)[:rows]
    try:
        new = migrated(old._replace(sections=sections))
    except SnapshotError:
        assert pure
    else:
        assert "moments" not in new.sections


def test_names_of_fields_do_not_choose_the_memory() -> None:
    """A forged name of a megabyte before each of many tokens is refused."""
    old = container.decode(FIELDS_1_1.read_bytes())
    header = json.loads(json.dumps(old.header).replace('"sender"', f'"{"s" * (1 << 29)}"'))
    with pytest.raises(SnapshotError, match="do not fit together"):
        migrated(old._replace(header=header))


# ---- the Unicode table, which is streamnb's own since version 1.3

# Written by the code of version 1.2 under Python 3.11, from four messages of several scripts. The last one
# has letters that are in Unicode since 15.0 and 16.0; version 1.2 read them as signs.
VERSION_1_2 = GOLDEN / "snapshot-v1.2.snb"
SCRIPTS_DIGEST = {
    "order_free": "966a32bf7c06eb58aa5b56cc06856361",
    "all": "a59ed4b68316f3f7a2ad59020adb59c4",
}
SAID_1_2 = {  # P(spam)
    "win ΟΔΟΣ 你好": 0.13045235006171588,
    "İzmir £1,000 👍🏽": 0.9160228975467516,
}


def test_a_snapshot_of_version_1_2_gives_the_same_model_under_any_python() -> None:
    """Its statistics are those of today's table, and it scores texts of assigned code points as before."""
    assert container.decode(VERSION_1_2.read_bytes()).minor == 2
    snapshot, settings, model = restored(VERSION_1_2)
    assert model.digest() == snapshot.digest == SCRIPTS_DIGEST
    assert other_statistics(snapshot, settings, model) == []
    assert snapshot.lineage == [UNICODE_CHANGED]
    for text, spam in SAID_1_2.items():
        assert model.predict_proba_one({"text": text})["spam"] == spam


def test_newer_letters_were_signs_in_version_1_2_and_are_words_now() -> None:
    """The counts of the signs stay, and the word of the same letters has not been seen yet."""
    _, _, model = restored(VERSION_1_2)
    counts = model.state.counts["words"]
    assert {"\U0001e4d0", "\U0001e4d1", "\ua7da"} <= set(counts.rows)
    model.learn_one({"text": "\U0001e4d0\U0001e4d1 \ua7da\ua7da"}, "spam")
    assert {"\U0001e4d0\U0001e4d1", "\ua7db\ua7db"} <= set(counts.rows)


@pytest.mark.parametrize("version", ["14.0.0", "15.0.0", "15.1.0", "16.0.0", "17.0.0"])
def test_the_unicode_of_every_python_is_replaced(version: str) -> None:
    """The lineage names the old version, unless the table has the same one."""
    old = container.decode(VERSION_1_2.read_bytes())
    header = json.loads(json.dumps(old.header).replace('"14.0.0"', f'"{version}"'))
    new = migrated(old._replace(header=header)).header
    assert cast("dict[str, Any]", new["statistics"])["model"]["unicode"] == dict(UNICODE)
    noted = {"event": "unicode changed", "before": version, "after": "16.0.0"}
    assert new["lineage"] == ([] if version == "16.0.0" else [noted])


@pytest.mark.parametrize("unicode", ["18.0.0", ["14.0.0"], None, {"version": "14.0.0"}])
def test_a_unicode_that_was_never_compared_stays_and_is_refused(unicode: object) -> None:
    """A version that no Python had then, and what is no version."""
    old = container.decode(VERSION_1_2.read_bytes())
    statistics = cast("dict[str, Any]", old.header["statistics"])
    changed = {**statistics, "model": {**statistics["model"], "unicode": unicode}}
    snapshot = snapshot_file.decode(
        b"".join(container.encode({**old.header, "statistics": changed}, old.sections))
    )
    assert (
        migrated(old._replace(header={**old.header, "statistics": changed})).header["statistics"] == changed
    )
    with pytest.raises(SnapshotError):
        restore_model(snapshot)


def test_the_counts_of_many_classes_of_version_1_2_become_cells() -> None:
    """Only the counts above 0 are kept, each with its class; a model reads them as its own."""
    model = NaiveBayes()
    for i in range(30):
        model.learn_one({"text": f"word{i % 7} word{i % 5}"}, f"class{i % 12}")
    frozen = model.freeze()
    bounds, classes, values = (
        frozen.sections[f"cell_{name}"].tolist() for name in ("bounds", "classes", "counts")
    )
    counts = np.zeros((len(bounds) - 1, 12))
    for token, (first, last) in enumerate(pairwise(bounds)):
        counts[token, classes[first:last]] = values[first:last]
    dense = {name: array for name, array in frozen.sections.items() if not name.startswith("cell_")}
    old = container.Contents({}, {**dense, "counts": counts}, 2)
    sections = migrated(old, newest=3).sections
    assert sections.keys() == frozen.sections.keys()
    assert all(np.array_equal(sections[name], array) for name, array in frozen.sections.items())
    again = NaiveBayes()
    again.restore(frozen.values, sections)
    assert again.digest() == model.digest()


def test_the_counts_of_few_classes_stay_a_table() -> None:
    """A row of up to eight classes is as it was."""
    old = container.Contents({}, {"counts": np.ones((3, 8))}, 2)
    assert migrated(old, newest=3).sections.keys() == {"counts"}


# ---- trust, which the calibrated head learns since version 1.4

VERSION_1_3 = GOLDEN / "snapshot-v1.3.snb"  # by the code of version 1.3, from forty messages of three classes
DIGEST_1_3 = {"order_free": "f4feed49d8333582c00caafe603f5761", "all": "08d51a879c60e208b984c33f6fae8e25"}
SAID_1_3 = {"spam": 0.0069408743840488046, "ham": 0.46363161252830115, "work": 0.5294275130876502}


@pytest.mark.parametrize("trust", [True, False])
def test_a_snapshot_of_version_1_3_gives_the_same_model(trust: bool) -> None:
    """Trust starts at 0, which changes nothing, whether the model is to learn it from now on or not."""
    assert container.decode(VERSION_1_3.read_bytes()).minor == 3
    snapshot = snapshot_file.decode(VERSION_1_3.read_bytes())
    model = NaiveBayes([View("words", Words()), View("pairs", WordPairs())], trust=trust)
    model.restore(snapshot.values, snapshot.sections)

    assert differences(snapshot.statistics["model"], model.state_settings()) == []
    assert model.digest() == snapshot.digest == DIGEST_1_3
    assert model.predict_proba_one({"text": "win lunch at the branch"}) == SAID_1_3
    model.learn_one({"text": "lunch with the branch"}, "spam")
    assert model.freeze().sections.keys() - snapshot.sections.keys() == (
        {"head_trust", "token_trust"} if trust else set()
    )
