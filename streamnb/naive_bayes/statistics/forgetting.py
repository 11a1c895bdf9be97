"""Forgetting by half-life: the older a message, the less it weighs.

The method is forward decay (Cormode, Shkapenyuk, Srivastava and Xu 2009). A message of time t is counted with
its weight times ``g(t) = 2^((t - L) / h)``, where h is the half-life and L a landmark in time. Old counts are
not multiplied down; newer messages weigh more instead. When a message of time t is scored, every pseudo-count
is multiplied by g(t) as well. Estimates are quotients of such sums, and g(t) cancels in them, so they equal
the estimates from counts that halve every h. This costs O(1) per message, and sums over parts of a stream
still add up.

Time is the record's own timestamp, or the number of messages learned; no clock is read. The landmark is a
whole number of half-lives, so moving it multiplies every sum by a power of two, which is exact.

A timestamp may be wrong, and a jump of time cannot be undone: what has faded is gone. So a record far past
the newest of its partition (of all partitions, if it is the first of its own) does not move the newest time.
But a stream may also pause for a night. What follows tells the two apart: after a pause, no record has a time
near the newest any more. So a *run* of early records that no such record interrupts does move it, to the
earliest of the run. If that is a half-lives ahead, 2^-a of what was learned would be left, and the run must
have 2^a records, at least 2 and at most 1,024.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Self

import msgspec
import numpy as np

from streamnb.base import HINT, TIME_MAX_S, Digest, statement
from streamnb.errors import SnapshotError

SHIFT_AFTER = 64  # a message this many half-lives past the landmark moves it, before a sum could overflow
OLDEST = 50  # half-lives before the landmark; an older message counts as if it were this old
FAR = 64  # half-lives past SHIFT_AFTER at which g(t) stops growing: everything learned is forgotten by then
RUN_HALF_LIVES = 10.0  # a run of 2^10 records moves the newest time, however far
HALF_LIFE_S_MIN = 1e-3  # so that a time in half-lives stays below 2^53 and its whole part is exact


class Forgetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How fast a model forgets; by default it does not.

    Parameters
    ----------
    half_life_s : float, optional
        Seconds after which a message weighs half, by the records' own timestamps.
    half_life_messages : float, optional
        The same, in messages learned since.
    time_skew_max_s : float
        A record's time counts as at most so far past the newest of its partition, and a later one does not
        become the newest before others confirm it: one wrong clock must not age everything.

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
    time_skew_max_s: float = (
        3600.0  # not a file's to set: Kafka's own limit for a producer's clock is the same
    )

    def __post_init__(self) -> None:
        """Check that the settings are in range and that at most one half-life is given."""
        if self.half_life_s is not None and self.half_life_messages is not None:
            raise ValueError("give either `half_life_s` or `half_life_messages`, not both")
        if self.half_life_s is not None and not HALF_LIFE_S_MIN <= self.half_life_s <= TIME_MAX_S:
            raise ValueError(f"`half_life_s` must be from 0.001 to 1e12, not {self.half_life_s!r}")
        if self.half_life_messages is not None and not 1.0 <= self.half_life_messages <= TIME_MAX_S:
            raise ValueError(f"`half_life_messages` must be from 1 to 1e12, not {self.half_life_messages!r}")
        if not 0.0 <= self.time_skew_max_s <= TIME_MAX_S:
            raise ValueError(f"`time_skew_max_s` must be from 0 to 1e12, not {self.time_skew_max_s!r}")
        for name in ("half_life_s", "half_life_messages", "time_skew_max_s"):
            if (value := getattr(self, name)) is not None:  # 60 becomes 60.0, also as the text of a snapshot
                msgspec.structs.force_setattr(self, name, float(value))

    @property
    def is_on(self) -> bool:
        """Whether a half-life is set."""
        return self.half_life_s is not None or self.half_life_messages is not None


class Decay:
    """The position of a model in time: it converts the time of a message into the weight it is counted with.

    An *instant* is a time in half-lives, since 1970 or since the first message.

    Parameters
    ----------
    settings : Forgetting
        Must have a half-life.

    Attributes
    ----------
    landmark : int or None
        L, in half-lives; ``None`` before anything was learned.
    newest_s : dict of str to float
        The newest plausible timestamp of each partition; used with a half-life in seconds.
    ahead : dict of str to (int, float)
        Per partition, the run of records too far past the newest: their number, their earliest timestamp.
    position : int
        Number of messages learned; used as the time with a half-life in messages.
    head_at : float or None
        The instant to which the head's accumulators have been decayed.

    Examples
    --------
    >>> decay = Decay(Forgetting(half_life_s=10.0))
    >>> decay.shift_for(decay.instant(1000.0)), decay.landmark
    (0, 100)
    >>> decay.scale(decay.instant(1000.0)), decay.scale(decay.instant(1020.0))
    (1.0, 4.0)
    """

    __slots__ = ("ahead", "by_time", "half_life", "head_at", "landmark", "newest_s", "position", "settings")

    def __init__(self, settings: Forgetting) -> None:
        self.settings = settings
        self.by_time = settings.half_life_s is not None
        half_life = settings.half_life_s if self.by_time else settings.half_life_messages
        assert half_life is not None
        self.half_life = float(half_life)
        self.landmark: int | None = None
        self.newest_s: dict[str, float] = {}
        self.ahead: dict[str, tuple[int, float]] = {}
        self.position = 0
        self.head_at: float | None = None

    def now(self, partition: str = "") -> float:
        """Return the instant of a message without a time: that of the newest message of its partition.

        With a half-life in messages it follows from the number of messages learned so far.
        """
        if not self.by_time:
            return self.position / self.half_life
        newest = self.newest_s.get(partition)
        if newest is None:
            newest = max(self.newest_s.values(), default=0.0)
        if partition in self.ahead:  # the newest message counted as this far ahead
            newest += self.settings.time_skew_max_s
        return self._not_before(newest / self.half_life)

    def instant(self, at: float | None, partition: str = "") -> float:
        """Return the instant of a message, its time clamped to what is plausible; for ``None`` it is `now`.

        A time counts as at most `time_skew_max_s` past the newest of its partition and at least `OLDEST`
        half-lives before the landmark.

        Parameters
        ----------
        at : float or None
            Seconds since 1970, or the number of messages that were learned before this one.
        """
        if at is None:
            return self.now(partition)
        if not self.by_time:
            return at / self.half_life
        plausible, _, _ = self._place(at, partition)
        return self._not_before(plausible / self.half_life)

    def saw(self, at: float | None, partition: str = "") -> None:
        """Note the time of a message, labelled or not: it may move the newest of its partition."""
        if not self.by_time or at is None:
            return
        _, newest, run = self._place(at, partition)
        if newest is not None:
            self.newest_s[partition] = newest
        if run is not None:
            self.ahead[partition] = run
        else:
            self.ahead.pop(partition, None)

    def scale(self, instant: float) -> float:
        """Return g at an instant: the factor for a message's weight and for the pseudo-counts there."""
        whole = math.floor(instant)
        landmark = whole if self.landmark is None else self.landmark
        # Only 2^fraction is rounded. The rest is a power of two: another landmark changes only the exponent.
        return math.ldexp(math.exp2(instant - whole), min(whole - landmark, SHIFT_AFTER + FAR))

    def shift_for(self, instant: float) -> int:
        """Move the landmark if a message of this instant needs it; return by how many half-lives it moved.

        The caller must then multiply every sum by 2 to the power of minus that number, before the message is
        learned.
        """
        whole = math.floor(instant)
        if self.landmark is None:
            self.landmark = whole
        shift = whole - self.landmark
        if shift < SHIFT_AFTER:
            return 0
        self.landmark = whole
        return shift

    def fade_of_head(self, instant: float) -> float:
        """Return the factor by which the head's accumulators decay up to an instant, and move `head_at`."""
        since = 0.0 if self.head_at is None else max(0.0, instant - self.head_at)
        self.head_at = instant if self.head_at is None else max(self.head_at, instant)
        return math.exp2(-since)

    def times_of(self, times: Sequence[object] | None, labels: Sequence[object]) -> list[float | None]:
        """Return the times of a batch as floats, after checking them.

        Raises
        ------
        ValueError
            A time is not a finite number within 1e12, or messages are to be learned and no times are given.
        """
        if not self.by_time:
            return [None] * len(labels)
        if times is None:
            if any(label is not None for label in labels):
                raise ValueError(
                    "a model with `half_life_s` needs the time of each message it learns: give `at`"
                )
            return [None] * len(labels)
        if len(times) != len(labels):
            raise ValueError(f"{len(times)} times were given for {len(labels)} messages")
        return [None if at is None else seconds(at) for at in times]

    def _place(self, at: float, partition: str) -> tuple[float, float | None, tuple[int, float] | None]:
        """Return the time that a record counts as, and the newest time and the run of its partition after it.

        The newest time is ``None`` in a partition of which only records too far ahead were seen.
        """
        newest, run = self.newest_s.get(partition), self.ahead.get(partition)
        present = max(self.newest_s.values(), default=at) if newest is None else newest
        skew = self.settings.time_skew_max_s
        if at <= present + skew:
            ends_run = at >= present - skew  # records long past say nothing about the present
            return at, at if newest is None else max(at, newest), None if ends_run else run
        n, earliest = (1, at) if run is None else (run[0] + 1, min(at, run[1]))
        if n < max(2.0, math.exp2(min((earliest - present) / self.half_life, RUN_HALF_LIVES))):
            return present + skew, newest, (n, earliest)
        if at <= earliest + skew:
            return at, at, None
        return earliest + skew, earliest, (1, at)

    def _not_before(self, instant: float) -> float:
        return instant if self.landmark is None else max(instant, float(self.landmark - OLDEST))

    # ---- snapshots and sums

    def copy(self) -> Self:
        """Return an independent copy."""
        other = copy.copy(self)
        other.newest_s, other.ahead = dict(self.newest_s), dict(self.ahead)
        return other

    def factor_to(self, landmark: int) -> float:
        """Return the factor that converts sums at this landmark into sums at another landmark."""
        return 1.0 if self.landmark is None else math.ldexp(1.0, min(self.landmark - landmark, FAR))

    def factor_of(self, other: Decay) -> float:
        """Return the factor that converts another model's sums into sums at this model's landmark.

        With a half-life in messages, both models are taken as of their own last message: it is unknown where
        the messages of one belong among those of the other.
        """
        if self.landmark is None or other.landmark is None:
            return 1.0
        if not self.by_time:
            return self.scale(self.now()) / other.scale(other.now())
        return other.factor_to(self.landmark)

    def meet(self, other: Decay) -> float:
        """Move to a landmark for the sums of both models; return the factor for the sums here.

        By time this is the earlier landmark: the sums at the later one then grow, so nothing becomes
        negligible, and one model that had learned both streams would be there too. If the landmarks are
        `SHIFT_AFTER` or more apart, that one model would have moved on, so the later landmark is used.
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
        for partition, run in other.ahead.items():
            self.ahead[partition] = max(run, self.ahead.get(partition, run))
        return factor

    def digest(self) -> Digest:
        """Return the digest of the position in time."""
        digest = Digest()
        if self.landmark is not None:
            digest.add(statement("landmark"), float(self.landmark), float(self.position))
        if self.head_at is not None:
            digest.add(statement("head_at"), self.head_at)
        for partition, newest in self.newest_s.items():
            digest.add(statement("newest", partition), newest)
        for partition, (n, earliest) in self.ahead.items():
            digest.add(statement("ahead", partition), float(n), earliest)
        return digest

    def freeze(self) -> dict[str, object]:
        """Return the position as JSON values: the landmark in half-lives, the newest times in seconds."""
        values: dict[str, object] = {
            "landmark": self.landmark,
            "newest_s": dict(self.newest_s),
            "position": self.position,
            "head_at": self.head_at,
        }
        return values | {"ahead": dict(self.ahead)} if self.ahead else values

    def restore(self, value: object) -> None:
        """Restore the position from the values of `freeze`, after checking them.

        Raises
        ------
        SnapshotError
            The values are not a position in time; nothing was changed.
        """
        try:
            place = msgspec.convert(value, _Place)
        except msgspec.ValidationError as error:
            raise SnapshotError(f"The state's position in time is malformed: {error}.", HINT) from error
        instants = [float(place.landmark or 0), place.head_at or 0.0]
        instants += [at / self.half_life for at in place.newest_s.values()]
        instants += [earliest / self.half_life for _, earliest in place.ahead.values()]
        if min(place.position, *(n for n, _ in place.ahead.values()), 0) < 0 or not all(
            abs(instant) < _INSTANT_MAX for instant in instants
        ):
            raise SnapshotError("The state's position in time is beyond what a stream can have.", HINT)
        self.landmark, self.newest_s, self.ahead = place.landmark, place.newest_s, place.ahead
        self.position, self.head_at = place.position, place.head_at


class _Place(msgspec.Struct, forbid_unknown_fields=True):
    """The values that `Decay.freeze` returns."""

    landmark: int | None
    newest_s: dict[str, float]
    position: int
    head_at: float | None
    ahead: dict[str, tuple[int, float]] = {}


_INSTANT_MAX = 2.0 * TIME_MAX_S / HALF_LIFE_S_MIN


def seconds(at: object) -> float:
    """Return a time as a float.

    Raises
    ------
    ValueError
        It is not a finite number within 1e12.
    """
    value = at.item() if isinstance(at, np.generic) else at
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= TIME_MAX_S:
        raise ValueError(f"a time must be seconds since 1970 within 1e12, not {at!r}")
    return float(value)
