"""How much memory a whole engine takes, and how fast it is, while messages try to fill its memory.

Each stream is written into a file, and `streamnb run` reads it with the default limits and a snapshot per
second. The peak is that of the process. The target is 480 MB.

    python tests/bench/memory.py [--messages 20000]
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

CONFIG = """
[message]
text = ["text"]
category = ["sender"]
[[views]]
name = "words"
reader = { kind = "words" }
[[views]]
name = "who"
reader = { kind = "categories", fields = ["sender"] }
"""
LONG = "𐐀𐐁𐐂𐐃𐐄𐐅𐐆𐐇"
Message = dict[str, object]


def clean(draw: random.Random, n: int) -> Iterator[Message]:
    """Yield messages of 15 words out of 20,000, with two labels."""
    for _ in range(n):
        words = [f"w{int(draw.paretovariate(0.8)) % 20_000}" for _ in range(15)]
        yield {"text": " ".join(words), "label": draw.choice(["spam", "ham"])}


def invented_labels(draw: random.Random, n: int) -> Iterator[Message]:
    """Yield messages whose tokens are all new; one label in twenty is new too."""
    for _ in range(n):
        label = f"l{draw.getrandbits(30)}" if draw.random() < 0.05 else draw.choice(["spam", "ham"])
        yield {"text": " ".join(f"t{draw.getrandbits(40)}" for _ in range(15)), "label": label}


def new_tokens(draw: random.Random, n: int) -> Iterator[Message]:
    """Yield messages of 200 new tokens each, which fill the budget of the counts."""
    for _ in range(n):
        yield {"text": " ".join(f"t{draw.getrandbits(40)}" for _ in range(200)), "label": draw.choice("ab")}


def long_tokens(draw: random.Random, n: int) -> Iterator[Message]:
    """Yield messages of 400 tokens of 64 letters with four bytes each, all new."""
    for _ in range(n // 10):
        text = " ".join("".join(draw.choices(LONG, k=64)) for _ in range(400))
        yield {"text": text, "label": draw.choice("ab")}


def long_categories(draw: random.Random, n: int) -> Iterator[Message]:
    """Yield categories of nearly 1 MiB, all different."""
    for i in range(n // 10):
        yield {"text": "hello", "sender": f"{i}" + "x" * 1_000_000, "label": draw.choice("ab")}


def bombs(draw: random.Random, n: int) -> Iterator[Message]:
    """Yield messages with a field that is not read and becomes many small objects."""
    for _ in range(n // 100):
        yield {"text": "hello", "x": [{}] * 300_000, "label": draw.choice("ab")}


STREAMS: dict[str, Callable[[random.Random, int], Iterator[Message]]] = {
    "clean": clean,
    "new tokens, 5 % invented labels": invented_labels,
    "200 new tokens per message": new_tokens,
    "tokens of 256 bytes": long_tokens,
    "categories of 1 MB": long_categories,
    "JSON of many objects": bombs,
}


def run(lines: Path) -> tuple[float, int]:
    """Run the engine over a file; return seconds, start included, and the peak of its memory in KiB."""
    with tempfile.TemporaryDirectory() as folder:
        (config := Path(folder) / "memory.toml").write_text(CONFIG)
        command = [
            *(sys.executable, "-m", "streamnb", "run", str(config), "--until-end"),
            *("--set", f'source={{kind="jsonl", path="{lines}"}}', "--set", 'engine.start="earliest"'),
            *("--set", f'sink={{kind="jsonl", path="{folder}/scores"}}'),
            *("--set", f'dead_letters.sink={{kind="jsonl", path="{folder}/dead"}}'),
            *("--set", f'snapshots.directory="{folder}/snapshots"', "--set", "snapshots.interval_s=1"),
            *("--set", "dead_letters.ratio_max=1"),
        ]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        took = time.perf_counter() - began
        if status:
            sys.exit(said.decode())
    return took, usage.ru_maxrss


def main() -> None:
    """Print a table of all streams."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=20_000)
    n = parser.parse_args().messages
    print(f"{'stream':34} {'messages':>9} {'MB':>7} {'s':>6} {'messages/s':>11} {'MB/s':>6} {'peak MB':>8}")
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        start_s, _ = run(Path(file.name))
    print(f"{'no message: its time is taken off the others':61} {start_s:6.1f}")
    for name, stream in STREAMS.items():
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            count = sum(
                1 for message in stream(random.Random(1), n) if file.write(orjson.dumps(message) + b"\n")
            )
            file.flush()
            size = Path(file.name).stat().st_size / 1e6
            took, peak = run(Path(file.name))
        took = max(0.1, took - start_s)
        print(
            f"{name:34} {count:9,} {size:7.1f} {took:6.1f} {count / took:11,.0f} {size / took:6.1f} "
            f"{peak * 1024 / 1e6:8.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
