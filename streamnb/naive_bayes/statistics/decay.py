"""Sums on the other side of a move of the landmark: all are multiplied, and what is next to nothing goes."""

from __future__ import annotations

from collections.abc import Sequence

FORGOTTEN = 2.0**-32  # of a message: what counts less when the landmark moves is let go of


def faded(value: float, factor: float) -> float:
    """A sum on the other side of a move of the landmark; nothing where too little is left of it."""
    value *= factor
    return value if value >= FORGOTTEN or factor >= 1.0 else 0.0


def fade_rows(rows: dict[str, list[float]], totals: list[float], factor: float) -> None:
    """Fade the counts of a view; tokens of which nothing is left go, and totals are summed anew.

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
    """Fade sums per class, the first column being weights: a class of which too little is left has none.

    That is half of what a token needs, so that rounding cannot leave a token without its class.
    """
    for c, n in enumerate(columns[0]):
        left = n * factor >= FORGOTTEN / 2 or factor >= 1.0
        for column in columns:
            column[c] = column[c] * factor if left else 0.0
