"""Both twins of the template give the same bytes and refuse the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnb.base import twins
from streamnb.wire.template import Column, Table, filled

Fill = Callable[[Sequence[bytes], Sequence[Column]], list[bytes]]

_COMPILED = twins.load("streamnb.wire._template")
TWINS = [filled, _COMPILED.filled] if _COMPILED else [filled]
PARTS = st.binary(max_size=6)


@st.composite
def templates(draw: st.DrawFn) -> tuple[list[bytes], list[Column], list[bytes]]:
    """Draw pieces and columns, and build the expected rows in the simplest way."""
    n = draw(st.integers(1, 5))
    columns: list[Column] = []
    rows: list[list[bytes]] = [[] for _ in range(n)]
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            parts = draw(st.lists(PARTS, min_size=n, max_size=n))
            columns.append(parts)
            for row, part in zip(rows, parts, strict=True):
                row.append(part)
        else:
            width = draw(st.integers(0, 3))
            numbers = st.none() | st.integers(-9, 10**6) | st.floats(allow_nan=False, allow_infinity=False)
            table = draw(st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=n, max_size=n))
            flat = [number for row_of in table for number in row_of]
            columns.append(Table(orjson.dumps(flat)[1:-1], width))
            for row, numbers_of in zip(rows, table, strict=True):
                row.extend(map(orjson.dumps, numbers_of))
    width = len(rows[0])
    if not width:
        columns.append([b"x"] * n)
        rows, width = [[b"x"] for _ in rows], 1
    pieces = draw(st.lists(PARTS, min_size=width + 1, max_size=width + 1))
    whole = []
    for row in rows:
        between = [part for pair in zip(pieces, row, strict=False) for part in pair]
        whole.append(b"".join([*between, pieces[-1]]))
    return pieces, columns, whole


@pytest.mark.parametrize("fill", TWINS)
@given(templates())
def test_a_row_is_its_parts_between_the_pieces(
    fill: Fill, drawn: tuple[list[bytes], list[Column], list[bytes]]
) -> None:
    """Any bytes can be in it, including per cent signs and zeros."""
    pieces, columns, rows = drawn
    assert fill(pieces, columns) == rows


@pytest.mark.parametrize("fill", TWINS)
@pytest.mark.parametrize(
    ("pieces", "columns"),
    [
        ([b""], []),  # the number of rows is unknown
        ([b""], [Table(b"", 0)]),
        ([b"", b""], [[b"1"], [b"2"]]),  # a piece too few
        ([b"", b"", b"", b""], [[b"1"], [b"2"]]),  # and one too many
        ([b"", b"", b""], [[b"1"], [b"2", b"3"]]),
        ([b"", b"", b""], [[b"1", b"2"], Table(b"1", 1)]),
        ([b"", b"", b""], [Table(b"1,2,3", 2)]),
    ],
)
def test_what_does_not_fit_together_is_refused(
    fill: Fill, pieces: list[bytes], columns: list[Column]
) -> None:
    """The error says what does not match; the compiled twin must not read past its columns."""
    with pytest.raises(ValueError, match=r"cannot hold|are no table|shorter|longer|columns of"):
        fill(pieces, columns)


@pytest.mark.parametrize("fill", TWINS)
def test_a_part_that_is_not_bytes_is_refused(fill: Fill) -> None:
    """The compiled twin checks types first, because it reads memory directly."""
    with pytest.raises(TypeError):
        fill([b"", b""], [[b"1", "two"]])  # type: ignore[list-item]
