"""The multivariate normal: formula, pseudo-observation, gaps, linear form, parts, and the traps of the
Gaussian.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.batch import Floats
from streamnb.naive_bayes.event_models.gaussian import Gaussian
from streamnb.naive_bayes.event_models.multivariate import Multivariate
from streamnb.naive_bayes.statistics.moments import Moments
from streamnb.naive_bayes.statistics.scatter import Scatter

SHARED, OWN = Multivariate("shared"), Multivariate("class")
BOTH = pytest.mark.parametrize("model", [SHARED, OWN], ids=["shared", "class"])

Message = dict[str, float | None]


def _scatter(model: Multivariate, *classes: Sequence[Mapping[str, float | None]]) -> Scatter:
    """Learn the classes' messages in turns, as a stream would bring them."""
    scatter = Scatter(len(classes), shared=model.covariance == "shared")
    for i in range(max(map(len, classes), default=0)):
        for c, messages in enumerate(classes):
            if i < len(messages):
                scatter.add(messages[i], c)
    return scatter


def _without_inverses(scatter: Scatter) -> Scatter:
    """Return the same sums without kept inverses, so that every inverse must be computed."""
    other = Scatter(len(scatter.n), shared=scatter.shared)
    other.merge(scatter, range(len(scatter.n)))
    return other


def _rows(rows: Floats) -> list[Message]:
    return [{f"f{i}": v for i, v in enumerate(row)} for row in rows.tolist()]


