"""How far the calibrated head trusts each token: a column of two numbers beside the counts of a store.

The numbers are single floats, for any number of classes: the trust, and the sum of the squared gradients that
moved it. What they mean, and how they are learned, is the head's: see
`streamnb.naive_bayes.posterior.trust`. Here they are held, and leave the store with the token's row.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamnb.base import HINT, Sections, section
from streamnb.errors import SnapshotError

TRUST_BOUNDS = (-1.0, 2.0)  # so that poisoned labels can do no more than that
SQUARES_MAX = 1e38  # of a single float's 3.4e38: in a model that forgets, recent gradients weigh more
TRUST_SECTION = "token_trust"

Trust = tuple[float, float]
"""A token's trust, and the sum of its squared gradients."""

NO_TRUST: Trust = (0.0, 0.0)


class HeldTrust(Protocol):
    """The trust of one view's tokens, as the head reads and changes it in the plain or the compiled store."""

    def get(self, token: str) -> Trust:
        """Return a token's trust; `NO_TRUST` if none was learned."""

    def set(self, token: str, trust: float, squares: float) -> None:
        """Set the trust of a token that the view has counted; for another one, do nothing."""

    def items(self) -> Iterator[tuple[str, float, float]]:
        """Yield each token whose trust was learned, with both numbers; oldest token first."""


class TokenTrust:
    """The trust of one view's tokens.

    Parameters
    ----------
    tokens : collection of str
        The tokens that the view counts, as they are at any time.

    Examples
    --------
    >>> trust = TokenTrust({"free": [1.0]})
    >>> trust.set("free", 0.5, 2.0), trust.set("unseen", 1.0, 1.0)
    (None, None)
    >>> trust.get("free"), trust.get("unseen")
    ((0.5, 2.0), (0.0, 0.0))
    """

    __slots__ = ("_held", "_tokens")

    def __init__(self, tokens: Collection[str]) -> None:
        self._tokens = tokens
        self._held: dict[str, array[float]] = {}

    def get(self, token: str) -> Trust:
        """Return a token's trust; `NO_TRUST` if none was learned."""
        held = self._held.get(token)
        return NO_TRUST if held is None else (held[0], held[1])

    def set(self, token: str, trust: float, squares: float) -> None:
        """Set the trust of a token that the view has counted; for another one, do nothing.

        Parameters
        ----------
        trust, squares : float
            Rounded to single floats.
        """
        if token in self._tokens:
            self._held[token] = array("f", (trust, squares))

    def items(self) -> Iterator[tuple[str, float, float]]:
        """Yield each token whose trust was learned, with both numbers; oldest token first."""
        for token in self._tokens if self._held else ():
            trust, squares = self.get(token)
            if trust or squares:
                yield token, trust, squares

    def drop(self, token: str) -> None:
        """Forget a token that has left the view."""
        self._held.pop(token, None)

    def fade(self, factor: float) -> None:
        """Multiply the sums of squared gradients, and drop the tokens that have left the view."""
        self._held = {
            token: array("f", (held[0], held[1] * factor))
            for token, held in self._held.items()
            if token in self._tokens
        }


def add_trust(mine: HeldTrust, theirs: HeldTrust, start: float = 0.0) -> None:
    """Add the trust that another view has learned: what was learned twice is a mean, what once is kept.

    Each trust stands for its squared gradients and the start of their sum, as in the steps of AdaGrad. The
    start is counted once in the whole: two steps from 0 that a few messages taught add up, as they would in
    one stream, and what many messages taught twice becomes the mean weighted by its squared gradients. A
    token that one view has not learned to trust keeps the trust of the other. The result does not depend on
    which view is merged into which, nor in what order several are, but for rounding and the bounds of trust.

    Parameters
    ----------
    mine : HeldTrust
        Of a view that has the counts of both already.
    theirs : HeldTrust
    start : float
        What the sum of squared gradients starts with.
    """
    low, high = TRUST_BOUNDS
    for token, their_trust, their_squares in theirs.items():
        my_trust, my_squares = mine.get(token)
        squares = my_squares + their_squares
        whole = start + squares
        trust = my_trust
        if whole:
            trust = ((start + my_squares) * my_trust + (start + their_squares) * their_trust) / whole
        mine.set(token, min(max(trust, low), high), min(squares, SQUARES_MAX))


def take_trust(mine: HeldTrust, theirs: HeldTrust, start: float = 0.0) -> None:
    """Take back trust that was added and had been there before: the inverse of `add_trust`.

    Parameters
    ----------
    mine : HeldTrust
    theirs : HeldTrust
        What two views began with that were added to one another, so that it is in `mine` twice.
    start : float
        What the sum of squared gradients starts with.
    """
    low, high = TRUST_BOUNDS
    for token, their_trust, their_squares in theirs.items():
        my_trust, my_squares = mine.get(token)
        left = max(0.0, my_squares - their_squares)
        trust = my_trust
        if start + left:
            trust = ((start + my_squares) * my_trust - (start + their_squares) * their_trust) / (start + left)
        mine.set(token, min(max(trust, low), high), left)


def checked_trust(sections: Sections, tokens: int) -> NDArray[np.float32] | None:
    """Return the section of trust, checked, or ``None`` if a model without trust wrote the snapshot.

    Raises
    ------
    SnapshotError
        A number is missing, not finite or out of its bounds.
    """
    if TRUST_SECTION not in sections:
        return None
    held = section(sections, TRUST_SECTION, np.float32)
    if held.shape != (tokens, 2):
        raise SnapshotError("The snapshot does not hold two numbers of trust for each token.", HINT)
    low, high = TRUST_BOUNDS
    trust, squares = held[:, 0], held[:, 1]
    if not bool(((trust >= low) & (trust <= high) & (squares >= 0) & (squares <= SQUARES_MAX)).all()):
        raise SnapshotError("The snapshot holds a token's trust that is out of its bounds.", HINT)
    return held
