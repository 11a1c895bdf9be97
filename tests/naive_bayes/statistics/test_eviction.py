"""The bound on the vocabulary, plain and compiled: which tokens are evicted, and that both evict the same."""

from __future__ import annotations

import math
import os
import random

import numpy as np
import pytest

from streamnb.base.batch import Batch
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.features.readers import WordPairs, Words
from streamnb.naive_bayes.model.view import TEXT_ONLY, View

PURE = os.environ.get("STREAMNB_PURE", "") not in {"", "0"}
TWINS = pytest.mark.parametrize("compiled", [False] if PURE else [True, False])


def a_stream(batches: int, seed: int = 0) -> list[Batch]:
    """Return messages of words whose frequencies have a long tail."""
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(f"w{int(rng.paretovariate(0.7))}" for _ in range(rng.randrange(1, 40)))

    return [
        Batch({"text": [text() for _ in range(20)]}, [rng.choice(["ham", "spam"]) for _ in range(20)])
        for _ in range(batches)
    ]


@TWINS
def test_the_store_never_holds_more_than_the_cap(compiled: bool) -> None:
    """The sum over all views is checked after every batch."""
    model = NaiveBayes(
        [View("words", Words()), View("pairs", WordPairs())], max_tokens=300, compiled=compiled
    )
    for batch in a_stream(30):
        model.step(batch)

        assert len(model.state.counts) <= 300

    assert model.state.counts.evicted_tokens > 1000


@TWINS
def test_the_rarest_go_and_the_totals_follow(compiled: bool) -> None:
    """Frequent words stay; totals are sums of the remaining counts, and the evicted mass is the sum of the
    rest.
    """
    model = NaiveBayes(TEXT_ONLY, max_tokens=64, compiled=compiled)
    uncapped = NaiveBayes(TEXT_ONLY, compiled=compiled)
    for i in range(100):
        for learner in (model, uncapped):
            learner.learn_one({"text": f"often seen x{i} y{i}"}, "ham")
    counts = model.state.counts["words"]
    held = sum(sum(row) for row in counts.rows.values())

    assert "often" in counts.rows
    assert "seen" in counts.rows
    assert sum(counts.totals) == held
    assert sum(uncapped.state.counts["words"].totals) == held + model.state.counts.evicted_mass


@pytest.mark.skipif(PURE, reason="STREAMNB_PURE is set")
def test_twins_let_go_of_the_same_tokens() -> None:
    """Every score is equal to the bit, and the digests are equal."""
    views = [View("words", Words()), View("pairs", WordPairs())]
    models = [NaiveBayes(views, max_tokens=300, compiled=compiled) for compiled in (True, False)]
    for batch in a_stream(30, seed=1):
        first, second = (model.step(batch) for model in models)

        assert np.array_equal(first.posterior, second.posterior)
        assert models[0].digest() == models[1].digest()


@TWINS
def test_what_was_evicted_is_in_the_snapshot_and_in_the_digest(compiled: bool) -> None:
    """A model restored from a snapshot is equal to the model that was frozen."""
    model, other = (NaiveBayes(TEXT_ONLY, max_tokens=100, compiled=compiled) for _ in range(2))
    stream = a_stream(10, seed=2)
    for batch in stream[:5]:
        model.step(batch)
    frozen = model.freeze()
    other.restore(frozen.values, frozen.sections)

    assert model.digest() == other.digest()
    assert model.state.counts.evicted_tokens == other.state.counts.evicted_tokens > 0
    for batch in stream[5:]:
        assert np.array_equal(model.step(batch).posterior, other.step(batch).posterior)
    assert model.digest() == other.digest()


@TWINS
def test_one_message_larger_than_the_cap_empties_the_rest(compiled: bool) -> None:
    """The message is learned as a whole, because half a message is never learned."""
    model = NaiveBayes(TEXT_ONLY, max_tokens=16, compiled=compiled)
    model.learn_one({"text": "a b c"}, "ham")
    model.learn_one({"text": " ".join(f"t{i}" for i in range(40))}, "spam")

    assert len(model.state.counts) == 40


def test_a_cap_below_16_is_refused() -> None:
    """A sixteenth of it would be less than one token."""
    with pytest.raises(ValueError, match="from 16 to"):
        NaiveBayes(TEXT_ONLY, max_tokens=15)


