"""An engine in its own process, and the accidents that a campaign inflicts on it."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from deploy.kafka.broker import Broker, BrokerError
from streamnb.base.snapshot import Snapshot
from streamnb.errors import StorageError
from streamnb.storage import read_snapshot
from tests.transports.kafka.proxy import Proxy
from tests.transports.kafka.test_pipeline import Pipeline

UNREACHABLE = 69
DOCUMENTED = {0, 65, UNREACHABLE, 74, 75, -signal.SIGKILL}
LAST_WORDS = re.compile(r"^streamnb: |INFO streamnb: stopped after", re.MULTILINE)
ABORTED_BY_LIBRDKAFKA = "rd_kafka_admin_response_parse: Assertion `rko_result' failed"
CLIENTS = ("kafka", "confluent")
BROKER_BOUNCE_EVERY, BROKER_BOUNCE_AT = 60, 5


class Child:
    """An engine in its own process, and the lines of its standard error.

    Parameters
    ----------
    starter : subprocess.Popen of str
        A process of `tests.transports.kafka.warm`.
    config : Path
    servers : str
        The address of the broker or of its proxy.
    client : {"kafka", "confluent"}
        The client of the source and of both sinks.
    more : str
        More settings, as for ``--set``.
    until_end : bool
        Whether it stops at the end offsets that the partitions have at the start.
    rebuild : bool
        Whether it sets damaged snapshots aside and learns again.
    """

    def __init__(
        self,
        starter: subprocess.Popen[str],
        config: Path,
        servers: str,
        client: str,
        *more: str,
        until_end: bool = False,
        rebuild: bool = False,
    ) -> None:
        changes = [f'kafka.bootstrap_servers="{servers}"', f'confluent.bootstrap.servers="{servers}"', *more]
        changes += [f"{endpoint}.kind={client}" for endpoint in ("source", "sink", "dead_letters.sink")]
        words = ["run", str(config), *["--until-end"] * until_end, *["--rebuild"] * rebuild]
        words += [word for change in changes for word in ("--set", change)]
        self.said: list[str] = []
        self._ready = threading.Event()
        pipe = config.with_name("stderr")
        os.mkfifo(pipe)
        assert starter.stdin is not None
        assert starter.stdout is not None
        lines = os.fdopen(os.open(pipe, os.O_RDWR))  # read-write, so that `open` does not wait for a writer
        starter.stdin.write(f"{json.dumps([str(pipe), *words])}\n")
        starter.stdin.flush()
        self.pid = int(starter.stdout.readline())
        pipe.unlink()
        self._reader = threading.Thread(target=self._read, args=(lines,), daemon=True)
        self._reader.start()

    def _read(self, lines: TextIO) -> None:
        with lines:
            for line in lines:
                self.said.append(line)
                if "ready at" in line:
                    self._ready.set()
                if line.startswith("exit "):
                    break
        self._ready.set()

    def wait_until_ready(self) -> None:
        """Wait until the engine reads, or has ended."""
        assert self._ready.wait(120), self.said

    def is_alive(self) -> bool:
        """Return whether the engine still runs."""
        return self._reader.is_alive()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the engine has ended."""
        if self.is_alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        self.signal(signal.SIGKILL)
        self.ended()

    def ended(self, timeout_s: float = 60) -> int:
        """Wait for the end and return the exit code; check that it is documented and without a traceback."""
        self._reader.join(timeout_s)
        assert not self.is_alive(), self.said
        said, code = "".join(self.said), int(self.said[-1].removeprefix("exit "))
        # Seed 102: SIGTERM reached a process that had already reported its end and was exiting.
        on_its_way = code == -signal.SIGTERM and LAST_WORDS.search(said)
        # Seed 405: librdkafka aborts the process instead of returning an error; for the state that is a kill.
        upstream = code == -signal.SIGABRT and ABORTED_BY_LIBRDKAFKA in said
        assert code in DOCUMENTED or on_its_way or upstream, said
        assert "Traceback" not in said, said
        return code


