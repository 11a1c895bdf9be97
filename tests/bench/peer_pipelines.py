"""What `throughput.py` measures of peers over Kafka: applications around river that do the engine's job.

Each consumes a topic, scores every message by river's `BagOfWords | MultinomialNB` before it learns its
label, and produces the scores as JSON. It runs as a process of its own, from `peers`. Its messages per second
are those from the first score to the last, by the times at which the broker appended them, so that its start
is not measured.

The peers have an environment of their own, made at their first run: quixstreams wants an older
confluent-kafka than streamnb's constraints name.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
import venv
from collections.abc import Sequence
from pathlib import Path

from kafka.admin import KafkaAdminClient, NewTopic

from deploy.kafka.broker import CACHE
from tests.bench.common import progress

PEERS = {"Quix Streams around river": "quix.py", "Bytewax around river": "waxed.py"}
REQUIREMENTS = ("quixstreams==3.28.1", "bytewax==0.21.1", "river==0.26.1", "orjson>=3.10")
MESSAGES_MAX = 20_000  # of a run: they take several seconds
INSTALL_S = 900
RUN_S = 600
STAMPED = {"message.timestamp.type": "LogAppendTime"}


def environment() -> Path | None:
    """Return the Python of the peers' environment, or ``None`` with a reason where it cannot be made."""
    folder = CACHE / f"bench-peers-{sys.version_info.major}.{sys.version_info.minor}"
    python, ready = folder / "bin" / "python", folder / "requirements.txt"
    wanted = "\n".join(REQUIREMENTS)
    if ready.is_file() and ready.read_text() == wanted:
        return python
    progress(f"installing the peers into {folder}")
    try:
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *REQUIREMENTS]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_S)
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()
        progress(f"The peers' rows are left out: they could not be installed. {said[-1] if said else error}")
        return None
    ready.write_text(wanted)
    return python


class Peers:
    """The peers over one broker, on topics of their own.

    Parameters
    ----------
    address : str
    lines : sequence of bytes
        Of which the first `MESSAGES_MAX` are read.
    partitions : int
        Of their topics.
    python : Path
        Of their environment.

    Attributes
    ----------
    processor_s : float
        The processor time of the last run for each message, from the first one on.
    """

    processor_s = 0.0

    def __init__(self, address: str, lines: Sequence[bytes], partitions: int, python: Path) -> None:
        from streamnb.transports.kafka import KafkaSink

        self._address = address
        self._client: dict[str, object] = {"bootstrap_servers": address}
        self._partitions = partitions
        self._python = python
        self._lines = lines[:MESSAGES_MAX]
        self._input = f"streamnb-bench-peers-{uuid.uuid4().hex[:8]}"
        self._create(self._input)
        sink = KafkaSink(self._input, self._client)
        for number in range(partitions):
            values = list(self._lines[number::partitions])
            sink.publish(number, values, [None] * len(values), [()] * len(values))
        sink.flush(60_000)
        sink.close()

    def _create(self, topic: str) -> None:
        with KafkaAdminClient(**self._client) as admin:
            admin.create_topics([NewTopic(topic, self._partitions, 1, topic_configs=STAMPED)])

    def close(self) -> None:
        """Delete the input."""
        self._delete(self._input)

    def _delete(self, topic: str) -> None:
        with KafkaAdminClient(**self._client) as admin:
            admin.delete_topics([topic])

    def run(self, script: str) -> float:
        """Run one peer over the whole input; messages per second."""
        scores = f"{self._input}-{uuid.uuid4().hex[:8]}"
        self._create(scores)
        path = Path(__file__).with_name("peers") / script
        words = [self._address, self._input, scores, str(len(self._lines))]
        try:
            command = [str(self._python), str(path), *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
            if done.returncode:
                raise RuntimeError(f"{script} ended with exit code {done.returncode}: {done.stderr[-2000:]}")
            self.processor_s = float(done.stdout.splitlines()[-1]) / len(self._lines)
            return speed(appended(self._client, scores), len(self._lines))
        finally:
            self._delete(scores)


def appended(client: dict[str, object], topic: str) -> list[int]:
    """Return the times at which the broker appended the records of a topic, in milliseconds since 1970."""
    from streamnb.transports.kafka import KafkaSource

    times: list[int] = []
    source = KafkaSource([topic], client)
    try:
        source.open({}, "earliest")
        n = sum(source.end_offsets().values())
        while len(times) < n:
            for records in source.poll(5000, 500):
                times += records.timestamps_ms
    finally:
        source.close()
    return sorted(times)


def speed(times_ms: Sequence[int], n: int) -> float:
    """Return records per second from the first to the last of `n`, without those appended with the first.

    Examples
    --------
    >>> speed([0, 0, 500, 1000], 4)
    2.0
    """
    assert len(times_ms) == n, f"{len(times_ms)} scores of {n} messages"
    later = n - times_ms.count(times_ms[0])
    return 1000 * later / max(1, times_ms[-1] - times_ms[0])
