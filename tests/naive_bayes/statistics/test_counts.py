"""The count store, plain and compiled: order leaves no trace, removing undoes adding, only a sound store is
restored.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.frozen import Section
from streamnb.errors import SnapshotError
from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.event_models.multinomial import log_weight
from streamnb.naive_bayes.statistics.counts import CountStore
from streamnb.naive_bayes.statistics.view_counts import ViewCounts

CLASSES = ["ham", "spam", "other"]
VIEWS = ["words", "pairs"]

Message = tuple[str, dict[str, float], int]
Twin = type[CountStore]

TWINS: dict[str, Twin] = {"plain": CountStore}
if _kernel.compiled:
    TWINS["compiled"] = cast("Twin", _kernel.CountStore)


@pytest.fixture(scope="module", params=[*TWINS.values()], ids=[*TWINS])
def twin(request: pytest.FixtureRequest) -> Twin:
    """The kind of store under test, plain or compiled."""
    return cast("Twin", request.param)


# Exact weights: multiples of 1/256, as the engine uses them.
FEATURES = st.dictionaries(
    st.sampled_from(["a", "b", "free", "été", "中", ""]),
    st.integers(1, 1000).map(lambda m: log_weight(float(m))),
    max_size=5,
)
MESSAGES = st.lists(st.tuples(st.sampled_from(VIEWS), FEATURES, st.integers(0, 2)), max_size=15)


def _store(twin: Twin, messages: Sequence[Message] = ()) -> CountStore:
    store = twin(VIEWS)
    for _ in CLASSES:
        store.add_class()
    for view, features, c in messages:
        store[view].add(features, c)
    return store


def _hex(store: CountStore, classes: Sequence[str] = CLASSES) -> str:
    return store.digest(classes).hex()


def _contents(store: CountStore) -> dict[str, tuple[dict[str, list[float]], list[float]]]:
    return {view: (dict(store[view].rows.items()), store[view].totals) for view in store}


def _view(twin: Twin, n_classes: int) -> ViewCounts:
    """A store with one view."""
    store = twin(["view"])
    for _ in range(n_classes):
        store.add_class()
    return store["view"]


@given(MESSAGES)
def test_counts_are_sums(twin: Twin, messages: list[Message]) -> None:
    """There is a sum per view, token and class; a total is the sum of its class's counts."""
    expected: dict[tuple[str, str, int], float] = defaultdict(float)
    for view, features, c in messages:
        for token, f in features.items():
            expected[view, token, c] += f
    contents = _contents(_store(twin, messages))
    found = {
        (view, token, c): n
        for view, (rows, _) in contents.items()
        for token, row in rows.items()
        for c, n in enumerate(row)
        if n
    }
    assert found == expected
    for rows, totals in contents.values():
        assert totals == [sum(row[c] for row in rows.values()) for c in range(3)]


@given(MESSAGES, st.randoms(use_true_random=False))
def test_order_leaves_no_trace(twin: Twin, messages: list[Message], random: Random) -> None:
    """Counts, totals and digest are equal to the bit."""
    shuffled = list(messages)
    random.shuffle(shuffled)
    assert _contents(_store(twin, shuffled)) == _contents(_store(twin, messages))
    assert _hex(_store(twin, shuffled)) == _hex(_store(twin, messages))


@given(MESSAGES, MESSAGES)
def test_merging_is_learning_both(twin: Twin, left: list[Message], right: list[Message]) -> None:
    """So merging is commutative, exactly."""
    together = _store(twin, left)
    together.merge(_store(twin, right), [0, 1, 2])
    assert _contents(together) == _contents(_store(twin, left + right))
    other_way = _store(twin, right)
    other_way.merge(_store(twin, left), [0, 1, 2])
    assert _hex(other_way) == _hex(together)


