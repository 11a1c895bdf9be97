"""Plan: what each message of a batch weighs, worked out before the batch runs, for the compiled driver."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streamnb.base import Floats
from streamnb.naive_bayes.statistics.forgetting import SHIFT_AFTER, Decay

MANY = 16  # messages that are worth arrays


def _at_one_landmark(decay: Decay, learned: Sequence[bool]) -> Floats | None:
    """A plan by position, all messages at once, while the landmark stays; the same operations on each."""
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
    """What each message of a batch weighs, worked out before the batch runs; the state is not changed.

    Parameters
    ----------
    decay : Decay
    learned : sequence of bool
        Which messages will be learned.
    times : sequence of float or None
    partition : str
    learns : bool
        Off, every message is scored where the model stands.

    Attributes
    ----------
    ages : ndarray of float64, shape (4, n)
        Of each message: its instant; what pseudo-counts are multiplied by; what its weight is multiplied by
        when it is learned; by how many half-lives the landmark moves just before that.
    after : Decay
        Where the model stands after the batch.
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
