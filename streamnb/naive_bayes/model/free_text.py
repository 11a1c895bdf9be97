"""A look at the categories after the first messages: one whose values are mostly new is text, or an id.

By default every string but the field ``text`` is a category. Read so, a subject or a body is no evidence,
because nobody sends the same one twice, and only the accuracy would show it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.statistics.field_totals import FieldTotals

MESSAGES = 100  # enough for a category of many values to repeat some
NEW_SHARE = 0.5


def warn_of_free_text(state: State, learned_before: int, stacklevel: int) -> None:
    """Warn of each category that is new in most messages, once: when the first messages are learned.

    Parameters
    ----------
    state : State
    learned_before : int
        The number of messages learned before the step that has just ended.
    stacklevel : int
        As that of `warnings.warn`, counted from the caller.
    """
    if not learned_before < MESSAGES <= state.learned:
        return
    for field, values in _new_in_most(state):
        warnings.warn(
            f"the category `{field}` has {values} different values in {state.learned} messages: most values "
            "occur once and tell nothing about other messages. If it is text, read its words: `text=[...]` "
            "in Python, the reader `words` in a configuration. If it is an id, leave it out",
            stacklevel=stacklevel + 1,
        )


def _new_in_most(state: State) -> Iterator[tuple[str, int]]:
    statistics = state.token_statistics()
    for view in state.views:
        if getattr(view.reader, "field", "") or view.name not in statistics:
            continue  # a mapping of categories is nothing that a default has chosen
        if isinstance(tally := statistics[view.name].tally, FieldTotals):
            for field, total in tally.fields.items():
                if total.states > NEW_SHARE * state.learned:
                    yield field, total.states