@given(MESSAGES, MESSAGES, MESSAGES)
def test_merging_is_associative(twin: Twin, a: list[Message], b: list[Message], c: list[Message]) -> None:
    """(a + b) + c is a + (b + c), exactly."""
    left = _store(twin, a)
    left.merge(_store(twin, b), [0, 1, 2])
    left.merge(_store(twin, c), [0, 1, 2])
    inner, right = _store(twin, b), _store(twin, a)
    inner.merge(_store(twin, c), [0, 1, 2])
    right.merge(inner, [0, 1, 2])
    assert _contents(left) == _contents(right)


@given(MESSAGES, MESSAGES, st.permutations([0, 1, 2]))
def test_merging_goes_by_class_not_by_column(
    twin: Twin, left: list[Message], right: list[Message], order: list[int]
) -> None:
    """The other store may have its classes in another order."""
    elsewhere = _store(twin, [(view, features, order.index(c)) for view, features, c in right])
    together = _store(twin, left)
    together.merge(elsewhere, order)
    assert _contents(together) == _contents(_store(twin, left + right))


@given(MESSAGES)
def test_merging_leaves_the_other_alone(twin: Twin, messages: list[Message]) -> None:
    """Learning on in one store does not change the other."""
    other = _store(twin, messages)
    before = _hex(other)
    together = _store(twin)
    together.merge(other, [0, 1, 2])
    together["words"].add({"a": 1.0, "free": 1.0}, 0)
    assert _hex(other) == before


@given(MESSAGES, MESSAGES, st.randoms(use_true_random=False))
def test_adding_then_removing_is_nothing(
    twin: Twin, kept: list[Message], passing: list[Message], random: Random
) -> None:
    """Whatever the order of removal, rows, vocabulary, totals and digest are as before."""
    store = _store(twin, kept + passing)
    random.shuffle(passing)
    for view, features, c in passing:
        store[view].remove(features, c)
    assert _contents(store) == _contents(_store(twin, kept))
    assert [len(store[v].rows) for v in VIEWS] == [len(_contents(store)[v][0]) for v in VIEWS]
    assert _hex(store) == _hex(_store(twin, kept))


@given(MESSAGES, FEATURES.filter(bool), st.integers(0, 2))
def test_removing_too_much_changes_nothing(
    twin: Twin, messages: list[Message], features: dict[str, float], c: int
) -> None:
    """Every token is checked before any is changed, so the last one may be the one without enough counts."""
    store = _store(twin, messages)
    last = next(reversed(features))
    held = store["words"].rows.get(last, [0.0] * 3)[c]
    features = {token: f for token, f in features.items() if token != last} | {last: held + 1 / 256}
    for token, f in features.items():
        if token != last:
            store["words"].add({token: f}, c)
    before = _hex(store)
    with pytest.raises(ValueError, match="smaller than the weight to remove"):
        store["words"].remove(features, c)
    assert _hex(store) == before


def test_a_token_without_counts_has_left_the_vocabulary(twin: Twin) -> None:
    """It leaves only when no class has a count of it."""
    counts = _view(twin, 2)
    counts.add({"free": 1.0}, 0)
    counts.add({"free": 2.0}, 1)
    counts.remove({"free": 1.0}, 0)
    assert dict(counts.rows.items()) == {"free": [0.0, 2.0]}
    counts.remove({"free": 2.0}, 1)
    assert (dict(counts.rows.items()), counts.totals) == ({}, [0.0, 0.0])


def test_a_weight_multiplies(twin: Twin) -> None:
    """The weight multiplies counts that are added and counts that are removed."""
    counts = _view(twin, 1)
    counts.add({"a": 2.0}, 0, weight=1.5)
    assert (dict(counts.rows.items()), counts.totals) == ({"a": [3.0]}, [3.0])
    counts.remove({"a": 1.0}, 0, weight=3.0)
    assert dict(counts.rows.items()) == {}


def test_what_is_too_small_to_count_makes_no_row(twin: Twin) -> None:
    """A product that underflows to 0 adds no token: a row needs a count above 0."""
    counts = _view(twin, 1)
    counts.add({"a": 1e-200, "b": 1.0}, 0, weight=1e-200)
    assert dict(counts.rows.items()) == {"b": [1e-200]}


