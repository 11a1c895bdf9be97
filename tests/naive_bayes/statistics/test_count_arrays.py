"""The arrays of a count store in a forged snapshot: each bound by one, in either twin."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamnb.base import Section
from streamnb.errors import SnapshotError
from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.statistics.counts import CountStore

PURE = os.environ.get("STREAMNB_PURE", "") not in {"", "0"}
STORES: list[Any] = [CountStore] if PURE else [CountStore, _kernel.CountStore]
VIEWS = ["words", "pairs"]
Sections = dict[str, Section]


def sections_of(n_classes: int) -> Sections:
    """Return the arrays of a small store, without an index."""
    store = CountStore(VIEWS)
    for _ in range(n_classes):
        store.add_class()
    for c in range(n_classes):
        store["words"].add({f"word {c}": 1.0 + c, "all": 2.0}, c)
    store["pairs"].add({"a pair": 3.0}, 0)
    return dict(store.freeze())


def _bounds(change: int) -> Callable[[Sections], Sections]:
    def forged(sections: Sections) -> Sections:
        bounds = sections["token_bounds"].copy()
        bounds[-1] += np.uint64(change)
        return sections | {"token_bounds": bounds}

    return forged


def _class_of_a_cell(sections: Sections) -> Sections:
    classes = sections["cell_classes"].copy()
    classes[-2] = len(sections["totals"][0])  # a token of one class, so that its cells still rise
    return sections | {"cell_classes": classes}


def _no_count(sections: Sections) -> Sections:
    counts = sections["cell_counts"].copy()
    counts[0] = 0.0
    return sections | {"cell_counts": counts}


@pytest.mark.parametrize("kind", STORES, ids=lambda kind: kind.__module__.rpartition(".")[0][-11:])
@pytest.mark.parametrize(
    ("n_classes", "forged"),
    [
        (2, _bounds(1)),  # the last token, of view 1, is of view 2
        (2, _bounds(256)),  # it ends one byte behind the section
        (12, _bounds(1)),
        (12, _bounds(256)),
        (12, _class_of_a_cell),
        (12, _no_count),
    ],
    ids=["view", "end", "view of many classes", "end of many classes", "class", "count"],
)
def test_what_lies_one_past_its_bound_is_refused(
    kind: Any,  # noqa: ANN401 - the compiled store is no subclass of the plain one
    n_classes: int,
    forged: Callable[[Sections], Sections],
) -> None:
    """The arrays as they were are restored."""
    sections = sections_of(n_classes)
    kind(VIEWS).restore(dict(sections), n_classes)
    with pytest.raises(SnapshotError):
        kind(VIEWS).restore(forged(sections), n_classes)
