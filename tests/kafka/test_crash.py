"""Everything that can befall an engine on a real broker, at random moments, and what must hold afterwards.

``pytest tests/kafka/test_crash.py --kills 1000 --seed 7`` is the campaign. The accidents: ``kill -9``, a
pause (SIGSTOP), SIGTERM, connections cut at once or between request and response, a disk that takes no more,
and the broker itself killed and started again. The oracle is a plain loop over the same lines.
"""

from __future__ import annotations

import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.kafka.broker import Broker
from streamnb import assembly, snapshots
from streamnb.errors import SnapshotError, StorageError
from streamnb.snapshot import Snapshot
from tests.kafka.conftest import start_or_skip
from tests.kafka.proxy import Proxy, broker_behind_proxy
from tests.kafka.test_pipeline import (
    Pipeline,
    assert_every_message_is_scored_in_order,
    assert_scores_are_from_before_their_label,
    batch_of,
    order_free_digest,
    pipeline,
    plain_loop,
)
from tests.streams import streams_at_hand

DOCUMENTED = {0, 69, 74, 75, -signal.SIGKILL}
BROKER_BOUNCE_EVERY, BROKER_BOUNCE_AT = 60, 5


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Proxy, str]]:
    """A broker with a listener behind a proxy; the address of the proxy."""
    broker, proxy, address = broker_behind_proxy(tmp_path_factory.mktemp("broker"))
    start_or_skip(broker)
    with proxy:
        yield broker, proxy, address
    broker.stop()


class Child:
    """The engine as an operator starts it, and what it says."""

    def __init__(self, config: Path, servers: str, *, until_end: bool = False) -> None:
        command = [sys.executable, "-m", "streamnb", "run", str(config)]
        command += ["--set", f'kafka={{bootstrap_servers = "{servers}"}}', *["--until-end"] * until_end]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.said: list[str] = []
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if "ready at" in line:
                self._ready.set()
        self._ready.set()

    def wait_until_ready(self) -> None:
        """Until it reads, or has ended."""
        assert self._ready.wait(60), "".join(self.said)

    def is_alive(self) -> bool:
        """Whether it goes on."""
        return self.process.poll() is None

    def ended(self, timeout_s: float = 60) -> int:
        """Its exit code, which is a documented one, said without a traceback."""
        code = self.process.wait(timeout_s)
        self._reader.join(10)
        assert self.process.stderr is not None
        self.process.stderr.close()
        assert code in DOCUMENTED, "".join(self.said)
        assert "Traceback" not in "".join(self.said), "".join(self.said)
        return code


class Accidents:
    """What may happen to a child; each leaves it alive, or dead by it."""

    def __init__(self, broker: Broker, proxy: Proxy, draw: random.Random) -> None:
        self._broker, self._proxy, self._draw = broker, proxy, draw
        self.counted = Counter[str]()

    def befall(self, child: Child, number: int) -> None:
        """The next accident."""
        if number % BROKER_BOUNCE_EVERY == BROKER_BOUNCE_AT:
            self._do(self._broker_bounce, child)
            return
        kinds: list[Callable[[Child], None]] = [
            *[self._kill] * 4,
            self._terminate,
            self._pause,
            self._cut,
            self._cut_response,
            self._full_disk,
        ]
        self._do(self._draw.choice(kinds), child)

    def _do(self, accident: Callable[[Child], None], child: Child) -> None:
        self.counted[accident.__name__.strip("_")] += 1
        accident(child)

    def _kill(self, child: Child) -> None:
        child.process.kill()
        assert child.ended() in DOCUMENTED

    def _terminate(self, child: Child) -> None:
        child.process.terminate()
        child.ended()

    def _pause(self, child: Child) -> None:
        child.process.send_signal(signal.SIGSTOP)
        time.sleep(self._draw.uniform(0.0, 0.3))
        child.process.send_signal(signal.SIGCONT)

    def _cut(self, child: Child) -> None:
        del child
        self._proxy.cut("now")

    def _cut_response(self, child: Child) -> None:
        del child
        self._proxy.cut("before the response")

    def _full_disk(self, child: Child) -> None:
        """The operating system refuses to let a file grow: as a full disk, half-way through a snapshot."""
        if child.is_alive():
            hard = resource.prlimit(child.process.pid, resource.RLIMIT_FSIZE)[1]
            limit = self._draw.choice([0, 4096, 20_000])
            resource.prlimit(child.process.pid, resource.RLIMIT_FSIZE, (limit, hard))
            time.sleep(self._draw.uniform(0.1, 0.4))
            if child.is_alive():
                resource.prlimit(child.process.pid, resource.RLIMIT_FSIZE, (hard, hard))

    def _broker_bounce(self, child: Child) -> None:
        del child
        self._broker.kill()
        self._broker.start()


