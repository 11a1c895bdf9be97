"""Scatter: exact for each pair, mergeable, removable, with any gaps and names that appear at any time."""

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.frozen import Section
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.statistics.scatter import Scatter

NAMES = ["a", "b", "c"]
NUMBER = st.integers(-1000, 1000).map(float)
MESSAGE = st.tuples(
    st.dictionaries(st.sampled_from(NAMES), st.one_of(NUMBER, st.none(), st.just(math.nan))),
    st.integers(0, 1),
)
WHOLE = st.tuples(st.fixed_dictionaries(dict.fromkeys(NAMES, NUMBER)), st.integers(0, 1))
MESSAGES = st.one_of(st.lists(MESSAGE, max_size=15), st.lists(WHOLE, max_size=15))
OFFSETS = st.sampled_from([0.0, 1.0, 1e9])
SHARED = st.booleans()

Message = tuple[dict[str, float | None], int]
Messages = list[Message]


def _moved(x: dict[str, float | None], offset: float) -> dict[str, float | None]:
    return {name: None if v is None else v + offset for name, v in x.items()}


def _scatter(messages: Messages, offset: float = 0.0, *, shared: bool = True, weight: float = 1.0) -> Scatter:
    scatter = Scatter(2, shared=shared)
    for x, c in messages:
        scatter.add(_moved(x, offset), c, weight)
    return scatter


def _pair(scatter: Scatter, c: int, a: str, b: str) -> tuple[float, float, float, float]:
    if a not in scatter.index or b not in scatter.index:
        return 0.0, 0.0, 0.0, 0.0
    i, j = scatter.index[a], scatter.index[b]
    n, squares = scatter.n[c, i, j], scatter.squares[c, i, j]
    return float(n), float(scatter.mean[c, i, j]), float(scatter.mean[c, j, i]), float(squares)


def _exact(messages: Messages, c: int, a: str, b: str, offset: float) -> tuple[Fraction, ...]:
    def there(x: dict[str, float | None]) -> bool:
        return all((v := x.get(name)) is not None and not math.isnan(v) for name in (a, b))

    pairs = [
        (Fraction(x[a] or 0) + Fraction(offset), Fraction(x[b] or 0) + Fraction(offset))
        for x, c_x in messages
        if c_x == c and there(x)
    ]
    n = Fraction(len(pairs))
    if not pairs:
        return n, n, n, n
    mean_a, mean_b = (sum(column, Fraction(0)) / n for column in zip(*pairs, strict=True))
    return n, mean_a, mean_b, sum(((p - mean_a) * (q - mean_b) for p, q in pairs), Fraction(0))


def _assert_sums(scatter: Scatter, messages: Messages, offset: float = 0.0) -> None:
    """Compare to 1e-12 of the numbers' own size: means by their offset, squares by spread and offset."""
    rounding = 1e-12 * (1.0 + offset)
    for c in (0, 1):
        for a in NAMES:
            for b in NAMES:
                n, *found = _pair(scatter, c, a, b)
                exact_n, *exact = (float(v) for v in _exact(messages, c, a, b, offset))
                assert n == exact_n
                assert found[:2] == pytest.approx(exact[:2], abs=rounding + 1e-9)
                limit = n * (1e-12 * 1e6 + 10 * rounding * 1e3)
                assert found[2] == pytest.approx(exact[2], abs=limit)


def _same(a: Scatter, b: Scatter, digest_classes: str = "ab") -> bool:
    return a.digest("x", digest_classes).hex() == b.digest("x", digest_classes).hex()


@given(MESSAGES, OFFSETS)
def test_sums_are_those_of_exact_arithmetic(messages: Messages, offset: float) -> None:
    """T38: each pair is summed over the messages that hold both, at offset 1e9 too."""
    _assert_sums(_scatter(messages, offset), messages, offset)


@given(MESSAGES, OFFSETS, st.randoms(use_true_random=False))
def test_order_leaves_only_rounding(messages: Messages, offset: float, random: Random) -> None:
    """Both the order of messages and the order in which names appear are shuffled."""
    shuffled = list(messages)
    random.shuffle(shuffled)
    _assert_sums(_scatter(shuffled, offset), messages, offset)


@given(MESSAGES, MESSAGES, OFFSETS)
def test_merging_is_learning_both(left: Messages, right: Messages, offset: float) -> None:
    """The result is the same in either direction."""
    for first, second in ((left, right), (right, left)):
        together = _scatter(first, offset)
        together.merge(_scatter(second, offset), [0, 1])
        _assert_sums(together, left + right, offset)


