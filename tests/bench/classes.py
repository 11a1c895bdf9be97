"""The cost of a message and of a token against the number of classes, beside another checkout in one run.

``python tests/bench/classes.py [--classes N ...] [--tokens N] [--known N] [--new SHARE] [--rounds R]
[--seed S] [--against PYTHONPATH] [--json]``

The stream is generated: all classes are known from the start, and about ten of them know each token. A round
is a batch that is scored and learned. With ``--against`` a process with another checkout runs the same rounds
in turn with this one, so that both meet the same machine; time is the processor's. A speed is the median of
the rounds, and a ratio the median of the ratios within each round.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

from tests.bench.common import ROOT, machine, markdown, progress, ratio, versions

WORKER = Path(__file__).with_name("classes_worker.py")
CONFIGS = ("textbook.toml", "spam.toml -trust", "spam.toml")  # the second one leaves trust out
WARM_ROUNDS = 2  # whose times count in nothing

Round = dict[str, float]
"""What a worker answers: seconds per message, log loss, bytes per token."""


class Worker:
    """A process that holds one model.

    Parameters
    ----------
    wanted : dict
        The stream and the configuration, for `classes_worker.py`.
    path : str or None
        The ``PYTHONPATH`` of another checkout.
    """

    def __init__(self, wanted: dict[str, Any], path: str | None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), json.dumps(wanted)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(ROOT) if path is None else path},
            text=True,
        )

    def round(self) -> Round:
        """Run one round.

        Raises
        ------
        RuntimeError
            The process has ended; it says why on stderr.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a process of the bench has ended")
        found: Round = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compared(wanted: dict[str, Any], rounds: int, against: str | None) -> dict[str, float]:
    """Run the rounds of one configuration and number of classes; return the row of the table."""
    workers = [Worker(wanted, path) for path in (None, against)[: 1 + (against is not None)]]
    try:
        found = [[worker.round() for worker in workers] for _ in range(rounds + WARM_ROUNDS)][WARM_ROUNDS:]
    finally:
        for worker in workers:
            worker.close()
    ours = [each[0] for each in found]
    row = {
        "messages_per_s": 1 / median(one["seconds"] for one in ours),
        "message_us": 1e6 * median(one["seconds"] for one in ours),
        "bytes_per_token": ours[-1]["bytes"],
        "log_loss": sum(one["log_loss"] for one in ours) / rounds,
    }
    if against is not None:
        theirs = [each[1] for each in found]
        row |= {
            "their_messages_per_s": 1 / median(one["seconds"] for one in theirs),
            "times_their_speed": median(a["seconds"] / b["seconds"] for b, a in found),
            "their_bytes_per_token": theirs[-1]["bytes"],
            "of_their_bytes": ours[-1]["bytes"] / theirs[-1]["bytes"],
            "their_log_loss": sum(one["log_loss"] for one in theirs) / rounds,
        }
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    header = ["model", "classes", "messages/s", "a message, us", "bytes per token", "log loss"]
    if "their_messages_per_s" in rows[0]:
        header += ["the other's messages/s", "times that", "its bytes per token", "of those", "its log loss"]
    cells = []
    for row in rows:
        each = [
            row["config"].replace(" -trust", " without trust"),
            f"{row['classes']:,}",
            f"{row['messages_per_s']:,.0f}",
            f"{row['message_us']:.1f}",
            f"{row['bytes_per_token']:,.0f}",
            f"{row['log_loss']:.4f}",
        ]
        if len(header) > len(each):
            each += [
                f"{row['their_messages_per_s']:,.0f}",
                ratio(row["times_their_speed"]),
                f"{row['their_bytes_per_token']:,.0f}",
                ratio(row["of_their_bytes"]),
                f"{row['their_log_loss']:.4f}",
            ]
        cells.append(each)
    return markdown(header, cells)


def main() -> int:
    """Run, print, return 0."""
    parser = argparse.ArgumentParser(description="The cost of a message against the number of classes.")
    parser.add_argument("--classes", type=int, nargs="+", default=[20, 50, 200, 1_000, 2_000])
    parser.add_argument("--configs", nargs="+", choices=CONFIGS, default=CONFIGS, help="(all)")
    parser.add_argument("--tokens", type=int, default=20, help="words of a message (%(default)s)")
    parser.add_argument("--known", type=int, default=10, help="classes that know a word (%(default)s)")
    parser.add_argument("--new", type=float, default=0.01, help="share of words never seen (%(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=11, help="of 500 messages; the median counts (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--against", metavar="PYTHONPATH", help="another checkout, with its kernel built")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of Markdown")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for config in options.configs:
        for n_classes in options.classes:
            wanted = {"config": config, "classes": n_classes} | {
                name: getattr(options, name) for name in ("tokens", "known", "new", "seed")
            }
            rows.append(wanted | compared(wanted, options.rounds, options.against))
            progress(f"{config}, {n_classes} classes: {rows[-1]['message_us']:.1f} us a message")
    if options.json:
        print(json.dumps({"machine": machine(), "versions": versions(("numpy",)), "rows": rows}))
        return 0
    print(machine())
    print(f"{options.tokens} tokens a message, {options.new:.0%} of them new; {options.rounds} rounds\n")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
