"""Forgetting by half-life: the older a message, the less it weighs (forward decay; Cormode, Shkapenyuk,
Srivastava and Xu 2009).

Nothing that was counted is ever touched again: a message of time t is counted with ``g(t) = 2^((t - L) / h)``
times its weight, and whatever is scored at t has every pseudo-count multiplied by g(t) too, so that the
quotients are those of sums in which each message has halved once every h. It costs O(1) a message, and sums
over parts of a stream still add up.

Time is the record's own, or the number of messages learned; no other clock is ever looked at. The landmark L
is a whole number of half-lives, so that moving it multiplies every sum by a power of two, which is exact.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Self

import msgspec
import numpy as np

from streamnb.base import HINT
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.statistics.digest import Digest, name

SHIFT_AFTER = 64  # half-lives past the landmark it moves, long before a sum could overflow
OLDEST = 50  # half-lives before the landmark: what is older counts as if it were from then
FAR = 64  # half-lives past SHIFT_AFTER: to a message scored so late, all that is known is forgotten
TIME_MAX_S = 1e12  # 30,000 years
HALF_LIFE_S_MIN = 1e-3  # with that, every time is a number of half-lives that a float can tell apart


class Forgetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How fast a model forgets; by default it does not.

    Parameters
    ----------
    half_life_s : float, optional
        Seconds after which a message weighs half, by the records' own timestamps.
    half_life_messages : float, optional
        The same, in messages learned since.
    time_skew_max_s : float
        A record's time counts as at most so far past the newest of its partition: one wrong clock must not
        age everything.

    Raises
    ------
    ValueError
        Both half-lives are given, or a number is out of its range.

    Examples
    --------
    >>> Forgetting(half_life_s=86400.0).is_on, Forgetting().is_on
    (True, False)
    """

    half_life_s: float | None = None
    half_life_messages: float | None = None
    time_skew_max_s: float = 3600.0

    def __post_init__(self) -> None:
        """Validate the half-life."""
        if self.half_life_s is not None and self.half_life_messages is not None:
            raise ValueError("a half-life is in seconds or in messages, not both")
        if self.half_life_s is not None and not HALF_LIFE_S_MIN <= self.half_life_s <= TIME_MAX_S:
            raise ValueError(f"`half_life_s` must be from 0.001 to 1e12, not {self.half_life_s!r}")
        if self.half_life_messages is not None and not 1.0 <= self.half_life_messages <= TIME_MAX_S:
            raise ValueError(f"`half_life_messages` must be from 1 to 1e12, not {self.half_life_messages!r}")
        if not 0.0 <= self.time_skew_max_s <= TIME_MAX_S:
            raise ValueError(f"`time_skew_max_s` must be from 0 to 1e12, not {self.time_skew_max_s!r}")

    @property
    def is_on(self) -> bool:
        """Whether there is a half-life."""
        return self.half_life_s is not None or self.half_life_messages is not None


