"""Rename and merge the classes of a model: all sums are per class, so they move or add up as they are.

The result is the model that would have learned the same messages under the new labels from the start: to the
bit where sums are exact, and to rounding for moments. Only the calibrated head's weights and offsets depend
on what it was taught step by step; see `CalibratedHead.regroup`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamnb.base import Batch, Label, checked_labels
from streamnb.naive_bayes.model.merging import both, check_alike
from streamnb.naive_bayes.model.state import State


def relabel(state: State, other: State, names: Mapping[Label, Label]) -> None:
    """Give an empty state everything that another has learned, with its classes renamed or merged.

    Classes whose new labels are equal are merged, and so is a class that is renamed to a class there is.

    Parameters
    ----------
    state : State
        Counts as `other` does and has learned nothing.
    other : State
        Stays as it is.
    names : mapping of Label to Label
        The new label of each class to rename.

    Raises
    ------
    ValueError
        `other` has no such class, a new label cannot be one or is itself renamed, the two states count
        otherwise, or `state` has learned; nothing was changed.
    """
    with both(state, other):
        _check(names, other.classes)
        check_alike(state, other)
        if state.learned:
            raise ValueError(f"the new model has already learned {state.learned} messages")
        classes = [state.class_index(names.get(label, label)) for label in other.classes]
        for view, statistic in state.statistics.items():
            statistic.merge(other.statistics[view], classes)
        state.counts.merge_trust(other.counts)
        state.counts.evicted_tokens = other.counts.evicted_tokens
        state.counts.evicted_mass = other.counts.evicted_mass
        state.counts.fell_short = other.counts.fell_short
        if state.head is not None and other.head is not None:
            state.head.regroup(other.head, classes, other.active())
        if state.decay is not None and other.decay is not None:
            state.decay.restore(other.decay.freeze())
        for j, c in enumerate(classes):
            state.class_counts[c] += other.class_counts[j]
        state.learned = other.learned
        state.recount()


def _check(names: Mapping[Label, Label], classes: Sequence[Label]) -> None:
    for label, new in names.items():
        if label not in classes:
            known = ", ".join(map(str, classes)) or "none"
            raise ValueError(f"there is no class {label!r}; the classes are: {known}")
        if isinstance(new, str) and not new.strip():
            raise ValueError(f"the new label of {label!r} is empty")
        if new in names:
            raise ValueError(f"{new!r} is both a new label and a class to rename, so the result is not clear")
    kept = [label for label in classes if label not in names]  # if none is, the labels may get another type
    checked_labels(Batch({}, list(names.values())), kept)
