"""The arrays of a count store in a snapshot: the checks they must pass, and how rows are read from them.

`CountStore.freeze` documents the arrays. A snapshot may be damaged or forged, so nothing is assumed about
them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamnb.base import HINT, Floats, Section, Sections, check_text, counted, section
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.statistics.budget import DENSE_CLASSES


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
    cell_bounds : ndarray of uint32, shape (T + 1,)
        0, and then the end of each token's cells: its counts above 0.
    cell_classes : ndarray of uint32, shape (cells,)
    cell_counts : ndarray of float64, shape (cells,)
    totals : ndarray of float64, shape (views, C)
    """

    blob: NDArray[np.uint8]
    ends: NDArray[np.uint64]
    views: NDArray[np.uint64]
    cell_bounds: NDArray[np.uint32]
    cell_classes: NDArray[np.uint32]
    cell_counts: Floats
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
    totals = counted(sections, "totals", (n_views, n_classes))
    bounds = section(sections, "token_bounds", np.uint64)
    blob = section(sections, "token_bytes", np.uint8)
    if bounds.shape != (check_cells(sections, n_classes) + 1,) or blob.ndim != 1:
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
    cells = frozen.cell_bounds[1:] - frozen.cell_bounds[:-1]
    if (cells == 0).any():
        raise SnapshotError("A token of the count store has no count above 0.", HINT)
    views = np.repeat(frozen.views.astype(np.int64), cells)
    sums = np.zeros((n_views, n_classes))
    with np.errstate(over="ignore"):  # an overflow gives infinity, which equals no total
        np.add.at(sums, (views, frozen.cell_classes), frozen.cell_counts)
    if not np.allclose(sums, totals, rtol=1e-9, atol=1e-9):
        raise SnapshotError("The totals of the count store are not the sums of its rows.", HINT)
    return frozen


def check_cells(sections: Sections, n_classes: int) -> int:
    """Check the counts themselves, in either of their forms, and return the number of tokens.

    Raises
    ------
    SnapshotError
        A count is negative or not finite, or the cells of a token overlap, are no classes, or do not rise.
    """
    if n_classes <= DENSE_CLASSES:
        return len(counted(sections, "counts", (None, n_classes)))
    bounds, classes = (section(sections, name, np.uint32) for name in ("cell_bounds", "cell_classes"))
    counts = counted(sections, "cell_counts", (None,))
    if (
        bounds.ndim != 1
        or classes.shape != counts.shape
        or not len(bounds)
        or bounds[0] != 0
        or bounds[-1] != len(counts)
        or bool((bounds[1:] < bounds[:-1]).any())
    ):
        raise SnapshotError("The cells of the count store overlap or lie outside their section.", HINT)
    rises = classes[1:] > classes[:-1]
    firsts = bounds[(bounds > 0) & (bounds < len(classes))]
    rises[firsts.astype(np.int64) - 1] = True
    if (len(classes) and classes.max() >= n_classes) or not rises.all() or not counts.all():
        raise SnapshotError("The cells of the count store are not its tokens' counts by class.", HINT)
    return len(bounds) - 1


def arrays_of(rows: Sequence[Sequence[float]], n_classes: int) -> dict[str, Section]:
    """Return the counts of all tokens as the sections that `CountStore.freeze` documents."""
    if n_classes <= DENSE_CLASSES:
        return {"counts": np.array(rows, np.float64).reshape(len(rows), n_classes)}
    cells = [[(c, n) for c, n in enumerate(row) if n] for row in rows]
    bounds = np.zeros(len(rows) + 1, np.uint32)
    np.cumsum([len(row) for row in cells], out=bounds[1:])
    return {
        "cell_bounds": bounds,
        "cell_classes": np.array([c for row in cells for c, _ in row], np.uint32),
        "cell_counts": np.array([n for row in cells for _, n in row], np.float64),
    }


def cells_of(counts: Floats) -> dict[str, Section]:
    """Return the counts of all tokens and classes as the sections of those above 0."""
    tokens, classes = np.nonzero(counts)
    return {
        "cell_bounds": np.searchsorted(tokens, np.arange(len(counts) + 1)).astype(np.uint32),
        "cell_classes": classes.astype(np.uint32),
        "cell_counts": counts[tokens, classes],
    }


def located(sections: Sections) -> Frozen:
    """Return the arrays of sections that are known to be sound, with each token's end and view separated."""
    bounds = section(sections, "token_bounds", np.uint64)
    cells = sections if "cell_counts" in sections else cells_of(section(sections, "counts", np.float64))
    return Frozen(
        blob=section(sections, "token_bytes", np.uint8),
        ends=bounds[1:] >> np.uint64(8),
        views=bounds[1:] & np.uint64(255),
        cell_bounds=section(cells, "cell_bounds", np.uint32),
        cell_classes=section(cells, "cell_classes", np.uint32),
        cell_counts=section(cells, "cell_counts", np.float64),
        totals=section(sections, "totals", np.float64),
    )


def rows_of(frozen: Frozen) -> Iterator[tuple[int, str, list[float]]]:
    """Yield view number, token and counts of each row."""
    blob, start, first = frozen.blob.tobytes(), 0, 0
    for view, end, last in zip(
        frozen.views.tolist(), frozen.ends.tolist(), frozen.cell_bounds[1:].tolist(), strict=True
    ):
        row = [0.0] * frozen.totals.shape[1]
        for c, n in zip(
            frozen.cell_classes[first:last].tolist(), frozen.cell_counts[first:last].tolist(), strict=True
        ):
            row[c] = n
        yield view, blob[start:end].decode(), row
        start, first = end, last


def twice() -> SnapshotError:
    """Return the error for a store in which a token has two rows."""
    return SnapshotError("A token of the count store occurs twice.", HINT)
