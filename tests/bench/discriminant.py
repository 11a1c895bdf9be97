"""Processor time of scoring and learning a block of d numbers, message by message: O(d^2).

``python tests/bench/discriminant.py [--messages N] [--runs R]``

Two classes, no number missing, after 6 d messages. LAPACK is held to one thread, whose time is the one that
is measured; times are medians of the runs, which take the dimensions in turn.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from statistics import median

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy is imported
if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

import numpy as np

from streamnb.naive_bayes.event_models.multivariate import Multivariate
from streamnb.naive_bayes.statistics.scatter import Scatter
from tests.bench.common import machine, markdown, progress

DIMENSIONS = (10, 50, 100, 200, 400)


def microseconds(model: Multivariate, d: int, messages: int) -> float:
    """Processor time of one message, scored and then learned."""
    numbers = np.random.default_rng(0).normal(size=(6 * d + messages, d))
    rows = [{f"f{i}": v for i, v in enumerate(row)} for row in numbers.tolist()]
    scatter = Scatter(2, shared=model.covariance == "shared")
    for i, row in enumerate(rows[: 6 * d]):
        scatter.add(row, i % 2)
    begin = time.process_time()
    for i, row in enumerate(rows[6 * d :]):
        model.log_density(row, scatter, [0, 1])
        scatter.add(row, i % 2)
    return (time.process_time() - begin) / messages * 1e6


def main() -> None:
    """Print one row a dimension."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    models = (Multivariate("shared"), Multivariate("class"))
    times: dict[tuple[str, int], list[float]] = {}
    for run in range(arguments.runs):
        for model in models:
            for d in DIMENSIONS:
                found = microseconds(model, d, arguments.messages)
                times.setdefault((model.covariance, d), []).append(found)
        progress(f"run {run + 1} of {arguments.runs}")
    rows = []
    for d in DIMENSIONS:
        medians = [median(times[model.covariance, d]) for model in models]
        rows.append([str(d), *(f"{t:,.0f}" for t in medians), *(f"{1e3 * t / d**2:,.1f}" for t in medians)])
    kinds = [model.covariance for model in models]
    header = ["d", *(f"{kind}, us" for kind in kinds), *(f"{kind}, ns / d^2" for kind in kinds)]
    print(f"{machine()}\n\n{markdown(header, rows, texts=0)}")


if __name__ == "__main__":
    main()
