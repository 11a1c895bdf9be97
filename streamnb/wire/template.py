"""A template filled row by row from columns: many alike documents, without an object for each part of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Table(NamedTuple):
    """Columns of JSON's numbers, as one text.

    Parameters
    ----------
    text : bytes
        Row by row, with a comma between each two and nothing else.
    width : int
        How many columns.
    """

    text: bytes
    width: int


Column = list[bytes] | Table


def filled(pieces: Sequence[bytes], columns: Sequence[Column]) -> list[bytes]:
    """The rows: each has the pieces, and between them its own part of every column.

    Parameters
    ----------
    pieces : sequence of bytes
        One more than there are columns, those of tables counted one by one.
    columns : sequence of (list of bytes) or Table
        At least one, all as long.

    Raises
    ------
    ValueError
        They are not.

    Notes
    -----
    The specification of `_template.filled`, which is there where a compiler was.

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
