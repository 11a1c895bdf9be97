"""Filling a template from columns: it builds many similar documents without a Python object for each part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Table(NamedTuple):
    """Several columns of JSON numbers in one text.

    Parameters
    ----------
    text : bytes
        The numbers row by row, separated by commas and nothing else.
    width : int
        How many columns there are.
    """

    text: bytes
    width: int


Column = list[bytes] | Table


def filled(pieces: Sequence[bytes], columns: Sequence[Column]) -> list[bytes]:
    """Return one document per row: the pieces, with the row's value of each column between them.

    Parameters
    ----------
    pieces : sequence of bytes
        The text around the values: one piece more than there are columns, counting each column of a table.
    columns : sequence of (list of bytes) or Table
        At least one column; all have the same length.

    Raises
    ------
    ValueError
        The columns differ in length, or the numbers of pieces and columns do not match.

    Notes
    -----
    This is the specification of its compiled twin `_template.filled`.

    Examples
    --------
    >>> filled([b'{"id":', b',"x":', b',"y":', b"}"], [[b"1", b"2"], Table(b"0.5,7,null,8", 2)])
    [b'{"id":1,"x":0.5,"y":7}', b'{"id":2,"x":null,"y":8}']
    """
    places: list[Sequence[bytes]] = []
    for column in columns:
        if isinstance(column, Table):
            cells = column.text.split(b",")
            if column.width and len(cells) % column.width:
                raise ValueError(f"{len(cells)} cells are no table of {column.width} columns")
            places += [cells[c :: column.width] for c in range(column.width)]
        else:
            places.append(column)
    if not places or len(pieces) != len(places) + 1:
        raise ValueError(f"{len(pieces)} pieces cannot hold {len(places)} columns between them")
    template = b"%b".join(piece.replace(b"%", b"%%") for piece in pieces)
    return [template % row for row in zip(*places, strict=True)]
