"""Error against sample size for naive Bayes and logistic regression (Ng and Jordan 2002).

``python tests/bench/ng_jordan.py [--draws N] [--plot FILE.html]``

Naive Bayes needs few examples to come near the best it can do; logistic regression needs more, and where the
assumptions fail its best is better. Here: seven sets that scikit-learn and river carry, numbers only. The
pair is the paper's: a Gaussian naive Bayes whose classes share a variance (`streamnb.GaussianNB`), which has
logistic regression's form, and scikit-learn's logistic regression without a penalty, over standardised
numbers. Each learns m examples and is judged on a third held out; mean error of N random draws. One is called
ahead if the difference is above twice its standard error.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

import numpy as np
from river import datasets as streams
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamnb.naive_bayes.estimators import GaussianNB
from tests.bench.common import machine, markdown, progress

SIZES = (10, 20, 40, 80, 160, 320, 640, 1280)
Streams: Any = streams


class Table(NamedTuple):
    """A set of examples: numbers of shape (n, d), and their classes."""

    name: str
    X: Any
    y: Any


class Point(NamedTuple):
    """Mean errors after m examples, and the standard error of their difference."""

    m: int
    bayes: float
    logistic: float
    doubt: float


def tables() -> Iterator[Table]:
    """Seven sets at hand."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        found = getattr(datasets, f"load_{name}")()
        yield Table(name, found.data, found.target)
    for name in ("Phishing", "Bananas", "ImageSegments"):
        rows = list(getattr(Streams, name)())
        yield Table(
            name, np.array([list(x.values()) for x, _ in rows], float), np.array([str(y) for _, y in rows])
        )


def errors(table: Table, m: int, seed: int) -> tuple[float, float]:
    """What both get wrong of the third held out, after m examples of the rest."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(table.y))
    held, rest = order[: len(order) // 3], order[len(order) // 3 :]
    first = [int(np.flatnonzero(table.y[rest] == label)[0]) for label in np.unique(table.y)]
    chosen = rest[list(dict.fromkeys([*first, *range(m)]))][
        : max(m, len(first))
    ]  # one of each class at least
    X, y = table.X[chosen], table.y[chosen]
    bayes = GaussianNB(variance="shared")
    names = [f"x{i}" for i in range(X.shape[1])]
    bayes.learn_many([dict(zip(names, row, strict=True)) for row in X.tolist()], y.tolist())
    predicted = bayes.predict_many([dict(zip(names, row, strict=True)) for row in table.X[held].tolist()])
    logistic = make_pipeline(StandardScaler(), LogisticRegression(C=np.inf, max_iter=300)).fit(X, y)
    truth = table.y[held]
    return float(np.mean(np.array(predicted) != truth)), float(
        np.mean(logistic.predict(table.X[held]) != truth)
    )


def curve(table: Table, draws: int) -> list[Point]:
    """One point for every size that leaves the rest enough."""
    points = []
    for m in SIZES:
        if m > len(table.y) * 2 // 3:
            break
        found = np.array([errors(table, m, seed) for seed in range(draws)])
        difference = found[:, 0] - found[:, 1]
        doubt = float(difference.std(ddof=1)) / math.sqrt(draws)
        points.append(Point(m, float(found[:, 0].mean()), float(found[:, 1].mean()), doubt))
    return points


def verdict(point: Point) -> str:
    """Who is ahead."""
    if abs(point.bayes - point.logistic) <= 2 * point.doubt:
        return "neither"
    return "naive Bayes" if point.bayes < point.logistic else "logistic"


def plot(curves: dict[str, list[Point]], path: str) -> None:
    """A page of one panel a set; needs plotly."""
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=2, cols=4, subplot_titles=[*curves], x_title="examples", y_title="error")
    for i, points in enumerate(curves.values()):
        for kind, colour in (("bayes", "#1f77b4"), ("logistic", "#d62728")):
            figure.add_scatter(
                x=[point.m for point in points],
                y=[getattr(point, kind) for point in points],
                name={"bayes": "naive Bayes", "logistic": "logistic regression"}[kind],
                line={"color": colour},
                showlegend=i == 0,
                row=i // 4 + 1,
                col=i % 4 + 1,
            )
    figure.update_xaxes(type="log")
    figure.write_html(path)


def main() -> None:
    """Print one row a set, and who was ahead at its ends."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--plot", metavar="FILE.html")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # classes apart have no finite best weights
    curves = {}
    for table in tables():
        progress(table.name)
        curves[table.name] = curve(table, arguments.draws)
    rows = []
    for name, points in curves.items():
        found = {point.m: f"{point.bayes:.3f} / {point.logistic:.3f}" for point in points}
        rows.append([name, *(found.get(m, "-") for m in SIZES), verdict(points[0]), verdict(points[-1])])
    header = ["naive Bayes / logistic, error after", *map(str, SIZES), "ahead at first", "ahead at last"]
    print(f"{machine()}\n\n{markdown(header, rows)}")
    turned = [
        name for name, p in curves.items() if (verdict(p[0]), verdict(p[-1])) == ("naive Bayes", "logistic")
    ]
    print(
        "\nNaive Bayes ahead of logistic regression at small n and behind at large n: "
        f"{', '.join(turned) or 'none'}."
    )
    if arguments.plot:
        plot(curves, arguments.plot)


if __name__ == "__main__":
    main()
