"""Against scikit-learn's discriminant analyses: the same decisions in one pass over Iris and wine."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

from streamnb.base.batch import Floats
from streamnb.naive_bayes.estimators import GaussianDiscriminant
from streamnb.naive_bayes.event_models.multivariate import Multivariate
from streamnb.naive_bayes.statistics.scatter import Scatter

Labels = NDArray[np.int64]
Data = tuple[list[dict[str, float | None]], Floats, Labels]


@pytest.fixture(params=[load_iris, load_wine], ids=["iris", "wine"])
def data(request: pytest.FixtureRequest) -> Data:
    """Messages, the same as an array, and labels; in an order in which the classes take turns."""
    numbers, labels = request.param(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    numbers, labels = numbers[order], labels[order]
    return [{f"f{i}": v for i, v in enumerate(row)} for row in numbers.tolist()], numbers, labels


def _densities(model: Multivariate, data: Data) -> Floats:
    messages, _, labels = data
    scatter = Scatter(3, shared=model.covariance == "shared")
    for x, c in zip(messages, labels.tolist(), strict=True):
        scatter.add(x, c)
    assert all(inverse.matrix is not None for inverse in scatter.inverses)
    return np.array([model.log_density(x, scatter, [0, 1, 2]) for x in messages])


def test_one_covariance_is_their_linear_discriminant(data: Data) -> None:
    """Theirs is divided by the number of messages as ours is; log odds agree to 1e-10."""
    _, numbers, labels = data
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(numbers, labels)
    ours = _densities(Multivariate("shared"), data) + np.log(theirs.priors_)
    expected = theirs.decision_function(numbers)
    assert ours - ours[:, :1] == pytest.approx(expected - expected[:, :1], rel=1e-10, abs=1e-10)


def test_a_covariance_a_class_is_their_quadratic_discriminant(data: Data) -> None:
    """Theirs may be divided by n - 1, as the version has it: the square form and the determinant follow."""
    _, numbers, labels = data
    theirs = QuadraticDiscriminantAnalysis(store_covariance=True).fit(numbers, labels)
    variances = [numbers[labels == c].var(axis=0)[0] for c in range(3)]
    divisor = np.array([v / s[0, 0] for v, s in zip(variances, theirs.covariance_, strict=True)])
    their_log_det = np.array([np.linalg.slogdet(sigma)[1] for sigma in theirs.covariance_])
    their_square = -2.0 * (theirs.decision_function(numbers) - np.log(theirs.priors_)) - their_log_det
    log_det, square = their_log_det + numbers.shape[1] * np.log(divisor), their_square / divisor
    ours = _densities(Multivariate("class"), data)
    assert ours == pytest.approx(-0.5 * log_det - 0.5 * square, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("model", [Multivariate("shared"), Multivariate("class")])
def test_iris_is_told_apart_but_for_three_flowers(model: Multivariate) -> None:
    """Each of the two errs on 3 of the 150 it has learned, where naive Bayes errs on 6."""
    numbers, labels = load_iris(return_X_y=True)
    messages = [{f"f{i}": v for i, v in enumerate(row)} for row in numbers.tolist()]
    best = _densities(model, (messages, numbers, labels)).argmax(axis=1)
    assert int((best != labels).sum()) == 3


def test_a_covariance_needs_more_messages_than_coordinates() -> None:
    """Iris, each flower scored before it is learned: log loss, clipped at 1e-15, of 1 and 5 a coordinate."""
    numbers, labels = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels)).tolist()
    losses = []
    for times in (1.0, 5.0):
        model, scatter, n = Multivariate("class", times), Scatter(3, shared=False), np.zeros(3)
        loss, scored = 0.0, 0
        for i in order:
            x, c = {f"f{j}": v for j, v in enumerate(numbers[i].tolist())}, int(labels[i])
            if n[c]:
                active = np.flatnonzero(n)
                u = np.array(model.log_density(x, scatter, active.tolist())) + np.log(n[active])
                lost = np.logaddexp.reduce(u) - u[active.tolist().index(c)]
                loss += min(float(lost), -math.log(1e-15))
                scored += 1
            scatter.add(x, c)
            n[c] += 1
        losses.append(loss / scored)
    assert losses == pytest.approx([0.80, 0.16], abs=0.01)


@pytest.fixture
def estimators(data: Data) -> list[GaussianDiscriminant]:
    """One covariance, and one per class, after the same flowers."""
    messages, _, labels = data
    made = [GaussianDiscriminant("shared"), GaussianDiscriminant("class")]
    for model in made:
        model.learn_many(messages, labels)
    return made


def test_means_covariance_and_priors_are_theirs(data: Data, estimators: list[GaussianDiscriminant]) -> None:
    """By the names of scikit-learn's attributes."""
    _, numbers, labels = data
    shared, each = estimators
    theirs = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(numbers, labels)
    order = [int(label) for label in shared.classes_]  # of appearance; theirs is sorted
    for model in (shared, each):
        assert model.classes_ == order
        assert model.means_ == pytest.approx(theirs.means_[order], rel=1e-12)
        assert model.priors_ == pytest.approx(theirs.priors_[order], rel=1e-12)
    assert shared.covariance_ == pytest.approx(theirs.covariance_, rel=1e-9)
    own = [np.cov(numbers[labels == c], rowvar=False, bias=True) for c in order]
    assert each.covariance_ == pytest.approx(np.array(own), rel=1e-9)


def test_the_joint_is_the_density_itself(data: Data, estimators: list[GaussianDiscriminant]) -> None:
    """Also where a coordinate is missing: then of the others."""
    messages, numbers, _ = data
    for model, kept in [(model, kept) for model in estimators for kept in ([0, 1, 2, 3], [0, 2], [3])]:
        names = [model.names_[i] for i in kept]
        for x, row in list(zip(messages, numbers, strict=True))[::29]:
            joint = model.joint_log_likelihood({name: x[name] for name in names})
            for c, label in enumerate(model.classes_):
                sigma = model.covariance_ if model.covariance == "shared" else model.covariance_[c]
                sigma, off = sigma[np.ix_(kept, kept)], row[kept] - model.means_[c][kept]
                log_det = np.linalg.slogdet(2.0 * math.pi * sigma)[1]
                expected = np.log(model.priors_[c]) - 0.5 * (log_det + off @ np.linalg.solve(sigma, off))
                assert joint[label] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_what_is_unknown_of_a_discriminant_is_not_a_number_of_it() -> None:
    """Nothing learned; a class without a coordinate; a coordinate that never varies; one class unlearned."""
    model = GaussianDiscriminant()
    assert [model.means_.size, model.covariance_.size, model.priors_.size] == [0, 0, 0]
    model.learn_many([{"a": 1.0, "b": 5.0}, {"a": 3.0, "b": 5.0}, {"b": 5.0}], ["x", "x", "y"])
    assert model.names_ == ["a", "b"]
    assert model.means_.tolist()[0] == [2.0, 5.0]
    assert np.isnan(model.means_).tolist() == [[False, False], [True, False]]
    assert model.covariance_[1].tolist() == [0.0, 0.0]
    model.unlearn_one({"b": 5.0}, "y")
    assert model.priors_.tolist() == [1.0, 0.0]
