"""The digest of a model: a hash over its state, which is equal for identical states.

Every statement about the state ("token *free* of view *words* was seen 12 times in *spam*") is hashed by
MurmurHash3 x64 128, and the hashes are added modulo 2^128. A sum does not depend on the order of rows, and
capacity, free rows and hash seeds are not part of any statement. The hash detects accidents but not forgery;
against forgery there are a file's checksums and its owner's permissions.
"""

from __future__ import annotations

import struct

import mmh3

_MODULUS = 1 << 128
_LENGTH, _NUMBER = struct.Struct("<I"), struct.Struct("<d")


class Digest:
    """A sum of hashes of statements about a state.

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
        """Add one statement: a name, made by the function `statement`, and numbers, exact to the last bit."""
        said = name + (
            _NUMBER.pack(*values) if len(values) == 1 else struct.pack(f"<{len(values)}d", *values)
        )
        self._sum = (self._sum + mmh3.hash128(said)) % _MODULUS

    def add_sum(self, total: int) -> None:
        """Add a sum of hashes of statements that the compiled twin of `add` has hashed."""
        self._sum = (self._sum + total) % _MODULUS

    def add_digest(self, other: Digest) -> None:
        """Add all statements of another digest."""
        self._sum = (self._sum + other._sum) % _MODULUS

    def hex(self) -> str:
        """Return the sum as 32 hexadecimal digits."""
        return f"{self._sum:032x}"


def changed(digest: str, removed: Digest, added: Digest) -> str:
    """Return a digest, given as `Digest.hex` returns it, after some of its statements were replaced.

    Examples
    --------
    >>> before, after, x, z = (Digest() for _ in range(4))
    >>> for digest, names in [(before, "xy"), (after, "yz"), (x, "x"), (z, "z")]:
    ...     for name in names:
    ...         digest.add(statement(name), 1.0)
    >>> changed(before.hex(), x, z) == after.hex()
    True
    """
    return f"{(int(digest, 16) - int(removed.hex(), 16) + int(added.hex(), 16)) % _MODULUS:032x}"


def digests(counts: Digest, order_free: Digest, rest: Digest, *, rounded: bool) -> dict[str, str]:
    """Return the two digests of a state, ``order_free`` and ``all``, made from the digests of its parts.

    Parameters
    ----------
    counts, order_free, rest : Digest
        Of the counts; of the other sums that do not depend on the order of messages; of everything else.
    rounded : bool
        Whether the counts are rounded sums. They depend on the order then and are left out of ``order_free``.
    """
    free, everything = Digest(), Digest()
    for part in (order_free,) if rounded else (counts, order_free):
        free.add_digest(part)
    for part in (counts, order_free, rest):
        everything.add_digest(part)
    return {"order_free": free.hex(), "all": everything.hex()}


def statement(*parts: str) -> bytes:
    """Return the name of a statement as bytes: its parts, each after its length.

    Different lists of parts give different bytes. Those of a list are the bytes of its first
    parts, followed by those of the others.

    Examples
    --------
    >>> statement("a", "bc") == statement("ab", "c")
    False
    >>> statement("a", "b", "c") == statement("a") + statement("b", "c")
    True
    """
    return b"".join([_LENGTH.pack(len(part)) + part for part in [part.encode() for part in parts]])
