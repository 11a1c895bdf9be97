"""Sampling: draw a class, then the features of each view, and write them as the fields of a message."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamnb.base import Label
from streamnb.naive_bayes.event_models.base import Draw
from streamnb.naive_bayes.model.scoring import log_prior
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.model.view import View, named
from streamnb.naive_bayes.posterior.odds import softmax


def sample(state: State, n: int, seed: int) -> Iterator[tuple[dict[str, object], Label]]:
    """Draw labelled messages; see `NaiveBayes.sample`."""
    active = state.active()
    if not active:
        raise ValueError("nothing was learned, so there is nothing to draw from")
    random = np.random.default_rng(seed)
    prior = softmax(log_prior(state, active))
    drawings: dict[int, list[tuple[View, Draw]]] = {}
    for _ in range(n):
        i = int(random.choice(len(active), p=prior))
        if i not in drawings:
            drawings[i] = _drawings(state, active, i)
        x: dict[str, object] = {}
        for view, draw in drawings[i]:
            with named(view):
                drawn = view.written(draw(random))
            if twice := x.keys() & drawn.keys():
                field = min(twice)
                raise ValueError(f"two views read the field `{field}`; it cannot be drawn by both")
            x |= drawn
        yield x, state.classes[active[i]]


def _drawings(state: State, active: list[int], i: int) -> list[tuple[View, Draw]]:
    """Return each view with the function that draws its features for the class ``active[i]``."""
    drawings = []
    for view in state.views:
        with named(view):
            statistic, messages = state.statistics[view.name], state.class_counts[active[i]]
            drawings.append((view, view.formulas.drawing(statistic, active, i, messages)))
    return drawings
