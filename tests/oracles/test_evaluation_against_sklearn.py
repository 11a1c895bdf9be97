"""The measures against scikit-learn's, on random posteriors of any number of classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from streamnb.base.batch import Floats, Label, Scores
from streamnb.evaluation import Evaluation, Prequential, roc_curve

CLASSES = ["ham", "list", "spam", "work"]


def judged(n_classes: int, seed: int, n: int = 400) -> tuple[Evaluation, Floats, list[int]]:
    """Figures of random scores in batches of 90, their posteriors, and the truths' columns."""
    draw = np.random.default_rng(seed)
    u = (8 * draw.normal(size=(n, n_classes))).round() / 8  # eighths: some margins are equal
    posterior = np.exp(u) / np.exp(u).sum(axis=1, keepdims=True)
    truth = [int(c) for c in draw.integers(n_classes, size=n)]
    judgement = Prequential(window=150, warm_up=0)
    for begin in range(0, n, 90):
        rows = slice(begin, begin + 90)
        zeros = np.zeros(len(posterior[rows]), np.int64)
        scores = Scores(
            tuple(CLASSES[:n_classes]),
            zeros + n_classes,
            posterior[rows],
            posterior[rows],
            u[rows],
            None,
            zeros,
            zeros,
            zeros,
            posterior[rows],
            zeros,
        )
        labels: list[Label | None] = [CLASSES[c] for c in truth[rows]]
        judgement.add(scores, labels)
    return judgement.figures(CLASSES[:n_classes]), posterior, truth


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_the_figures_are_scikit_learns(n_classes: int, seed: int) -> None:
    """Accuracy, log loss, Brier score, recall, precision, confusion; of all and of the window."""
    found, posterior, truth = judged(n_classes, seed)
    everything, newest = slice(None), slice(len(truth) - 150, None)
    labels = list(range(n_classes))
    for figures, rows in ((found, everything), (found.window, newest)):
        y, p = truth[rows], posterior[rows]
        predicted = p.argmax(axis=1)
        table = metrics.confusion_matrix(y, predicted, labels=labels)
        assert figures.accuracy == pytest.approx(metrics.accuracy_score(y, predicted))
        assert figures.log_loss == pytest.approx(metrics.log_loss(y, p, labels=labels))
        assert figures.brier == pytest.approx(((np.eye(n_classes)[y] - p) ** 2).sum(axis=1).mean())
        assert [list(row.values()) for row in figures.confusion.values()] == table.tolist()
        assert list(figures.recall.values()) == pytest.approx(
            metrics.recall_score(y, predicted, average=None)
        )
        assert list(figures.precision.values()) == pytest.approx(
            metrics.precision_score(y, predicted, average=None)
        )


@pytest.mark.parametrize("seed", range(10))
def test_the_area_is_scikit_learns(seed: int) -> None:
    """100 less 100 times its area under the curve, of all and of the window; equals count half in both."""
    found, posterior, truth = judged(2, seed)
    margin = np.log(posterior[:, 1]) - np.log(posterior[:, 0])
    expected = metrics.roc_auc_score(truth, margin.round(6))
    newest = metrics.roc_auc_score(truth[-150:], margin[-150:].round(6))
    assert found.roca_loss_pct == pytest.approx(100 * (1 - expected))
    assert found.window_roca_loss_pct == pytest.approx(100 * (1 - newest))


@pytest.mark.parametrize("seed", range(5))
def test_the_curve_is_scikit_learns(seed: int) -> None:
    """Every threshold of it."""
    draw = np.random.default_rng(seed)
    margins, truth = draw.normal(size=300).round(1), draw.integers(2, size=300)
    false, true, _ = metrics.roc_curve(truth, margins, drop_intermediate=False)
    ours = roc_curve(margins, truth == 1)
    np.testing.assert_allclose(ours[0], false)
    np.testing.assert_allclose(ours[1], true)


@pytest.mark.parametrize("seed", range(5))
def test_the_reliability_curve_is_scikit_learns(seed: int) -> None:
    """The same bins where two classes' top posterior is scikit-learn's probability of being right."""
    from sklearn.calibration import calibration_curve

    found, posterior, truth = judged(3, seed)
    right = posterior.argmax(axis=1) == truth
    true, said = calibration_curve(right, posterior.max(axis=1), n_bins=15)
    assert [part.accuracy for part in found.reliability] == pytest.approx(list(true))
    assert [part.p for part in found.reliability] == pytest.approx(list(said))
    weights = np.array([part.n for part in found.reliability])
    assert found.ece == pytest.approx(float(weights @ np.abs(true - said)) / weights.sum())