class Decay:
    """Where a model stands in time, and what a message weighs there.

    An *instant* is a time in half-lives, since 1970 or since the first message.

    Parameters
    ----------
    settings : Forgetting
        With a half-life.

    Attributes
    ----------
    landmark : int or None
        L, in half-lives; ``None`` before anything was learned.
    newest_s : dict of str to float
        Of each partition, by event time.
    position : int
        Messages learned, by position.
    head_at : float or None
        The instant up to which the head's accumulators have faded.

    Examples
    --------
    >>> decay = Decay(Forgetting(half_life_s=10.0))
    >>> decay.shift_for(decay.instant(1000.0)), decay.landmark
    (0, 100)
    >>> decay.scale(decay.instant(1000.0)), decay.scale(decay.instant(1020.0))
    (1.0, 4.0)
    """

    __slots__ = ("by_time", "half_life", "head_at", "landmark", "newest_s", "position", "settings")

    def __init__(self, settings: Forgetting) -> None:
        self.settings = settings
        self.by_time = settings.half_life_s is not None
        half_life = settings.half_life_s if self.by_time else settings.half_life_messages
        assert half_life is not None
        self.half_life = float(half_life)
        self.landmark: int | None = None
        self.newest_s: dict[str, float] = {}
        self.position = 0
        self.head_at: float | None = None

    def now(self, partition: str = "") -> float:
        """The instant of a message that has no time of its own: as new as the newest of its partition."""
        if not self.by_time:
            return self.position / self.half_life
        newest = self.newest_s.get(partition)
        if newest is None:
            newest = max(self.newest_s.values(), default=0.0)
        return self._not_before(newest / self.half_life)

    def instant(self, at: float | None, partition: str = "") -> float:
        """The instant of a message, its time clamped; ``None`` is `now`.

        Parameters
        ----------
        at : float or None
            Seconds since 1970, or the number of messages learned before it.
        """
        if at is None:
            return self.now(partition)
        if not self.by_time:
            return at / self.half_life
        return self._not_before(self._not_past_newest(at, partition) / self.half_life)

    def saw(self, at: float | None, partition: str = "") -> None:
        """A message came, labelled or not: its partition's newest time may be later now."""
        if self.by_time and at is not None:
            at = self._not_past_newest(at, partition)
            self.newest_s[partition] = max(at, self.newest_s.get(partition, at))

    def scale(self, instant: float) -> float:
        """g: what a message of weight 1 counts at an instant, and a pseudo-count there."""
        whole = math.floor(instant)
        landmark = whole if self.landmark is None else self.landmark
        # The fraction alone is rounded: another landmark gives the same bits, times a power of two.
        return math.ldexp(math.exp2(instant - whole), min(whole - landmark, SHIFT_AFTER + FAR))

    def shift_for(self, instant: float) -> int:
        """By how many half-lives the landmark moves before a message of that instant is learned."""
        whole = math.floor(instant)
        if self.landmark is None:
            self.landmark = whole
        shift = whole - self.landmark
        if shift < SHIFT_AFTER:
            return 0
        self.landmark = whole
        return shift

    def fade_of_head(self, instant: float) -> float:
        """What is left of the head's accumulators, which last faded at an earlier instant; up to now."""
        since = 0.0 if self.head_at is None else max(0.0, instant - self.head_at)
        self.head_at = instant if self.head_at is None else max(self.head_at, instant)
        return math.exp2(-since)

    def times_of(self, times: Sequence[object] | None, labels: Sequence[object]) -> list[float | None]:
        """A batch's times, checked.

        Raises
        ------
        ValueError
            A time is not a finite number within 1e12, or there are none for messages to be learned.
        """
        if not self.by_time:
            return [None] * len(labels)
        if times is None:
            if any(label is not None for label in labels):
                raise ValueError("a model with `half_life_s` learns messages that have a time: give `at`")
            return [None] * len(labels)
        if len(times) != len(labels):
            raise ValueError(f"{len(times)} times were given for {len(labels)} messages")
        return [None if at is None else seconds(at) for at in times]

    def _not_past_newest(self, at: float, partition: str) -> float:
        newest = self.newest_s.get(partition)
        return at if newest is None else min(at, newest + self.settings.time_skew_max_s)

    def _not_before(self, instant: float) -> float:
        return instant if self.landmark is None else max(instant, float(self.landmark - OLDEST))

    # ---- snapshots and sums

    def copy(self) -> Self:
        """One that goes its own way."""
        other = copy.copy(self)
        other.newest_s = dict(self.newest_s)
        return other

    def factor_to(self, landmark: int) -> float:
        """What sums here are multiplied by to stand at another landmark."""
        return 1.0 if self.landmark is None else math.ldexp(1.0, min(self.landmark - landmark, FAR))

    def factor_of(self, other: Decay) -> float:
        """What another's sums are multiplied by to stand where these do.

        By position the other is taken as of its own end: the place of its messages among ours is not known.
        """
        if self.landmark is None or other.landmark is None:
            return 1.0
        if not self.by_time:
            return self.scale(self.now()) / other.scale(other.now())
        return other.factor_to(self.landmark)

    def meet(self, other: Decay) -> float:
        """Move to where both stand, before sums are added up; returns what those here are multiplied by.

        By time that is the earlier landmark: moving to it takes nothing away, and it is where one model of
        both streams would stand; unless that model would have moved on.
        """
        factor = 1.0
        if self.landmark is None:
            self.landmark, self.position, self.head_at = other.landmark, other.position, other.head_at
        elif self.by_time and other.landmark is not None:
            early, late = sorted((self.landmark, other.landmark))
            landmark = early if late - early < SHIFT_AFTER else late
            factor, self.landmark = self.factor_to(landmark), landmark
            if other.head_at is not None:
                self.head_at = other.head_at if self.head_at is None else max(self.head_at, other.head_at)
        for partition, newest in other.newest_s.items():
            self.newest_s[partition] = max(newest, self.newest_s.get(partition, newest))
        return factor

    def digest(self) -> Digest:
        """The digest of where it stands."""
        digest = Digest()
        if self.landmark is not None:
            digest.add(name("landmark"), float(self.landmark), float(self.position))
        if self.head_at is not None:
            digest.add(name("head_at"), self.head_at)
        for partition, newest in self.newest_s.items():
            digest.add(name("newest", partition), newest)
        return digest

    def freeze(self) -> dict[str, object]:
        """Where it stands, as JSON says it: a landmark in half-lives, times in seconds by partition."""
        return {
            "landmark": self.landmark,
            "newest_s": dict(self.newest_s),
            "position": self.position,
            "head_at": self.head_at,
        }

    def restore(self, value: object) -> None:
        """Take the place of what `freeze` gave, checked.

        Raises
        ------
        SnapshotError
            It is not a place in time; nothing was changed.
        """
        try:
            place = msgspec.convert(value, _Place)
        except msgspec.ValidationError as error:
            raise SnapshotError(f"The state does not say where it stands in time: {error}.", HINT) from error
        instants = [float(place.landmark or 0), place.head_at or 0.0]
        instants += [at / self.half_life for at in place.newest_s.values()]
        if place.position < 0 or not all(abs(instant) < _INSTANT_MAX for instant in instants):
            raise SnapshotError("The state stands at a time that no stream can have.", HINT)
        self.landmark, self.newest_s = place.landmark, place.newest_s
        self.position, self.head_at = place.position, place.head_at


class _Place(msgspec.Struct, forbid_unknown_fields=True):
    """What `Decay.freeze` gives."""

    landmark: int | None
    newest_s: dict[str, float]
    position: int
    head_at: float | None


_INSTANT_MAX = 2.0 * TIME_MAX_S / HALF_LIFE_S_MIN


def seconds(at: object) -> float:
    """A time as a float.

    Raises
    ------
    ValueError
        It is not a finite number within 1e12.
    """
    value = at.item() if isinstance(at, np.generic) else at
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= TIME_MAX_S:
        raise ValueError(f"a time must be seconds since 1970 within 1e12, not {at!r}")
    return float(value)
