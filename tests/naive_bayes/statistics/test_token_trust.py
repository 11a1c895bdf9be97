"""The column of trust: it belongs to the tokens, leaves with them, and is checked when it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.errors import SnapshotError
from streamnb.naive_bayes import _kernel
from streamnb.naive_bayes.statistics.counts import CountStore
from streamnb.naive_bayes.statistics.token_trust import NO_TRUST, TRUST_BOUNDS, TRUST_SECTION

STORES: list[type[Any]] = [CountStore, *([] if _kernel.reason else [_kernel.CountStore])]
TRUSTS = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.tuples(st.floats(*TRUST_BOUNDS, width=32), st.floats(0, 1e6, width=32)),
)
Trusts = dict[str, tuple[float, float]]


def store_of(kind: type[Any], trusts: Trusts, n_classes: int = 2) -> Any:  # noqa: ANN401 - either twin
    """Return a store of the tokens a to h, of which some are trusted."""
    store = kind(["words", "pairs"], trusts=True)
    for _ in range(n_classes):
        store.add_class()
    for i, token in enumerate("abcdefgh"):
        store["words"].add({token: i + 1.0}, i % n_classes)
        store["pairs"].add({token: 1.0}, 0)
    for token, (trust, squares) in trusts.items():
        store["words"].trust.set(token, trust, squares)
    return store


def held(store: Any) -> Trusts:  # noqa: ANN401 - either twin
    """Return the trust of the words that was learned."""
    return {token: (trust, squares) for token, trust, squares in store["words"].trust.items()}


@pytest.mark.parametrize("kind", STORES)
@given(trusts=TRUSTS)
def test_trust_is_the_tokens_of_one_view(kind: type[Any], trusts: Trusts) -> None:
    """The same token of another view has a trust of its own, and a token without counts has none."""
    store = store_of(kind, trusts)
    store["words"].trust.set("never counted", 1.0, 1.0)

    assert held(store) == {token: each for token, each in trusts.items() if any(each)}
    assert list(store["pairs"].trust.items()) == []
    assert store["words"].trust.get("never counted") == NO_TRUST


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("n_classes", [2, 12])
@given(trusts=TRUSTS)
def test_a_frozen_store_has_its_trust(kind: type[Any], n_classes: int, trusts: Trusts) -> None:
    """Restored by either twin it is the same, and so is its digest."""
    store = store_of(kind, trusts, n_classes)
    frozen = store.freeze()
    store["words"].trust.set("a", 0.25, 1e9)
    for other in STORES:
        fresh = other(["words", "pairs"], trusts=True)
        fresh.restore(dict(frozen), n_classes)

        assert held(fresh) == {token: each for token, each in trusts.items() if any(each)}
        assert fresh.trust_digest().hex() == store.trust_digest(frozen).hex()


@pytest.mark.parametrize("kind", STORES)
def test_trust_leaves_with_its_token(kind: type[Any]) -> None:
    """By eviction, by unlearning and by forgetting; a token that comes again starts without trust."""
    trusts = dict.fromkeys("abcdefgh", (0.5, 1.0))
    evicted, unlearned, faded = (store_of(kind, trusts) for _ in range(3))
    evicted.evict(12)  # all pairs and the four rarest words
    unlearned["words"].remove({"a": 1.0}, 0)
    faded.fade(2.0**-34)
    for store, left in (evicted, "efgh"), (unlearned, "bcdefgh"), (faded, "defgh"):
        assert list(held(store)) == list(left)
        store["words"].add({"a": 1.0}, 0)
        assert store["words"].trust.get("a") == NO_TRUST
    assert held(faded)["h"] == (0.5, 2.0**-34)


@pytest.mark.parametrize("kind", STORES)
@given(mine=TRUSTS, theirs=TRUSTS, start=st.sampled_from([0.0, 0.05, 2.0**40]))
def test_merged_trust_is_weighted_by_what_taught_it(
    kind: type[Any], mine: Trusts, theirs: Trusts, start: float
) -> None:
    """By the squared gradients, which are added; their start is in both parts and once in the whole."""
    store = store_of(kind, mine)
    store.merge_trust(store_of(kind, theirs), start)
    low, high = TRUST_BOUNDS
    for token in "abcdefgh":
        (v, g), (w, h) = mine.get(token, NO_TRUST), theirs.get(token, NO_TRUST)
        whole = start + g + h
        trust = ((start + g) * v + (start + h) * w) / whole if whole else v
        expected = [min(max(trust, low), high), g + h]
        assert store["words"].trust.get(token) == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("kind", STORES)
@given(parts=st.permutations([0, 1, 2]), trusts=st.tuples(TRUSTS, TRUSTS, TRUSTS))
def test_merged_trust_does_not_depend_on_the_order_of_parts(
    kind: type[Any], parts: list[int], trusts: tuple[Trusts, Trusts, Trusts]
) -> None:
    """But for rounding, as long as no bound is met on the way."""
    inside = [{token: (v / 8, g) for token, (v, g) in each.items()} for each in trusts]
    merged = []
    for order in ([0, 1, 2], parts):
        first, *others = [store_of(kind, inside[i]) for i in order]
        for other in others:
            first.merge_trust(other, 0.05)
        merged.append([first["words"].trust.get(token) for token in "abcdefgh"])
    for mine, theirs in zip(*merged, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("kind", STORES)
def test_two_first_steps_of_trust_add_up(kind: type[Any]) -> None:
    """As in one stream; what was learned long in both parts is a mean, what in one is kept as it is."""
    store = store_of(kind, {"a": (0.25, 0.001), "b": (0.5, 1000.0), "c": (0.75, 3.0)})
    store.merge_trust(store_of(kind, {"a": (0.25, 0.001), "b": (0.25, 1000.0), "d": (0.375, 3.0)}), 0.05)
    trust = {token: store["words"].trust.get(token)[0] for token in "abcd"}

    assert trust["a"] == pytest.approx(0.5, rel=0.03)
    assert trust["b"] == pytest.approx(0.375, rel=1e-3)
    assert (trust["c"], trust["d"]) == (0.75, 0.375)


@pytest.mark.parametrize("kind", STORES)
def test_trust_is_charged_only_where_it_is_learned(kind: type[Any]) -> None:
    """Twenty bytes per token of any view."""
    stores = kind(["words", "pairs"]), kind(["words", "pairs"], trusts=True)
    for store in stores:
        store.add_class()
        store["words"].add({"a": 1.0}, 0)
    without, trusting = stores

    assert trusting.charge() - without.charge() == 20
    assert TRUST_SECTION not in without.freeze()
    assert without.trust_digest().hex() == trusting.trust_digest().hex() == "0" * 32


DAMAGE: dict[str, Callable[[Any], Any]] = {
    "too few": lambda array: array[:-1],
    "one number": lambda array: array[:, :1],
    "not a number": lambda array: np.where(array == 1, np.float32(np.nan), array),
    "too high": lambda array: np.where(array == 1, np.float32(2.5), array),
    "squares below 0": lambda array: np.where(array == 3, np.float32(-1), array),
    "squares without end": lambda array: np.where(array == 3, np.float32(np.inf), array),
    "doubles": lambda array: array.astype(np.float64),
}


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_trust_out_of_its_bounds_is_refused(kind: type[Any], damage: str) -> None:
    """Nothing of such a snapshot is taken over."""
    frozen = store_of(kind, {"a": (1.0, 3.0)}).freeze()
    frozen[TRUST_SECTION] = DAMAGE[damage](frozen[TRUST_SECTION])
    fresh = kind(["words", "pairs"], trusts=True)
    with pytest.raises(SnapshotError):
        fresh.restore(frozen, 2)
    assert len(fresh) == 0
