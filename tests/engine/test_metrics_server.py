"""The metrics page's server: no client, however it behaves, costs the stream much."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from streamnb.engine import metrics_server
from streamnb.engine.metrics import Metrics
from streamnb.engine.metrics_server import CONNECTIONS_MAX, serve_metrics

ADDRESS = "127.0.0.1"


READY = threading.Event()


@pytest.fixture
def port() -> Iterator[int]:
    """Return the port of a page that is being served; `READY` says whether its engine has caught up."""
    READY.clear()
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        port: int = probe.getsockname()[1]
    stop = serve_metrics(Metrics().registry, READY.is_set, ADDRESS, port)
    yield port
    stop()


def answer(port: int, request: bytes) -> bytes:
    """Return all bytes until the server closes the connection; none if it does so at once."""
    said = b""
    try:
        with socket.create_connection((ADDRESS, port), timeout=30) as connection:
            connection.sendall(request)
            while part := connection.recv(1 << 16):
                said += part
    except ConnectionError:
        pass
    return said


def test_it_shows_the_metrics(port: int) -> None:
    """A request gets the metrics as text."""
    said = answer(port, b"GET /metrics HTTP/1.0\r\n\r\n")
    assert b" 200 OK\r\n" in said
    assert b"streamnb_learned_total 0.0" in said


@pytest.mark.parametrize("path", ["/", "/nope", "/metrics/x", "/ready/", "/live?"])
def test_N8_an_unknown_path_is_not_found(port: int, path: str) -> None:
    """A probe of a misspelt path must not pass; a query does not belong to the path."""
    said = answer(port, f"GET {path} HTTP/1.0\r\n\r\n".encode())
    assert (b" 200 OK\r\n" if path == "/live?" else b" 404 Not Found\r\n") in said
    assert b"streamnb_learned_total" not in said


def test_N8_live_and_ready_answer_by_their_status(port: int) -> None:
    """A supervisor's probes read the status, not the page."""
    assert b" 200 OK\r\n" in answer(port, b"GET /live HTTP/1.0\r\n\r\n")
    assert b" 503 Service Unavailable\r\n" in answer(port, b"GET /ready HTTP/1.0\r\n\r\n")
    READY.set()
    assert b" 200 OK\r\n" in answer(port, b"GET /ready HTTP/1.0\r\n\r\n")


def test_G1_a_body_is_not_waited_for(port: int) -> None:
    """A request may announce a gigabyte; the server does not read it."""
    said = answer(port, b"GET /metrics HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n" + b"x" * 1000)
    assert b"streamnb_learned_total 0.0" in said or said == b""  # closed before all of it was sent
    assert b" 200 OK\r\n" in answer(port, b"GET /metrics HTTP/1.0\r\n\r\n")


def test_G1_a_line_without_end_is_cut_off(port: int) -> None:
    """The next request is answered."""
    assert b" 200 " not in answer(port, b"GET /" + b"x" * (1 << 17))
    assert b" 200 OK\r\n" in answer(port, b"GET /metrics HTTP/1.0\r\n\r\n")


def test_G2_idle_connections_are_few_and_are_closed(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three hundred idle clients get 16 threads, and a request is answered at once while they wait."""
    monkeypatch.setattr(metrics_server, "CONNECTION_S_MAX", 60.0)
    before = threading.active_count()
    with ExitStack() as stack:
        for number in range(300):
            idle = stack.enter_context(socket.create_connection((ADDRESS, port), timeout=30))
            if number % 2:
                idle.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")  # a request that is never finished
        assert threading.active_count() <= before + 2 * CONNECTIONS_MAX  # each has a timer's thread too
        began_s = time.monotonic()
        assert b" 200 OK\r\n" in answer(port, b"GET /metrics HTTP/1.0\r\n\r\n")
        assert time.monotonic() - began_s < 20
