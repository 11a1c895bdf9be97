"""What the benches share: the streams they run over, the machine they run on, the tables they print."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import orjson

from streamnb.storage.lines import open_lines

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
STREAMS = ("sms", "agnews", "tweets", "enron1", "enron2", "enron4", "enron6", "spamassassin")
LINE_BYTES_MAX = 64 << 20


@dataclass(slots=True)
class Stream:
    """A labelled stream in memory, in file order.

    Parameters
    ----------
    name : str
    texts, labels : list of str
        One a message.
    """

    name: str
    texts: list[str]
    labels: list[str]

    @property
    def classes(self) -> list[str]:
        """In order of appearance."""
        return list(dict.fromkeys(self.labels))

    def __len__(self) -> int:
        return len(self.labels)


def stream_path(data: Path, name: str) -> Path:
    """Where a stream lies in a folder of streams."""
    return data / f"{name}.jsonl.gz"


def read_lines(path: Path) -> list[bytes]:
    """Every line of a file of JSON lines, in order.

    Raises
    ------
    DataError
        It cannot be read.
    """
    lines: list[bytes] = []
    with open_lines(path, LINE_BYTES_MAX) as reader:
        while found := reader.read_lines(1000):
            lines.extend(line for line in found if isinstance(line, bytes))
    return lines


def read_stream(data: Path, name: str) -> Stream:
    """A stream of a folder, decoded.

    Raises
    ------
    DataError
        It cannot be read.
    """
    messages = [orjson.loads(line) for line in read_lines(stream_path(data, name))]
    return Stream(name, [message["text"] for message in messages], [message["label"] for message in messages])


def machine() -> str:
    """The machine in one line: processor, cores, Python, and how busy it was when asked."""
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}; load average {load}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def versions(packages: Sequence[str]) -> dict[str, str]:
    """The installed version of each distribution, streamnb's own from its source."""
    from streamnb import __version__

    return {"streamnb": __version__, **{package: version(package) for package in packages}}


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """A Markdown table; the first `texts` columns are text, the others are numbers."""
    rule = ["---" if column < texts else "---:" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def ratio(value: float) -> str:
    """A ratio to as many digits as a bench can tell apart.

    Examples
    --------
    >>> ratio(0.4123), ratio(123.4)
    ('0.41', '123')
    """
    if value < 0.1:
        return f"{value:.3f}"
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def progress(text: str) -> None:
    """Say on stderr what was just done: a bench takes minutes."""
    print(text, file=sys.stderr, flush=True)
