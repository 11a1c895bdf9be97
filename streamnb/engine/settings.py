"""What the engine's loop is told, and what it tells: its settings, and the summary of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from streamnb.base import Accounts, Start


class EngineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The loop's pace.

    Parameters
    ----------
    start : "earliest", "latest", int (milliseconds since 1970) or None
        Where a first start begins; it must be said.
    on_data_loss : "stop" or "skip"
        What to do where the log no longer holds what comes after the snapshot.
    batch_records_max : int
        Records of one poll.
    poll_timeout_ms : int
        How long a poll waits for the first; also how soon a stop is noticed.
    poll_stalled_s : float
        `streamnb run` ends when a poll takes longer than this: the client is stuck.
    flush_timeout_ms : int
        How long a snapshot waits for the sinks.
    stop_deadline_s : float
        A stop that takes longer ends the process; the last snapshot stays in force.
    scores : {"at_least_once", "exactly_once"}
        Whether a crash may publish a score twice (its source address tells), or each batch is one
        transaction of Kafka, for readers that read only what is committed.
    transaction_interval_ms : int
        While records wait, a transaction takes in further polls until it is so old.
    """

    start: Start | None = None
    on_data_loss: Literal["stop", "skip"] = "stop"
    batch_records_max: int = 2000
    poll_timeout_ms: int = 200
    poll_stalled_s: float = 60.0
    flush_timeout_ms: int = 120_000
    stop_deadline_s: float = 20.0
    scores: Literal["at_least_once", "exactly_once"] = "at_least_once"
    transaction_interval_ms: int = 250

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a batch without records, a time below 0 or no time to stop."""
        if self.batch_records_max < 1 or not (self.stop_deadline_s > 0 and self.poll_stalled_s > 0):
            names = "`poll_stalled_s` and `stop_deadline_s`"
            raise ValueError(f"`batch_records_max` must be at least 1, {names} above 0")
        start = self.start if isinstance(self.start, int) else 0
        times = (self.poll_timeout_ms, self.flush_timeout_ms, self.transaction_interval_ms, start)
        if min(times) < 0:
            names = "`start`, `poll_timeout_ms`, `flush_timeout_ms` and `transaction_interval_ms`"
            raise ValueError(f"{names} must not be below 0")


@dataclass(slots=True)
class Summary:
    """What one run of the engine did.

    Parameters
    ----------
    records, scored, learned, dead_letters, snapshots : int
        Of this run alone.
    seconds : float
    accounts : Accounts
        Since the first start.
    digest : dict of str to str
        Of the state at the end.
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
    """Where and when.

    Parameters
    ----------
    directory : str
        One engine has it to itself.
    interval_s : float
        A snapshot is begun at least this often while records come in, unless one is still being written.
    interval_records : int
        And after this many records.
    keep : int
        How many of the newest stay.
    keep_hours : int
        For so many hours back the first snapshot of each hour stays too.
    failures_max : int
        The engine stops when this many in a row could not be written.
    """

    directory: str = "snapshots"
    interval_s: float = 30.0
    interval_records: int = 100_000
    keep: int = 3
    keep_hours: int = 24
    failures_max: int = 3

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a limit below 1 or an interval not above 0."""
        if not self.interval_s > 0 or min(self.interval_records, self.keep, self.failures_max) < 1:
            raise ValueError("an interval must be above 0, and `keep` and `failures_max` at least 1")
        if self.keep_hours < 0:
            raise ValueError("`keep_hours` must be at least 0")