def _normal(mean: float, d: int, n: int, seed: int = 0) -> list[Message]:
    """Return correlated numbers of different scales."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4)
    return _rows(mean + mixed * 2.0 ** np.arange(d))


# ---- the formula


def test_a_tiny_corpus_in_exact_fractions() -> None:
    """Means and ``Sigma = (1/m) sum (x - mu)(x - mu)^T`` are computed by hand."""
    corpus = [
        [(1, 1), (3, 1), (2, 4), (2, 3)],
        [(6, 6), (8, 9), (7, 5)],
    ]
    messages = [[{"a": float(a), "b": float(b)} for a, b in rows] for rows in corpus]
    m = sum(map(len, corpus))
    means = [[Fraction(sum(column), len(rows)) for column in zip(*rows, strict=True)] for rows in corpus]

    def scatter_of(k: int) -> list[Fraction]:
        aa, ab, bb = Fraction(0), Fraction(0), Fraction(0)
        for a, b in corpus[k]:
            da, db = a - means[k][0], b - means[k][1]
            aa, ab, bb = aa + da * da, ab + da * db, bb + db * db
        return [aa, ab, bb]

    def log_density(x: tuple[int, int], k: int, sigma: list[Fraction]) -> float:
        aa, ab, bb = sigma
        det = aa * bb - ab * ab
        da, db = x[0] - means[k][0], x[1] - means[k][1]
        square = (bb * da * da - 2 * ab * da * db + aa * db * db) / det
        return -0.5 * math.log(det) - 0.5 * float(square)

    together = [(a + b) / m for a, b in zip(scatter_of(0), scatter_of(1), strict=True)]
    own = [[s / len(rows) for s in scatter_of(k)] for k, rows in enumerate(corpus)]
    for x in [(0, 0), (2, 2), (7, 7), (5, -3)]:
        message = {"a": float(x[0]), "b": float(x[1])}
        expected = [log_density(x, k, together) for k in (0, 1)]
        assert SHARED.log_density(message, _scatter(SHARED, *messages), [0, 1]) == pytest.approx(
            expected, rel=1e-12
        )
        expected = [log_density(x, k, own[k]) for k in (0, 1)]
        assert OWN.log_density(message, _scatter(OWN, *messages), [0, 1]) == pytest.approx(
            expected, rel=1e-12
        )


@BOTH
@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_kept_and_made_inverses_say_the_same(model: Multivariate, d: int) -> None:
    """Densities agree whether inverses were updated message by message or computed from the sums."""
    scatter = _scatter(model, _normal(0.0, d, 60), _normal(2.0, d, 90, seed=1), _normal(5.0, d, 75, seed=2))
    assert all(inverse.matrix is not None for inverse in scatter.inverses)
    made = _without_inverses(scatter)
    for x in _normal(1.0, d, 5, seed=3):
        expected = model.log_density(x, made, [0, 1, 2])
        assert model.log_density(x, scatter, [0, 1, 2]) == pytest.approx(expected, rel=1e-10)


@BOTH
def test_one_coordinate_is_the_gaussian_without_its_pseudo_observation(model: Multivariate) -> None:
    """With one number, the multivariate normal is the univariate one."""
    numbers = [[1.0, 2.0, 6.0, 4.0], [9.0, 11.0, 10.0]]
    scatter = _scatter(model, *([{"a": x} for x in xs] for xs in numbers))
    squares = [14.75, 2.0]
    variances = [sum(squares) / 7] * 2 if model is SHARED else [14.75 / 4, 2.0 / 3]
    for z, mean, v in zip(
        model.log_density({"a": 5.0}, scatter, [0, 1]), (3.25, 10.0), variances, strict=True
    ):
        assert z == pytest.approx(-math.log(v) / 2 - (5.0 - mean) ** 2 / (2 * v), rel=1e-12)


def test_until_there_are_more_messages_than_coordinates_it_is_the_gaussian() -> None:
    """With one message per class, only the pooled pseudo-observation remains, coordinate by coordinate."""
    messages: list[Message] = [{"a": 1.0, "b": 5.0}, {"a": 4.0, "b": -1.0}, {"a": 0.0, "b": 0.5}]
    scatter = _scatter(OWN, *([x] for x in messages))
    x: Message = {"a": 2.0, "b": 1.0}
    expected = [0.0] * 3
    for name, number in (("a", 2.0), ("b", 1.0)):
        moments = Moments(3)
        for c, message in enumerate(messages):
            moments.add(message[name] or 0.0, c)
        z = Gaussian(1.0).log_density(number, moments, [0, 1, 2])
        expected = [a + b for a, b in zip(expected, z, strict=True)]
    assert OWN.log_density(x, scatter, [0, 1, 2]) == pytest.approx(expected, rel=1e-12)
    assert dict(OWN.parts(x, scatter, [0]))["a"] == pytest.approx(
        Gaussian().log_density(2.0, _moments_of_a(), [0]), rel=1e-12
    )


def _moments_of_a() -> Moments:
    moments = Moments(3)
    for c, x in enumerate((1.0, 4.0, 0.0)):
        moments.add(x, c)
    return moments


@BOTH
@pytest.mark.parametrize("times", [1.0, 2.5])
@pytest.mark.parametrize("n", range(1, 10))
def test_one_pseudo_observation_until_there_are_enough(model: Multivariate, times: float, n: int) -> None:
    """``(S + diag v) / (n + 1)`` up to n = d messages of a class (shared: d + 1 of both), or a multiple of
    that.
    """
    d = 3
    model = Multivariate(model.covariance, times)
    shared = model.covariance == "shared"
    left, right = _normal(0.0, d, n), _normal(4.0, d, n, seed=1)
    rows = [np.array([list(x.values()) for x in side], np.float64) for side in (left, right)]
    v = np.concatenate(rows).var(axis=0)
    squares = [(r - r.mean(axis=0)).T @ (r - r.mean(axis=0)) for r in rows]
    x = np.array([1.0, 2.0, 3.0])
    for c, z in enumerate(model.log_density(_rows(x[None])[0], _scatter(model, left, right), [0, 1])):
        s, m = (squares[0] + squares[1], 2 * n) if shared else (squares[c], n)
        enough = m - shared > times * d
        sigma = s / m if enough else (s + np.diag(v)) / (m + 1)
        off = x - rows[c].mean(axis=0)
        expected = -0.5 * np.linalg.slogdet(sigma)[1] - 0.5 * off @ np.linalg.solve(sigma, off)
        assert z == pytest.approx(float(expected), rel=1e-9)


# ---- the peers' traps


@BOTH
@pytest.mark.parametrize("x", [-1e9, -40.0, 0.0, 8.0, 30.0, 40.0])
def test_T29_the_nearer_class_wins_at_any_distance(model: Multivariate, x: float) -> None:
    """There is no lower bound of a log density at which two improbable classes become equal."""
    scatter = _scatter(model, _normal(0.0, 2, 500), _normal(100.0, 2, 500, seed=0))
    a, b = model.log_density({"f0": x, "f1": x}, scatter, [0, 1])
    assert a > b
    assert math.isfinite(b)


def test_T30_a_constant_class_wins_where_it_matches_exactly() -> None:
    """Its covariance of zero is steadied by the pooled variance."""
    scatter = _scatter(OWN, [{"f0": 5.0, "f1": 5.0}] * 100, _normal(5.0, 2, 100))
    constant, spread = OWN.log_density({"f0": 5.0, "f1": 5.0}, scatter, [0, 1])
    assert constant > spread


@BOTH
def test_T31_one_observation_a_class_is_enough(model: Multivariate) -> None:
    """The nearest class wins, thanks to the pseudo-observation of the pooled variance."""
    scatter = _scatter(model, [{"a": 1.0, "b": 1.0}], [{"a": 2.0, "b": 2.0}])
    for x, nearer in ((1.0, 0), (2.0, 1), (-7.0, 0), (1.49, 0), (1.51, 1)):
        z = model.log_density({"a": x, "b": x}, scatter, [0, 1])
        assert z[nearer] > z[1 - nearer]


@BOTH
@pytest.mark.parametrize("unit", [1e-90, 1e-12, 1e-6, 1e6, 1e12, 1e90])
def test_T32_units_do_not_matter(model: Multivariate, unit: float) -> None:
    """With other units per coordinate, differences between classes agree to 1e-9."""
    classes = [_normal(0.0, 3, 50), _normal(1.0, 3, 40, seed=1), _normal(4.0, 3, 2, seed=2)]

    def scaled(x: Message) -> Message:
        return {name: (v or 0.0) * (unit if name == "f1" else 1.0) for name, v in x.items()}

    plain = _scatter(model, *classes)
    other = _scatter(model, *([scaled(x) for x in messages] for messages in classes))
    for x in _normal(2.0, 3, 5, seed=3):
        z, w = model.log_density(x, plain, [0, 1, 2]), model.log_density(scaled(x), other, [0, 1, 2])
        assert [v - w[0] for v in w] == pytest.approx([v - z[0] for v in z], rel=1e-9, abs=1e-9)


@BOTH
def test_T38_an_offset_does_not_matter(model: Multivariate) -> None:
    """Numbers far from 0 are told apart as well as numbers near 0."""
    classes = [_normal(0.0, 2, 50), _normal(3.0, 2, 50, seed=1)]
    moved = [[{k: (v or 0.0) + 1e6 for k, v in x.items()} for x in messages] for messages in classes]
    z = model.log_density({"f0": 1.0, "f1": 2.0}, _scatter(model, *classes), [0, 1])
    w = model.log_density({"f0": 1.0 + 1e6, "f1": 2.0 + 1e6}, _scatter(model, *moved), [0, 1])
    assert w == pytest.approx(z, rel=1e-7)


@BOTH
def test_T35_a_class_without_the_numbers_has_the_pooled_mean(model: Multivariate) -> None:
    """The class is neither favoured nor penalised by a constant."""
    scatter = _scatter(model, _normal(0.0, 2, 30), _normal(6.0, 2, 30, seed=1), [])
    mean = scatter.pooled()[1].tolist()
    centre = model.log_density({"f0": mean[0], "f1": mean[1]}, scatter, [2])[0]
    for x in ({"f0": mean[0] + 1.0, "f1": mean[1]}, {"f0": mean[0], "f1": mean[1] - 5.0}):
        assert model.log_density(x, scatter, [2])[0] < centre
    if model is OWN:
        v = scatter.pooled()[2].tolist()
        assert centre == pytest.approx(-0.5 * math.log(v[0] * v[1]), rel=1e-12)


# ---- gaps


@BOTH
def test_T33_T34_a_missing_number_is_left_out(model: Multivariate) -> None:
    """An absent name, ``None`` and NaN have the same effect, in learning and in scoring."""
    gaps: list[Message] = [{"a": 1.0}, {"a": 1.0, "b": None}, {"a": 1.0, "b": math.nan}]
    full: list[Message] = [{"a": float(i % 3), "b": float(i % 5)} for i in range(15)]
    found = {
        tuple(model.log_density(query, _scatter(model, [*full, learned], full[3:]), [0, 1]))
        for learned in gaps
        for query in gaps
    }
    assert len(found) == 1
    assert all(math.isfinite(v) for v in found.pop())


@BOTH
def test_a_missing_coordinate_is_marginalised(model: Multivariate) -> None:
    """The rest is the normal of the other coordinates, as if the missing one had never existed."""
    classes = [_normal(0.0, 3, 40), _normal(2.0, 3, 50, seed=1)]
    scatter = _scatter(model, *classes)
    for missing in ("f0", "f1", "f2"):
        fewer = [[{k: v for k, v in x.items() if k != missing} for x in messages] for messages in classes]
        expected = _scatter(model, *fewer)
        for x in _normal(1.0, 3, 3, seed=2):
            query = x | {missing: None}
            z = model.log_density(query, scatter, [0, 1])
            assert z == pytest.approx(model.log_density(x, expected, [0, 1]), rel=1e-10)


@BOTH
def test_an_integral_over_the_missing_coordinate_is_the_marginal(model: Multivariate) -> None:
    """The integral is computed numerically, as a sum over a fine grid."""
    scatter = _scatter(model, _normal(0.0, 2, 40), _normal(2.0, 2, 50, seed=1))
    grid = np.linspace(-60.0, 60.0, 6001)
    whole = np.array([model.log_density({"f0": 1.0, "f1": x}, scatter, [0, 1]) for x in grid.tolist()])
    integral = np.log(np.exp(whole).sum(axis=0) * (grid[1] - grid[0])) - 0.5 * math.log(2 * math.pi)
    assert model.log_density({"f0": 1.0}, scatter, [0, 1]) == pytest.approx(integral.tolist(), rel=1e-9)


@BOTH
def test_correlations_survive_gaps(model: Multivariate) -> None:
    """Although each number is missing every third time, at random, the covariance is that of the numbers."""
    rng = np.random.default_rng(0)
    rows = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]], size=6000)
    rows[rng.random(rows.shape) < 1 / 3] = np.nan
    scatter = _scatter(model, _rows(rows[:3000]), _rows(rows[3000:]))
    along, across = (model.log_density({"f0": 2.0, "f1": y}, scatter, [0])[0] for y in (2.0, -2.0))
    expected = -0.5 * (8 / 1.9 - 8 / 0.1)  # the eigenvalues are 1.9 and 0.1
    assert along - across == pytest.approx(expected, rel=0.25)  # so far numbers drawn may lie from those

    cross, pairs = np.zeros((2, 2)), np.zeros((2, 2))
    for part in [rows[:3000], rows[3000:]][: 2 if model is SHARED else 1]:
        there = (~np.isnan(part)).astype(np.float64)
        apart = np.nan_to_num(part - np.nanmean(part, axis=0))
        cross, pairs = cross + apart.T @ apart, pairs + there.T @ there
    sigma, mean = cross / pairs, np.nanmean(rows[:3000], axis=0)
    for x, found in (([2.0, 2.0], along), ([2.0, -2.0], across)):
        square = float((x - mean) @ np.linalg.solve(sigma, x - mean))
        assert found == pytest.approx(-0.5 * float(np.linalg.slogdet(sigma)[1]) - 0.5 * square, rel=1e-9)


@BOTH
def test_a_name_met_late_joins_the_others(model: Multivariate) -> None:
    """The known numbers keep their variance; the new one begins with the pooled variance."""
    early = [{k: v for k, v in x.items() if k != "f2"} for x in _normal(0.0, 3, 50)]
    scatter = _scatter(model, early, [{k: (v or 0.0) + 3.0 for k, v in x.items()} for x in early])
    query = _normal(1.0, 3, 1, seed=7)[0]
    before = model.log_density(query, scatter, [0, 1])
    for i, x in enumerate(_normal(0.0, 3, 2, seed=5)):
        scatter.add(x, i)
    after = model.log_density(query | {"f2": None}, scatter, [0, 1])
    assert after == pytest.approx(before, rel=0.1, abs=0.1)
    assert all(math.isfinite(v) for v in model.log_density(query, scatter, [0, 1]))


def _impossible() -> list[Message]:
    """Return sums in which each pair is strongly correlated in a way that three numbers cannot be."""
    rng = np.random.default_rng(1)
    messages: list[Message] = []
    for x, e in zip(rng.normal(size=300).tolist(), rng.normal(size=300).tolist(), strict=True):
        y = x + 0.05 * e
        messages += [{"a": x, "b": y}, {"b": x, "c": y}, {"a": x, "c": -y}]
    return messages


@BOTH
def test_pairs_that_make_no_covariance_are_shrunk_to_one(model: Multivariate) -> None:
    """From gaps that contradict each other a safe normal is made; the signs of the correlations remain."""
    scatter = _scatter(model, _impossible(), _impossible())
    for x in ({"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 50.0, "b": -50.0, "c": 50.0}, {"a": 1.0, "b": 1.0}):
        z = model.log_density(x, scatter, [0, 1])
        assert all(math.isfinite(v) and v < 10.0 for v in z)
    along, across = (model.log_density({"a": 1.0, "b": b}, scatter, [0])[0] for b in (1.0, -1.0))
    assert along > across


@BOTH
def test_coordinates_that_say_nothing_are_left_out(model: Multivariate) -> None:
    """These are coordinates never learned or always equal; if no other is left, every class gets 0."""
    scatter = _scatter(model, [{"a": 1.0, "k": 0.1}, {"a": 2.0, "k": 0.1}], [{"a": 5.0, "k": 0.1}] * 3)
    z = model.log_density({"a": 3.0}, scatter, [0, 1])
    assert model.log_density({"a": 3.0, "k": 7.0, "new": 9.0}, scatter, [0, 1]) == z
    for x in ({}, {"k": 7.0}, {"new": 1.0}, {"a": None}):
        assert model.log_density(x, scatter, [0, 1]) == [0.0, 0.0]
        assert dict(model.parts(x, scatter, [0, 1])) == {}
    assert model.log_density({"a": 3.0}, Scatter(2), [0, 1]) == [0.0, 0.0]
    assert model.log_density({"a": 3.0}, Scatter(), []) == []


@BOTH
@pytest.mark.parametrize("n", [3, 40, 4000])
def test_a_coordinate_that_follows_from_others_is_no_exception(model: Multivariate, n: int) -> None:
    """For a sum, a copy or a constant within a class the pseudo-observation stays, and scores are finite."""
    rng = np.random.default_rng(0)
    classes: list[list[Message]] = [
        [{"a": x, "b": y, "sum": x + y, "copy": x, "own": float(c)} for x, y in rng.normal(c, 1.0, (n, 2))]
        for c in range(2)
    ]
    scatter = _scatter(model, *classes)
    right = 0
    for c, messages in enumerate(classes):
        for x in messages[:50]:
            z = model.log_density(x, scatter, [0, 1])
            assert all(map(math.isfinite, z))
            right += z[c] > z[1 - c]
    assert right == 2 * min(n, 50)


@BOTH
@pytest.mark.parametrize("far", [1e50, 1e100, -1e100])
def test_numbers_as_far_out_as_are_allowed_are_finite(model: Multivariate, far: float) -> None:
    """They may be learned or scored, beside the smallest spreads that are accepted."""
    tiny: list[Message] = [{"a": 1e-99 * (i % 7), "b": 1e-99 * (i % 5)} for i in range(35)]
    scatter = _scatter(model, tiny, tiny[3:])
    for _ in range(2):
        for x in ({"a": far, "b": -far}, {"a": far, "b": 0.0}, {"b": far}):
            assert all(map(math.isfinite, model.log_density(x, scatter, [0, 1])))
            assert all(map(math.isfinite, dict(model.parts(x, scatter, [0, 1]))["b"]))
        scatter.add({"a": far, "b": far}, 0)
    with pytest.raises(ValueError, match="from -1e100 to 1e100"):
        model.log_density({"a": math.inf}, scatter, [0, 1])


@BOTH
def test_scoring_changes_nothing(model: Multivariate) -> None:
    """No bit of the state changes, whichever method is called."""
    scatter = _scatter(model, _normal(0.0, 3, 40), _normal(2.0, 3, 50, seed=1))
    before = {key: array.tobytes() for key, array in scatter.freeze("x").items()}
    for x in ({"f0": 1.0, "f1": 1.0, "f2": 1.0}, {"f0": 1.0}, {"new": 1.0}):
        model.log_density(x, scatter, [0, 1])
        dict(model.parts(x, scatter, [0, 1]))
    drawn_from(model, scatter, 0)
    assert {key: array.tobytes() for key, array in scatter.freeze("x").items()} == before


def drawn_from(model: Multivariate, scatter: Scatter, c: int, seed: int = 0) -> dict[str, float]:
    """Draw one message of class c."""
    return dict(model.drawing(scatter, [c], 0, 1.0)(np.random.default_rng(seed)))


WILD = st.one_of(
    st.none(),
    st.just(math.nan),
    st.sampled_from([0.0, 0.1, 1.0, -1.0, 1e-100, 1e-160, 5e-324, 1e9, 1e9 + 1e-6, 1e50, 1e100, -1e100]),
    st.floats(-1e100, 1e100),
    st.integers(-3, 3).map(float),
)
WILD_MESSAGE = st.dictionaries(st.sampled_from("abcd"), WILD)


@given(
    st.lists(st.tuples(WILD_MESSAGE, st.integers(0, 2), st.sampled_from([1.0, 1e9, 1e-9, 0.1])), max_size=40),
    st.lists(WILD_MESSAGE, min_size=1, max_size=3),
    st.sampled_from([SHARED, OWN]),
)
def test_whatever_was_learned_scores_are_finite(
    learned: list[tuple[Message, int, float]], queries: list[Message], model: Multivariate
) -> None:
    """There is no exception, no warning and no NaN, and a restored model gives the same bits."""
    scatter = Scatter(3, shared=model.covariance == "shared")
    for x, c, weight in learned:
        scatter.add(x, c, weight)
        assert all(map(math.isfinite, model.log_density(x, scatter, [0, 1, 2])))
    restored = Scatter(3, shared=scatter.shared)
    restored.restore(scatter.freeze("x"), 3, "x")
    for x in queries:
        z = model.log_density(x, scatter, [2, 0])
        assert all(map(math.isfinite, z))
        assert model.log_density(x, restored, [2, 0]) == z
        parts = dict(model.parts(x, scatter, [2, 0]))
        assert not parts or [math.fsum(p[i] for p in parts.values()) for i in (0, 1)] == pytest.approx(
            z, rel=1e-9, abs=1e-9
        )
    assert all(map(math.isfinite, drawn_from(model, scatter, 1).values()))


# ---- the line, the parts, the story


@given(st.integers(1, 6), st.integers(0, 10**6), st.sampled_from([SHARED, OWN]), st.booleans())
def test_parts_add_up(d: int, seed: int, model: Multivariate, gap: bool) -> None:
    """They add up to 1e-9, with gaps too, and with or without a kept inverse."""
    scatter = _scatter(model, _normal(0.0, d, 40, seed), _normal(3.0, d, 5, seed + 1))
    for x in _normal(1.0, d, 3, seed + 2):
        query = x | ({"f0": None} if gap else {})
        parts = dict(model.parts(query, scatter, [1, 0]))
        z = model.log_density(query, scatter, [1, 0])
        sums = [math.fsum(part[i] for part in parts.values()) for i in (0, 1)]
        assert sums == pytest.approx(z, rel=1e-9, abs=1e-9)


def test_cross_terms_are_halved_between_their_two_coordinates() -> None:
    """The formula is checked for two coordinates."""
    scatter = _scatter(SHARED, _normal(0.0, 2, 30), _normal(2.0, 2, 30, seed=1))
    sums = scatter.sums()
    p = np.linalg.inv(sums.cross / sums.n)
    a, b = 1.5, -0.5
    means = scatter.means()[1]
    parts = dict(SHARED.parts({"f0": a, "f1": b}, scatter, [0, 1]))
    for i, (name, other) in enumerate((("f0", "f1"), ("f1", "f0"))):
        expected = []
        for c in (0, 1):
            off = {"f0": a - means[c, 0], "f1": b - means[c, 1]}
            expected.append(-0.5 * p[i, i] * off[name] ** 2 - 0.5 * p[0, 1] * off[name] * off[other])
        assert parts[name][0] - parts[name][1] == pytest.approx(expected[0] - expected[1], rel=1e-9)


@given(st.integers(1, 6), st.integers(0, 10**6), st.floats(-3.0, 3.0))
def test_two_classes_are_a_logistic_regression(d: int, seed: int, log_prior_odds: float) -> None:
    """``P(a | x) = 1 / (1 + exp(-theta.x))`` holds to 1e-9."""
    scatter = _scatter(SHARED, _normal(0.0, d, 40, seed), _normal(1.0, d, 60, seed + 1))
    theta = SHARED.theta(scatter, 0, 1, log_prior_odds)
    for x in _normal(0.5, d, 3, seed + 2):
        a, b = SHARED.log_density(x, scatter, [0, 1])
        numbers = {name: v or 0.0 for name, v in x.items()}
        assert theta.at(numbers) == pytest.approx(a - b + log_prior_odds, rel=1e-9, abs=1e-9)


def test_more_classes_have_a_line_each() -> None:
    """Differences of the lines are those of the model, to 1e-9; a class without numbers has a line too."""
    scatter = _scatter(SHARED, *(_normal(float(c), 3, 30, seed=c) for c in range(3)), [])
    lines = SHARED.lines(scatter, [0, 1, 2, 3])
    for x in _normal(1.0, 3, 5, seed=9):
        z = SHARED.log_density(x, scatter, [0, 1, 2, 3])
        u = [line.at({name: v or 0.0 for name, v in x.items()}) for line in lines]
        assert [v - u[0] for v in u] == pytest.approx([v - z[0] for v in z], rel=1e-9, abs=1e-9)


def test_a_curved_boundary_has_no_line() -> None:
    """Asking for one raises an error."""
    with pytest.raises(ValueError, match="curved"):
        OWN.theta(_scatter(OWN, _normal(0.0, 2, 9), _normal(1.0, 2, 9)), 0, 1)


@BOTH
def test_samples_are_of_the_class(model: Multivariate) -> None:
    """Samples have the class's mean and covariance, a constant stays constant, the seed decides the rest."""
    left: list[Message] = [x | {"k": 7.0} for x in _normal(0.0, 2, 300)]
    right: list[Message] = [x | {"k": 7.0} for x in _normal(9.0, 2, 300, seed=1)]
    scatter = _scatter(model, left, right)
    random, draw = np.random.default_rng(0), model.drawing(scatter, [0, 1], 1, 300.0)
    drawn = [dict(draw(random)) for _ in range(8000)]
    assert {x["k"] for x in drawn} == {7.0}
    numbers = np.array([[x["f0"], x["f1"]] for x in drawn])
    assert numbers.mean(axis=0) == pytest.approx(scatter.means()[1][1, :2], abs=0.15)
    sums = scatter.sums(None if model is SHARED else 1)
    sigma = (sums.cross / sums.n)[:2, :2]
    assert np.cov(numbers.T) == pytest.approx(sigma, rel=0.1)
    assert drawn_from(model, scatter, 0, seed=3) == drawn_from(model, scatter, 0, seed=3)
    assert drawn_from(model, Scatter(1), 0) == {}


def test_parameters_are_counted() -> None:
    """There are the means, and one symmetric matrix or one per class."""
    scatter = _scatter(SHARED, *(_normal(float(c), 4, 9) for c in range(3)))
    assert SHARED.n_parameters(scatter, 3, naive=False) == 12 + 10
    assert OWN.n_parameters(scatter, 3, naive=False) == 12 + 30


@pytest.mark.parametrize("value", [0.0, 0.99, -1.0, math.nan, math.inf])
def test_T8_settings_have_limits(value: float) -> None:
    """The constructor refuses values outside them: fewer messages than coordinates make no covariance."""
    with pytest.raises(ValueError, match="at least 1 and finite"):
        Multivariate("shared", value)
