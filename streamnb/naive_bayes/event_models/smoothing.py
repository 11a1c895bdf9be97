"""Smoothing: frozen values that add pseudo-counts. They are settings, not state.

``phi = (count + p) / (total + P)``, where `p` is the pseudo-count of one token and `P` that of a class. The
counts do not contain them, so the smoothing may change between one start and the next. Every formula takes a
`scale`: the weight of one message now, in a model that forgets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from streamnb.naive_bayes.features.arguments import check_fields


class NoSmoothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="none"):
    """Maximum likelihood: a token that no message of the class contained has probability 0.

    If every class gives a message probability 0, the posterior would be 0/0. It is then the class prior, as
    if the message had no tokens.
    """

    def pseudo_count(self, _n_k: float, _n: float, _vocabulary: int, _scale: float = 1.0) -> float:
        """Return the pseudo-count of one token: 0."""
        return 0.0

    def pseudo_total(self, _vocabulary: int, _scale: float = 1.0) -> float:
        """Return the pseudo-count of a class: 0."""
        return 0.0


class Laplace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="laplace"):
    """The same pseudo-count for every token: one (Laplace) or `alpha` (Lidstone).

    ``phi_kc = (n_kc + alpha) / (N_c + alpha |V|)``.

    Parameters
    ----------
    alpha : float
        From 1e-100 to 1e100, so that ratios of counts neither overflow nor underflow.

    Raises
    ------
    ValueError
        `alpha` is 0, negative, out of range or not a number. (For 0 use `NoSmoothing`.)
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Check `alpha`."""
        check_fields(self)
        if not 1e-100 <= self.alpha <= 1e100:
            raise ValueError(f"`alpha` must be above 0 (from 1e-100 to 1e100), not {self.alpha!r}")

    def pseudo_count(self, _n_k: float, _n: float, _vocabulary: int, scale: float = 1.0) -> float:
        """Return the pseudo-count of one token: `alpha`."""
        return self.alpha * scale

    def pseudo_total(self, vocabulary: int, scale: float = 1.0) -> float:
        """Return the pseudo-count of a class: `alpha` for each token of the vocabulary."""
        return self.alpha * scale * vocabulary


class LaplacePerToken(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="laplace_per_token"
):
    """A pseudo-count of its own for some tokens, and `alpha` for every other token of the vocabulary.

    ``phi_kc = (n_kc + alpha_k) / (N_c + sum_j alpha_j)``. The named tokens are in the vocabulary from the
    beginning. Models with it run on the plain driver.

    Parameters
    ----------
    alphas : mapping of str to float
        Token to pseudo-count, from 0 to 1e100.
    alpha : float
        The pseudo-count of tokens that `alphas` does not name.

    Raises
    ------
    ValueError
        A pseudo-count is negative, above 1e100 or not a number.

    Examples
    --------
    >>> smoothing = LaplacePerToken({"win": 0.5, "the": 3.0})
    >>> smoothing.pseudo_total(10)  # for a vocabulary of ten tokens
    11.5
    """

    alphas: Mapping[str, float]
    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Check every pseudo-count."""
        check_fields(self)
        for name, value in [("alpha", self.alpha), *self.alphas.items()]:
            if not 0 <= value <= 1e100:
                raise ValueError(f"the pseudo-count of {name!r} must be from 0 to 1e100, not {value!r}")

    def pseudo_count(self, _n_k: float, _n: float, _vocabulary: int, scale: float = 1.0) -> float:
        """Return the pseudo-count of a token that is not named: `alpha`."""
        return self.alpha * scale

    def pseudo_total(self, vocabulary: int, scale: float = 1.0) -> float:
        """Return the pseudo-count of a class: those of the named tokens, and `alpha` for each other token."""
        return (math.fsum(self.alphas.values()) + self.alpha * (vocabulary - len(self.alphas))) * scale


class Dirichlet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="dirichlet"):
    """Pseudo-counts in proportion to the token's share of the whole stream (Zhai and Lafferty 2004).

    ``phi_kc = (n_kc + mu b_k) / (N_c + mu)`` with the background ``b_k = (n_k + 1/2) / (N + (|V|+1)/2)``.
    Each of the |V| tokens has half a count extra; one more half is reserved for the unknown word, so that the
    probabilities of seen and unknown words sum to 1.

    Parameters
    ----------
    mu : float
        Pseudo-tokens per class, above 0 and finite.

    Raises
    ------
    ValueError
        `mu` is 0, negative, infinite or not a number.
    """

    mu: float = 1000.0

    def __post_init__(self) -> None:
        """Check `mu`."""
        check_fields(self)
        if not (math.isfinite(self.mu) and self.mu > 0):
            raise ValueError(f"`mu` must be above 0 and finite, not {self.mu!r}")

    def pseudo_count(self, n_k: float, n: float, vocabulary: int, scale: float = 1.0) -> float:
        """Return the pseudo-count of one token: `mu` times its background probability."""
        half = 0.5 * scale
        return self.mu * scale * ((n_k + half) / (n + half * (vocabulary + 1)))

    def pseudo_total(self, _vocabulary: int, scale: float = 1.0) -> float:
        """Return the pseudo-count of a class: `mu`."""
        return self.mu * scale


Smoothing = NoSmoothing | Laplace | Dirichlet
TokenSmoothing = Smoothing | LaplacePerToken
"""The smoothing of draws of tokens."""


class Beta(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="beta"):
    """Pseudo-messages for a coin: `a` that contain the word and `b` that do not.

    ``phi = (n_jc + a) / (n_c + a + b)``. Add-one smoothing is ``Beta(1, 1)``; maximum likelihood is ``Beta(0,
    0)``. The two numbers are counts, not the parameters of a beta density: the most probable phi under the
    density Beta(A, B) is given by ``Beta(A - 1, B - 1)`` here.

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
    Barber's coin: 3 heads in 4 throws, with a pseudo-count of 1 for each side.

    >>> prior = Beta(1.0, 1.0)
    >>> (3 + prior.a) / (4 + prior.a + prior.b)
    0.6666666666666666
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        """Check `a` and `b`."""
        check_fields(self)
        for letter, value in (("a", self.a), ("b", self.b)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"`{letter}` must be 0 or above and finite, not {value!r}")
