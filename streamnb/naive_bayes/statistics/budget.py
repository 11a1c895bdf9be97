"""How a count store's memory is laid out and charged to its budget: the same numbers for both twins.

With few classes a row holds a count per class. Above `DENSE_CLASSES` that would multiply the memory of a
token by the number of classes, although most tokens are seen in few of them. So a row then holds only the
counts above 0, each in a cell with its class; the number of cells that a row has room for is a power of two.

How far the calibrated head trusts a token is in a column of its own beside the rows, so that tokens of both
kinds of rows have it alike. A store without such a head has no such column.

The charge is a function of the tokens and counts alone, not of what a process happens to have allocated.
Therefore the same stream evicts the same tokens in both twins and after any restart. It covers the most that
the compiled store allocates: room to grow, the index while it moves, and the copies that a snapshot needs
while it is written.
"""

from __future__ import annotations

DENSE_CLASSES = 8  # up to here looking for a class in a row would cost more time than it saves memory

TOKEN_BYTES = 60  # its end (8 bytes, twice while a snapshot is written), its places in the index and its copy
TEXT_BYTES = (
    3  # per byte of a token: room to grow, and a copy where tokens are evicted while a snapshot is written
)
COUNT_BYTES = 20  # per class, in a row of all classes: the count and its copy, with room to grow
TRUST_BYTES = (
    20  # per token, where the head learns trust: two single floats and their copy, with room to grow
)
CELL_BYTES = 48  # per cell: class and count, their copies, and as much again as half of it in free blocks
BYTES_MIN = 1 << 20  # a smaller budget would not hold the tokens of one long message
BYTES_MAX = 1 << 40  # the compiled store holds numbers of bytes in 64 bits, several times as large
CLASS_BYTES = 1024  # totals per view, the head's sums and the driver's numbers


def charge(tokens: int, text_bytes: int, cells: int, n_classes: int, *, trusts: bool = False) -> int:
    """Return the bytes that a count store is charged for.

    Parameters
    ----------
    tokens : int
        Number of tokens in all views.
    text_bytes : int
        Bytes of all tokens in UTF-8.
    cells : int
        The sum of `room_of` over the tokens; used above `DENSE_CLASSES` classes only.
    n_classes : int
    trusts : bool
        Whether the store has a column of trust.

    Examples
    --------
    >>> charge(tokens=1_000_000, text_bytes=7_000_000, cells=0, n_classes=2)
    121002048
    """
    rows = tokens * COUNT_BYTES * n_classes if n_classes <= DENSE_CLASSES else cells * CELL_BYTES
    token_bytes = TOKEN_BYTES + TRUST_BYTES * trusts
    return tokens * token_bytes + text_bytes * TEXT_BYTES + rows + n_classes * CLASS_BYTES


def room_of(counts: int) -> int:
    """Return the cells in the block of a row with a number of counts above 0: a power of two, or 0."""
    return 1 << (counts - 1).bit_length() if counts else 0


def cells_for(counts: int) -> int:
    """Return the most new cells that one more count may take in a row that has a number of them."""
    return (2 * counts or 1) if counts & (counts - 1) == 0 else 0