@given(MESSAGES, MESSAGES, MESSAGES)
def test_merging_is_associative(a: Messages, b: Messages, c: Messages) -> None:
    """(a + b) + c is a + (b + c), to rounding."""
    left, inner, right = _scatter(a), _scatter(b), _scatter(a)
    left.merge(_scatter(b), [0, 1])
    left.merge(_scatter(c), [0, 1])
    inner.merge(_scatter(c), [0, 1])
    right.merge(inner, [0, 1])
    for scatter in (left, right):
        _assert_sums(scatter, a + b + c)


@given(MESSAGES)
def test_merging_goes_by_class_and_name(messages: Messages) -> None:
    """The other scatter may have both in another order."""
    elsewhere = _scatter([(dict(reversed(x.items())), 1 - c) for x, c in messages])
    together = Scatter(2)
    together.merge(elsewhere, [1, 0])
    assert _same(together, _scatter(messages))


@given(MESSAGES, MESSAGES, OFFSETS)
def test_adding_then_removing_is_nothing(kept: Messages, passing: Messages, offset: float) -> None:
    """Sums are equal to rounding, and exactly 0 with no names left if no message remains."""
    scatter = _scatter(kept + passing, offset)
    for x, c in passing:
        scatter.remove(_moved(x, offset), c)
    _assert_sums(scatter, kept, offset)
    for x, c in kept:
        scatter.remove(_moved(x, offset), c)
    assert scatter.names == []
    assert _same(scatter, Scatter(2))


@given(MESSAGES, st.integers(0, 1))
def test_removing_too_much_changes_nothing(messages: Messages, c: int) -> None:
    """Less was learned than is to be removed, or the name was never learned."""
    scatter = _scatter(messages)
    before = scatter.digest("x", "ab").hex()
    for x in ({"a": 1.0, "new": 1.0}, {"a": 1.0, "b": 2.0}):
        with pytest.raises(ValueError, match="smaller than the weight to remove"):
            scatter.remove(x, c, weight=len(messages) + 0.5)
    assert scatter.digest("x", "ab").hex() == before


def test_a_weight_taken_back_in_parts_leaves_nothing() -> None:
    """0.1 + 0.2 is not exactly 0.3; the difference does not count as a message."""
    for parts, whole in (((0.1, 0.2), 0.3), ((0.3, 0.0), 0.1 + 0.2)):
        scatter = Scatter(1)
        for part in parts:
            scatter.add({"a": 5.0, "b": 1.0}, 0, part) if part else None
        scatter.remove({"a": 5.0, "b": 1.0}, 0, whole)
        assert scatter.names == []


@given(MESSAGES, st.integers(1, 8))
def test_a_weight_is_repetition(messages: Messages, weight: int) -> None:
    """A message of weight 3 is that message three times."""
    weighted = _scatter(messages, weight=float(weight))
    _assert_sums(weighted, [message for message in messages for _ in range(weight)])


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1.1e100])
def test_what_is_no_finite_number_changes_nothing(value: float) -> None:
    """Neither the other numbers of the message nor its name are learned."""
    scatter = _scatter([({"a": 1.0}, 0)])
    before = scatter.digest("x", "ab").hex()
    with pytest.raises(ValueError, match="from -1e100 to 1e100"):
        scatter.add({"a": 2.0, "new": 3.0, "b": value}, 0)
    with pytest.raises(ValueError, match="surrogates"):
        scatter.add({"a": 2.0, "\ud800": 3.0}, 0)
    assert (scatter.names, scatter.digest("x", "ab").hex()) == (["a"], before)


def test_numbers_as_large_as_are_allowed_stay_finite() -> None:
    """1e100 and its square are added many times."""
    scatter = Scatter(1)
    for i in range(1000):
        scatter.add({"a": 1e100 * (-1) ** i, "b": -1e100}, 0, weight=1e9)
    assert bool(np.isfinite(scatter.squares).all())
    assert scatter.pooled()[2] == pytest.approx([1e200, 0.0], rel=1e-2)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e9 + 0.1, 1e100])
def test_a_constant_has_no_variance(value: float) -> None:
    """There is no variance from rounding either, over classes and weights of any size."""
    scatter = Scatter(3)
    for i in range(50):
        scatter.add({"a": value}, i % 3, weight=0.1 + i % 7)
    assert scatter.pooled()[1].tolist() == [value]
    assert scatter.pooled()[2].tolist() == [0.0]