@TWINS
def test_F1_a_flood_of_new_words_leaves_what_was_learned(compiled: bool) -> None:
    """After ten times the cap of words seen once, old messages are scored as before."""
    model = NaiveBayes(TEXT_ONLY, max_tokens=2000, compiled=compiled)
    rng = random.Random(3)
    words = {"ham": [f"h{i}" for i in range(100)], "spam": [f"s{i}" for i in range(100)]}

    def message(label: str) -> str:
        return " ".join(rng.choices(words[label], k=10))

    for label in ["ham", "spam"] * 300:
        model.learn_one({"text": message(label)}, label)
    probe = [(message(label), label) for label in ["ham", "spam"] * 100]
    for i in range(1000):
        text = " ".join(f"flood{i}x{j}" for j in range(20))
        model.learn_one({"text": text}, rng.choice(["ham", "spam"]))
    right = sum(model.predict_one({"text": text}) == label for text, label in probe)

    assert right >= 198
    assert len(model.state.counts) <= 2000


@TWINS
def test_the_rounding_of_a_heavy_weight_goes_with_its_tokens(compiled: bool) -> None:
    """Beside 1e9 a count of 0.3 is rounded. The remaining rows add up to the totals, and the store can be
    restored.
    """
    model, other = (NaiveBayes(TEXT_ONLY, max_tokens=16, compiled=compiled) for _ in range(2))
    model.learn_one({"text": "heavy"}, "ham", 1e9)
    for _ in range(7):
        model.learn_one({"text": "light lighter"}, "ham", 0.3)
    model.learn_one({"text": " ".join(f"w{i}" for i in range(16))}, "ham", 0.3)
    counts = model.state.counts["words"]
    assert "heavy" not in counts.rows
    assert counts.totals == pytest.approx([math.fsum(row[0] for row in counts.rows.values())], rel=1e-15)
    frozen = model.freeze()
    other.restore(frozen.values, frozen.sections)
    assert other.digest() == model.digest()


@TWINS
def test_F11_words_seen_once_are_evicted_by_age_so_none_can_be_chosen_to_stay(compiled: bool) -> None:
    """Among words seen once the newest stay, whoever sent them: junk cannot push out newer words."""
    model = NaiveBayes(TEXT_ONLY, max_tokens=1600, compiled=compiled)
    for i in range(800):
        model.learn_one({"text": f"known{i} known{i}"}, "ham")
    for i in range(1000):
        junk = " ".join(f"junk{i}x{j}" for j in range(9))
        model.learn_one({"text": f"{junk} newcomer{i}"}, "spam")
    rows = model.state.counts["words"].rows
    newest = [f"{kind}{i}{end}" for i in range(950, 1000) for kind, end in [("newcomer", ""), ("junk", "x0")]]
    assert all(token in rows for token in newest)
    assert all(f"known{i}" in rows for i in range(800))
    assert not any(f"newcomer{i}" in rows or f"junk{i}x0" in rows for i in range(900))


@TWINS
def test_views_lose_tokens_of_equal_counts_in_proportion(compiled: bool) -> None:
    """The age of a token is relative to its own view, so no view is emptied first."""
    views = [View("words", Words()), View("pairs", WordPairs())]
    model = NaiveBayes(views, max_tokens=1000, compiled=compiled)
    for i in range(2000):
        model.learn_one({"text": f"w{i}a w{i}b w{i}c"}, "ham")
    held = [len(model.state.counts[view].rows) for view in ("words", "pairs")]
    assert sum(held) > 900
    assert held[0] / held[1] == pytest.approx(3 / 2, rel=0.1)


@pytest.mark.skipif(PURE, reason="STREAMNB_PURE is set")
@TWINS
def test_either_twin_evicts_on_as_the_other_after_a_snapshot(compiled: bool) -> None:
    """The order of age is in the snapshot."""
    views = [View("words", Words()), View("pairs", WordPairs())]
    model = NaiveBayes(views, max_tokens=300, compiled=compiled)
    other = NaiveBayes(views, max_tokens=300, compiled=not compiled)
    stream = a_stream(30, seed=5)
    for batch in stream[:15]:
        model.step(batch)
    frozen = model.freeze()
    other.restore(frozen.values, frozen.sections)
    for batch in stream[15:]:
        model.step(batch)
        other.step(batch)
    assert model.digest() == other.digest()
