"""`run --from` with other views: what is kept, what is said about it, and what is refused."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import orjson
import pytest

import streamnb
from streamnb.base import Batch, Snapshot
from streamnb.config import (
    Settings,
    build_decoder,
    build_model,
    decode_settings,
    grown,
    load_snapshot,
    restore_model,
    snapshot_of,
)
from streamnb.errors import MismatchError, SnapshotError
from streamnb.storage import write_snapshot
from tests.engine.test_engine import P0, rig

FILE = Path("history.snb")
WORDS: dict[str, Any] = {"name": "words", "reader": {"kind": "words"}}
PAIRS: dict[str, Any] = {"name": "pairs", "reader": {"kind": "pairs"}}
COUNTRY: dict[str, Any] = {"name": "country", "reader": {"kind": "category", "field": "country"}}
COINS: dict[str, Any] = {"name": "coins", "reader": {"kind": "words"}, "event_model": {"kind": "bernoulli"}}
MAIL = (("win money now", "spam"), ("lunch at noon", "ham"), ("win a prize", "spam"), ("noon", "ham"))


def settings_of(*views: dict[str, object], **tables: object) -> Settings:
    """Return settings with these views."""
    return decode_settings({"views": list(views), **tables}, "here")


def history(settings: Settings) -> Snapshot:
    """Return the snapshot of a model that has learned some mail."""
    model = build_model(settings)
    for text, label in MAIL:
        model.learn_one({"text": text, "country": "no"}, label)
    return snapshot_of(settings, model)


def test_the_same_views_are_begun_from_as_they_are() -> None:
    """Another smoothing is only another reading; the hash table is left out, for a key of its own."""
    old = history(settings_of(WORDS))
    smoother = {
        **WORDS,
        "event_model": {"kind": "multinomial", "smoothing": {"kind": "laplace", "alpha": 2.0}},
    }
    assert grown(settings_of(smoother, prior=None), old, FILE) == old.without_index()


def test_views_are_kept_new_or_dropped_and_all_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """Once in the log, and in the lineage with the digest of what was grown; the guard's windows stay."""
    old = history(settings_of(WORDS, PAIRS))
    old.values["guard"] = {"windows": [["mail", 0, 0, {"a": 3}]]}
    settings = settings_of(COUNTRY, WORDS, message={"category": ["country"]})
    with caplog.at_level(logging.INFO, "streamnb"):
        new = grown(settings, old, FILE)

    assert caplog.messages == ["grown from history.snb; kept: words; new and empty: country; dropped: pairs"]
    event = {"event": "grown", "kept": ["words"], "new": ["country"], "dropped": ["pairs"]}
    assert new.lineage == [{**event, "digest": old.digest["all"]}]
    assert new.values["guard"] == old.values["guard"]
    _, model = restore_model(new)
    assert model.digest() == new.digest
    assert model.class_counts_ == {"spam": 2.0, "ham": 2.0}
    assert new.settings == snapshot_of(settings, model).settings
    back = grown(settings_of(WORDS, PAIRS), new, FILE)
    assert back.digest == grown(settings_of(WORDS, PAIRS), grown(settings_of(WORDS), old, FILE), FILE).digest


