"""The multinomial event model: a message is a sequence of draws from its class's distribution of tokens.

`Multinomial.parts` is the formula of the lectures (McCallum and Nigam 1998). The calibrated head uses other
evidence from the same counts: see `streamnb.naive_bayes.posterior.against_rest`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

import msgspec
import numpy as np

from streamnb.naive_bayes.event_models.base import (
    Draw,
    EventModel,
    Line,
    Shelf,
    counts_on,
    shares_of,
    token_weights,
)
from streamnb.naive_bayes.event_models.smoothing import Laplace, LaplacePerToken, NoSmoothing, TokenSmoothing
from streamnb.naive_bayes.features.arguments import check_fields
from streamnb.naive_bayes.statistics.budget import DENSE_CLASSES
from streamnb.naive_bayes.statistics.token_counts import PLAIN, NoTally, TokenCounts, Twins
from streamnb.naive_bayes.statistics.view_counts import Counted

PSEUDO_MIN = 1e-200  # a smaller pseudo-count is so close to none that its logarithm may not be finite


class Multinomial(EventModel, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="multinomial"):
    """A distribution of tokens per class, from which the tokens of a message are drawn independently.

    Parameters
    ----------
    smoothing : NoSmoothing, Laplace, LaplacePerToken or Dirichlet
    weight : {"counts", "boolean", "log"}
        The weight f of a token that occurs m times in a message. "counts": m. "boolean": 1 (Metsis,
        Androutsopoulos, Paliouras 2006). "log": ``ln(1 + m)`` rounded to 1/256, so that sums are exact in
        any order.
    unknown : {"skip", "smooth"}
        Whether a token that no class has seen is left out, or counts with n_kc = 0, which favours the class
        with fewer tokens.
    complement : bool
        Whether a class is scored by the tokens of all other classes, which together have more: the less they
        explain the message, the higher the score (Rennie, Shih, Teevan and Karger 2003):
        ``-sum f log[(n_k - n_kc + alpha) / (N - N_c + alpha |V|)]``.
    norm : bool
        With `complement`: whether a class's weights are divided by their sum over the vocabulary (the same
        paper). Every score then walks the vocabulary.
    vocabulary_min : int
        The size of the dictionary, if it is known: |V| is at least this. Otherwise it is the number of
        tokens learned so far.

    Notes
    -----
    With `complement`, `vocabulary_min` or `LaplacePerToken` a model runs on the plain driver.

    Raises
    ------
    ValueError
        `norm` is set without `complement` or with `NoSmoothing`, or `vocabulary_min` is negative.

    Examples
    --------
    The China example (Manning, Raghavan and Schütze 2008, chapter 13).

    >>> counts = TokenCounts(NoTally(), n_classes=2)
    >>> counts.add({"Chinese": 5.0, "Beijing": 1.0, "Shanghai": 1.0, "Macao": 1.0}, class_index=0)
    >>> counts.add({"Tokyo": 1.0, "Japan": 1.0, "Chinese": 1.0}, class_index=1)
    >>> lectures = Multinomial(Laplace(1.0), weight="counts", unknown="smooth")
    >>> message = {"Chinese": 3.0, "Tokyo": 1.0, "Japan": 1.0}
    >>> [round(math.exp(z), 8) for z in lectures.log_likelihood(message, counts, [0, 1])]
    [0.00040162, 0.00054192]
    """

    counts_tokens: ClassVar[bool] = True

    smoothing: TokenSmoothing = Laplace(0.1)
    weight: Literal["counts", "boolean", "log"] = "log"
    unknown: Literal["skip", "smooth"] = "skip"
    complement: bool = False
    norm: bool = False
    vocabulary_min: int = 0

    def __post_init__(self) -> None:
        """Check `norm` and `vocabulary_min`."""
        check_fields(self)
        named = self.smoothing.alphas.values() if isinstance(self.smoothing, LaplacePerToken) else ()
        smoothed = not isinstance(self.smoothing, NoSmoothing) and all(named)
        if self.norm and not (self.complement and smoothed):
            raise ValueError(
                "`norm` needs `complement`, and pseudo-counts above 0: without them a weight may be infinite"
            )
        if self.vocabulary_min < 0:
            raise ValueError(f"`vocabulary_min` must be 0 or above, not {self.vocabulary_min}")

    @property
    def token_weight(self) -> str:
        """The parameter `weight`."""
        return self.weight

    @property
    def has_twin(self) -> bool:
        """Whether the compiled driver knows the event model: see the notes of the class."""
        return not (self.complement or self.vocabulary_min or isinstance(self.smoothing, LaplacePerToken))

    @property
    def feeds_head(self) -> bool:
        """Whether the calibrated head can use it: not with `complement`."""
        return not self.complement

    def check_for_head(self) -> None:
        """Raise ``ValueError`` if the calibrated head cannot use a text view with this event model."""
        if self.complement:
            super().check_for_head()
        if not isinstance(self.smoothing, Laplace):
            raise ValueError("the calibrated head needs Laplace(alpha) smoothing")

    def features(self, found: Mapping[str, float]) -> dict[str, float]:
        """Return the weight of each distinct token of a message, from its number of occurrences."""
        if self.weight == "log":
            return {token: log_weight(m) for token, m in found.items()}
        if self.weight == "boolean":
            return dict.fromkeys(found, 1.0)
        return dict(found)

    def statistic(self, twins: Twins = PLAIN, shelf: Shelf | None = None) -> TokenCounts[NoTally]:  # noqa: ARG002
        """Return empty counts."""
        return counts_on(shelf, NoTally())

    def parts(
        self, features: Mapping[str, float], statistic: Counted, active: Sequence[int], scale: float = 1.0
    ) -> Iterator[tuple[str, list[float]]]:
        """Yield each token with ``f log phi_kc`` per active class.

        It yields nothing as long as no class has counted a token. With maximum likelihood, a token that a
        class has not seen has minus infinity; with `complement`, a token that only one class has seen has
        infinity for that class.
        """
        counts = statistic
        n, vocabulary = 0.0, self.vocabulary(counts.rows)
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
        rows, unknown, of_all = counts.rows, [0.0] * len(counts.totals), (n, vocabulary, scale)
        per_token, given = isinstance(self.smoothing, LaplacePerToken), self.smoothing.pseudo_count

        def log_shares(token: str, row: Sequence[float]) -> list[float]:
            seen, n_k = [row[c] for c in active], 0.0
            for count in seen:
                n_k += count
            p = self.pseudo_count(token, n_k, *of_all) if per_token else given(n_k, *of_all)
            if self.complement:
                seen = [n_k - count for count in seen]
            return [
                math.log(count + p) - log_total if count + p > 0 else -math.inf
                for count, log_total in zip(seen, log_totals, strict=True)
            ]

        sums = self._sums(counts, vocabulary, log_shares) if self.norm else None
        for token, f in features.items():
            row = rows.get(token)
            if row is None and self.unknown == "skip":
                continue
            shares, weight = log_shares(token, unknown if row is None else row), sign * f
            if sums is None:  # f may be 0, and 0 times infinity is no number
                yield token, [weight * share if share > -math.inf else sign * share for share in shares]
            else:
                yield token, [weight * share / total for share, total in zip(shares, sums, strict=True)]

    def _sums(
        self, counts: Counted, vocabulary: int, log_shares: Callable[[str, Sequence[float]], list[float]]
    ) -> list[float]:
        """Return, per active class, the sum of the weights of all tokens of the vocabulary."""
        unknown = [0.0] * len(counts.totals)
        named = self.smoothing.alphas if isinstance(self.smoothing, LaplacePerToken) else {}
        rows = {**dict.fromkeys(named, unknown), **counts.rows}
        logs = [log_shares(token, row) for token, row in rows.items()]
        if vocabulary > len(rows):
            logs.append([(vocabulary - len(rows)) * share for share in log_shares("", unknown)])
        return [-math.fsum(column) or 1.0 for column in zip(*logs, strict=True)]

    def vocabulary(self, rows: Mapping[str, Sequence[float]]) -> int:
        """Return |V|: the tokens learned or named by the smoothing, and at least `vocabulary_min`."""
        named = self.smoothing.alphas if isinstance(self.smoothing, LaplacePerToken) else ()
        return max(self.vocabulary_min, len(rows) + sum(token not in rows for token in named))

    def pseudo_count(self, token: str, n_k: float, n: float, vocabulary: int, scale: float = 1.0) -> float:
        """Return the pseudo-count of a token, given its count, that of all tokens, and |V|."""
        if isinstance(self.smoothing, LaplacePerToken) and token in self.smoothing.alphas:
            return self.smoothing.alphas[token] * scale
        return self.smoothing.pseudo_count(n_k, n, vocabulary, scale)

    def log_likelihood(
        self, features: Mapping[str, float], statistic: Counted, active: Sequence[int], scale: float = 1.0
    ) -> list[float]:
        """Return the sum of the parts, for each active class.

        With many classes most of them have never seen a token. Then the sum is taken over the counts above 0:
        ``sum f log p - (sum f) log(N_c + pseudo-counts)``, which is what a class has that saw none of the
        tokens, plus ``f [log(n_kc + p) - log p]`` for each count.
        """
        is_smoothed = self.smoothing.pseudo_total(1, scale) > PSEUDO_MIN
        if len(statistic.totals) <= DENSE_CLASSES or not self.has_twin or not is_smoothed:
            return super().log_likelihood(features, statistic, active, scale)
        n, vocabulary = 0.0, len(statistic.rows)
        for c in active:
            n += statistic.totals[c]
        if n == 0:
            return [0.0] * len(active)
        pseudo_total = self.smoothing.pseudo_total(vocabulary, scale)
        log_totals = [_log(statistic.totals[c] + pseudo_total) for c in active]
        z, nothing, weight = [0.0] * len(active), 0.0, 0.0
        for token, f in features.items():
            row = statistic.rows.get(token)
            if row is None and self.unknown == "skip":
                continue
            counts = [row[c] for c in active] if row is not None else []
            n_k = 0.0
            for count in counts:
                n_k += count
            p = self.smoothing.pseudo_count(n_k, n, vocabulary, scale)
            log_p = math.log(p)
            weight += f
            nothing += f * log_p
            for j, count in enumerate(counts):
                if count:
                    z[j] += f * (math.log(count + p) - log_p)
        return [z_c + (nothing - weight * log_total) for z_c, log_total in zip(z, log_totals, strict=True)]

    def linear(self, statistic: Counted, active: Sequence[int], a: int, b: int) -> Line:
        """Return the token weights; there is no intercept."""
        return Line(0.0, token_weights(self, statistic, active, a, b))

    def n_parameters(self, statistic: Counted, n_classes: int, *, naive: bool) -> int:
        """Return ``|V| - 1`` per class."""
        if not naive:
            raise ValueError(
                "without the naive assumption the number of parameters is infinite, "
                "because a message can have any length"
            )
        return n_classes * max(0, self.vocabulary(statistic.rows) - 1)

    def drawing(self, statistic: Counted, active: Sequence[int], i: int, messages: float) -> Draw:
        """Return a function that draws tokens; their number is Poisson with the class's mean length.

        `complement` changes how a message is scored, not how a class's tokens are distributed.
        """
        tokens, shares = shares_of(msgspec.structs.replace(self, complement=False), statistic, active, i)
        whole = shares.sum()
        mean = statistic.totals[active[i]] / messages

        def draw(random: np.random.Generator) -> list[tuple[str, float]]:
            n = int(random.poisson(mean)) if len(tokens) else 0
            if not whole:
                return []
            return [(tokens[j], 1.0) for j in random.choice(len(shares), size=n, p=shares / whole)]

        return draw


def log_weight(m: float) -> float:
    """Return ``ln(1 + m)`` rounded to 1/256.

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