def newest_of(directory: Path) -> Snapshot | None:
    """The newest snapshot that can be loaded, looked at as anybody may while an engine writes."""
    for path in sorted(directory.glob("snapshot-*.snb"), reverse=True):
        try:
            return snapshots.read(path)
        except SnapshotError:
            continue
        except StorageError:  # let go of meanwhile
            continue
    return None


def assert_newest_is_its_prefix(pipe: Pipeline, before: Snapshot | None) -> Snapshot | None:
    """I5 and I6: exactly the records before its offsets; numbers and offsets do not go back."""
    newest = newest_of(pipe.directory)
    if newest is None:
        assert before is None
        return None
    ends = {partition.number: account.next_offset for partition, account in newest.accounts.items()}
    model, decoder = assembly.model(pipe.settings), assembly.decoder(pipe.settings)
    for batch in pipe.batches():
        values = [value or b"" for value in batch.values[: ends.get(batch.partition.number, 0)]]
        prefix = batch_of(batch.partition.topic, batch.partition.number, values)
        model.step(decoder.decode(prefix).batch, score=False)
    assert model.digest()["order_free"] == newest.digest["order_free"]
    assert all(account.balance() == 0 for account in newest.accounts.values())
    if before is not None:
        assert newest.sequence >= before.sequence
        assert all(newest.accounts[one].next_offset >= at.next_offset for one, at in before.accounts.items())
    return newest


def assert_modest(child: Child) -> None:
    """I9: descriptors and threads of a process that has just started do not depend on what befell others."""
    try:
        home = Path(f"/proc/{child.process.pid}")
        assert len(list((home / "fd").iterdir())) < 100
        assert len(list((home / "task").iterdir())) < 50
    except FileNotFoundError:
        assert not child.is_alive()


@pytest.mark.crash
@pytest.mark.timeout(0)
@pytest.mark.parametrize("partitions", [1, 3])
def test_C1_C3_B2_B3_nothing_that_befalls_it_loses_or_doubles_a_message(
    proxied: tuple[Broker, Proxy, str], tmp_path: Path, partitions: int, kills: int, seed: int
) -> None:
    """Every label once, every message scored, in order, by a state from before its label; I1 to I9."""
    broker, proxy, address = proxied
    draw = random.Random(f"{seed}/{partitions}")
    (stream,) = streams_at_hand("sms")
    accidents = Accidents(broker, proxy, draw)
    pipe = pipeline(
        broker.address, tmp_path, stream, partitions, times=max(1, kills // 20), batch_records_max=20
    )
    child, newest = Child(pipe.config, address), None
    for number in range(kills // 2):
        if not child.is_alive():
            child.ended()
            child = Child(pipe.config, address)
        child.wait_until_ready()
        assert_modest(child)
        time.sleep(draw.uniform(0.0, 0.08))
        accidents.befall(child, number)
        if number % 5 == 0:
            newest = assert_newest_is_its_prefix(pipe, newest)
    if child.is_alive():
        child.process.terminate()
        child.ended()
    for _ in range(5):  # the broker may have been away when the last one began
        if (last := Child(pipe.config, address, until_end=True)).ended(300) == 0:
            break
    assert_newest_is_its_prefix(pipe, newest)

    assert sum(accidents.counted.values()) == kills // 2
    assert [path.name for path in pipe.directory.iterdir() if path.suffix == ".tmp"] == [], "I9"
    assert "stopped after" in "".join(last.said)
    assert_every_message_is_scored_in_order(pipe)
    assert_scores_are_from_before_their_label(pipe, seed)
    assert order_free_digest(pipe) == pipe.digest()["order_free"]
    if partitions == 1:
        assert plain_loop(pipe.config)[1].digest() == pipe.digest()
    print(f"{partitions} partitions: {dict(accidents.counted)}")