def test_trust_that_the_settings_turn_off_is_refused_at_a_start_and_dropped_by_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A start with `trust = false`, and one without it, left the tokens at a trust of 0."""
    old, without = history(settings_of(WORDS)), settings_of(WORDS, model={"trust": False})
    with pytest.raises(MismatchError, match="has learned the trust of its tokens"):
        build_model(without).restore(old.values, old.sections)
    with caplog.at_level(logging.INFO, "streamnb"):
        new = grown(without, old, FILE)

    assert caplog.messages == [
        "grown from history.snb; kept: words; new and empty: none; dropped: the trust of tokens"
    ]
    assert new.digest["order_free"] == old.digest["order_free"]
    assert "token_trust" not in new.sections
    build_model(without).restore(new.values, new.sections)


def test_an_engine_begins_from_a_grown_snapshot_and_resumes_from_its_own() -> None:
    """Learning goes on to the bit of a plain loop; the old settings are refused without `--from`."""
    before = settings_of(WORDS)
    after = settings_of(WORDS, COUNTRY, PAIRS, message={"category": ["country"]})
    old = history(before)
    values: list[bytes | None] = [
        orjson.dumps(
            {"text": f"win w{i % 5} now", "country": "ns"[i % 2], "label": ("spam", "ham")[i % 3 % 2]}
        )
        for i in range(40)
    ]
    plain = restore_model(grown(after, old, FILE))[1]
    for value in values:
        x = orjson.loads(value or b"")
        plain.step(Batch({"text": [x["text"]], "country": [x["country"]]}, [x["label"]]))

    it = rig(values[:30])

    def parts(settings: Settings) -> dict[str, Any]:
        return {"classifier": build_model(settings), "decoder": build_decoder(settings)}

    it.run(grown(after, old, FILE), **parts(after))
    for value in values[30:]:
        it.log.append(value)
    assert it.run(**parts(after)).digest == plain.digest()
    newest = it.store().newest()
    assert newest is not None
    assert newest.accounts[P0].next_offset == 40
    assert [event["event"] for event in newest.lineage] == ["grown", "begun from a snapshot"]
    with pytest.raises(SnapshotError, match=r"made with other settings: .*model\.views"):
        it.run(**parts(before))


def test_plain_run_never_grows() -> None:
    """Without `--from` a snapshot of other views is refused, as it always was."""
    it = rig([orjson.dumps({"text": "win", "label": "spam"})])
    it.run()
    for views in ((WORDS, PAIRS), (PAIRS,)):
        settings = settings_of(*views)
        with pytest.raises(SnapshotError, match=r"Snapshot 1 was made with other settings: .*model\.views"):
            it.run(classifier=build_model(settings), decoder=build_decoder(settings))


@pytest.mark.parametrize(
    ("views", "tables", "difference"),
    [
        ([{**WORDS, "reader": {"kind": "pairs"}}], {}, r'views\.words\.reader\.kind: "words" -> "pairs"'),
        (
            [{**WORDS, "event_model": {"kind": "multinomial", "weight": "counts"}}, PAIRS],
            {},
            r'views\.words\.weight: "log" -> "counts"',
        ),
        ([WORDS, PAIRS], {"tokens": {"rule": "words"}}, r'model\.tokenizer\.rule: "unicode" -> "words"'),
        ([WORDS, PAIRS], {"forgetting": {"half_life_messages": 9}}, r"model\.forgetting: null -> "),
        ([WORDS, PAIRS], {"model": {"head": "product"}}, r'model\.head: "calibrated" -> "product"'),
        ([WORDS, PAIRS], {"message": {"label": "y"}}, r'message\.fields\.label: "label" -> "y"'),
        ([WORDS], {"message": {"text": ["text", "more"]}}, r'message\.fields\.text: \["text"\] -> '),
        ([WORDS], {"message": {"label_values": {"1": "spam"}}}, r'message\.labels\.1: null -> "spam"'),
        (
            [WORDS],
            {"message": {"category": ["kind"], "flag": ["country"]}},
            r'message\.fields\.category: \["country"\] -> \[\]; message\.fields\.flag: \[\] -> \["country"\]',
        ),
    ],
)
def test_a_setting_that_the_counts_depend_on_is_refused_leaf_by_leaf(
    views: list[dict[str, object]], tables: dict[str, object], difference: str
) -> None:
    """The error names the file, and the hint says how to change a view."""
    old = history(settings_of(WORDS, message={"category": ["country"]}))
    with pytest.raises(
        SnapshotError, match=rf"history\.snb was made with other settings: {difference}"
    ) as caught:
        grown(settings_of(*views, **tables), old, FILE)
    assert "give it a new name" in caught.value.hint


def test_another_unicode_is_refused() -> None:
    """The same words may be other tokens there; no setting could change that, so the hint names none."""
    old = history(settings_of(WORDS))
    old.statistics = orjson.loads(orjson.dumps(old.statistics))
    old.statistics["model"]["unicode"] = {"version": "17.0.0", "hash": "00"}  # type: ignore[index]
    found = (
        r'history\.snb counted tokens by the Unicode table {"hash":"00","version":"17\.0\.0"}; this streamnb'
    )
    with pytest.raises(SnapshotError, match=found) as caught:
        grown(settings_of(WORDS, PAIRS), old, FILE)
    assert "version of streamnb that wrote it" in caught.value.hint


def test_a_view_of_absent_words_cannot_be_new() -> None:
    """The hint names what to do."""
    product: dict[str, Any] = {"model": {"head": "product"}}
    with pytest.raises(SnapshotError, match=r"history\.snb cannot take .*view `coins` is new") as caught:
        grown(settings_of(WORDS, COINS, **product), history(settings_of(WORDS, **product)), FILE)
    assert "in a new model" in caught.value.hint


def test_a_model_that_python_saved_grows_too(tmp_path: Path) -> None:
    """It has read no records, so the fields of its messages are the settings'."""
    model = streamnb.NaiveBayes(streamnb.TEXT_ONLY)
    for text, label in MAIL:
        model.learn_one({"text": text}, label)
    model.save(tmp_path / "saved.snb")
    settings = settings_of(WORDS, COUNTRY, message={"category": ["country"]})
    new = grown(settings, load_snapshot(tmp_path / "saved.snb"), FILE)
    write_snapshot(tmp_path / "new.snb", new)
    again = streamnb.load(tmp_path / "new.snb")
    assert again.predict_proba_one({"text": "win"}) == model.predict_proba_one({"text": "win"})
