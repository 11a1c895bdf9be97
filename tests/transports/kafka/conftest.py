"""Real brokers for the tests of this folder.

Three kinds: one broker shared by all workers of a run, where each test has topics and groups of its own; one
broker per worker, to kill and to start again; and the one with TLS and passwords of `test_security`.
"""

from __future__ import annotations

import fcntl
import gc
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))  # at the end: an installed streamnb, with its kernel, comes first

with warnings.catch_warnings():
    # kafka-python reads its schemas through a function that Python 3.11 and 3.12 call deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401

from deploy.kafka.broker import Broker, UnreachableError, free_port  # noqa: E402
from tests.transports.kafka.proxy import Proxy, listeners  # noqa: E402

# A test's broker lives for minutes: without Java's second, slow compiler it takes half the processor time.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test in this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.kafka)


def pytest_runtest_logfinish() -> None:
    """Collect, unreported, the sockets that kafka-python leaves open where a broker refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say last, where it is seen, that nothing was tested against a real broker, and why."""
    yield
    skipped = [report for report in terminalreporter.getreports("skipped") if "kafka" in report.keywords]
    for reason in sorted({report.longrepr[2].removeprefix("Skipped: ") for report in skipped}):
        terminalreporter.write_line(f"No test ran against a real Kafka broker: {reason}", yellow=True)


def start_or_skip(broker: Broker) -> Broker:
    """Start a broker; where Kafka cannot be fetched, skip on a developer's machine and fail in CI."""
    try:
        broker.start()
    except UnreachableError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
    return broker


# Kept to the end of the worker: another worker may stop the broker that this one started, and Python warns
# when the object that started a process is gone while the process runs.
STARTED: list[Broker] = []


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a file lock, which the system releases if the holder dies."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def shared_by_workers(directory: Path) -> Iterator[str]:
    """Yield the address of the broker of a directory: the first worker starts it, the last one stops it.

    A worker holds a shared lock on ``users`` while it uses the broker, so a worker that died is not counted.
    `Broker` finds the process by its pid file, whichever worker started it.
    """
    directory.mkdir(exist_ok=True)
    turn, port = directory / "turn", directory / "port"
    with (directory / "users").open("a") as users:
        with held(turn):
            if not port.exists():
                port.write_text(f"{free_port()}")
            STARTED.append(started := start_or_skip(Broker(directory, int(port.read_text()))))
            fcntl.flock(users, fcntl.LOCK_SH)
        yield started.address
        with held(turn):
            fcntl.flock(users, fcntl.LOCK_UN)
            with suppress(BlockingIOError):  # others still use it
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                started.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker; ``STREAMNB_KAFKA`` names one that runs already."""
    given = os.environ.get("STREAMNB_KAFKA")
    if given:
        yield given
        return
    own = tmp_path_factory.getbasetemp()  # of this worker; the folder above is the run's
    run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with shared_by_workers(run / "broker") as address:
        yield address


@pytest.fixture(scope="session")
def ports() -> tuple[int, int]:
    """Of the listener behind the proxy, and of the proxy."""
    return free_port(), free_port()


@pytest.fixture(scope="session")
def own_broker(tmp_path_factory: pytest.TempPathFactory, ports: tuple[int, int]) -> Iterator[Broker]:
    """A broker to kill and to restart; it would create a topic for whoever let it."""
    port = free_port()
    settings = {
        **listeners(port, *ports),
        "auto.create.topics.enable": "true",
        # A killed broker is let in again when its old session is over: after 9 s by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # How often it looks for transactions that nobody ended.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    }
    started = start_or_skip(Broker(tmp_path_factory.mktemp("own_broker"), port, settings))
    yield started
    started.stop()


@pytest.fixture
def proxied(own_broker: Broker, ports: tuple[int, int]) -> Iterator[tuple[Broker, Proxy, str]]:
    """The broker above, a proxy before it, and the address of the proxy."""
    with Proxy(*ports) as proxy:
        yield own_broker, proxy, f"127.0.0.1:{ports[1]}"


@pytest.fixture(scope="session")
def starter() -> Iterator[subprocess.Popen[str]]:
    """What starts engines: see `tests.transports.kafka.warm`."""
    command = [sys.executable, "-m", "tests.transports.kafka.warm"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=pipe, stdout=pipe) as process:
        yield process
