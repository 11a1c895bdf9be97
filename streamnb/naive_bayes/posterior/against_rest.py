"""The evidence the calibrated head takes from a text view: each token's log odds against the other classes.

With more than two classes a token is evidence for "this class rather than another", not for "this class
rather than none", as in a product of likelihoods. With two classes both are the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.smoothing import Laplace
from streamnb.naive_bayes.statistics.view_counts import Counted

VIEW_FEATURES = 4
"""The number of features per class that a text view has in the calibrated head: those of `against_rest`."""

# The sum over k known tokens is divided by (1 + k)^0.7, so evidence grows as k^0.3: neighbouring tokens
# repeat each other's information.
LENGTH_EXPONENT = 0.7
RARE_TOKENS = 15.0  # in the shrunk features, a token seen n times has n / (n + 15) of its weight
SQUARE_LAW_SCALE = 0.25
RARE_SQUARE_LAW_SCALE = 0.5


class TokenOdds(NamedTuple):
    """The evidence of one known token.

    Parameters
    ----------
    token : str
    f : float
        The token's weight in the message.
    rare : float
        `f`, shrunk if the token was rarely seen.
    trust : float
        How far the head trusts the token; 0 changes nothing.
    d : list of float
        Per class, the token's log odds against the other classes, minus the mean over the classes.
    """

    token: str
    f: float
    rare: float
    trust: float
    d: list[float]


def token_odds(
    event_model: Multinomial,
    features: Mapping[str, float],
    counts: Counted,
    active: Sequence[int],
    scale: float = 1.0,
) -> list[TokenOdds]:
    """Return each known token's log odds against the other classes, minus their mean over the classes.

    ``d_tc = ln[(n_tc + a) / (n_t - n_tc + a)] - ln[(N_c + aV) / (N - N_c + aV)]``, where V is the number
    of known tokens plus one, and a is the pseudo-count of the view's Lidstone smoothing. Unknown tokens
    are left out. With two classes, the odds of one are the negated odds of the other.
    """
    assert isinstance(event_model.smoothing, Laplace)
    log = math.log
    a, rare_tokens = event_model.smoothing.alpha * scale, RARE_TOKENS * scale
    pseudo_total = a * (event_model.vocabulary(counts.rows) + 1)
    n = 0.0
    for c in active:
        n += counts.totals[c]
    base = [log((counts.totals[c] + pseudo_total) / (n - counts.totals[c] + pseudo_total)) for c in active]
    class_and_base = list(zip(active, base, strict=True))
    n_classes = len(active)
    odds = []
    for token, f in features.items():
        row = counts.rows.get(token)
        if row is None:
            continue
        trust, _ = counts.trust.get(token)
        n_t = 0.0
        for count in row:
            n_t += count
        if n_classes == 2:
            value = log((row[active[0]] + a) / (row[active[1]] + a)) - base[0]
            odds.append(TokenOdds(token, f, f * n_t / (n_t + rare_tokens), trust, [value, -value]))
            continue
        d = [log((row[c] + a) / (n_t - row[c] + a)) - k for c, k in class_and_base]
        mean = 0.0
        for value in d:
            mean += value
        mean /= n_classes
        odds.append(TokenOdds(token, f, f * n_t / (n_t + rare_tokens), trust, [value - mean for value in d]))
    return odds


def against_rest(odds: Sequence[TokenOdds], n_classes: int) -> list[list[float]]:
    """Return four features per class, which sum up the evidence of a view's known tokens.

    With ``k = sum f`` and ``Z = (1 + k)^0.7`` they are ``sum f d / Z``; the square-law feature
    ``1/4 sum f d|d| / Z``, in which strong tokens weigh more; and both again with rarely seen tokens shrunk
    (there with the factor 1/2 instead of 1/4).

    Returns
    -------
    list of four lists of float, each of length `n_classes`
        All values are 0 if no token is known.
    """
    x, q, rare_x, rare_q = ([0.0] * n_classes for _ in range(VIEW_FEATURES))
    k = 0.0
    for _, f, rare, _, d in odds:
        k += f
        for c, d_c in enumerate(d):
            g = d_c * abs(d_c)
            x[c] += f * d_c
            q[c] += f * g
            rare_x[c] += rare * d_c
            rare_q[c] += rare * g
    z = length_norm(k)
    return [
        [value / z for value in x],
        [SQUARE_LAW_SCALE * value / z for value in q],
        [value / z for value in rare_x],
        [RARE_SQUARE_LAW_SCALE * value / z for value in rare_q],
    ]


def length_norm(k: float) -> float:
    """Return Z, the divisor of the features when the known tokens have the total weight `k`."""
    return math.pow(1.0 + k, LENGTH_EXPONENT)
