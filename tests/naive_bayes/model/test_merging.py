"""Unlearning and subtracting, after rounding too: what is left is a state that a snapshot can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamnb
from streamnb import CategoricalNB, NaiveBayes


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
