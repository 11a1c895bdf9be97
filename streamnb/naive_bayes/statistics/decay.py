"""Rescale sums when the decay landmark moves, and drop entries whose weight has become negligible.

A model that forgets counts a message with a weight relative to a landmark in time (see `forgetting`). When
the landmark moves, every sum is multiplied by the same factor. Entries that fall below `FORGOTTEN` are
dropped, so that old tokens leave the vocabulary; classes stay. A factor of 1 or more drops nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

WEIGHT_ROUNDING = 1e-9  # relative: how far a sum may fall short of the same weights added in another order
FORGOTTEN = 2.0**-32  # of a message's weight: smaller counts are dropped when the landmark moves
CLASS_WEIGHT_MIN = 2.0**-190  # a class is never forgotten as a whole; a snapshot may hold no smaller weight


def faded(value: float, factor: float) -> float:
    """Return a sum multiplied by `factor`, or 0 if that is below `FORGOTTEN`."""
    value *= factor
    return value if value >= FORGOTTEN or factor >= 1.0 else 0.0


def to_subtract(held: float, amount: float, *, rounded: bool) -> float:
    """Return the amount to subtract from a sum: at most `held`.

    If the sums are rounded, because they decay, it is exactly `held` where only rounding error would remain.
    """
    if rounded and held <= amount * (1 + WEIGHT_ROUNDING):
        return held
    return min(held, amount)


def fade_rows(rows: dict[str, list[float]], totals: list[float], factor: float) -> None:
    """Rescale the counts of a view in place, drop tokens without counts, and sum the totals again.

    The totals are sums of the remaining counts: multiplying them would keep the weight of what was dropped.

    Examples
    --------
    >>> rows, totals = {"free": [8.0, 0.0], "old": [1.0, 2.0**-30]}, [9.0, 2.0**-30]
    >>> fade_rows(rows, totals, 2.0**-34)
    >>> rows, totals
    ({'free': [4.656612873077393e-10, 0.0]}, [4.656612873077393e-10, 0.0])
    """
    for row in rows.values():
        row[:] = [faded(count, factor) for count in row]
    for token in [token for token, row in rows.items() if not any(row)]:
        del rows[token]
    for c in range(len(totals)):
        total = 0.0
        for row in rows.values():
            total += row[c]
        totals[c] = total


def fade_sums(columns: Sequence[list[float]], factor: float) -> None:
    """Rescale sums per class in place; the first column holds the weights.

    A class is set to 0 in every column if its weight falls below ``FORGOTTEN / 2``.
    """
    for c, n in enumerate(columns[0]):
        is_kept = n * factor >= FORGOTTEN / 2 or factor >= 1.0
        for column in columns:
            column[c] = column[c] * factor if is_kept else 0.0


def fade_classes(columns: Sequence[list[float]], factor: float) -> None:
    """Rescale sums over all messages of a class in place; the first column holds the weights.

    A class that was labelled keeps a weight of at least `CLASS_WEIGHT_MIN`, and its other sums in proportion
    to it. Without any weight it would count as never labelled, and the share of such a class in the posterior
    is larger than what a forgotten class had.
    """
    for c, n in enumerate(columns[0]):
        kept = factor if n * factor >= CLASS_WEIGHT_MIN or n == 0.0 else CLASS_WEIGHT_MIN / n
        for column in columns:
            column[c] = column[c] * kept