@given(MESSAGES, OFFSETS)
def test_pooled_numbers_know_no_classes(messages: Messages, offset: float) -> None:
    """Weight, mean and variance are those of all numbers together."""
    scatter = _scatter(messages, offset)
    n, mean, variance = scatter.pooled()
    one = [(x, 0) for x, _ in messages]
    for i, name in enumerate(scatter.names):
        exact_n, exact_mean, _, squares = (float(v) for v in _exact(one, 0, name, name, offset))
        assert n[i] == exact_n
        assert mean[i] == pytest.approx(exact_mean, abs=1e-12 * (1.0 + offset) + 1e-9)
        assert variance[i] == pytest.approx(squares / exact_n, rel=1e-9, abs=1e-8 * (1.0 + offset / 1e3))


@given(MESSAGES)
def test_cross_sums_are_about_each_coordinates_own_mean(messages: Messages) -> None:
    """One mean per coordinate makes them sums of outer products, so an impossible covariance cannot occur."""
    scatter = _scatter(messages)
    for c in (0, 1, None):
        n, _, cross = scatter.sums(c)
        assert bool((n == n.T).all())
        assert cross == pytest.approx(cross.T, rel=1e-12, abs=1e-6)
        if len(cross):
            scale = float(np.abs(cross).max())
            assert float(np.linalg.eigvalsh(cross).min()) >= -1e-12 * scale - 1e-9
    cross = scatter.sums(0).cross
    for i, a in enumerate(scatter.names):
        for j, b in enumerate(scatter.names):
            _, mean_a, _, _ = _exact(messages, 0, a, a, 0.0)
            _, mean_b, _, _ = _exact(messages, 0, b, b, 0.0)
            n_ab, pair_a, pair_b, squares = _exact(messages, 0, a, b, 0.0)
            exact = squares + n_ab * (pair_a - mean_a) * (pair_b - mean_b)
            assert cross[i, j] == pytest.approx(float(exact), rel=1e-9, abs=1e-6)


@given(MESSAGES, MESSAGES, SHARED, OFFSETS)
def test_restoring_is_the_way_back(messages: Messages, later: Messages, shared: bool, offset: float) -> None:
    """The kept inverses are equal to the bit too, at once and after more was learned."""
    scatter = _scatter(messages, offset, shared=shared)
    frozen = scatter.freeze("petals")
    restored = Scatter(2, shared=shared)
    restored.restore(frozen, 2, "petals")
    for x, c in later:
        scatter.add(_moved(x, offset), c)
        restored.add(_moved(x, offset), c)
    again, expected = restored.freeze("petals"), scatter.freeze("petals")
    assert again.keys() == expected.keys()
    assert all(again[key].tobytes() == expected[key].tobytes() for key in expected)
    assert all(again[key].shape == expected[key].shape for key in expected)


def test_what_is_frozen_does_not_change() -> None:
    """A snapshot is written while the stream continues."""
    messages: Messages = [({"a": float(i % 3), "b": float(i % 5)}, i % 2) for i in range(20)]
    scatter = _scatter(messages)
    frozen = scatter.freeze("x")
    before = {key: array.tobytes() for key, array in frozen.items()}
    for x, c in messages:
        scatter.add(x, c)
    assert {key: array.tobytes() for key, array in frozen.items()} == before


def test_the_other_kind_of_covariance_restores_the_same_sums() -> None:
    """The setting may change at any start; the inverses are then computed again."""
    messages: Messages = [({"a": float(i % 3), "b": float(i % 5)}, i % 2) for i in range(20)]
    for shared in (True, False):
        scatter = _scatter(messages, shared=shared)
        assert all(inverse.matrix is not None for inverse in scatter.inverses)
        restored = Scatter(2, shared=not shared)
        restored.restore(scatter.freeze("x"), 2, "x")
        assert _same(restored, scatter)
        assert [inverse.matrix for inverse in restored.inverses] == [None] * (2 if shared else 1)


def _frozen() -> dict[str, Section]:
    messages: Messages = [({"a": float(i % 3), "é": float(i % 5)}, i % 2) for i in range(20)]
    return _scatter(messages).freeze("x")


@pytest.mark.parametrize(
    ("key", "where", "value"),
    [
        ("x_sums", (0, 0), -1.0),
        ("x_sums", (0, 1), 9.0),
        ("x_sums", (0, 0), 0.0),
        ("x_sums", (5, 0), math.nan),
        ("x_sums", (8, 0), -1.0),
        ("x_sums", (8, 1), 0.25),
        ("x_names", 1, 0xFF),
        ("x_name_ends", 0, 9),
        ("x_name_ends", 1, 2),
        ("x_inverses", (0, 0), math.inf),
        ("x_inverse_facts", (0, 0), 0.5),
        ("x_inverse_facts", (0, 2), -1.0),
    ],
)
def test_sums_that_no_stream_gives_are_refused(key: str, where: object, value: float) -> None:
    """The scatter is unchanged."""
    frozen = {name: array.copy() for name, array in _frozen().items()}
    frozen[key][where] = value  # type: ignore[index]
    restored = _scatter([({"z": 1.0}, 0)])
    with pytest.raises(SnapshotError, match="`x"):
        restored.restore(frozen, 2, "x")
    assert _same(restored, _scatter([({"z": 1.0}, 0)]))


