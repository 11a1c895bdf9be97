"""The arrays of a count store in a snapshot: the checks they must pass, and how rows are read from them.

`CountStore.freeze` documents the arrays. A snapshot may be damaged or forged, so nothing is assumed about
them here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamnb.base import HINT, Floats, Sections, check_text, counted, section
from streamnb.errors import SnapshotError


class Frozen(NamedTuple):
    """The arrays of a count store, with each token's end and view separated; `CountStore.freeze` has the
    shapes.

    Parameters
    ----------
    blob : ndarray of uint8, shape (B,)
    ends : ndarray of uint64, shape (T,)
        The end of each token in `blob`. A token begins at the end of the one before it.
    views : ndarray of uint64, shape (T,)
        The number of each token's view.
    counts : ndarray of float64, shape (T, C)
    totals : ndarray of float64, shape (views, C)
    """

    blob: NDArray[np.uint8]
    ends: NDArray[np.uint64]
    views: NDArray[np.uint64]
    counts: Floats
    totals: Floats


def checked(sections: Sections, n_views: int, n_classes: int) -> Frozen:
    """Return a count store's arrays, checked: types, shapes, bounds, order, signs, sums and UTF-8.

    A token that occurs twice is not noticed here. The caller puts the tokens into a table, notices it there,
    and raises the error that `twice` returns.

    Raises
    ------
    SnapshotError
        The arrays do not hold a store of that many views and classes.
    """
    counts = counted(sections, "counts", (None, n_classes))
    totals = counted(sections, "totals", (n_views, n_classes))
    bounds = section(sections, "token_bounds", np.uint64)
    blob = section(sections, "token_bytes", np.uint8)
    if bounds.shape != (len(counts) + 1,) or blob.ndim != 1:
        raise SnapshotError("The sections of the count store have different lengths.", HINT)
    frozen = located(sections)
    ends = bounds >> np.uint64(8)
    if (
        bounds[0] != 0
        or ends[-1] != len(blob)
        or bool((ends[1:] < ends[:-1]).any())
        or bool((frozen.views >= n_views).any())
    ):
        raise SnapshotError("The tokens of the count store overlap or lie outside their section.", HINT)
    check_text(blob, frozen.ends)
    if not counts.any(axis=1).all():
        raise SnapshotError("A token of the count store has no count above 0.", HINT)
    for view in range(n_views):
        with np.errstate(over="ignore"):  # an overflow gives infinity, which equals no total
            sums = counts[frozen.views == view].sum(axis=0)
        if not np.allclose(sums, totals[view], rtol=1e-9, atol=1e-9):
            raise SnapshotError("The totals of the count store are not the sums of its rows.", HINT)
    return frozen


def located(sections: Sections) -> Frozen:
    """Return the arrays of sections that are known to be sound, with each token's end and view separated."""
    bounds = section(sections, "token_bounds", np.uint64)
    return Frozen(
        blob=section(sections, "token_bytes", np.uint8),
        ends=bounds[1:] >> np.uint64(8),
        views=bounds[1:] & np.uint64(255),
        counts=section(sections, "counts", np.float64),
        totals=section(sections, "totals", np.float64),
    )


def rows_of(frozen: Frozen) -> Iterator[tuple[int, str, list[float]]]:
    """Yield view number, token and counts of each row."""
    blob, start = frozen.blob.tobytes(), 0
    for view, end, row in zip(
        frozen.views.tolist(), frozen.ends.tolist(), frozen.counts.tolist(), strict=True
    ):
        yield view, blob[start:end].decode(), row
        start = end


def twice() -> SnapshotError:
    """Return the error for a store in which a token has two rows."""
    return SnapshotError("A token of the count store occurs twice.", HINT)
