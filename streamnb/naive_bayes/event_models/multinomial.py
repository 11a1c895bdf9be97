"""The multinomial event model: a message is a run of draws from its class's distribution of tokens.

McCallum and Nigam 1998. `log_likelihood` is the lectures' formula. `against_rest` is what the calibrated
head reads instead: each token's log odds against the other classes together, so that in more than two
classes a token is judged "this class or another" and not "this class or nothing".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from streamnb.naive_bayes.event_models.smoothing import Laplace, Smoothing
from streamnb.naive_bayes.statistics.counts import Counted

LENGTH_EXPONENT = 0.7  # evidence grows with known tokens k as k^0.3: neighbours repeat each other
RARE_TOKENS = 15.0  # a token seen n times speaks with n / (n + 15) of its voice in the twin features
SQUARE_LAW_SCALE = 0.25
RARE_SQUARE_LAW_SCALE = 0.5


class TokenOdds(NamedTuple):
    """What one known token says.

    Parameters
    ----------
    token : str
    f : float
        Its weight in the message.
    rare : float
        `f`, less for a token seldom seen.
    d : list of float
        Per class, its log odds against the rest, centred.
    """

    token: str
    f: float
    rare: float
    d: list[float]


class Multinomial(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="multinomial"
):
    """Tokens drawn from one distribution per class.

    Parameters
    ----------
    smoothing : Smoothing
    weight : {"counts", "boolean", "log"}
        What a token that stands m times in a message counts: m; 1 (Metsis, Androutsopoulos, Paliouras
        2006); or ``ln(1 + m)`` rounded to 1/256, so that sums stay exact in any order.
    unknown : {"skip", "smooth"}
        Whether a token that no class has taught takes part. Smoothed, it votes for the class with fewer
        tokens; skipped, it is silent.
    complement : bool
        Whether a class is judged by the tokens of all other classes, which are more than its own, and the
        less they explain the message the better for it (Rennie, Shih, Teevan and Karger 2003):
        ``-sum f log[(n_k - n_kc + alpha) / (N - N_c + alpha |V|)]``.

    Examples
    --------
    The China example (Manning, Raghavan and Schütze 2008, chapter 13).

    >>> from streamnb.naive_bayes.statistics.counts import ViewCounts
    >>> counts = ViewCounts(n_classes=2)
    >>> counts.add({"Chinese": 5.0, "Beijing": 1.0, "Shanghai": 1.0, "Macao": 1.0}, class_index=0)
    >>> counts.add({"Tokyo": 1.0, "Japan": 1.0, "Chinese": 1.0}, class_index=1)
    >>> lectures = Multinomial(Laplace(1.0), weight="counts", unknown="smooth")
    >>> message = {"Chinese": 3.0, "Tokyo": 1.0, "Japan": 1.0}
    >>> [round(math.exp(z), 8) for z in lectures.log_likelihood(message, counts, [0, 1])]
    [0.00040162, 0.00054192]
    """

    smoothing: Smoothing = Laplace(0.1)
    weight: Literal["counts", "boolean", "log"] = "log"
    unknown: Literal["skip", "smooth"] = "skip"
    complement: bool = False

    def features(self, counts: Mapping[str, float]) -> dict[str, float]:
        """The weight of each distinct token of a message, from how often it stands there."""
        if self.weight == "log":
            return {token: log_weight(m) for token, m in counts.items()}
        if self.weight == "boolean":
            return dict.fromkeys(counts, 1.0)
        return dict(counts)

    def log_likelihood(
        self, features: Mapping[str, float], counts: Counted, active: Sequence[int], scale: float = 1.0
    ) -> list[float]:
        """``sum f log phi_kc`` for each active class; minus infinity where maximum likelihood gives 0.

        While no class has counted a token there is no distribution to draw from, and the view says 0. A
        token that maximum likelihood gives to no class but one is infinite evidence for it by the
        complement: then the others are at minus infinity, and it at 0.
        """
        z = [0.0] * len(active)
        for _, parts in self.token_log_likelihoods(features, counts, active, scale):
            for i, part in enumerate(parts):
                z[i] += part
        if self.complement and math.inf in z:
            return [0.0 if value == math.inf else -math.inf for value in z]
        return z

    def token_log_likelihoods(
        self, features: Mapping[str, float], counts: Counted, active: Sequence[int], scale: float = 1.0
    ) -> Iterator[tuple[str, list[float]]]:
        """``f log phi_kc`` token by token: what `log_likelihood` adds up."""
        n, vocabulary = 0.0, len(counts.rows)
        for c in active:
            n += counts.totals[c]
        if n == 0:
            return
        pseudo_total = self.smoothing.pseudo_total(vocabulary, scale)
        sign = -1.0 if self.complement else 1.0
        log_totals = [
            _log((n - counts.totals[c] if self.complement else counts.totals[c]) + pseudo_total)
            for c in active
        ]
        skip = self.unknown == "skip"
        for token, f in features.items():
            row: Sequence[float] | None = counts.rows.get(token)
            if row is None:
                if skip:
                    continue
                row = [0.0] * len(counts.totals)
            n_k = 0.0
            for c in active:
                n_k += row[c]
            p = self.smoothing.pseudo_count(n_k, n, vocabulary, scale)
            seen = [n_k - row[c] if self.complement else row[c] for c in active]
            yield (
                token,
                [
                    sign * f * (math.log(count + p) - log_total) if count + p > 0 else sign * -math.inf
                    for count, log_total in zip(seen, log_totals, strict=True)
                ],
            )

    def token_odds(
        self, features: Mapping[str, float], counts: Counted, active: Sequence[int], scale: float = 1.0
    ) -> list[TokenOdds]:
        """Each known token's log odds against the rest of the classes, minus their mean over the classes.

        ``d_tc = ln[(n_tc + a) / (n_t - n_tc + a)] - ln[(N_c + aV) / (N - N_c + aV)]`` with V the known
        tokens and one more, and a the view's Lidstone pseudo-count. Unknown tokens are left out. Of two
        classes one's odds are the other's, negated.
        """
        assert isinstance(self.smoothing, Laplace)
        log = math.log
        a, rare_tokens = self.smoothing.alpha * scale, RARE_TOKENS * scale
        pseudo_total = a * (len(counts.rows) + 1)
        n = 0.0
        for c in active:
            n += counts.totals[c]
        base = [
            log((counts.totals[c] + pseudo_total) / (n - counts.totals[c] + pseudo_total)) for c in active
        ]
        class_and_base = list(zip(active, base, strict=True))
        n_classes = len(active)
        odds = []
        for token, f in features.items():
            row = counts.rows.get(token)
            if row is None:
                continue
            n_t = 0.0
            for count in row:
                n_t += count
            if n_classes == 2:
                value = log((row[active[0]] + a) / (row[active[1]] + a)) - base[0]
                odds.append(TokenOdds(token, f, f * n_t / (n_t + rare_tokens), [value, -value]))
                continue
            d = [log((row[c] + a) / (n_t - row[c] + a)) - k for c, k in class_and_base]
            mean = 0.0
            for value in d:
                mean += value
            mean /= n_classes
            odds.append(TokenOdds(token, f, f * n_t / (n_t + rare_tokens), [value - mean for value in d]))
        return odds


VIEW_FEATURES = 4
"""How many features per class a text view brings to the calibrated head: those of `against_rest`."""


def against_rest(odds: Sequence[TokenOdds], n_classes: int) -> list[list[float]]:
    """Four features per class of what a view's known tokens say together.

    With ``k = sum f`` and ``Z = (1 + k)^0.7``: ``sum f d / Z``; its square-law twin ``1/4 sum f d|d| / Z``,
    in which strong tokens speak up; and both with rarely seen tokens shrunk.

    Returns
    -------
    list of four lists of float, each of length `n_classes`
        All 0 without a known token.
    """
    x, q, rare_x, rare_q = ([0.0] * n_classes for _ in range(VIEW_FEATURES))
    k = 0.0
    for _, f, rare, d in odds:
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
    """Z, what the features are divided by when the known tokens weigh `k`."""
    return math.pow(1.0 + k, LENGTH_EXPONENT)


def log_weight(m: float) -> float:
    """``ln(1 + m)`` rounded to 1/256.

    Examples
    --------
    >>> log_weight(1.0) * 256
    177.0
    """
    return _LOG_WEIGHTS[int(m)] if m < len(_LOG_WEIGHTS) and m == int(m) else _log_weight(m)


def _log_weight(m: float) -> float:
    return round(256.0 * math.log(1.0 + m)) / 256.0


_LOG_WEIGHTS = [_log_weight(float(m)) for m in range(1024)]


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
