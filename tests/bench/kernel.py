"""The kernel beside its peers and beside reading the text, on one core, in one run.

``python tests/bench/kernel.py [STREAM ...] [--runs R] [--data DIR] [--json]
[--vocabulary] [--classes] [--length] [--memory] [--flood] [--snapshots] [--largest N] [--folder DIR]``

Each contender passes over each stream, from texts in memory to scored and learned, in batches of 1,000 where
it takes batches; the contenders take turns, so that all meet the same machine. Time is the processor's, not
the wall clock's, except for the longest step and the snapshots. Speeds are medians of the runs, ratios
medians of the ratios within each run. With one of the further flags that part runs instead:
cost against vocabulary, classes and length, bytes a token, snapshots. Targets are printed beside what was
measured; nothing is asserted.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import orjson

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.errors import StreamnbError
from streamnb.naive_bayes import _kernel
from tests.bench.common import (
    DATA,
    Stream,
    machine,
    markdown,
    progress,
    ratio,
    read_stream,
    stream_path,
    versions,
)
from tests.bench.kernel_contenders import BOGOFILTER, RIVER, WC, Pass, contenders
from tests.bench.kernel_flood import by_flood
from tests.bench.kernel_growth import Row, by_classes, by_length, by_memory, by_vocabulary
from tests.bench.kernel_snapshots import by_snapshots
from tests.bench.kernel_targets import Runs, over, target_rows

PACKAGES = ("river", "scikit-learn", "vowpalwabbit", "numpy")
PARTS = {
    "vocabulary": "cost of a token against the vocabulary, and the longest step while it grows",
    "classes": "cost against the number of classes",
    "length": "cost against the length of a message",
    "memory": "bytes a token",
    "flood": "memory and accuracy under words that come once, against a bound on tokens",
    "snapshots": "freeze, write, load and verify beside the bare file",
}
CORES = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()
RUN_SECONDS_MIN = 0.3  # a fast contender passes over a stream until that is over


def pin() -> int | None:
    """Hold this process and its children to one core; which, or ``None`` where that cannot be done."""
    if not CORES:
        return None
    core = max(CORES)
    os.sched_setaffinity(0, {core})
    return core


@contextmanager
def on_every_core() -> Iterator[None]:
    """Release the one core for a while: snapshots are read by two threads, and timed by the wall clock."""
    pinned = os.sched_getaffinity(0) if CORES else set()
    if CORES:
        os.sched_setaffinity(0, CORES)
    try:
        yield
    finally:
        if CORES:
            os.sched_setaffinity(0, pinned)


def run_seconds(act: Pass) -> float:
    """The median pass of one run."""
    gc.collect()
    passes: list[float] = []
    began = time.perf_counter()
    while time.perf_counter() - began < RUN_SECONDS_MIN:
        passes.append(act())
    return median(passes)


def compare(stream: Stream, runs: int, folder: Path) -> Runs:
    """All contenders on a stream, in turn."""
    compared = contenders(stream, folder)
    for name in (BOGOFILTER, WC):
        if name not in compared:
            progress(f"{name} is left out: it is not installed, or {stream.name} has not two classes.")
    found: Runs = {name: [] for name in compared}
    for run in range(runs):
        for name, act in compared.items():
            found[name].append(run_seconds(act))
        progress(f"{stream.name}: run {run + 1} of {runs}")
    return found


def speed_table(stream: Stream, found: Runs) -> str:
    """A row a contender: its speed, times river's, and its time beside reading the text."""
    size = text_bytes(stream)
    rows = []
    for name, seconds in found.items():
        middle = median(seconds)
        rows.append(
            [
                name,
                f"{len(stream) / middle:,.0f}",
                number(middle / len(stream) * 1e6),
                number(size / middle / 1e6),
                ratio(over(found[RIVER], seconds)),
                ratio(over(seconds, found[WC])) if WC in found else "-",
            ]
        )
    header = [stream.name, "messages/s", "a message, us", "MB/s", "times river", f"its time / `{WC}`"]
    return markdown(header, rows)


def text_bytes(stream: Stream) -> int:
    """Bytes of a stream's texts, a line each."""
    return sum(len(text.encode("utf-8", "surrogatepass")) + 1 for text in stream.texts)


