"""The two drivers of a state behind one function each: compiled where every part has a twin, else plain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamnb.base import Batch, Label, ScoreRows, Scores, checked_labels
from streamnb.naive_bayes.model import step
from streamnb.naive_bayes.model.free_text import warn_of_free_text
from streamnb.naive_bayes.model.message_features import read_message
from streamnb.naive_bayes.model.state import State


def step_batch(state: State, batch: Batch, *, score: bool, learn: bool) -> Scores:
    """Score each message, then learn it, in order; see `NaiveBayes.step`.

    A state that explains its scores runs on the plain driver.

    Raises
    ------
    ValueError
        The columns of the batch differ in length, or a field, label or weight cannot be used; nothing of the
        batch was learned.
    """
    batch.check_lengths()
    with state.lock:
        before = state.learned
        if state.driver is not None and not state.explain:
            scores = state.driver.step(state, batch, score, learn)
        else:
            scores = step.step(state, batch, score=score, learn=learn)
        if learn:
            warn_of_free_text(state, before, stacklevel=3)
    return scores


def step_one(
    state: State,
    fields: Mapping[str, Sequence[object]],
    label: Label | None,
    weight: float,
    at: float | None,
    *,
    score: bool,
) -> dict[Label, float]:
    """Score or learn one message, in columns of length 1; return its posterior without building `Scores`.

    Raises
    ------
    ValueError
        A field, the label or the weight cannot be used, or the label would be one class more than
        `classes_max`; nothing was learned.
    """
    with state.lock:
        before = state.learned
        if label is not None:
            state.check_room_for([label])
        if state.driver is not None:
            posterior = state.driver.one(state, fields, label, weight, at, score)
            warn_of_free_text(state, before, stacklevel=3)
            return state.without_unlearned(posterior)
        if state.decay is not None:
            times = None if at is None else [at]
            scores = step.step(state, Batch(fields, [label], [weight], times), score=score, learn=not score)
            last = scores.posterior[0].tolist() if score else []
        else:
            (label,), _ = checked_labels(Batch(fields, [label], [weight]), state.classes)
            rows = ScoreRows()
            message = read_message(state.views, state.tokenizer, fields, 0)
            step.step_message(state, rows, message, label, weight, score=score)
            last = rows.last_posterior if score else []
        warn_of_free_text(state, before, stacklevel=3)
        return state.without_unlearned(dict(zip(state.classes, last, strict=True))) if score else {}
