"""`ScoreRows`: the builder of `Scores`, for a model that scores one message after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streamnb.base.batch import Floats, Label, Scores


class ScoreRows:
    """Builds `Scores` row by row; rows get longer as classes appear.

    Parameters
    ----------
    raw : bool
        Whether the rows carry a raw posterior. A parameter, because an empty batch has no row to show it.
    """

    def __init__(self, *, raw: bool = False) -> None:
        self._has_raw = raw
        self._posterior: list[Sequence[float]] = []
        self._log_odds: list[Sequence[float]] = []
        self._u: list[Sequence[float]] = []
        self._raw: list[Sequence[float]] = []
        self._learned_by_class: list[Sequence[float]] = []
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
        learned_by_class: Sequence[float],
        flags: int,
        explanation: dict[str, object] | None = None,
    ) -> None:
        """Add the scores of the next message. Give `raw` for every row or for none."""
        self._posterior.append(posterior)
        self._log_odds.append(log_odds)
        self._u.append(u)
        if raw is not None:
            self._raw.append(raw)
        self._learned_by_class.append(tuple(learned_by_class))
        self._explanations.append(explanation)
        self._numbers.append((len(posterior), known, unknown, learned, flags))

    def append_unscored(self, learned: int, flags: int) -> None:
        """Add the row of a message that was learned without being scored."""
        self.append(
            posterior=(),
            log_odds=(),
            u=(),
            raw=None,
            known=0,
            unknown=0,
            learned=learned,
            learned_by_class=(),
            flags=flags,
        )

    @property
    def last_posterior(self) -> Sequence[float]:
        """The posterior of the last message."""
        return self._posterior[-1]

    def scores(self, classes: tuple[Label, ...]) -> Scores:
        """Return the collected rows as `Scores`, padded to one column per class."""
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
            raw_posterior=_padded(self._raw, width, math.nan) if self._has_raw else None,
            known_tokens=known,
            unknown_tokens=unknown,
            learned=learned,
            learned_by_class=_padded(self._learned_by_class, width, 0.0),
            flags=flags,
            explanations=self._explanations if any(self._explanations) else None,
        )


def _padded(rows: Sequence[Sequence[float]], width: int, filler: float) -> Floats:
    full = [list(row) + [filler] * (width - len(row)) for row in rows]
    return np.array(full, np.float64).reshape(len(rows), width)
