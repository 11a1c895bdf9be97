"""The step from version 1.2 to 1.3 of a snapshot: another Unicode table, and fewer counts of many classes.

Tokens depend on streamnb's Unicode table, not on Python's. Version 1.2 recorded the version of Python's
Unicode database, 14.0 to 17.0. A code point that both this version and the table assign is of the same kind
and has the same lower case in both. So the counts are kept, and a text of such code points has the same
tokens as before. A code point that is not assigned is a token of its own, like a punctuation mark. So other
tokens than before are those of texts with code points that only one of the two assigns. Since 14.0 about
9,500 letters, digits and marks were added: rare Han characters, Egyptian hieroglyphs, nine scripts such as
Kawi and Garay, and a few letters of older scripts. The lineage notes the change.

With more than eight classes, only the counts above 0 are kept, each with its class. The last digits
of scores may change, because a multinomial adds its sums over many classes in another order.
"""

from __future__ import annotations

import numpy as np

from streamnb.base import HINT, Section, section
from streamnb.errors import SnapshotError
from streamnb.storage.container import Contents
from streamnb.storage.tables import Tables, changed

_PYTHONS = ("14.0.0", "15.0.0", "15.1.0", "16.0.0", "17.0.0")
"""The versions of Unicode of Python 3.11 to 3.15; each was compared with the table."""

_TABLE = {"version": "16.0.0", "hash": "f47e98c6a4551892"}

_DENSE_CLASSES = 8
_CELLS_MAX = 1 << 32


def to_1_3(old: Contents) -> Contents:
    """Replace the version of Unicode by that of the table, and the counts of many classes by cells."""
    return _with_cells(_with_table(old))


def _with_cells(old: Contents) -> Contents:
    """Replace the counts of all classes by those above 0, if there are more classes than rows hold now."""
    if "counts" not in old.sections:
        return old
    counts = section(old.sections, "counts", np.float64)
    if counts.ndim != 2 or counts.shape[1] <= _DENSE_CLASSES:
        return old
    tokens, classes = np.nonzero(counts)
    if len(tokens) >= _CELLS_MAX:
        raise SnapshotError("A snapshot of version 1.2 has more counts than version 1.3 can hold.", HINT)
    cells: dict[str, Section] = {
        "cell_bounds": np.searchsorted(tokens, np.arange(len(counts) + 1)).astype(np.uint32),
        "cell_classes": classes.astype(np.uint32),
        "cell_counts": counts[tokens, classes],
    }
    kept = {name: array for name, array in old.sections.items() if name != "counts"}
    return old._replace(sections=kept | cells)


def _with_table(old: Contents) -> Contents:
    """Put the table of version 1.3 in place of the version of Python's database; note the change.

    Another version of Unicode than those compared stays, and the reader of the statistics refuses it.
    """
    model = _model(old.header)
    if model.get("unicode") not in _PYTHONS:
        return old
    header = changed(
        old.header,
        "statistics",
        lambda statistics: changed(statistics, "model", lambda tables: tables | {"unicode": _TABLE}),
    )
    if model["unicode"] != _TABLE["version"] and isinstance(header.get("lineage"), list):
        event = {"event": "unicode changed", "before": model["unicode"], "after": _TABLE["version"]}
        header["lineage"] = [*header["lineage"], event]
    return old._replace(header=header)


def _model(header: Tables) -> Tables:
    """Return the settings of the model's statistics, if they have the form of version 1.2."""
    statistics = header.get("statistics")
    model = statistics.get("model") if isinstance(statistics, dict) else None
    return model if isinstance(model, dict) else {}
