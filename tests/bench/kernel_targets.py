"""What `kernel.py` is to show, beside what it measured; for people, nothing is asserted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from tests.bench.kernel_contenders import (
    ACCURATE,
    BOGOFILTER,
    RIVER,
    SKLEARN,
    SPAM,
    TEXTBOOK,
    VOWPAL,
    WC,
)
from tests.bench.kernel_growth import Row

Runs = dict[str, list[float]]
"""Seconds of a pass in every run, by contender."""


class OfStream(NamedTuple):
    """On a stream, a contender's speed at least, or its time at most, this many times another's."""

    stream: str
    ours: str
    theirs: str
    at_least: bool
    limit: float


class OfPart(NamedTuple):
    """A figure of a part, at a size of the vocabulary, at most so much."""

    part: str
    vocabulary: int
    figure: str
    limit: float


STREAMS = (
    OfStream("sms", TEXTBOOK, RIVER, True, 150),
    OfStream("sms", TEXTBOOK, SKLEARN, True, 15),
    OfStream("sms", TEXTBOOK, VOWPAL, True, 10),
    OfStream("sms", TEXTBOOK, BOGOFILTER, True, 15),
    OfStream("enron1", TEXTBOOK, WC, False, 2),
    OfStream("sms", SPAM, TEXTBOOK, True, 0.4),
    OfStream("enron1", SPAM, WC, False, 4),
    OfStream("sms", ACCURATE, RIVER, True, 25),
)
PARTS = (
    OfPart("vocabulary", 10**7, "times that at 10^4", 5),
    OfPart("vocabulary", 10**7, "longest so far, ms", 50),
    OfPart("memory", 10**6, "most on the way, bytes a token", 64),
    OfPart("memory", 10**7, "most on the way, bytes a token", 64),
    OfPart("flood", 10**7, "arrays / budget", 1.05),
    OfPart("flood", 10**7, "lost, points", 1),
    OfPart("snapshots", 10**6, "p99, ms", 10),
    OfPart("snapshots", 10**7, "p99, ms", 100),
    OfPart("snapshots", 10**7, "over plain write", 1.5),
    OfPart("snapshots", 10**7, "over plain read", 1.5),
)


def over(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """The median of the ratios within each run."""
    return median(a / b for a, b in zip(numerators, denominators, strict=True))


def target_rows(results: Mapping[str, Runs], parts: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The targets of what was run.

    Parameters
    ----------
    results : dict of str to Runs
        By stream.
    parts : dict of str to list of Row
        By part.
    """
    rows = []
    for stream, ours, theirs, at_least, limit in STREAMS:
        found = results.get(stream, {})
        if ours in found and theirs in found:
            a, b = (theirs, ours) if at_least else (ours, theirs)
            what = f"{'speed' if at_least else 'time'} of {ours} / {theirs}"
            rows.append(_row(stream, what, over(found[a], found[b]), limit, at_least=at_least))
    for part, vocabulary, figure, limit in PARTS:
        for row in parts.get(part, ()):
            value = row[figure]
            if row["vocabulary"] == vocabulary and isinstance(value, int | float):
                of = f"{part}, {row['model']}, {vocabulary:,} tokens"
                rows.append(_row(of, figure, value, limit, at_least=False))
    return rows


def _row(of: str, what: str, measured: float, limit: float, *, at_least: bool) -> Row:
    reached = measured >= limit if at_least else measured <= limit
    return {
        "of": of,
        "what": what,
        "measured": measured,
        "target": f"{'at least' if at_least else 'at most'} {limit:g}",
        "reached": "yes" if reached else "no",
    }
