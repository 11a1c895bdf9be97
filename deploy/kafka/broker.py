"""Run a real Apache Kafka broker on this machine without Docker, from the jars on Maven Central.

``python deploy/kafka/broker.py start|stop|address|run [--dir DIR] [--port P]``. Tests import `Broker`.
It needs Java 17 or later and, the first time, Maven and the network (about 110 MB). This file uses only the
standard library, so that it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import base64
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

VERSION = "4.3.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamnb"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
MAVEN_TIMEOUT_S = 900.0

# Parts of Maven's output that show a network error rather than a missing artifact.
UNREACHABLE = (
    "Unknown host",
    "Name or service not known",
    "name resolution",
    "Connection refused",
    "Network is unreachable",
    "No route to host",
    "timed out",
    "Service Unavailable",
    "Forbidden",
)


class BrokerError(Exception):
    """The broker cannot run.

    Parameters
    ----------
    what, hint : str
        The fact in one sentence, and what to do about it.
    """

    exit_code = 1

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what} {hint}")


class UnreachableError(BrokerError):
    """Maven Central cannot be reached, and Kafka is not in the cache yet."""

    exit_code = 69


def assemble(cache: Path = CACHE) -> Path:
    """Return the folder of Kafka's jars; download them from Maven Central the first time.

    Raises
    ------
    UnreachableError
        Maven Central cannot be reached, or the download took too long.
    BrokerError
        Maven is not installed, or failed for another reason.
    """
    jars = cache / f"kafka-{VERSION}"
    if jars.is_dir():
        return jars
    if shutil.which("mvn") is None:
        raise BrokerError(
            "`mvn` is not installed, and Kafka must be downloaded.", "Install Maven (apt install maven)."
        )
    cache.mkdir(parents=True, exist_ok=True)
    partial = cache / f"kafka-{VERSION}.{os.getpid()}.partial"
    pom = Path(__file__).with_name("pom.xml")
    command = ["mvn", "-q", "-B", "-C", "-f", str(pom), COPY, "-DincludeScope=runtime"]
    try:
        maven = subprocess.run(
            [*command, f"-DoutputDirectory={partial}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=MAVEN_TIMEOUT_S,
        )
        if maven.returncode != 0:
            raise _maven_error(maven.stdout + maven.stderr)
        if not jars.is_dir():  # another process may have finished first
            partial.rename(jars)
    except subprocess.TimeoutExpired:
        hint = "Try again on a faster network: Maven keeps the files it has downloaded."
        raise UnreachableError(f"Maven did not finish within {MAVEN_TIMEOUT_S:.0f} s.", hint) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return jars


def _maven_error(output: str) -> BrokerError:
    for sign in UNREACHABLE:
        if sign in output:
            return UnreachableError(
                f"Maven Central cannot be reached ({sign}).", "Check the network and the proxy."
            )
    cause = next(
        (line.partition("ERROR]")[2].strip() for line in output.splitlines() if "ERROR]" in line),
        "no error in its output",
    )
    return BrokerError(
        f"Maven could not download Kafka {VERSION}: {cause[:400]}", "Run `mvn -version` to check Maven."
    )


def free_port() -> int:
    """Return a loopback port that nothing listens on now.

    It is below the range from which Linux takes the ports of outgoing connections: while a broker is down,
    no connection can take its port.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Broker:
    """One broker with its own controller, in KRaft mode, on the loopback interface.

    Parameters
    ----------
    directory : Path
        The folder for the data, the log and the process id. `stop` and `kill` keep it, and `start` resumes
        from it.
    port : int, optional
        The port for clients; a free one by default.
    settings : mapping of str to str, optional
        Lines of ``server.properties`` to add or to override.

    Raises
    ------
    BrokerError
        From any method: Java, Maven or the network is missing, the port is in use, or Kafka did not start.
    """

    def __init__(
        self, directory: Path, port: int | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        self.directory = directory.resolve()
        self.port = port or free_port()
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """``host:port``, for a client's ``bootstrap_servers``."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """The path of the broker's log."""
        return self.directory / "broker.log"

    @property
    def pid(self) -> int | None:
        """The process id of the broker running in this directory, whoever started it; None if none runs."""
        try:
            pid = int((self.directory / "broker.pid").read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        # The process id of a dead broker may belong to an unrelated process now.
        return pid if os.fsencode(self._properties) in command.split(b"\0") else None

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    def start(self) -> None:
        """Start the broker and return as soon as it accepts requests; do nothing if it already runs."""
        if self.pid is not None:
            return
        if shutil.which("java") is None:
            raise BrokerError("`java` is not installed, and Kafka runs on it.", "Install Java 17 or later.")
        jars = assemble()
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self.port))
            except OSError:
                raise BrokerError(
                    f"Port {self.port} is in use.",
                    "Stop the process that listens there, or choose another --port.",
                ) from None
        self.directory.mkdir(parents=True, exist_ok=True)
        self._write_properties()
        java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-Dlog4j2.level=WARN", "-cp", f"{jars}/*"]
        with self.log.open("ab") as log:
            if not (self.directory / "data" / "meta.properties").exists():
                self._format(java, log.fileno())
            self._process = subprocess.Popen(
                [*java, "kafka.Kafka", str(self._properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C must reach only `run`, which then stops the broker
            )
        (self.directory / "broker.pid").write_text(f"{self._process.pid}\n")
        self._wait_until_ready(self._process)

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL after `STOP_TIMEOUT_S`; do nothing if no broker runs."""
        self._signal(signal.SIGTERM, STOP_TIMEOUT_S)
        self.kill()

    def kill(self) -> None:
        """Send SIGKILL, to leave the data directory as a crash leaves it."""
        self._signal(signal.SIGKILL, STOP_TIMEOUT_S)
        if self._process is not None:
            self._process.wait(STOP_TIMEOUT_S)
            self._process = None

    def wait(self) -> None:
        """Wait for the broker that this object started; raise when it ends, since it should not by itself."""
        if self._process is not None:
            self._process.wait()
            raise self._failed("Kafka ended")

    def _signal(self, number: signal.Signals, timeout_s: float) -> None:
        pid = self.pid
        if pid is None:
            return
        os.kill(pid, number)
        deadline = time.monotonic() + timeout_s
        while self.pid == pid and time.monotonic() < deadline:
            if self._process is not None:
                self._process.poll()  # reaps a dead child, so that its /proc entry disappears
            time.sleep(0.05)

    def _write_properties(self) -> None:
        controller = free_port()
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            # Not formatted into the data folder: the controller has another port after each start.
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.directory / "data"),
            "auto.create.topics.enable": "false",
            "num.partitions": "3",
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
        } | self._settings
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))

    def _format(self, java: Sequence[str], log: int) -> None:
        # Kafka's notation of an id. A leading dash would look like an option to its tool.
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_")
        tool = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._properties)]
        if subprocess.run(tool, stdout=log, stderr=subprocess.STDOUT, check=False).returncode != 0:
            raise self._failed("Kafka could not format its data directory")

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not _answers(self.port):
            if process.poll() is not None:
                raise self._failed("Kafka ended while it started")
            if time.monotonic() > deadline:
                self.kill()
                raise self._failed(f"Kafka did not answer within {START_TIMEOUT_S:.0f} s")
            time.sleep(0.1)

    def _failed(self, what: str) -> BrokerError:
        lines = self.log.read_text(errors="replace").strip().splitlines() or ["its log is empty"]
        return BrokerError(
            f"{what}: {lines[-1][:300]}.", f"Kafka 4 needs Java 17 or later. Its log is {self.log}."
        )


def _answers(port: int) -> bool:
    """Return whether the broker lists itself in its cluster: from then on it can create topics."""
    body = struct.pack(">hhih", 60, 0, 1, -1) + b"\0\0\0"  # DescribeCluster v0, no client id
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as client:
            client.sendall(struct.pack(">i", len(body)) + body)
            return struct.pack(">i", port) in client.recv(4096)
    except OSError:
        return False


def _port(directory: Path) -> int | None:
    """Return the port with which the directory's broker was last started, or None."""
    try:
        lines = (directory / "server.properties").read_text().splitlines()
    except FileNotFoundError:
        return None
    listeners = [line for line in lines if line.startswith("advertised.listeners=")]
    return int(listeners[0].rpartition(":")[2]) if listeners else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, which is 69 if Maven Central cannot be reached."""
    parser = argparse.ArgumentParser(description="A real Apache Kafka broker on this machine.")
    parser.add_argument("command", choices=["start", "stop", "address", "run"])
    parser.add_argument("--dir", type=Path, default=CACHE / "broker", help="data, log and pid (%(default)s)")
    parser.add_argument("--port", type=int, default=9092, help="the port for clients (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        _do(options.command, options.dir, options.port)
    except BrokerError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _do(command: str, directory: Path, port: int) -> None:
    broker = Broker(directory, _port(directory) or port)
    running = broker.pid is not None
    if command == "stop":
        broker.stop()
    elif command == "run" and running:
        raise BrokerError(
            f"A broker already runs in {directory}.", "Stop it with `stop`, or choose another --dir."
        )
    elif command == "start" and running and broker.port != port:
        raise BrokerError(
            f"A broker already runs in {directory}, on port {broker.port} instead of {port}.",
            "Use that port, or stop the broker first, with `stop` or `make kafka-stop`.",
        )
    elif command == "address" and not running:
        raise BrokerError(f"No broker runs in {directory}.", "Start one with `start`.")
    else:
        if not running:
            broker = Broker(directory, port)
            broker.start()
        print(broker.address, flush=True)
        if command == "run":
            _run(broker)


def _run(broker: Broker) -> None:
    """Wait until the broker ends; stop it if this process is interrupted or terminated."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        broker.wait()
    except KeyboardInterrupt:
        broker.stop()


if __name__ == "__main__":
    sys.exit(main())
