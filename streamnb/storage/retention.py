"""The rule for which snapshots stay: the newest few, the first of each recent hour, and pinned ones.

The newest are for restarts. The hourly ones are for the case that bad labels are noticed hours later:
`streamnb snapshot rollback` goes back to one from before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

_HOUR_MS = 3_600_000


class Listed(NamedTuple):
    """A snapshot in a directory.

    Parameters
    ----------
    sequence : int
    written_ms : int
        Milliseconds since 1970.
    pinned : bool
    """

    sequence: int
    written_ms: int
    pinned: bool = False


def expired(listed: Iterable[Listed], keep: int, keep_hours: int) -> Sequence[int]:
    """Return the numbers of the snapshots that need not stay, oldest first.

    Hours are counted back from the newest snapshot, not from now, so a jump of the clock while no snapshot is
    written expires none.

    Parameters
    ----------
    listed : iterable of Listed
    keep : int
        How many of the newest stay, at least 1.
    keep_hours : int
        For how many hours back the first snapshot of each hour stays.

    Examples
    --------
    >>> every_20_minutes = [Listed(n, n * 1_200_000) for n in range(10)]
    >>> expired(every_20_minutes, keep=2, keep_hours=2)
    [0, 1, 2, 3, 4, 5, 7]
    """
    ordered = sorted(listed)
    if not ordered:
        return []
    stay = {one.sequence for one in ordered[-keep:]} | {one.sequence for one in ordered if one.pinned}
    first_of_hour: dict[int, int] = {}
    for one in ordered:
        first_of_hour.setdefault(one.written_ms // _HOUR_MS, one.sequence)
    newest_hour = ordered[-1].written_ms // _HOUR_MS
    stay |= {
        number for hour, number in first_of_hour.items() if newest_hour - keep_hours < hour <= newest_hour
    }
    return [one.sequence for one in ordered if one.sequence not in stay]
