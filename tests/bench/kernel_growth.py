"""How the compiled kernel's cost and memory grow: with the vocabulary, the classes, the length of a message.

The tokens are made, not read: six to twelve letters, nine in the mean, all different. The settings are those
of `textbook.toml` and `spam.toml`, without their bound on memory.
"""

from __future__ import annotations

import gc
import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from streamnb.base.batch import Batch, Label
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from tests.bench.common import progress
from tests.bench.kernel_contenders import SPAM, TEXTBOOK, built, processor_seconds, river_model, shipped

PER_MESSAGE = 100  # tokens
BATCH = 1_000  # messages
SCRAMBLE, NAMES = 7_654_321, 26**5  # coprime: a number's five letters are its own
TWO: tuple[Label, ...] = ("a", "b")
RUNS = 5
BYTES_OF_A_TOKEN = 400  # that a process must find free to grow: arrays, their copies in growing, texts

Row = dict[str, float | str]
"""A row of a table: names end in units."""


def texts_of(numbers: NDArray[np.int64], per_message: int = PER_MESSAGE) -> list[str]:
    """Messages of the tokens with these numbers (below 26**5), this many in each.

    Examples
    --------
    >>> [len(text.split()) for text in texts_of(np.arange(6), 3)]
    [3, 3]
    """
    code = numbers * SCRAMBLE % NAMES
    letters = np.full((len(numbers), 13), ord(" "), np.uint8)
    for column in range(5):
        letters[:, column] = code % 26 + ord("a")
        code = code // 26
    rest = numbers * 40_503 % 65_521  # the other letters tell nothing apart
    for column in range(5, 12):
        letters[:, column] = (rest >> column) % 26 + ord("a")
    sizes = rest % 7 + 6
    kept = np.arange(13) < sizes[:, None]
    letters[np.arange(len(numbers)), sizes] = ord(" ")
    kept[np.arange(len(numbers)), sizes] = True
    text = letters[kept].tobytes().decode("ascii")
    ends = np.cumsum(sizes + 1)[per_message - 1 :: per_message].tolist()
    return [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def labels_of(n: int, n_classes: int = 2) -> list[Label | None]:
    """The classes in turn."""
    return [TWO[i % 2] if n_classes == 2 else f"class-{i % n_classes}" for i in range(n)]


def grow(model: NaiveBayes, begin: int, end: int) -> None:
    """Learn the tokens numbered `begin` to `end`, each once, in batches."""
    for first in range(begin, end, PER_MESSAGE * BATCH):
        texts = texts_of(np.arange(first, min(first + PER_MESSAGE * BATCH, end)))
        model.step(Batch({"text": texts}, labels_of(len(texts))), score=False)


def sizes_up_to(largest: int) -> list[int]:
    """Powers of ten from 10^4 on, as far as there is memory for them."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    wanted = [10**power for power in range(4, 8) if 10**power <= largest]
    sizes = [size for size in wanted if size * BYTES_OF_A_TOKEN <= free]
    for size in wanted[len(sizes) :]:
        progress(f"{size:,} tokens are left out: {free >> 20:,} MiB are free.")
    return sizes


def timed(model: NaiveBayes, texts: list[str], n_classes: int = 2) -> float:
    """Seconds of the processor to score and learn messages."""
    batches = [
        Batch({"text": texts[i : i + BATCH]}, labels_of(len(texts[i : i + BATCH]), n_classes))
        for i in range(0, len(texts), BATCH)
    ]
    gc.collect()
    began = processor_seconds()
    for batch in batches:
        model.step(batch)
    return processor_seconds() - began


def by_vocabulary(largest: int) -> list[Row]:
    """Cost of a known token, drawn at random, and the longest step of one message while growing.

    Each message that grows the vocabulary has 100 tokens nobody has seen, in a step of its own.
    """
    rows: list[Row] = []
    for name in (TEXTBOOK, SPAM):
        model, size = built(shipped(name), compiled=True), 0
        rng = np.random.default_rng(1)
        longest = 0.0
        base = 0.0
        for wanted in sizes_up_to(largest):
            steps = _growing_steps(model, size, wanted)
            size, longest = wanted, max(longest, *steps)
            draws = [texts_of(rng.integers(0, size, PER_MESSAGE * BATCH)) for _ in range(RUNS)]
            cost = median(timed(model, texts) for texts in draws) / (PER_MESSAGE * BATCH)
            base = base or cost
            rows.append(
                {
                    "model": name,
                    "vocabulary": size,
                    "a token, ns": cost * 1e9,
                    "times that at 10^4": cost / base,
                    "growing step, median us": median(steps) * 1e6,
                    "p99.9, us": float(np.quantile(steps, 0.999)) * 1e6,
                    "longest so far, ms": longest * 1e3,
                }
            )
            progress(f"vocabulary {size:,}, {name}: {cost * 1e9:.0f} ns a token")
    return rows


def _growing_steps(model: NaiveBayes, begin: int, end: int) -> list[float]:
    steps = []
    for first in range(begin, end, PER_MESSAGE * BATCH):
        texts = texts_of(np.arange(first, min(first + PER_MESSAGE * BATCH, end)))
        batches = [
            Batch({"text": [text]}, [label]) for text, label in zip(texts, labels_of(len(texts)), strict=True)
        ]
        for batch in batches:
            began = time.perf_counter()
            model.step(batch)
            steps.append(time.perf_counter() - began)
    return steps


def by_classes() -> list[Row]:
    """Cost of messages of 100 tokens out of 20,000, with 2, 20 and 200 classes that all hold them."""
    rows: list[Row] = []
    rng = np.random.default_rng(2)
    texts = texts_of(rng.integers(0, 20_000, PER_MESSAGE * 2 * BATCH))
    for name in (TEXTBOOK, SPAM):
        base = 0.0
        for n_classes in (2, 20, 200):
            model = built(shipped(name), compiled=True, classes_max=256)
            timed(model, texts, n_classes)
            seconds = median(timed(model, texts, n_classes) for _ in range(RUNS)) / len(texts)
            base = base or seconds / n_classes
            rows.append(
                {
                    "model": name,
                    "classes": n_classes,
                    "a message, us": seconds * 1e6,
                    "a token and class, ns": seconds / PER_MESSAGE / n_classes * 1e9,
                    "times that at 2": seconds / n_classes / base,
                }
            )
            progress(f"{n_classes} classes, {name}: {seconds * 1e6:.1f} us a message")
    return rows


def by_length() -> list[Row]:
    """Cost of messages of 1 to 10,000 tokens out of 100,000; 200,000 tokens in all each time."""
    rows: list[Row] = []
    rng = np.random.default_rng(3)
    for name in (TEXTBOOK, SPAM):
        model = built(shipped(name), compiled=True)
        grow(model, 0, 100_000)
        for length in (1, 10, 100, 1_000, 10_000):
            texts = texts_of(rng.integers(0, 100_000, 200_000), length)
            seconds = median(timed(model, texts) for _ in range(RUNS)) / len(texts)
            rows.append(
                {
                    "model": name,
                    "tokens a message": length,
                    "a message, us": seconds * 1e6,
                    "a token, ns": seconds / length * 1e9,
                }
            )
        progress(f"length, {name}: {rows[-1]['a token, ns']:.0f} ns a token in messages of 10,000")
    return rows


def by_memory(largest: int) -> list[Row]:
    """Bytes a token at two classes, each measured in a process of its own, beside river's."""
    spawn = get_context("spawn")
    rows: list[Row] = []
    for measure, sizes in ((our_memory, sizes_up_to(largest)), (river_memory, [10**6])):
        for size in sizes:
            if 10**6 <= size <= largest:
                with ProcessPoolExecutor(1, mp_context=spawn) as pool:
                    rows.append(pool.submit(measure, size).result())
                progress(
                    f"memory at {size:,} tokens: {rows[-1]['resident, bytes a token']:.1f} bytes a token"
                )
    return rows


def our_memory(size: int) -> Row:
    """What a compiled model of `spam.toml` takes for this many tokens.

    Its arrays are the store's own account of them, where it keeps one, else what the process has mapped: the
    room they have to grow counts, touched or not. They are most just after they have grown, so that the
    most on the way from half as many tokens is shown too.
    """
    settings = shipped(SPAM)
    grow(built(settings, compiled=True), 0, PER_MESSAGE * BATCH)  # whatever only the first step takes
    model = built(settings, compiled=True)
    before = memory_of_process()
    arrays: list[float] = []
    for begin in range(0, size, PER_MESSAGE * BATCH):
        end = min(begin + PER_MESSAGE * BATCH, size)
        grow(model, begin, end)
        held = getattr(model.state.counts, "nbytes", None)
        arrays.append((memory_of_process()[1] - before[1] if held is None else held) / end)
    row = _memory_row(SPAM, size, before)
    row["arrays, bytes a token"] = arrays[-1]
    row["most on the way, bytes a token"] = max(arrays[len(arrays) // 2 :])
    return row


def river_memory(size: int) -> Row:
    """What river takes for this many tokens."""
    _, learn = river_model()
    learn("first", "a")
    texts = texts_of(np.arange(100_000))
    before = memory_of_process()
    for first in range(0, size, 100_000):
        texts = texts_of(np.arange(first, min(first + 100_000, size)))
        for text, label in zip(texts, labels_of(len(texts)), strict=True):
            learn(text, str(label))
    row = _memory_row("river", size, before)
    row["arrays, bytes a token"] = row["most on the way, bytes a token"] = "-"
    return row


def _memory_row(model: str, size: int, before: tuple[int, int]) -> Row:
    gc.collect()
    return {
        "model": model,
        "vocabulary": size,
        "resident, bytes a token": (memory_of_process()[0] - before[0]) / size,
    }


def memory_of_process() -> tuple[int, int]:
    """Bytes of this process in memory, and of its data whether touched yet or not."""
    numbers = Path("/proc/self/statm").read_text(encoding="ascii").split()
    page = os.sysconf("SC_PAGE_SIZE")
    return int(numbers[1]) * page, int(numbers[5]) * page
