"""The boundaries of Gaussian naive Bayes on Iris, under a shared variance and one a class.

``python tests/bench/iris.py [--plot FILE.html]``

Two numbers of each flower, so that there is a plane to draw. Shared, every boundary is straight; a class's
own variance makes it curved, and may leave one class a pocket inside another. Errors are on the flowers
learned, for the two numbers and for all four, beside Gaussian discriminant analysis.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

if str(Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # an installed streamnb comes first

import numpy as np
from sklearn.datasets import load_iris

from streamnb.naive_bayes.estimators import Estimator, GaussianDiscriminant, GaussianNB
from tests.bench.common import machine, markdown

PAIR = ("sepal length (cm)", "sepal width (cm)")
STEPS = 200


def models() -> dict[str, Estimator]:
    """Fresh ones, by name."""
    return {
        "naive, variance shared": GaussianNB("shared", pseudo_observations=0.0),
        "naive, variance per class": GaussianNB("class", pseudo_observations=0.0),
        "discriminant, covariance shared": GaussianDiscriminant("shared"),
        "discriminant, covariance per class": GaussianDiscriminant("class"),
    }


def flowers(names: tuple[str, ...]) -> tuple[list[dict[str, float]], list[str]]:
    """The named numbers of 150 flowers, and their kinds."""
    data = load_iris()
    columns = [list(data.feature_names).index(name) for name in names]
    rows = [dict(zip(names, row, strict=True)) for row in data.data[:, columns].tolist()]
    return rows, [str(data.target_names[i]) for i in data.target]


def errors(model: Estimator, names: tuple[str, ...]) -> int:
    """How many of the flowers it learned it gets wrong."""
    rows, kinds = flowers(names)
    model.learn_many(rows, kinds)
    return sum(found != kind for found, kind in zip(model.predict_many(rows), kinds, strict=True))


def plot(path: str) -> None:
    """A page of one plane a model; needs plotly."""
    from plotly.subplots import make_subplots

    rows, kinds = flowers(PAIR)
    order = sorted(set(kinds))
    ends = [(min(x[name] for x in rows) - 0.3, max(x[name] for x in rows) + 0.3) for name in PAIR]
    axes = [np.linspace(low, high, STEPS).tolist() for low, high in ends]
    plane: list[Any] = [dict(zip(PAIR, (a, b), strict=True)) for b in axes[1] for a in axes[0]]
    figure = make_subplots(rows=2, cols=2, subplot_titles=[*models()], x_title=PAIR[0], y_title=PAIR[1])
    for i, model in enumerate(models().values()):
        model.learn_many(rows, kinds)
        z = np.array([order.index(kind) for kind in model.predict_many(plane)]).reshape(STEPS, STEPS)
        where = {"row": i // 2 + 1, "col": i % 2 + 1}
        figure.add_heatmap(x=axes[0], y=axes[1], z=z, showscale=False, opacity=0.4, **where)
        figure.add_scatter(
            x=[x[PAIR[0]] for x in rows],
            y=[x[PAIR[1]] for x in rows],
            mode="markers",
            marker={"color": [order.index(kind) for kind in kinds]},
            text=kinds,
            showlegend=False,
            **where,
        )
    figure.write_html(path)


def main() -> None:
    """Print one row a model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--plot", metavar="FILE.html")
    arguments = parser.parse_args()
    everything = tuple(str(name) for name in load_iris().feature_names)
    table = [
        [name, str(errors(models()[name], PAIR)), str(errors(models()[name], everything))]
        for name in models()
    ]
    print(f"{machine()}\n\n{markdown(['errors of 150', 'two numbers', 'all four'], table)}")
    if arguments.plot:
        plot(arguments.plot)


if __name__ == "__main__":
    main()