@given(MESSAGES)
def test_the_digest_does_not_know_columns_nor_silent_classes(twin: Twin, messages: list[Message]) -> None:
    """It depends on the names of the classes; a class without counts does not change it."""
    order = [2, 0, 1]
    elsewhere = _store(twin, [(view, features, order.index(c)) for view, features, c in messages])
    assert _hex(elsewhere, [CLASSES[c] for c in order]) == _hex(_store(twin, messages))
    more = _store(twin, messages)
    more.add_class()
    assert _hex(more, [*CLASSES, "silent"]) == _hex(_store(twin, messages))


def test_the_digest_tells_views_tokens_classes_and_counts_apart(twin: Twin) -> None:
    """A change of one unit anywhere changes the digest."""
    states: list[Message] = [
        ("words", {"a": 1.0}, 0),
        ("pairs", {"a": 1.0}, 0),
        ("words", {"b": 1.0}, 0),
        ("words", {"a": 1.0}, 1),
        ("words", {"a": 1.0 + 1 / 256}, 0),
    ]
    assert len({_hex(_store(twin, [state])) for state in states} | {_hex(_store(twin))}) == 6


# ---- freeze and restore


@given(MESSAGES)
def test_restoring_is_the_way_back(twin: Twin, messages: list[Message]) -> None:
    """Rows and their order, totals and digest are the same; empty tokens and tokens of other scripts
    included.
    """
    store = _store(twin, messages)
    restored = twin(VIEWS)
    restored.restore(store.freeze(), 3)
    assert _contents(restored) == _contents(store)
    assert [list(restored[v].rows) for v in VIEWS] == [list(store[v].rows) for v in VIEWS]
    assert _hex(restored) == _hex(store)


@given(MESSAGES, MESSAGES)
def test_a_frozen_store_does_not_move(twin: Twin, before: list[Message], after: list[Message]) -> None:
    """Later learning changes neither the frozen arrays nor their digest."""
    store = _store(twin, before)
    frozen = store.freeze()
    digest = _hex(store)
    for view, features, c in after:
        store[view].add(features, c)
    restored = twin(VIEWS)
    restored.restore(frozen, 3)
    assert _hex(restored) == _hex(_store(twin, before)) == digest
    assert store.digest(CLASSES, frozen).hex() == digest


