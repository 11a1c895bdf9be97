"""Rows of scores as they are made, and the columns they become."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streamnb.columns import Floats, Label, Scores


class ScoreRows:
    """Collects one row a message; rows may be of different lengths, as classes appear."""

    def __init__(self) -> None:
        self._posterior: list[Sequence[float]] = []
        self._log_odds: list[Sequence[float]] = []
        self._u: list[Sequence[float]] = []
        self._raw: list[Sequence[float]] = []
        self._explanations: list[dict[str, object] | None] = []
        self._numbers: list[tuple[int, int, int, int, int]] = []

    def append(
        self,
        *,
        posterior: Sequence[float],
        log_odds: Sequence[float],
        u: Sequence[float],
        raw: Sequence[float] | None,
        known: int,
        unknown: int,
        learned: int,
        flags: int,
        explanation: dict[str, object] | None = None,
    ) -> None:
        """Add the scores of the next message; `raw` for every row or for none."""
        self._posterior.append(posterior)
        self._log_odds.append(log_odds)
        self._u.append(u)
        if raw is not None:
            self._raw.append(raw)
        self._explanations.append(explanation)
        self._numbers.append((len(posterior), known, unknown, learned, flags))

    def append_unscored(self, learned: int, flags: int) -> None:
        """Add the row of a message that was only learned."""
        self.append(
            posterior=(), log_odds=(), u=(), raw=None, known=0, unknown=0, learned=learned, flags=flags
        )

    def scores(self, classes: tuple[Label, ...]) -> Scores:
        """The columns, as wide as there are classes."""
        width = len(classes)
        n_classes, known, unknown, learned, flags = (
            np.array(self._numbers, np.int64).reshape(len(self._numbers), 5).T
        )
        return Scores(
            classes=classes,
            n_classes=n_classes,
            posterior=_padded(self._posterior, width, 0.0),
            log_odds=_padded(self._log_odds, width, math.nan),
            u=_padded(self._u, width, math.nan),
            raw_posterior=_padded(self._raw, width, math.nan) if self._raw else None,
            known_tokens=known,
            unknown_tokens=unknown,
            learned=learned,
            flags=flags,
            explanations=self._explanations if any(self._explanations) else None,
        )


def _padded(rows: Sequence[Sequence[float]], width: int, filler: float) -> Floats:
    full = [list(row) + [filler] * (width - len(row)) for row in rows]
    return np.array(full, np.float64).reshape(len(rows), width)
