"""The digest: it does not depend on order, and it depends on everything else."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base.digest import Digest, statement

STATEMENTS = st.lists(
    st.tuples(st.text(max_size=8), st.lists(st.floats(allow_nan=False), max_size=3)), max_size=12
)


def _digest(statements: list[tuple[str, list[float]]]) -> Digest:
    digest = Digest()
    for title, values in statements:
        digest.add(statement(title), *values)
    return digest


@given(STATEMENTS, st.randoms(use_true_random=False))
def test_order_leaves_no_trace(statements: list[tuple[str, list[float]]], random: object) -> None:
    """A sum does not depend on the order of its terms."""
    shuffled = list(statements)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert _digest(statements).hex() == _digest(shuffled).hex()


@given(STATEMENTS, STATEMENTS)
def test_digests_add(left: list[tuple[str, list[float]]], right: list[tuple[str, list[float]]]) -> None:
    """The digests of two halves add up to that of the whole."""
    together = _digest(left)
    together.add_digest(_digest(right))
    assert together.hex() == _digest(left + right).hex()


@given(STATEMENTS, st.text(max_size=8), st.floats(allow_nan=False))
def test_one_statement_more_shows(
    statements: list[tuple[str, list[float]]], title: str, value: float
) -> None:
    """Adding a statement changes the digest, even one that was added before."""
    assert _digest(statements).hex() != _digest([*statements, (title, [value])]).hex()


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([-math.inf, math.inf]))
def test_the_last_bit_of_a_number_shows(value: float, direction: float) -> None:
    """Neighbouring floats give different digests."""
    assert _digest([("n", [value])]).hex() != _digest([("n", [math.nextafter(value, direction)])]).hex()


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_names_are_told_apart(left: list[str], right: list[str]) -> None:
    """Only equal parts make equal names, wherever a part ends and whatever it contains."""
    assert (statement(*left) == statement(*right)) == (left == right)


def test_the_hash_is_the_documented_one() -> None:
    """It is MurmurHash3 x64 128 over the name and little-endian numbers, so a digest is the same on any
    machine.
    """
    digest = Digest()
    assert digest.hex() == "0" * 32
    digest.add(statement("count", "words", "free", '"spam"'), 12.0)
    digest.add(statement("total", "words", '"spam"'), 12.0)
    assert digest.hex() == "897f4c7e4625ee453009f905cb75abfd"


@pytest.mark.parametrize("values", [(), (1.0,), (1.0, 2.0)])
def test_a_digest_is_32_hexadecimal_digits(values: tuple[float, ...]) -> None:
    """Leading zeros are included."""
    digest = Digest()
    digest.add(b"x", *values)
    assert len(digest.hex()) == 32
    assert int(digest.hex(), 16) < 1 << 128
