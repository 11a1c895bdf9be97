"""Smoothing and class priors: frozen values, settings rather than state.

A smoothing adds pseudo-counts: ``phi = (count + p) / (total + P)``, where `p` is what it gives one token
and `P` what it gives the class. Whatever it is, it may change between one start and the next, because the
counts do not hold it. Every formula takes a `scale`: what a count of 1 weighs now, in a model that forgets.
"""

from __future__ import annotations

import math

import msgspec


class NoSmoothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="none"):
    """Maximum likelihood: a token no message of the class held has probability 0.

    Where every class gives 0, the posterior is 0/0: it is read as "the words say nothing", the class prior.
    """

    def pseudo_count(self, _n_k: float, _n: float, _vocabulary: int, _scale: float = 1.0) -> float:
        """What one token is given: 0."""
        return 0.0

    def pseudo_total(self, _vocabulary: int, _scale: float = 1.0) -> float:
        """What a class is given: 0."""
        return 0.0


class Laplace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="laplace"):
    """The same pseudo-count for every token: add one (Laplace), or add `alpha` (Lidstone).

    ``phi_kc = (n_kc + alpha) / (N_c + alpha |V|)``.

    Parameters
    ----------
    alpha : float
        From 1e-100 to 1e100: a ratio of counts is a number then.

    Raises
    ------
    ValueError
        `alpha` is 0, negative, out of range or not a number (`NoSmoothing` is the way to 0).
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Validate `alpha`."""
        if not 1e-100 <= self.alpha <= 1e100:
            raise ValueError(f"`alpha` must be above 0, from 1e-100 to 1e100, not {self.alpha!r}")

    def pseudo_count(self, _n_k: float, _n: float, _vocabulary: int, scale: float = 1.0) -> float:
        """What one token is given: `alpha`."""
        return self.alpha * scale

    def pseudo_total(self, vocabulary: int, scale: float = 1.0) -> float:
        """What a class is given: `alpha` for each token of the vocabulary."""
        return self.alpha * scale * vocabulary


class Dirichlet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="dirichlet"):
    """Pseudo-counts shared out as the whole stream uses its tokens (Zhai and Lafferty 2004).

    ``phi_kc = (n_kc + mu b_k) / (N_c + mu)`` with the background ``b_k = (n_k + 1/2) / (N + (|V|+1)/2)``;
    the spare half belongs to the unknown word, so that seen and unknown sum to 1.

    Parameters
    ----------
    mu : float
        Pseudo-tokens a class, above 0 and finite.

    Raises
    ------
    ValueError
        `mu` is 0, negative, infinite or not a number.
    """

    mu: float = 1000.0

    def __post_init__(self) -> None:
        """Validate `mu`."""
        if not (math.isfinite(self.mu) and self.mu > 0):
            raise ValueError(f"`mu` must be above 0 and finite, not {self.mu!r}")

    def pseudo_count(self, n_k: float, n: float, vocabulary: int, scale: float = 1.0) -> float:
        """What one token is given: `mu` times its background."""
        half = 0.5 * scale
        return self.mu * scale * ((n_k + half) / (n + half * (vocabulary + 1)))

    def pseudo_total(self, _vocabulary: int, scale: float = 1.0) -> float:
        """What a class is given: `mu`."""
        return self.mu * scale


Smoothing = NoSmoothing | Laplace | Dirichlet


class Beta(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="beta"):
    """Pseudo-messages for a coin: `a` that hold the word, `b` that do not.

    ``phi = (n_jc + a) / (n_c + a + b)``. Add one is ``Beta(1, 1)``; maximum likelihood is ``Beta(0, 0)``.
    The most probable phi under a Beta(A, B) density is ``Beta(A - 1, B - 1)``: these are counts, not the
    density's own parameters.

    Parameters
    ----------
    a, b : float
        0 or above, and finite.

    Raises
    ------
    ValueError
        One of them is negative, infinite or not a number.

    Examples
    --------
    Barber's coin: 3 heads of 4, a pseudo-count of 1 on both sides.

    >>> prior = Beta(1.0, 1.0)
    >>> (3 + prior.a) / (4 + prior.a + prior.b)
    0.6666666666666666
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        """Validate `a` and `b`."""
        for letter, value in (("a", self.a), ("b", self.b)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"`{letter}` must be 0 or above and finite, not {value!r}")
