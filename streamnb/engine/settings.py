"""The engine's settings, and the summary that a run returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from streamnb.base import TIME_MAX_S, Accounts, Start

BATCH_RECORDS_MAX = 1_000_000  # librdkafka refuses to return more at once
POLL_TIMEOUT_MS_MAX = 30_000  # half of `Pace.poll_stalled_s`, or the watchdog would end an idle engine
STOP_DEADLINE_S_MAX = 86_400


class EngineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the loop begins, how much it takes at once, and how long it waits.

    Parameters
    ----------
    start : "earliest", "latest", int (milliseconds since 1970) or None
        Where a first start begins. It must be set, unless there is a snapshot to begin from.
    on_data_loss : "stop" or "skip"
        What to do if the log no longer holds the records after the snapshot.
    batch_records_max : int
        Maximum number of records per poll.
    poll_timeout_ms : int
        How long a poll waits for its first record, at most 30 s; a stop is noticed after this time at the
        latest.
    stop_deadline_s : float
        The process ends when a stop takes longer than this; the last snapshot stays in force. At most a day.
    scores : {"at_least_once", "exactly_once"}
        With the first, a crash may publish a score twice, under the same source address. With the second,
        scores are published in transactions of Kafka, and consumers must read only committed records.
    """

    start: Start | None = None
    on_data_loss: Literal["stop", "skip"] = "stop"
    batch_records_max: int = 2000
    poll_timeout_ms: int = 200
    stop_deadline_s: float = 20.0
    scores: Literal["at_least_once", "exactly_once"] = "at_least_once"

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a number out of its range."""
        if not 1 <= self.batch_records_max <= BATCH_RECORDS_MAX:
            raise ValueError(f"`batch_records_max` must be from 1 to {BATCH_RECORDS_MAX}")
        if not 0 < self.stop_deadline_s <= STOP_DEADLINE_S_MAX:
            raise ValueError(f"`stop_deadline_s` must be above 0 and at most {STOP_DEADLINE_S_MAX}")
        if not 0 <= self.poll_timeout_ms <= POLL_TIMEOUT_MS_MAX:
            raise ValueError(f"`poll_timeout_ms` must be from 0 to {POLL_TIMEOUT_MS_MAX}")
        if self.poll_timeout_ms >= self.stop_deadline_s * 1000:
            raise ValueError("`poll_timeout_ms` must be below `stop_deadline_s`, or every stop could be late")
        if isinstance(self.start, int) and not 0 <= self.start <= TIME_MAX_S * 1000:
            raise ValueError("`start` must be from 0 to 1e15 milliseconds since 1970")


@dataclass(frozen=True, slots=True)
class Pace:
    """The times and limits of the loop that no settings file sets; tests shorten them."""

    poll_stalled_s: float = 60.0
    """`streamnb run` ends when a poll takes longer: no client needs a tenth of it, and a process with a stuck
    client would look alive."""

    flush_timeout_ms: int = 120_000
    """How long a snapshot waits for the sinks: as long as a delivery may take, or a broker that is away for a
    minute would end the engine. A longer `delivery_timeout_ms` makes it longer."""

    transaction_interval_ms: int = 250
    """While records wait, a transaction spans several polls until it has lasted this long: a commit costs
    four round trips to the brokers. A stream that keeps up commits at each poll, whatever the interval."""

    snapshot_interval_records: int = 100_000
    """A snapshot is begun after this many records even before `snapshots.interval_s`, so that a restart on a
    fast stream does not read millions of records again."""

    snapshot_failures_max: int = 3
    """The engine stops when this many snapshots in a row could not be written: a disk that refuses one may
    take the next, and a disk that refuses three needs a person."""


@dataclass(slots=True)
class Summary:
    """What one run of the engine did.

    Parameters
    ----------
    records, scored, learned, dead_letters, snapshots : int
        Numbers of this run alone.
    seconds : float
    accounts : Accounts
        Each partition's account since the first start.
    digest : dict of str to str
        The digest of the state at the end.
    """

    records: int = 0
    scored: int = 0
    learned: int = 0
    dead_letters: int = 0
    snapshots: int = 0
    seconds: float = 0.0
    accounts: Accounts = field(default_factory=dict)
    digest: dict[str, str] = field(default_factory=dict)


class SnapshotSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where snapshots are kept, how often one is taken, and how many stay.

    Parameters
    ----------
    directory : str
        Used by one engine alone.
    interval_s : float
        A snapshot is begun at least this often while records arrive, unless one is still being written.
    keep : int
        The number of newest snapshots that are not deleted.
    keep_hours : int
        For this number of hours back, the first snapshot of each hour is not deleted either.
    """

    directory: str = "snapshots"
    interval_s: float = 30.0
    keep: int = 3
    keep_hours: int = 24

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a limit below 1 or an interval not above 0."""
        if not self.interval_s > 0 or self.keep < 1:
            raise ValueError("`interval_s` must be above 0 and `keep` at least 1")
        if self.keep_hours < 0:
            raise ValueError("`keep_hours` must be at least 0")