def number(value: float | str) -> str:
    """To three digits or so, texts as they are.

    Examples
    --------
    >>> number(1234.5), number(12.34), number(1.234), number("-")
    ('1,234', '12.3', '1.23', '-')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def rows_table(rows: Sequence[Row], texts: int = 1) -> str:
    """Rows of the same names as a table."""
    return markdown(list(rows[0]), [[number(value) for value in row.values()] for row in rows], texts)


def tools() -> list[str]:
    """The versions of what was not installed with Python."""
    found = []
    for command in (["bogofilter", "-V"], ["wc", "--version"]):
        try:
            said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        except FileNotFoundError:
            continue
        found += said.splitlines()[:1]
    return found


def further(options: argparse.Namespace, folder: Path) -> dict[str, list[Row]]:
    """The parts whose flags were given."""

    def snapshots() -> list[Row]:
        with on_every_core():
            return by_snapshots(options.largest, folder)

    parts: dict[str, Callable[[], list[Row]]] = {
        "vocabulary": lambda: by_vocabulary(options.largest),
        "classes": by_classes,
        "length": by_length,
        "memory": lambda: by_memory(options.largest),
        "flood": lambda: by_flood(read_stream(options.data, "sms"), options.largest),
        "snapshots": snapshots,
    }
    return {name: part() for name, part in parts.items() if getattr(options, name)}


def streams_found(wanted: Sequence[str], data: Path) -> list[Stream]:
    """The streams that are there; of the others it is said where they were looked for.

    Raises
    ------
    DataError
        One is there and cannot be read.
    """
    found = []
    for name in wanted:
        if stream_path(data, name).is_file():
            found.append(read_stream(data, name))
        else:
            progress(f"There is no stream {name}: looked for {stream_path(data, name)}.")
    return found


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="The compiled kernel beside its peers, on one core.")
    parser.add_argument("streams", nargs="*", metavar="STREAM", help="by default sms and enron1")
    parser.add_argument("--runs", type=int, default=5, help="the median counts (%(default)s)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of STREAM.jsonl.gz (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of Markdown")
    for name, what in PARTS.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"instead: {what}")
    parser.add_argument("--largest", type=int, default=10**7, help="vocabulary of the parts (%(default)s)")
    parser.add_argument("--folder", type=Path, help="where snapshots are written, by default a temporary one")
    options = parser.parse_args()
    if options.runs < 1 or not 10**4 <= options.largest <= 10**7:
        parser.error("--runs must be at least 1, and --largest from 10000 to 10000000")
    if not options.streams and not any(getattr(options, name) for name in PARTS):
        options.streams = ["sms", "enron1"]
    return options


def main() -> int:
    """Run, print, return the exit code."""
    options = parsed()
    if not _kernel.compiled:
        print(f"There is no kernel to measure: {_kernel.reason}.", file=sys.stderr)
        return 2
    core = pin()
    on, with_versions = machine(), versions(PACKAGES)
    results: dict[str, Runs] = {}
    try:
        streams = streams_found(options.streams, options.data)
        with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
            folder = Path(temporary)
            for stream in streams:
                results[stream.name] = compare(stream, options.runs, folder)
            parts = further(options, folder)
    except StreamnbError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    targets = target_rows(results, parts)
    if options.json:
        answer = {
            "machine": on,
            "core": core,
            "versions": with_versions,
            "tools": tools(),
            "streams": {
                stream.name: {
                    "messages": len(stream),
                    "bytes": text_bytes(stream),
                    "seconds": results[stream.name],
                }
                for stream in streams
            },
            "targets": targets,
            **parts,
        }
        print(orjson.dumps(answer).decode())
        return 0
    print(f"{on}; {'not pinned' if core is None else f'pinned to core {core}'}")
    print(", ".join([*(f"{package} {number}" for package, number in with_versions.items()), *tools()]))
    for stream in streams:
        print(f"\n{speed_table(stream, results[stream.name])}")
    for rows in parts.values():
        print(f"\n{rows_table(rows)}" if rows else "\nNothing of that size was run.")
    if targets:
        print(f"\n{rows_table(targets, texts=2)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
