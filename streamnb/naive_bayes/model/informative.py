"""The most informative tokens of each class: log odds in units of their standard error."""

from __future__ import annotations

import heapq
import math

from streamnb.naive_bayes.model.state import State

PSEUDO_COUNT = 0.1


def most_informative_tokens(state: State, top: int = 15) -> dict[str, list[tuple[str, float]]]:
    """Return the most informative tokens of each class, from the counts of the first text view.

    A token's z is its log odds for the class against the rest, divided by their standard error (Monroe,
    Colaresi and Quinn 2008, with a flat prior). A rare token needs one-sided counts for a large z; a common
    one does not.

    Parameters
    ----------
    state : State
    top : int
        How many tokens per class at most; only tokens with positive log odds are returned.

    Returns
    -------
    dict of str to list of (str, float)
        Class to (token, z), in descending order of z; empty while fewer than two classes were learned, or if
        no view reads text.

    Examples
    --------
    >>> from streamnb import NaiveBayes, TEXT_ONLY
    >>> model = NaiveBayes(TEXT_ONLY)
    >>> for text, label in [("win money", "spam"), ("the lunch", "ham"), ("the prize", "spam")] * 9:
    ...     model.learn_one({"text": text}, label)
    >>> [(word, round(z, 1)) for word, z in most_informative_tokens(model.state, top=1)["ham"]]
    [('lunch', 1.5)]
    """
    active = state.active()
    if len(active) < 2 or not state.text_views:
        return {}
    counts = state.counts[state.views[state.text_views[0]].name]
    totals = [counts.totals[c] for c in active]
    whole, size = sum(totals), PSEUDO_COUNT * (len(counts.rows) + 1)
    found: list[list[tuple[float, str]]] = [[] for _ in active]
    for token, row in counts.rows.items():
        of_all = sum(row[c] for c in active)
        for heap, c, total in zip(found, active, totals, strict=True):
            here, there = row[c] + PSEUDO_COUNT, of_all - row[c] + PSEUDO_COUNT
            odds = math.log(here / (total + size)) - math.log(there / (whole - total + size))
            if odds > 0.0:
                z = odds / math.sqrt(1.0 / here + 1.0 / there)
                (heapq.heappush if len(heap) < top else heapq.heappushpop)(heap, (z, token))
    return {
        str(state.classes[c]): [(token, z) for z, token in sorted(heap, reverse=True)]
        for c, heap in zip(active, found, strict=True)
    }
