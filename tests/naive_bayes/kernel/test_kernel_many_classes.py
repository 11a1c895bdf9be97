"""With many classes a row holds only the counts above 0: the twins give the same bits, digests, charges."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamnb import NaiveBayes
from streamnb.base import Batch
from streamnb.errors import SnapshotError
from streamnb.naive_bayes import (
    Bernoulli,
    Categories,
    Dirichlet,
    Flags,
    Laplace,
    Multinomial,
    NoSmoothing,
    Numbers,
    View,
    Words,
    _kernel,
)
from streamnb.naive_bayes.statistics.budget import DENSE_CLASSES

pytestmark = pytest.mark.skipif(os.environ.get("STREAMNB_PURE", "") not in {"", "0"}, reason=_kernel.reason)

VIEWS = {
    "calibrated": [View("w", Words())],
    "textbook": [
        View("w", Words(), Multinomial(Laplace(1.0), "counts", "smooth")),
        View("c", Categories(fields=("kind",))),
    ],
    "dirichlet": [View("w", Words(), Multinomial(Dirichlet(10.0), "counts", "smooth"))],
    "coins": [
        View("w", Words(), Bernoulli()),
        View("f", Flags(fields=("flag",))),
        View("n", Numbers(fields=("x",))),
    ],
    "maximum likelihood": [View("w", Words(), Multinomial(NoSmoothing(), "counts", "smooth"))],
}
LIMITS: dict[str, dict[str, float]] = {
    "no limit": {},
    "few tokens": {"max_tokens": 60},
    "half-life": {"half_life_messages": 20.0},
}


def model_of(views: str, limit: str, *, compiled: bool) -> NaiveBayes:
    """Return an empty model of one of the twins."""
    head = "calibrated" if views == "calibrated" else "product"
    return NaiveBayes(VIEWS[views], head=head, compiled=compiled, **LIMITS[limit])  # type: ignore[arg-type]


def batch_of(random: random.Random, n_classes: int, n: int = 12) -> Batch:
    """Return messages of a few words, most of them labelled with one of the classes."""

    def word() -> str:
        return random.choice("abcdefghij") + str(random.randrange(30))

    return Batch(
        {
            "text": [" ".join(word() for _ in range(random.randrange(10))) for _ in range(n)],
            "kind": [random.choice("uvwxyz") for _ in range(n)],
            "flag": [random.random() < 0.5 for _ in range(n)],
            "x": [random.gauss(0.0, 1.0) for _ in range(n)],
        },
        [f"c{random.randrange(n_classes)}" if random.random() < 0.8 else None for _ in range(n)],
        [random.choice([1.0, 0.5, 0.3]) for _ in range(n)],
    )


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("views", VIEWS)
def test_the_twins_agree_while_the_classes_outgrow_rows_of_all_classes(views: str, limit: str) -> None:
    """Scores to the bit, digests, and what the budget is charged; also after messages are unlearned."""
    draw = random.Random(views)
    ours, plain = (model_of(views, limit, compiled=compiled) for compiled in (True, False))
    learned: list[tuple[dict[str, object], str, float]] = []
    for round_ in range(9):
        batch = batch_of(draw, 1 + 4 * round_)
        mine, theirs = ours.step(batch), plain.step(batch)
        for name in ("posterior", "log_odds", "u", "learned_by_class"):
            assert np.array_equal(getattr(mine, name), getattr(theirs, name), equal_nan=True), name
        assert batch.weights is not None
        for i, label in enumerate(batch.labels):
            if label is not None:
                fields = {field: column[i] for field, column in batch.fields.items()}
                learned.append((fields, str(label), batch.weights[i]))
        for _ in range(3 if limit == "no limit" else 0):
            x, y, w = learned.pop(draw.randrange(len(learned)))
            ours.unlearn_one(x, y, w)
            plain.unlearn_one(x, y, w)
        assert ours.digest() == plain.digest()
        assert ours.state.counts.charge() == plain.state.counts.charge()
    assert len(ours.classes_) > 2 * DENSE_CLASSES


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("views", VIEWS)
def test_a_restored_model_of_many_classes_goes_on_to_the_bit(views: str, limit: str) -> None:
    """A snapshot of either twin, read by either, scores and learns as the model that was never stopped."""
    draw = random.Random(views)
    running = {compiled: model_of(views, limit, compiled=compiled) for compiled in (True, False)}
    for _ in range(5):
        batch = batch_of(draw, 25)
        for model in running.values():
            model.step(batch)
    restored = []
    for model in running.values():
        frozen = model.freeze()
        assert "counts" not in frozen.sections
        for compiled in (True, False):
            fresh = model_of(views, limit, compiled=compiled)
            fresh.restore(frozen.values, dict(frozen.sections))
            restored.append(fresh)
    batch = batch_of(draw, 30)
    expected, digest = running[True].step(batch), running[True].digest()
    for model in restored:
        assert np.array_equal(model.step(batch).u, expected.u, equal_nan=True)
        assert model.digest() == digest


DAMAGE: dict[str, Callable[[dict[str, Any]], object]] = {
    "classes that do not rise": lambda s: s["cell_classes"].__setitem__(slice(0, 2), [3, 3]),
    "a class that is not there": lambda s: s["cell_classes"].__setitem__(0, 4_000_000_000),
    "a count of 0": lambda s: s["cell_counts"].__setitem__(0, 0.0),
    "a negative count": lambda s: s["cell_counts"].__setitem__(0, -1.0),
    "a count that is not a number": lambda s: s["cell_counts"].__setitem__(0, np.nan),
    "a count that the total lacks": lambda s: s["cell_counts"].__setitem__(0, 1e6),
    "bounds that go back": lambda s: s["cell_bounds"].__setitem__(2, 0),
    "a bound past the end": lambda s: s["cell_bounds"].__setitem__(-1, 4_000_000_000),
    "a first bound that is not 0": lambda s: s["cell_bounds"].__setitem__(0, 1),
    "too few bounds": lambda s: s.__setitem__("cell_bounds", s["cell_bounds"][:-1].copy()),
    "no bounds": lambda s: s.__setitem__("cell_bounds", s["cell_bounds"][:0].copy()),
    "fewer classes than counts": lambda s: s.__setitem__("cell_classes", s["cell_classes"][:-1].copy()),
    "counts in a table": lambda s: s.__setitem__("cell_counts", s["cell_counts"].reshape(-1, 1)),
    "another type": lambda s: s.__setitem__("cell_classes", s["cell_classes"].astype(np.uint64)),
    "no cells": lambda s: [s.pop(name) for name in ("cell_bounds", "cell_classes", "cell_counts")],
}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_cells_are_refused(damage: str, *, compiled: bool) -> None:
    """A forged snapshot gives an error, whatever its arrays hold; the model is as before."""
    model, draw = model_of("textbook", "no limit", compiled=True), random.Random(1)
    for _ in range(5):
        model.step(batch_of(draw, 25))
    frozen = model.freeze()
    sections = {name: array.copy() for name, array in frozen.sections.items()}
    first = int(sections["cell_bounds"][1])
    assert first >= 2  # the first token has several classes
    DAMAGE[damage](sections)
    with pytest.raises(SnapshotError):
        model_of("textbook", "no limit", compiled=compiled).restore(frozen.values, sections)
