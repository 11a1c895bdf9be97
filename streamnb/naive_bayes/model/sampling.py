"""Sampling: draw a class, then the features of each view, and write them as the fields of a message."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamnb.base import Label
from streamnb.naive_bayes.event_models.base import Draw
from streamnb.naive_bayes.model.scoring import Scorer
from streamnb.naive_bayes.model.view import View, named


def sample(model: Scorer, n: int, seed: int) -> Iterator[tuple[dict[str, object], Label]]:
    """Draw labelled messages; see `NaiveBayes.sample`."""
    active = model.active()
    if not active:
        raise ValueError("nothing was learned, so there is nothing to draw from")
    random = np.random.default_rng(seed)
    prior = np.exp(model.log_prior(active))
    drawings: dict[int, list[tuple[View, Draw]]] = {}
    for _ in range(n):
        i = int(random.choice(len(active), p=prior / prior.sum()))
        if i not in drawings:
            drawings[i] = _drawings(model, active, i)
        x: dict[str, object] = {}
        for view, draw in drawings[i]:
            with named(view):
                drawn = view.written(draw(random))
            if twice := x.keys() & drawn.keys():
                field = min(twice)
                raise ValueError(f"two views read the field `{field}`; it cannot be drawn by both")
            x |= drawn
        yield x, model.classes[active[i]]


def _drawings(model: Scorer, active: list[int], i: int) -> list[tuple[View, Draw]]:
    """Return each view with the function that draws its features for the class ``active[i]``."""
    drawings = []
    for view in model.views:
        with named(view):
            statistic, messages = model.statistics[view.name], model.class_counts[active[i]]
            drawings.append((view, view.formulas.drawing(statistic, active, i, messages)))
    return drawings
