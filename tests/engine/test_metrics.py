"""The metrics, and the page that shows them."""

from __future__ import annotations

import re
import socket
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client import generate_latest

from streamnb.base import Partition
from streamnb.engine import metrics as metrics_module
from streamnb.engine.metrics import Metrics, MetricsSettings
from streamnb.errors import TransportError
from streamnb.evaluation.live import LiveEvaluation


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_two_engines_count_for_themselves() -> None:
    """Each has a registry of its own."""
    first, second = Metrics(), Metrics()
    first.records.labels("scored").inc(3)
    assert first.registry.get_sample_value("streamnb_records_total", {"outcome": "scored"}) == 3
    assert second.registry.get_sample_value("streamnb_records_total", {"outcome": "scored"}) is None


def test_next_offset_and_lag_of_a_partition_are_shown() -> None:
    """The lag is shown where the log's end is known, and is never below 0."""
    metrics = Metrics()
    labels, mail = {"topic": "mail", "partition": "0"}, Partition("mail", 0)
    metrics.note_lag({Partition("mail", 2): 40}, {mail: 0}, {mail: 0})
    assert metrics.registry.get_sample_value("streamnb_next_offset", labels | {"partition": "2"}) == 40
    assert metrics.registry.get_sample_value("streamnb_lag_records", labels | {"partition": "2"}) is None
    metrics.note_lag({mail: 40}, {mail: 47}, {mail: 50})
    assert metrics.registry.get_sample_value("streamnb_lag_written_records", labels) == 10
    assert metrics.registry.get_sample_value("streamnb_lag_records", labels) == 7
    metrics.note_lag({mail: 48}, {mail: 47}, {})
    assert metrics.registry.get_sample_value("streamnb_lag_records", labels) == 0


def test_a_topic_cannot_write_lines_of_its_own() -> None:
    """Quotes and line ends in a topic's name are escaped."""
    metrics = Metrics()
    topic = 'a"} 1\nforged 7'
    metrics.note_lag({Partition(topic, 0): 1}, {Partition(topic, 0): 1}, {})
    page = generate_latest(metrics.registry).decode()
    assert "forged" in page
    assert not re.search(r"(?m)^forged", page)


def test_a_taken_port_is_refused_by_name() -> None:
    """The error names the address and the reason."""
    metrics = Metrics()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(TransportError, match=f"127.0.0.1:{port}: Address already in use"):
            metrics.serve(MetricsSettings(port=port))


def test_no_port_is_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a port, which is the default, nothing is served; with one, it is by default on loopback."""
    served: list[object] = []
    monkeypatch.setattr(metrics_module, "serve_metrics", lambda *arguments: served.append(arguments[-1]))
    Metrics().serve(MetricsSettings())
    assert served == []
    Metrics().serve(MetricsSettings(port=1234))
    assert served == [1234]
    assert MetricsSettings().host == "127.0.0.1"


def test_a_served_page_shows_the_counters() -> None:
    """The page has Prometheus' text format."""
    metrics = Metrics()
    metrics.learned.inc(5)
    port = free_port()
    metrics.serve(MetricsSettings(port=port))
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert "streamnb_learned_total 5.0" in answer.read().decode()
    with pytest.raises(HTTPError, match="503"):
        urlopen(f"http://127.0.0.1:{port}/ready", timeout=10)
    metrics.ready.set(1)
    with urlopen(f"http://127.0.0.1:{port}/ready", timeout=10) as answer:
        assert answer.status == 200


def test_an_engine_replaces_the_figures_of_the_one_before() -> None:
    """After a restart inside the process, the page shows each figure once."""
    metrics = Metrics()
    for _ in range(2):
        metrics.show(LiveEvaluation())
    assert generate_latest(metrics.registry).decode().count("# TYPE streamnb_accuracy gauge") == 1