class Accidents:
    """One engine after another on the same topics and snapshots, and the accidents inflicted on them.

    Parameters
    ----------
    starter : subprocess.Popen of str
        A process of `tests.transports.kafka.warm`.
    pipe : Pipeline
    broker : Broker
    proxy : Proxy
    address : str
        The address of the proxy.
    draw : random.Random

    Attributes
    ----------
    child : Child
        The current engine, alive or dead.
    counted : Counter of str
        The number of accidents by name.
    damaged : bool
        Whether a snapshot was damaged since a test last reset this: then positions may go back.
    """

    def __init__(
        self,
        starter: subprocess.Popen[str],
        pipe: Pipeline,
        broker: Broker,
        proxy: Proxy,
        address: str,
        draw: random.Random,
    ) -> None:
        self._starter = starter
        self._pipe, self._broker, self._proxy, self._address = pipe, broker, proxy, address
        self._draw = draw
        self.counted = Counter[str]()
        self.damaged = False
        self.child = self.start()

    def start(self, *, until_end: bool = False) -> Child:
        """Start another engine through a random client: each client resumes from the other's snapshots."""
        client = self._draw.choice(CLIENTS)
        return Child(self._starter, self._pipe.config, self._address, client, until_end=until_end)

    def inflict(self, number: int) -> None:
        """Inflict accident `number`, after restarting the engine if the last accident ended it."""
        if not self.child.is_alive():
            self.child.ended()
            self.child = self.start()
        self.child.wait_until_ready()
        assert_modest(self.child)
        time.sleep(self._draw.uniform(0.0, 0.08))
        kinds: list[Callable[[], None]] = [
            *[self._kill] * 4,
            self._kill_in_recovery,
            self._terminate,
            self._pause,
            self._cut,
            self._cut_response,
            self._slow,
            self._full_disk,
            self._second_learner,
            self._damaged_snapshot,
        ]
        due = number % BROKER_BOUNCE_EVERY == BROKER_BOUNCE_AT
        accident = self._broker_bounce if due else self._draw.choice(kinds)
        self.counted[accident.__name__.strip("_")] += 1
        accident()

    def _kill(self) -> None:
        self.child.kill()

    def _kill_in_recovery(self) -> None:
        self.child.kill()
        self.child = self.start()
        time.sleep(self._draw.uniform(0.3, 2.0))
        self.child.kill()

    def _terminate(self) -> None:
        self.child.signal(signal.SIGTERM)
        self.child.ended()

    def _pause(self) -> None:
        self.child.signal(signal.SIGSTOP)
        time.sleep(self._draw.uniform(0.0, 0.3))
        self.child.signal(signal.SIGCONT)

    def _cut(self) -> None:
        self._proxy.cut("now")

    def _cut_response(self) -> None:
        self._proxy.cut("before the response")

    def _slow(self) -> None:
        self._proxy.slow(self._draw.uniform(0.01, 0.1), self._draw.choice([500, 4096, 1 << 16]))
        time.sleep(self._draw.uniform(0.2, 0.8))
        self._proxy.fast()

    def _full_disk(self) -> None:
        """Limit the size of files, like a disk that fills up in the middle of a snapshot."""
        if self.child.is_alive():
            pid = self.child.pid
            limit = self._draw.choice([0, 4096, 20_000])
            with suppress(ProcessLookupError):
                hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))
                time.sleep(self._draw.uniform(0.1, 0.4))
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))

    def _second_learner(self) -> None:
        """Start a second learner: refused while the first runs, and in charge if the first had just ended."""
        other = self.start()
        other.wait_until_ready()
        if any("ready at" in line for line in other.said):
            self.child.ended()
            self.child = other
        else:
            code, said = other.ended(), "".join(other.said)
            assert code == UNREACHABLE or "in use by another learner" in said, said

    def _damaged_snapshot(self) -> None:
        """Flip a bit of the newest snapshot while no engine runs; the one before stays intact."""
        self.child.kill()
        whole = [path for path in sorted(self._pipe.directory.glob("snapshot-*.snb")) if loaded(path)]
        if len(whole) > 1:
            data = bytearray(whole[-1].read_bytes())
            data[self._draw.randrange(len(data))] ^= 1 << self._draw.randrange(8)
            whole[-1].chmod(0o600)
            whole[-1].write_bytes(data)
            self.damaged = True

    def _broker_bounce(self) -> None:
        self._broker.kill()
        with suppress(BrokerError):  # a busy machine may need more than a minute
            self._broker.start()
        self._broker.start()


def loaded(path: Path) -> Snapshot | None:
    """Return a snapshot, or None if it cannot be read: an engine may have pruned it, or a bit is flipped."""
    try:
        return read_snapshot(path)
    except StorageError:
        return None


def assert_modest(child: Child) -> None:
    """Check I9: the descriptors and threads of a fresh process do not grow with the number of accidents."""
    try:
        home = Path(f"/proc/{child.pid}")
        assert len(list((home / "fd").iterdir())) < 100
        assert len(list((home / "task").iterdir())) < 50
    except (FileNotFoundError, ProcessLookupError):
        assert child.ended()
