"""Processor time per record of reading JSON: by compiled code that leaves doubtful records, and by orjson.

``python tests/bench/decoding.py [STREAM ...] [--messages N] [--runs R] [--data DIR]``

"Fields" is the reading of the fields of `configs/spam.toml` from the records' bytes into columns, "decode" is
all that makes messages of records, and "engine" is the engine from a file of JSON lines to a file, with its
start. Each is measured with both readers in turn, on the same records in polls of the engine's size; figures
are medians of the runs, a ratio is the median of the ratios within each.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from statistics import median

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from streamnb.base import twins
from streamnb.config import build_decoder
from streamnb.wire import message
from streamnb.wire.fields import read_fields
from tests.bench.common import DATA, machine, markdown, progress, ratio, read_lines, stream_path, versions
from tests.bench.loops import base_settings, batches_of, engine_over_lines

COMPILED = twins.load("streamnb.wire._fields")
STREAMS = ("sms", "enron1")

Costs = dict[str, tuple[list[float], list[float]]]
"""Microseconds per record of each run, by what was measured: of orjson, and of compiled code."""


def works(lines: Sequence[bytes]) -> dict[str, Callable[[], object]]:
    """Return what is measured, by name."""
    settings = base_settings()
    decoder = build_decoder(settings)
    batches = list(batches_of(lines, settings.engine.batch_records_max))
    paths, bytes_max = decoder._paths, decoder.fields.bytes_max

    def fields() -> None:
        for batch in batches:
            message._read_fields(batch.values, paths, bytes_max)

    def decode() -> None:
        for batch in batches:
            decoder.decode(batch)

    def engine() -> None:
        with tempfile.TemporaryDirectory() as folder:
            engine_over_lines(lines, Path(folder))

    return {"fields": fields, "decode": decode, "engine": engine}


def run(lines: Sequence[bytes], runs: int) -> Costs:
    """Measure each work with both readers, one after the other, as many times as asked."""
    assert COMPILED is not None
    costs: Costs = {}
    measured = works(lines)
    for number in range(1, runs + 1):
        for name, work in measured.items():
            for i, read in enumerate((read_fields, COMPILED.read_fields)):
                message._read_fields = read
                try:
                    gc.collect()
                    began_s = time.process_time()
                    work()
                    spent_s = time.process_time() - began_s
                finally:
                    message._read_fields = COMPILED.read_fields
                costs.setdefault(name, ([], []))[i].append(1e6 * spent_s / len(lines))
            progress(f"run {number}, {name}: {costs[name][0][-1]:.2f} and {costs[name][1][-1]:.2f} us")
    return costs


def table(found: dict[str, Costs]) -> str:
    """A row for each stream and work."""
    rows = []
    for stream, costs in found.items():
        for name, (plain, compiled) in costs.items():
            times = median(one / other for one, other in zip(plain, compiled, strict=True))
            rows.append([stream, name, f"{median(plain):.2f}", f"{median(compiled):.2f}", ratio(times)])
    header = ["stream", "what", "orjson, us per record", "compiled, us per record", "times as fast"]
    return markdown(header, rows, texts=2)


def main() -> int:
    """Run, print, return the exit code."""
    parser = argparse.ArgumentParser(description="Processor time per record of reading JSON.")
    parser.add_argument(
        "streams", nargs="*", default=STREAMS, metavar="STREAM", help="by default sms, enron1"
    )
    parser.add_argument("--messages", type=int, default=40_000, help="records of a run (%(default)s)")
    parser.add_argument("--runs", type=int, default=9, help="the median counts (%(default)s)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the streams (%(default)s)")
    options = parser.parse_args()
    if min(options.messages, options.runs) < 1:
        parser.error("--messages and --runs must be at least 1")
    if COMPILED is None:
        print("the compiled reader was not built, or is not wanted", file=sys.stderr)
        return 1
    on, found = machine(), dict[str, Costs]()
    for name in options.streams:
        path = stream_path(options.data, name)
        if not path.is_file():
            progress(f"There is no {name} stream: looked for {path}.")
            continue
        progress(name)
        found[name] = run(list(islice(cycle(read_lines(path)), options.messages)), options.runs)
    print(on)
    print(", ".join(f"{package} {number}" for package, number in versions(("orjson",)).items()))
    print(f"{options.messages:,} records; the median of {options.runs} runs\n\n{table(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