@given(MESSAGES)
def test_the_rows_of_a_frozen_store_are_where_its_bounds_say(twin: Twin, messages: list[Message]) -> None:
    """The bounds are 0, then for each token 256 times its end plus its view's number."""
    store = _store(twin, messages)
    frozen = store.freeze()
    bounds, blob = frozen["token_bounds"].tolist(), frozen["token_bytes"].tobytes()
    found: dict[str, dict[str, list[float]]] = {view: {} for view in VIEWS}
    for start, end, row in zip(bounds, bounds[1:], frozen["counts"].tolist(), strict=False):
        found[VIEWS[end % 256]][blob[start // 256 : end // 256].decode()] = row
    assert found == {view: dict(store[view].rows.items()) for view in VIEWS}
    assert bounds[0] == 0
    assert bounds[-1] // 256 == len(blob)
    assert [kind.name for kind in (frozen["token_bounds"].dtype, frozen["token_bytes"].dtype)] == [
        "uint64",
        "uint8",
    ]


def test_a_plain_store_leaves_an_index_alone() -> None:
    """It ignores the compiled twin's hash table, whatever the table contains."""
    frozen = _store(CountStore, [("words", {"free": 1.0}, 1)]).freeze()
    store = CountStore(VIEWS)
    store.restore({**frozen, "index": np.zeros(4, np.uint32), "index_state": np.zeros(4, np.uint64)}, 3)
    assert _contents(store)["words"][0] == {"free": [0.0, 1.0, 0.0]}


def test_a_store_without_classes_goes_round(twin: Twin) -> None:
    """A snapshot may be written before the first label."""
    restored = twin(VIEWS)
    restored.restore(twin(VIEWS).freeze(), 0)
    assert _contents(restored) == _contents(twin(VIEWS))


def test_what_heavy_weights_leave_behind_is_restored(twin: Twin) -> None:
    """After 1e9 was added and removed, a total of 0.1 has a rounding error; the frozen store is still
    accepted.
    """
    store = _store(twin, [("words", {"free": 0.1}, 1)])
    store["words"].add({"free": 1e9}, 1)
    store["words"].remove({"free": 1e9}, 1)
    store["words"].add({"cash": 0.1}, 1)
    restored = twin(VIEWS)
    restored.restore(store.freeze(), 3)
    assert _hex(restored) == _hex(store)


Damage = Callable[[dict[str, Section]], object]


def _without(key: str) -> Damage:
    return lambda sections: sections.pop(key)


def _as_float32(key: str) -> Damage:
    return lambda sections: sections.update({key: sections[key].astype(np.float32)})


def _shorter(key: str) -> Damage:
    return lambda sections: sections.update({key: sections[key][:-1]})


DAMAGES: dict[str, Damage] = {
    **{f"no {key}": _without(key) for key in _store(CountStore).freeze()},
    **{f"{key} of another type": _as_float32(key) for key in _store(CountStore).freeze()},
    **{f"{key} too short": _shorter(key) for key in _store(CountStore).freeze()},
    "a class more": lambda s: s.update(counts=np.ones((3, 4))),
    "a negative count": lambda s: s["counts"].__setitem__((0, 0), -1.0),
    "a count that is not a number": lambda s: s["counts"].__setitem__((0, 0), np.nan),
    "an infinite count": lambda s: s["counts"].__setitem__((0, 0), np.inf),
    "counts whose sum is beyond all floats": lambda s: s["counts"].__setitem__(slice(2), 1.7e308),
    "another total": lambda s: s["totals"].__setitem__((0, 0), 7.0),
    "an infinite total": lambda s: s["totals"].__setitem__((0, 0), np.inf),
    "a row of nothing": lambda s: s["counts"].__setitem__(0, 0.0),
    "an end past the bytes": lambda s: s["token_bounds"].__setitem__(-1, 256 * 10**9),
    "an end beyond any": lambda s: s["token_bounds"].__setitem__(1, 2**64 - 1),
    "ends that go back": lambda s: s["token_bounds"].__setitem__(2, 256 * 3),
    "bytes before the first token": lambda s: s["token_bounds"].__setitem__(0, 256),
    "a first bound with a view": lambda s: s["token_bounds"].__setitem__(0, 1),
    "a view that is not there": lambda s: s["token_bounds"].__setitem__(1, 256 * 4 + 9),
    "bytes that are not UTF-8": lambda s: s.update(token_bytes=np.full_like(s["token_bytes"], 0xFF)),
    "a token that occurs twice": lambda s: (  # noticed when the index is built
        s.update(token_bytes=np.frombuffer(b"freefreeab", np.uint8)),
        s.pop("index", None),
    ),
    "a token moved to another view": lambda s: s["token_bounds"].__setitem__(1, 256 * 4 + 1),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_not_a_count_store_is_refused(twin: Twin, damage: Damage) -> None:
    """A `SnapshotError` is raised, and the store is unchanged."""
    frozen = _store(twin, [("words", {"free": 1.0, "cash": 2.0}, 1), ("pairs", {"ab": 1.0}, 0)]).freeze()
    sections: dict[str, Section] = {key: array.copy() for key, array in frozen.items()}
    damage(sections)
    store = _store(twin, [("words", {"kept": 3.0}, 2)])
    before = _hex(store)
    with pytest.raises(SnapshotError):
        store.restore(sections, 3)
    assert _hex(store) == before
    store.restore(frozen, 3)
    assert list(store["words"].rows) == ["free", "cash"]
