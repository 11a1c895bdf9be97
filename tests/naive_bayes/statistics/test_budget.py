"""The budget of a count store: what it is charged covers what it allocates, and bounds it under attack."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb import NaiveBayes
from streamnb.base import Batch
from streamnb.naive_bayes import BYTES_MIN, Categories, Laplace, Multinomial, View, Words, compiled
from streamnb.naive_bayes.features.values import CATEGORY_BYTES_MAX, shortened
from streamnb.naive_bayes.statistics.budget import cells_for, charge, room_of

needs_kernel = pytest.mark.skipif(not compiled, reason="the plain store does not bound its memory")
SPARE_BYTES = 1 << 20  # a small store is not shrunk: its memory is not worth the time


def hostile(draw: random.Random, n: int, attack: str) -> Batch:
    """Return messages that try to fill the memory in one way."""
    if attack == "new tokens":
        texts = [" ".join(f"t{draw.getrandbits(40)}" for _ in range(40)) for _ in range(n)]
    elif attack == "long tokens":
        texts = [" ".join("".join(draw.choices("𐐀𐐁𐐂𐐃", k=64)) for _ in range(20)) for _ in range(n)]
    else:  # every class teaches every token
        texts = [" ".join(f"w{draw.randrange(2_000)}" for _ in range(60)) for _ in range(n)]
    labels = [f"c{draw.randrange(300)}" if attack != "long tokens" else draw.choice("ab") for _ in range(n)]
    return Batch({"text": texts}, labels)


@needs_kernel
@pytest.mark.parametrize(
    "attacks", [("new tokens",), ("long tokens",), ("all classes",), ("long tokens", "all classes")]
)
def test_the_memory_stays_below_the_charge_and_the_charge_below_the_limit(attacks: tuple[str, ...]) -> None:
    """Also while snapshots are taken, and when one kind of attack follows another."""
    draw, limit = random.Random(7), 6 << 20
    model = NaiveBayes([View("w", Words())], head="product", bytes_max=limit)
    most = 0
    for attack in attacks:
        for i in range(40):
            model.step(hostile(draw, 50, attack))
            if i % 5 == 0:
                model.freeze()
            counts: Any = model.state.counts  # the compiled store
            most = max(most, counts.nbytes)
            assert counts.charge() <= limit
            assert counts.nbytes <= counts.charge() + SPARE_BYTES
    assert model.state.counts.evicted_tokens > 0
    assert most <= limit


@pytest.mark.parametrize("kernel", [pytest.param(True, marks=needs_kernel), False])
def test_F10_invented_labels_do_not_multiply_the_memory(*, kernel: bool) -> None:
    """255 labels, each of one message, leave nearly as many tokens under the limit as two labels do."""
    draw = random.Random(3)
    kept = []
    for n_labels in (2, 255):
        model = NaiveBayes([View("w", Words())], head="product", bytes_max=BYTES_MIN, compiled=kernel)
        for _ in range(12):
            texts = [" ".join(f"t{draw.getrandbits(30)}" for _ in range(20)) for _ in range(50)]
            model.step(Batch({"text": texts}, [f"c{draw.randrange(n_labels)}" for _ in texts]))
        kept.append(len(model.state.counts))
    assert kept[1] > 0.6 * kept[0]


@pytest.mark.parametrize("kernel", [pytest.param(True, marks=needs_kernel), False])
def test_F10_a_category_of_any_length_is_one_short_token(*, kernel: bool) -> None:
    """Different long values are different categories, and a value has the same token in both twins."""
    model = NaiveBayes([View("c", Categories(fields=("x",)))], head="product", compiled=kernel)
    long = ["a" * 1_000_000, "a" * 999_999 + "b", "ä" * 500_000]
    for value, label in zip(long, "xyz", strict=True):
        model.learn_one({"x": value}, label)
    tokens = list(model.state.counts["c"].rows)
    assert len(set(tokens)) == 3
    assert max(len(token.encode()) for token in tokens) <= CATEGORY_BYTES_MAX
    assert [model.predict_one({"x": value}) for value in long] == ["x", "y", "z"]


@given(st.text())
def test_a_short_text_is_not_shortened_and_a_long_one_is_short(text: str) -> None:
    """The limit counts bytes, not characters."""
    size = len(text.encode(errors="surrogatepass"))
    if size <= CATEGORY_BYTES_MAX:
        assert shortened(text) == text
    long = "x" * CATEGORY_BYTES_MAX + text.encode(errors="replace").decode()
    assert (len(shortened(long)) < CATEGORY_BYTES_MAX) == (long != "x" * CATEGORY_BYTES_MAX)


@given(st.integers(0, 5_000))
def test_a_row_grows_only_where_its_block_is_full(counts: int) -> None:
    """The cells that one more count may take are those of the next block, or none."""
    grows = room_of(counts + 1) > room_of(counts)
    assert cells_for(counts) == (room_of(counts + 1) if grows else 0)
    assert room_of(counts) >= counts


def test_a_message_that_the_limit_cannot_hold_is_learned_all_the_same() -> None:
    """The limit never stops the stream: the store then holds this message alone."""
    model = NaiveBayes([View("w", Words(), Multinomial(Laplace(1.0)))], head="product", bytes_max=BYTES_MIN)
    model.learn_one({"text": "first words"}, "a")
    model.learn_one({"text": " ".join(f"{i:064d}" for i in range(20_000))}, "b")
    assert model.state.counts.charge() > BYTES_MIN
    assert len(model.state.counts) == 20_000
    model.learn_one({"text": "next words"}, "a")
    assert model.state.counts.charge() <= BYTES_MIN


@pytest.mark.parametrize("bytes_max", [0, -1, BYTES_MIN - 1, float("nan")])
def test_a_limit_below_the_least_is_refused(bytes_max: int) -> None:
    """The error names the parameter."""
    with pytest.raises(ValueError, match="`bytes_max`"):
        NaiveBayes(bytes_max=bytes_max)


def test_the_charge_counts_every_part() -> None:
    """Tokens, their text, the classes of dense rows, the cells of others, and the classes themselves."""
    base = charge(1000, 7000, 1000, 2)
    assert charge(1001, 7000, 1000, 2) > base
    assert charge(1000, 7001, 1000, 2) > base
    assert charge(1000, 7000, 1000, 3) - base > 1000 * 8
    assert charge(1000, 7000, 1001, 2) == base
    assert charge(1000, 7000, 1001, 9) > charge(1000, 7000, 1000, 9)
    assert np.isclose(charge(1000, 7000, 1000, 1000) - charge(1000, 7000, 1000, 500), 500 * 1024)
