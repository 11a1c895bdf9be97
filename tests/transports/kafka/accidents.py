"""An engine as an operator starts it, and everything that can befall it on a real broker."""

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
DOCUMENTED = {0, UNREACHABLE, 74, 75, -signal.SIGKILL}
LAST_WORDS = re.compile(r"^streamnb: |INFO streamnb: stopped after", re.MULTILINE)
ABORTED_BY_LIBRDKAFKA = "rd_kafka_admin_response_parse: Assertion `rko_result' failed"
CLIENTS = ("kafka", "confluent")
BROKER_BOUNCE_EVERY, BROKER_BOUNCE_AT = 60, 5


class Child:
    """The engine in a process of its own, and what it says.

    Parameters
    ----------
    starter : subprocess.Popen of str
        A process of `tests.transports.kafka.warm`.
    config : Path
    servers : str
        The broker's address, or its proxy's.
    client : {"kafka", "confluent"}
        Of the source and of both sinks.
    more : str
        Further changes of the settings.
    until_end : bool
        Whether it stops at the ends that the partitions have when it starts.
    """

    def __init__(
        self,
        starter: subprocess.Popen[str],
        config: Path,
        servers: str,
        client: str,
        *more: str,
        until_end: bool = False,
    ) -> None:
        changes = [f'kafka.bootstrap_servers="{servers}"', f'confluent.bootstrap.servers="{servers}"', *more]
        changes += [f"{room}.kind={client}" for room in ("source", "sink", "dead_letters.sink")]
        words = ["run", str(config), *["--until-end"] * until_end]
        words += [word for change in changes for word in ("--set", change)]
        self.said: list[str] = []
        self._ready = threading.Event()
        pipe = config.with_name("stderr")
        os.mkfifo(pipe)
        assert starter.stdin is not None
        assert starter.stdout is not None
        lines = os.fdopen(os.open(pipe, os.O_RDWR))  # does not wait for whoever will write
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
        """Until it reads, or has ended."""
        assert self._ready.wait(120), self.said

    def is_alive(self) -> bool:
        """Whether it goes on."""
        return self._reader.is_alive()

    def signal(self, number: signal.Signals) -> None:
        """Send one, unless it has ended."""
        if self.is_alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """As the kernel does, at once."""
        self.signal(signal.SIGKILL)
        self.ended()

    def ended(self, timeout_s: float = 60) -> int:
        """Its exit code, which is a documented one, said without a traceback."""
        self._reader.join(timeout_s)
        assert not self.is_alive(), self.said
        said, code = "".join(self.said), int(self.said[-1].removeprefix("exit "))
        # Seed 102: a SIGTERM for a process that has said why it ends, and is on its way out.
        on_its_way = code == -signal.SIGTERM and LAST_WORDS.search(said)
        # Seed 405: librdkafka aborts the process in place of an error; for the state it is one more kill.
        upstream = code == -signal.SIGABRT and ABORTED_BY_LIBRDKAFKA in said
        assert code in DOCUMENTED or on_its_way or upstream, said
        assert "Traceback" not in said, said
        return code


class Accidents:
    """One engine after another on the same topics and snapshots, and what befalls them.

    Parameters
    ----------
    starter : subprocess.Popen of str
        A process of `tests.transports.kafka.warm`.
    pipe : Pipeline
    broker : Broker
    proxy : Proxy
    address : str
        The proxy's.
    draw : random.Random

    Attributes
    ----------
    child : Child
        The engine of now, alive or dead.
    counted : Counter of str
        Accidents by name.
    damaged : bool
        Whether a snapshot was damaged since this was last set to false: positions may go back.
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
        """Another engine, through either client: each goes on where the other was."""
        client = self._draw.choice(CLIENTS)
        return Child(self._starter, self._pipe.config, self._address, client, until_end=until_end)

    def befall(self, number: int) -> None:
        """The accident of that number; the engine is started again where the one before ended it."""
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
        """The operating system refuses to let a file grow: as a full disk, half-way through a snapshot."""
        if self.child.is_alive():
            pid = self.child.pid
            limit = self._draw.choice([0, 4096, 20_000])
            with suppress(ProcessLookupError):
                hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))
                time.sleep(self._draw.uniform(0.1, 0.4))
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))

    def _second_learner(self) -> None:
        """Refused while the first lives; where that one was about to end, it has taken over."""
        other = self.start()
        other.wait_until_ready()
        if any("ready at" in line for line in other.said):
            self.child.ended()
            self.child = other
        else:
            code, said = other.ended(), "".join(other.said)
            assert code == UNREACHABLE or "in use by another learner" in said, said

    def _damaged_snapshot(self) -> None:
        """A bit of the newest turns over while nobody runs; the one before is whole."""
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
        with suppress(BrokerError):  # a busy machine may not have it up within its minute
            self._broker.start()
        self._broker.start()


def loaded(path: Path) -> Snapshot | None:
    """A snapshot, if it can be read: an engine may be pruning, and a bit may have turned over."""
    try:
        return read_snapshot(path)
    except StorageError:
        return None


def assert_modest(child: Child) -> None:
    """I9: descriptors and threads of a process that has just started do not depend on what befell others."""
    try:
        home = Path(f"/proc/{child.pid}")
        assert len(list((home / "fd").iterdir())) < 100
        assert len(list((home / "task").iterdir())) < 50
    except (FileNotFoundError, ProcessLookupError):
        assert child.ended()
