"""Prometheus metrics for operators. No label holds a token, an id or an offset: the page stays small."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.registry import Collector

from streamnb.base import Accounts, Partition
from streamnb.engine.metrics_server import serve_metrics
from streamnb.errors import SettingsError, TransportError
from streamnb.wire import REASONS


class MetricsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address of the metrics page.

    Parameters
    ----------
    port : int
        0 for no page.
    host : str
        The address to listen on. The page has no password, so the default is loopback.
    """

    port: int = 0
    host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a port out of range."""
        if not 0 <= self.port <= 65_535:
            raise ValueError("`port` must be from 0 to 65535")


class Metrics:
    """The metrics of one engine, in a registry of their own.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.records.labels("scored").inc(3)
    >>> metrics.registry.get_sample_value("streamnb_records_total", {"outcome": "scored"})
    3.0
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._evaluation: Collector | None = None
        self.records = Counter(
            "streamnb_records", "Offsets passed, by outcome", ["outcome"], registry=self.registry
        )
        self.dead_letters = Counter(
            "streamnb_dead_letters", "Dead letters, by reason", ["reason"], registry=self.registry
        )
        self.guarded = Counter(
            "streamnb_guarded", "Labels the guard kept from being learned", ["reason"], registry=self.registry
        )
        self.learned = Counter("streamnb_learned", "Labelled messages learned", registry=self.registry)
        self.abstained = Counter(
            "streamnb_abstained", "Scores without a prediction, by reason", ["reason"], registry=self.registry
        )
        self.cut_scores = Counter(
            "streamnb_cut_scores", "Scores cut to the likeliest class for their size", registry=self.registry
        )
        self.truncated = Counter(
            "streamnb_truncated", "Messages whose text was cut at a limit of tokens", registry=self.registry
        )
        self.evicted = Counter(
            "streamnb_evicted_tokens",
            "Rare tokens forgotten because the counts reached their limit",
            registry=self.registry,
        )
        self.slow = Gauge(
            "streamnb_slow",
            "1 per view or setting that makes scoring slow",
            ["because"],
            registry=self.registry,
        )
        self.snapshots = Counter(
            "streamnb_snapshots", "Snapshots, by whether they are kept", ["outcome"], registry=self.registry
        )
        self.batch_seconds = Histogram(
            "streamnb_batch_seconds",
            "Seconds from a poll's return until its records are published",
            registry=self.registry,
        )
        self.snapshot_seconds = Histogram(
            "streamnb_snapshot_seconds",
            "Seconds for which a snapshot paused the stream",
            registry=self.registry,
        )
        self.next_offset = Gauge(
            "streamnb_next_offset", "Next offset to read", ["topic", "partition"], registry=self.registry
        )
        self.unaccounted = Gauge(
            "streamnb_unaccounted_records",
            "Offsets passed but not accounted for: 0, or the engine stops",
            ["topic", "partition"],
            registry=self.registry,
        )
        self.ready = Gauge(
            "streamnb_ready",
            "1 once all records that the log held at the start are read",
            registry=self.registry,
        )
        self.replayed = Counter(
            "streamnb_replayed_records",
            "Records read from the start until streamnb_ready became 1",
            registry=self.registry,
        )
        self.lag = Gauge(
            "streamnb_lag_records", "Records not yet read", ["topic", "partition"], registry=self.registry
        )
        self.written_lag = Gauge(
            "streamnb_lag_written_records",
            "Records not yet read, with those that an open transaction holds back",
            ["topic", "partition"],
            registry=self.registry,
        )

    def show(self, evaluation: Collector) -> None:
        """Show the figures of an evaluation; they replace those of an earlier engine."""
        if self._evaluation is not None:
            self.registry.unregister(self._evaluation)
        self._evaluation = evaluation
        self.registry.register(evaluation)

    def serve(self, settings: MetricsSettings) -> None:
        """Serve the page, if a port is set.

        Raises
        ------
        SettingsError
            The address does not belong to this machine, or this user may not listen on it.
        TransportError
            The address is in use.
        """
        if not settings.port:
            return
        try:
            serve_metrics(self.registry, self._is_ready, settings.host, settings.port)
        except (OSError, UnicodeError) as error:  # a UnicodeError: no name of a host has such a label
            in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            kind = TransportError if in_use else SettingsError
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise kind(
                f"The metrics page cannot be served on {settings.host}:{settings.port}: {reason}.",
                "Set another `metrics.port`, or 0 for none."
                if in_use
                else "Correct `metrics.host` or `metrics.port`.",
            ) from error

    def _is_ready(self) -> bool:
        return any(sample.value for metric in self.ready.collect() for sample in metric.samples)

    def note_slow(self, parts: Sequence[str]) -> None:
        """Show the settings that make the model slow, each by its name."""
        for part in parts:
            self.slow.labels(part).set(1)

    def abstain(self, reasons: NDArray[np.int64]) -> None:
        """Count the scores of a batch that have no prediction; `reasons` holds indices into `REASONS`."""
        for place, reason in enumerate(REASONS):
            self.abstained.labels(reason).inc(int((reasons == place).sum()))

    def note_balance(self, accounts: Accounts) -> None:
        """Show how many offsets of each partition were passed but not accounted for."""
        for partition, account in accounts.items():
            self.unaccounted.labels(partition.topic, str(partition.number)).set(account.balance())

    def note_lag(
        self,
        next_offsets: Mapping[Partition, int],
        ends: Mapping[Partition, int],
        written: Mapping[Partition, int],
    ) -> None:
        """Show each partition's next offset, and how far it is before the two ends that are known."""
        for partition, at in next_offsets.items():
            labels = (partition.topic, str(partition.number))
            self.next_offset.labels(*labels).set(at)
            for gauge, found in ((self.lag, ends), (self.written_lag, written)):
                if (end := found.get(partition)) is not None:
                    gauge.labels(*labels).set(max(0, end - at))