@pytest.mark.parametrize("key", sorted(_frozen()))
def test_a_section_that_is_missing_or_short_is_refused(key: str) -> None:
    """The error names the section."""
    without = {name: array for name, array in _frozen().items() if name != key}
    short = without | {key: _frozen()[key][:-1]}
    for frozen in (without, short):
        with pytest.raises(SnapshotError, match="`x"):
            Scatter(2).restore(frozen, 2, "x")


def test_a_name_that_stands_twice_is_refused() -> None:
    """Two coordinates with one name could not be told apart."""
    frozen = _scatter([({"a": 1.0, "b": 2.0}, 0)]).freeze("x")
    twice = frozen | {"x_names": np.frombuffer(b"aa", np.uint8)}
    with pytest.raises(SnapshotError, match="occurs twice"):
        Scatter(2).restore(twice, 2, "x")


@given(MESSAGES)
def test_the_digest_goes_by_view_class_and_name(messages: Messages) -> None:
    """The order of names and classes makes no difference, nor does a class without numbers."""
    swapped = _scatter([(dict(reversed(x.items())), 1 - c) for x, c in messages])
    scatter = _scatter(messages)
    assert swapped.digest("x", "ba").hex() == scatter.digest("x", "ab").hex()
    scatter.add_class()
    assert scatter.digest("x", "abc").hex() == _scatter(messages).digest("x", "ab").hex()
    if scatter.names:
        assert scatter.digest("y", "abc").hex() != scatter.digest("x", "abc").hex()


def test_a_class_may_appear_in_mid_stream() -> None:
    """It begins without numbers, and with its own inverse if each class has one."""
    for shared in (True, False):
        scatter = Scatter(shared=shared)
        for c in range(3):
            scatter.add_class()
            for i in range(9):
                scatter.add({"a": float(i * c), "b": float(i % 4)}, c)
        n, mean = scatter.means()
        assert n.tolist() == [[9.0, 9.0]] * 3
        assert mean[:, 0].tolist() == [0.0, 4.0, 8.0]
        assert len(scatter.inverses) == (1 if shared else 3)


@given(st.integers(1, 6), st.integers(0, 10**6), SHARED)
def test_the_kept_inverse_is_that_of_the_sums(d: int, seed: int, shared: bool) -> None:
    """It stays so whatever is learned, merged and removed."""
    rng = np.random.default_rng(seed)
    scatter, part = Scatter(2, shared=shared), Scatter(2, shared=shared)
    rows = rng.normal(size=(12 * d + 24, d)) * 10.0 ** rng.integers(-3, 4, size=d) + 5.0
    messages = [{f"f{i}": v for i, v in enumerate(row.tolist())} for row in rows]
    part.merge(_scatter([(x, i % 2) for i, x in enumerate(messages[:5])], shared=shared), [0, 1])
    for i, x in enumerate(messages):
        scatter.add(x, i % 2, 0.5 + i % 3)
        if i == 3 * d:
            scatter.remove(messages[0], 0, 0.5)
            scatter.merge(part, [0, 1])
    for group, kept in zip([None] if shared else [0, 1], scatter.inverses, strict=True):
        assert kept.matrix is not None
        unit = np.sqrt(scatter.sums(group).cross.diagonal())
        product = kept.matrix @ scatter.sums(group).cross / unit * unit[:, None]
        assert product == pytest.approx(np.eye(d), abs=1e-7)
        expected = np.linalg.slogdet(scatter.sums(group).cross / unit / unit[:, None])[1]
        assert kept.log_det - 2 * np.log(unit).sum() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("change", ["gap", "name", "merge", "remove"])
def test_a_gap_ends_the_kept_inverse(change: str) -> None:
    """So do a new name, a merge and a removal: the sums change by more than one outer product."""
    whole: Messages = [({"a": float(i % 3), "b": float(i % 5)}, i % 2) for i in range(21)]
    scatter = _scatter(whole)
    assert scatter.inverse_of(None) is not None
    assert scatter.inverse_of(0) is None
    if change == "gap":
        scatter.add({"a": 1.0}, 0)
    elif change == "name":
        scatter.add({"a": 1.0, "b": 1.0, "c": 1.0}, 0)
    elif change == "merge":
        scatter.merge(_scatter(whole), [0, 1])
    else:
        scatter.remove(*whole[0])
    assert scatter.inverse_of(None) is None
