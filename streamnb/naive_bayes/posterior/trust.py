"""Trust: one learned number per token, which corrects how much the token's evidence counts.

Counts say how often a token occurs in each class. Whether that helps to tell this stream's messages apart,
given all the tokens that occur with it, only the errors tell. Trust starts at 0, which changes nothing. Each
message whose label the head did not expect moves the trust of its known tokens: up where their evidence
pointed to the label, and down where it misled. It is one number for all classes, so it cannot replace the
counts, only correct them.

The feature is one for all text views together: ``T_c = Q^-0.35 sum_t f_t v_t e_tc``, where ``e_tc`` is the
token's log odds shrunk by ``n_t / (n_t + 15)``, ``v_t`` its trust, and Q the sum of ``f^2`` over all distinct
tokens of the message, unknown ones too. The head weighs it like any other feature.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from streamnb.naive_bayes.posterior.against_rest import TokenOdds
from streamnb.naive_bayes.statistics.token_trust import SQUARES_MAX, TRUST_BOUNDS, Trust

DAMPING_EXPONENT = -0.35  # a long message's tokens repeat each other's evidence, and share one error
STEP_RATE = 0.3
SQUARES_START = 0.05  # so that the first step is not as large as the rate
ERRORS_MIN = 0.01  # a smaller sum of squared errors is of a message that was expected, and teaches no trust


def damping(features: Iterable[Mapping[str, float]]) -> float:
    """Return ``Q^-0.35`` for the features of a message's text views; 0 if it has no token.

    Examples
    --------
    >>> damping([{"free": 1.0}, {}]), damping([{}])
    (1.0, 0.0)
    """
    q = 0.0
    for view in features:
        for f in view.values():
            q += f * f
    return math.pow(q, DAMPING_EXPONENT) if q > 0.0 else 0.0


def trust_feature(odds: Sequence[Sequence[TokenOdds]], damped: float, n_classes: int) -> list[float]:
    """Return T for each active class.

    Parameters
    ----------
    odds : sequence of sequence of TokenOdds
        One sequence per text view.
    damped : float
        `damping` of the message.
    n_classes : int
    """
    sums = [0.0] * n_classes
    for view in odds:
        for odd in view:
            trusted = odd.trust * odd.rare
            for c, d_c in enumerate(odd.d):
                sums[c] += trusted * d_c
    return [damped * value for value in sums]


def gradient(odd: TokenOdds, damped: float, errors: Sequence[float]) -> float:
    """Return the gradient of a message's log loss in a token's trust, without the weight of the feature.

    Parameters
    ----------
    odd : TokenOdds
    damped : float
    errors : sequence of float
        Per active class, as `CalibratedHead.errors` returns them.
    """
    h = 0.0
    for r_c, d_c in zip(errors, odd.d, strict=True):
        h += r_c * d_c
    return damped * odd.rare * h


def teaches(errors: Sequence[float], weight: float) -> bool:
    """Return whether a message is unexpected enough to change the trust of its tokens.

    Parameters
    ----------
    errors : sequence of float
    weight : float
        The message's weight, by which the errors were multiplied if it is below 1.
    """
    total = 0.0
    for r_c in errors:
        total += r_c * r_c
    weight = min(weight, 1.0)
    return total >= ERRORS_MIN * weight * weight


def stepped(trust: Trust, h: float, scale: float) -> Trust:
    """Return a token's trust after one AdaGrad step down the gradient `h`.

    Parameters
    ----------
    scale : float
        In a model that forgets, the weight of a message learned now, in which the squares are summed; else 1.
    """
    v, squares = trust
    squares = min(squares + h * h * scale, SQUARES_MAX)
    low, high = TRUST_BOUNDS
    return min(max(v - STEP_RATE * h / math.sqrt(SQUARES_START + squares / scale), low), high), squares
