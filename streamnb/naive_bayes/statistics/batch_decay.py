"""`Plan`: the decay weight of each message of a batch, computed before the compiled driver runs the batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streamnb.base import Floats
from streamnb.naive_bayes.statistics.forgetting import SHIFT_AFTER, Decay

MANY = 16  # from this many messages on, arrays are faster than a loop


def _at_one_landmark(decay: Decay, learned: Sequence[bool]) -> Floats | None:
    """Return the plan of a batch by position, or ``None`` if the landmark would move during the batch.

    All messages are computed at once, by the same operations as one by one. `decay` is moved to the end of
    the batch.
    """
    taught = np.array(learned, np.int64)
    instants = (decay.position + np.cumsum(taught) - taught) / decay.half_life
    whole = np.floor(instants)
    landmark = int(whole[0]) if decay.landmark is None else decay.landmark
    if whole[-1] - landmark >= SHIFT_AFTER:
        return None
    parts = list(map(math.exp2, (instants - whole).tolist()))
    scales = np.ldexp(parts, (whole - landmark).astype(np.int64))
    if taught.any():
        decay.landmark = landmark
        decay.position += int(taught.sum())
    return np.array((instants, scales, scales, np.zeros(len(scales))))


class Plan:
    """The decay weight of each message of a batch, computed before the batch runs. `decay` itself is not
    changed.

    Parameters
    ----------
    decay : Decay
    learned : sequence of bool
        Which messages will be learned.
    times : sequence of float or None
    partition : str
    learns : bool
        Whether the batch may change the state. If not, the newest time of the partition stays as it is.

    Attributes
    ----------
    ages : ndarray of float64, shape (4, n)
        Per message: its instant; the factor for pseudo-counts when it is scored; the factor for its weight
        when it is learned; by how many half-lives the landmark moves just before it is learned.
    after : Decay
        The position in time after the batch.
    """

    def __init__(
        self,
        decay: Decay,
        learned: Sequence[bool],
        times: Sequence[float | None],
        partition: str,
        *,
        learns: bool,
    ) -> None:
        self.after = after = decay.copy()
        if not decay.by_time and len(times) >= MANY and times.count(None) == len(times):
            even = _at_one_landmark(after, learned)
            if even is not None:
                self.ages: Floats = even
                return
        instants, scales, grown, shifts = [], [], [], []
        for at, is_learned in zip(times, learned, strict=True):
            instant = after.instant(at, partition)
            if learns and at is not None:
                after.saw(at, partition)
            scale, shift = after.scale(instant), 0
            instants.append(instant)
            scales.append(scale)
            if is_learned:
                shift = after.shift_for(instant)
                after.position += 1
            grown.append(after.scale(instant) if shift else scale)
            shifts.append(shift)
        self.ages = np.array((instants, scales, grown, shifts), np.float64)
