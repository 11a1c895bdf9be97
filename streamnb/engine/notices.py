"""Log lines about records that were refused, cut or not learned: the first of each kind, then counts.

The first one is logged with its address and its cause, at once. A stream may hold millions more, so those are
counted, and the counts are logged once a minute and at the end of the run.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field

from streamnb.base import Clock

INTERVAL_S = 60.0
_log = logging.getLogger("streamnb.engine")


@dataclass(eq=False, repr=False)
class Notices:
    """The notices about one subject.

    Parameters
    ----------
    subject : str
        What is counted, in the plural: "dead letters".
    clock : Clock

    Attributes
    ----------
    totals : Counter of str
        How many of each kind there were in this run.

    Examples
    --------
    >>> from streamnb.engine import SystemClock
    >>> notices = Notices("dead letters", SystemClock())
    >>> for offset in range(3):
    ...     notices.note("schema", f"mail-0 @ {offset}", "The record is an array, not a JSON object.")
    >>> str(notices)
    '3 schema (first mail-0 @ 0: The record is an array, not a JSON object.)'
    """

    subject: str
    clock: Clock
    totals: Counter[str] = field(default_factory=Counter, init=False)
    _firsts: dict[str, str] = field(default_factory=dict, init=False)
    _logged: Counter[str] = field(default_factory=Counter, init=False)
    _since_s: float = field(default=0.0, init=False)

    def note(self, kind: str, where: str, detail: str, n: int = 1) -> None:
        """Count `n` of a kind, and log the first of the run.

        Parameters
        ----------
        kind : str
            One of a few words: each has a line in the log.
        where : str
            The address of the first record.
        detail : str
            One sentence on the first record.
        n : int
        """
        if not self.totals:
            self._since_s = self.clock.monotonic_s()
        if kind not in self.totals:
            self._firsts[kind] = f"{where}: {detail}"
            self._logged[kind] = 1
            _log.warning("%s, %s: the first is %s", self.subject, kind, self._firsts[kind])
        self.totals[kind] += n

    def tend(self) -> None:
        """Log how many there were of each kind, if a minute has passed since the last time."""
        if self.totals and self.clock.monotonic_s() >= self._since_s + INTERVAL_S:
            self.finish()

    def finish(self) -> None:
        """Log how many there were of each kind since the last time, without the first ones."""
        now_s = self.clock.monotonic_s()
        if new := self.totals - self._logged:
            counts = ", ".join(f"{n:,} {kind}" for kind, n in new.most_common())
            _log.warning("%s, further ones in %.0f s: %s", self.subject, now_s - self._since_s, counts)
        self._logged, self._since_s = self.totals.copy(), now_s

    def __str__(self) -> str:
        """Return the number of each kind in this run, with its first record."""
        return "; ".join(
            f"{n:,} {kind} (first {self._firsts[kind]})" for kind, n in self.totals.most_common()
        )
