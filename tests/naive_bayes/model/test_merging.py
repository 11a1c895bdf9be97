"""Unlearning and subtracting, after rounding too: what is left is a state that a snapshot can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamnb
from streamnb import (
    BernoulliNB,
    CategoricalNB,
    NaiveBayes,
)


def check_saved(model: NaiveBayes, folder: Path, *rows: Any) -> None:  # noqa: ANN401 - whatever the model reads
    """Check that the model's file can be loaded and gives the same posteriors to the bit."""
    model.save(folder / "model.snb", overwrite=True)
    loaded = streamnb.load(folder / "model.snb")
    assert loaded.digest() == model.digest()
    for x in rows:
        assert loaded.predict_proba_one(x) == model.predict_proba_one(x)


def test_a_value_with_a_tiny_count_in_another_class_stays_a_value_of_its_field(tmp_path: Path) -> None:
    """Beside 1e9 a count of 1e-9 is lost in a sum of both, but it is still there."""
    model = CategoricalNB()
    model.learn_one({"f": "x"}, "c", 1e-9)
    model.learn_one({"f": "x"}, "a", 1e9)
    model.unlearn_one({"f": "x"}, "a", 1e9)
    assert model.feature_counts == {"f": {"x": {"c": 1e-9}}}
    check_saved(model, tmp_path, {"f": "x"}, {"f": "y"})
    model.unlearn_one({"f": "x"}, "c", 1e-9)
    assert model.feature_counts == {}


def test_totals_are_the_sums_of_small_counts_beside_a_heavy_message(tmp_path: Path) -> None:
    """The total of 3e9 is a whole number, because the small weights are lost in it."""
    model = BernoulliNB()
    model.learn_one("lunch at noon", "a", 1e9)
    model.learn_one("win money", "a", 1e-9)
    model.learn_one("free prize", "a", 1e-9)
    model.unlearn_one("lunch at noon", "a", 1e9)
    (view,) = model.state.counts.views.values()
    assert list(view.totals) == [4e-9]
    check_saved(model, tmp_path, "win", "noon")


def test_a_fields_total_is_the_sum_of_its_counts_after_a_heavy_message(tmp_path: Path) -> None:
    """With maximum likelihood a total of 0 below a count would have no logarithm."""
    model = CategoricalNB(alpha=0, half_life_s=1.0)
    for at, x in (0.0, {"f": "x"}), (60.0, {"f": "y"}):
        model.learn_one(x, "a", at=at)
        model.learn_one(x, "b", at=at)
    model.unlearn_one({"f": "y"}, "a", at=60.0)
    assert model.state.statistics["fields"].tally.fields["f"].totals[0] == 1.0  # type: ignore[attr-defined]
    check_saved(model, tmp_path, {"f": "x"}, {"f": "y"})
