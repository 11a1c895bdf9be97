"""A digest of a model: two states are identical if and only if their digests are equal.

A 128-bit sum, so that the order of rows, capacity, free rows and hash seeds do not show: every statement
about the state ("token *free* of view *words* was seen 12 times in *spam*") is hashed by MurmurHash3 x64
128 and the hashes are added modulo 2^128. The hash finds accidents, not forgers; a file's checksums and its
owner's permissions are for those.
"""

from __future__ import annotations

import struct

import mmh3

_MODULUS = 1 << 128


class Digest:
    """A sum of hashes of statements.

    Examples
    --------
    >>> a, b = Digest(), Digest()
    >>> a.add(b"x", 1.0), a.add(b"y", 2.0)
    (None, None)
    >>> b.add(b"y", 2.0), b.add(b"x", 1.0)
    (None, None)
    >>> a.hex() == b.hex()
    True
    """

    __slots__ = ("_sum",)

    def __init__(self) -> None:
        self._sum = 0

    def add(self, name: bytes, *values: float) -> None:
        """Add one statement: a name (which tells its parts apart) and numbers, exact to the bit."""
        statement = name + struct.pack(f"<{len(values)}d", *values)
        self._sum = (self._sum + mmh3.hash128(statement)) % _MODULUS

    def add_sum(self, total: int) -> None:
        """Add the sum of the hashes of statements that were hashed elsewhere, as `add` hashes them."""
        self._sum = (self._sum + total) % _MODULUS

    def add_digest(self, other: Digest) -> None:
        """Add all statements of another digest."""
        self._sum = (self._sum + other._sum) % _MODULUS

    def hex(self) -> str:
        """The sum as 32 hexadecimal digits."""
        return f"{self._sum:032x}"


def digests(counts: Digest, order_free: Digest, rest: Digest, *, rounded: bool) -> dict[str, str]:
    """The two digests of a state, ``order_free`` and ``all``, from those of its parts.

    Parameters
    ----------
    counts, order_free, rest : Digest
        `order_free` without the counts.
    rounded : bool
        Whether the counts are, and so belong to the rest.
    """
    free, everything = Digest(), Digest()
    for part in (order_free,) if rounded else (counts, order_free):
        free.add_digest(part)
    for part in (counts, order_free, rest):
        everything.add_digest(part)
    return {"order_free": free.hex(), "all": everything.hex()}


def name(*parts: str) -> bytes:
    """Parts of a name, each preceded by its length, so that no two lists of parts make the same bytes.

    Examples
    --------
    >>> name("a", "bc") == name("ab", "c")
    False
    """
    encoded = [part.encode() for part in parts]
    return b"".join(struct.pack("<I", len(part)) + part for part in encoded)
