"""The calibrated head: from the evidence of all views to the posterior.

The product head multiplies evidence and class prior and normalises the product, as the lectures do. Its
posteriors are overconfident, because words occur together ("Donald" and "Trump") and each one is counted.
The calibrated head uses the same counts and learns from every label how much of the evidence to believe: one
weight per feature, one offset per class, and the share of labels that are wrong. With trust it also learns
one number per token: see `streamnb.naive_bayes.posterior.trust`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from streamnb.base import HINT, Digest, Section, Sections, check_magnitude, floats, statement
from streamnb.errors import SnapshotError
from streamnb.naive_bayes.posterior.against_rest import VIEW_FEATURES
from streamnb.naive_bayes.posterior.odds import softmax
from streamnb.naive_bayes.statistics.steady_normal import SteadyNormal, checked_sums

# The calibrated head's constants: one setting for every stream. Neighbouring values are within 3 %.
EVIDENCE_START = 0.7  # weight of x, shared between the text views; its three variants start at 0
SHAPES_START = 0.1  # of that, for each view of shapes beside others
META_START = 0.5  # weight of length, unknown share and each view that is not text
EVIDENCE_RATE = 0.1  # divided by the root of the number of text views, whose evidence is correlated
META_RATE = 0.3
STRING_START = (0.5, 0.0, 0.0)  # weights of the features of each view of strings
STRING_RATE = 0.1
TRUST_START = 1.0  # weight of the feature that trust adds
TRUST_RATE = 0.15
OFFSET_RATE = 0.5
NOISE_START = math.log(0.01 / 0.99)
NOISE_BOUNDS = (-9.0, -0.5)
ACCUMULATOR_START = 1.0
NOISE_ACCUMULATOR_START = 0.1
STEPS_MAX = 1e100  # of a snapshot's weights, offsets and accumulators: far above what bounded steps give
LENGTH_VARIANCE_MIN = 0.25
UNKNOWN_VARIANCE_MIN = 0.04


class Opinion(NamedTuple):
    """The calibrated head's result for one message, over the active classes.

    Parameters
    ----------
    u : list of float
        ``b_c + sum_i w_i phi_ic``: used for ranking, and explained by an explanation.
    softmax : list of float
    eps : float
        The estimated share of wrong labels.
    posterior : list of float
        ``(1 - eps) softmax + eps / S``.
    """

    u: list[float]
    softmax: list[float]
    eps: float
    posterior: list[float]


class CalibratedHead:
    """Weights, offsets and noise share, learned online by AdaGrad (Duchi, Hazan and Singer 2011).

    Parameters
    ----------
    n_text_views : int
        Each has the `VIEW_FEATURES` features of `against_rest`.
    n_other_views : int
        Each has one feature, after length and unknown share.
    n_string_views : int
        Each has the three features of `string_features`, after those of the other views.
    shapes : collection of int
        Which of the text views read shapes: those start with less weight than words.
    trusts : bool
        Whether it learns trust, whose feature is the last.

    Attributes
    ----------
    weights, weight_squares : list of float
        Of ``4 n_text_views + 2 + n_other_views + 3 n_string_views`` features, and of 1 with trust.
    first_of_strings : int
        The index of the first feature of strings.
    offsets, offset_squares : list of float, one per class
    eta, eta_squares : float
        ``eps = 1 / (1 + exp(-eta))``.
    length, unknown_share : SteadyNormal
        Of ``ln(1 + code points)`` and of ``sqrt((U + 1/2) / (L + 1))``.
    """

    def __init__(
        self,
        n_text_views: int,
        n_other_views: int,
        n_string_views: int = 0,
        *,
        shapes: Collection[int] = (),
        trusts: bool = False,
    ) -> None:
        self.n_text_views = n_text_views
        self.trusts = trusts
        start = EVIDENCE_START / n_text_views
        if n_words := n_text_views - len(shapes):
            start = (EVIDENCE_START - SHAPES_START * len(shapes)) / n_words
        self.weights = []
        for i in range(n_text_views):
            of_view = SHAPES_START if i in shapes and n_words else start
            self.weights += [of_view, *[0.0] * (VIEW_FEATURES - 1)]
        self.weights += [META_START] * (2 + n_other_views)
        self.first_of_strings = len(self.weights)
        self.weights += [*STRING_START] * n_string_views + [TRUST_START] * trusts
        self.weight_squares = [ACCUMULATOR_START] * len(self.weights)
        self.offsets: list[float] = []
        self.offset_squares: list[float] = []
        self.eta = NOISE_START
        self.eta_squares = NOISE_ACCUMULATOR_START
        self.length = SteadyNormal(LENGTH_VARIANCE_MIN)
        self.unknown_share = SteadyNormal(UNKNOWN_VARIANCE_MIN)

    def add_class(self) -> None:
        """Append a class."""
        self.offsets.append(0.0)
        self.offset_squares.append(ACCUMULATOR_START)
        self.length.add_class()
        self.unknown_share.add_class()

    def starts(self, active: Sequence[int], left: Sequence[float] | None = None) -> list[float]:
        """Return the offsets of the active classes, to which the evidence of a message is added.

        Parameters
        ----------
        active : sequence of S ints
        left : sequence of float, optional
            In a model that forgets, the weight that is left of each class's messages. Below 1 its logarithm
            is added, because the offset itself does not fade and a forgotten class would keep its share.
        """
        if left is None:
            return [self.offsets[c] for c in active]
        return [self.offsets[c] + (math.log(left[c]) if left[c] < 1.0 else 0.0) for c in active]

    def opinion(
        self, phi: Sequence[Sequence[float]], active: Sequence[int], left: Sequence[float] | None = None
    ) -> Opinion:
        """Return the posterior of one message.

        Parameters
        ----------
        phi : sequence of F sequences of S floats
            Feature i of active class c.
        active : sequence of S ints
        left : sequence of float, optional
            See `starts`.
        """
        u = self.starts(active, left)
        for weight, feature in zip(self.weights, phi, strict=True):
            for c, value in enumerate(feature):
                u[c] += weight * value
        s = softmax(u)
        eps = 1.0 / (1.0 + math.exp(-self.eta))
        noise = eps / len(s)
        return Opinion(u, s, eps, [(1.0 - eps) * s_c + noise for s_c in s])

    def fade(self, factor: float) -> None:
        """Shrink AdaGrad's accumulators, so that steps do not vanish; none falls below its start value.

        A step is never larger than its learning rate, because an accumulator contains its own gradient.
        """
        self.weight_squares = [max(ACCUMULATOR_START, g * factor) for g in self.weight_squares]
        self.offset_squares = [max(ACCUMULATOR_START, g * factor) for g in self.offset_squares]
        self.eta_squares = max(NOISE_ACCUMULATOR_START, self.eta_squares * factor)

    def errors(self, opinion: Opinion, y: int, weight: float) -> list[float]:
        """Return the gradient of the log loss of `opinion` in ``u``, per active class.

        Parameters
        ----------
        y : int
            The index of the label's class in `active`.
        weight : float
            The message's weight; above 1 it counts as 1, so that a step stays bounded.
        """
        s, weight = opinion.softmax, min(weight, 1.0)
        rho = (1.0 - opinion.eps) * s[y] / opinion.posterior[y]
        return [weight * rho * (s_c - (1.0 if c == y else 0.0)) for c, s_c in enumerate(s)]

    def learn(
        self,
        opinion: Opinion,
        errors: Sequence[float],
        phi: Sequence[Sequence[float]],
        active: Sequence[int],
        y: int,
        weight: float,
    ) -> None:
        """Take one AdaGrad step down the gradient of the log loss of `opinion`.

        The weights of texts, strings and trust never fall below 0: evidence for a class may be ignored, but
        never counts against it. The head therefore recovers from a run of wrong labels as fast as it learned
        them.

        Parameters
        ----------
        opinion : Opinion
        errors : sequence of S floats
            Of the opinion, as the method `errors` returns them.
        phi : sequence of F sequences of S floats
        active : sequence of S ints
        y : int
        weight : float
            As for `errors`.
        """
        n_of_text, n_untrusted = VIEW_FEATURES * self.n_text_views, len(phi) - self.trusts
        rate = EVIDENCE_RATE / math.sqrt(self.n_text_views)
        for i, feature in enumerate(phi):
            h = 0.0
            for r_c, value in zip(errors, feature, strict=True):
                h += r_c * value
            self.weight_squares[i] += h * h
            is_text, is_trust = i < n_of_text, i >= n_untrusted
            is_string = self.first_of_strings <= i < n_untrusted
            step = rate if is_text else TRUST_RATE if is_trust else STRING_RATE if is_string else META_RATE
            self.weights[i] -= step * h / math.sqrt(self.weight_squares[i])
            if (is_text or is_trust or is_string) and self.weights[i] < 0.0:
                self.weights[i] = 0.0
        for r_c, c in zip(errors, active, strict=True):
            self.offset_squares[c] += r_c * r_c
            self.offsets[c] -= OFFSET_RATE * r_c / math.sqrt(self.offset_squares[c])
        s, eps = opinion.softmax, opinion.eps
        h = min(weight, 1.0) * (s[y] - 1.0 / len(s)) / opinion.posterior[y] * eps * (1.0 - eps)
        self.eta_squares += h * h
        low, high = NOISE_BOUNDS
        self.eta = min(max(self.eta - h / math.sqrt(self.eta_squares), low), high)

    def merge(self, other: CalibratedHead, classes: Sequence[int], mine: float, others: float) -> None:
        """Average the weights of two heads, weighted by their labels, and add their Gaussian sums.

        Parameters
        ----------
        classes : sequence of int
            ``classes[j]`` is this head's index of the other head's class j.
        mine, others : float
            Labels learned by each. A class that one head lacks has offset 0 and accumulator 1 there.
        """
        total = mine + others
        if total == 0:
            return
        a, b = mine / total, others / total

        def mean(x: Sequence[float], y: Sequence[float]) -> list[float]:
            pairs = zip(x, y, strict=True)
            # Rounding must not take a mean out of the two, which are within the bounds that a snapshot has.
            return [min(max(a * p + b * q, min(p, q)), max(p, q)) for p, q in pairs]

        theirs_b = [0.0] * len(self.offsets)
        theirs_g = [ACCUMULATOR_START] * len(self.offsets)
        for j, c in enumerate(classes):
            theirs_b[c], theirs_g[c] = other.offsets[j], other.offset_squares[j]
        self.weights = mean(self.weights, other.weights)
        self.weight_squares = mean(self.weight_squares, other.weight_squares)
        self.offsets = mean(self.offsets, theirs_b)
        self.offset_squares = mean(self.offset_squares, theirs_g)
        (self.eta,) = mean([self.eta], [other.eta])
        (self.eta_squares,) = mean([self.eta_squares], [other.eta_squares])
        for normal, their_normal in (
            (self.length, other.length),
            (self.unknown_share, other.unknown_share),
        ):
            normal.merge(their_normal, classes)

    def regroup(self, other: CalibratedHead, classes: Sequence[int], active: Sequence[int]) -> None:
        """Become a copy of another head whose classes were renamed or merged.

        A class of one labelled class keeps its offset. The offset of a merged class is the log of the sum of
        ``exp(offset)``, so that a message without evidence gets the sum of the posteriors as before. Its
        gradients would have been sums, so the squares of both are added.

        Parameters
        ----------
        classes : sequence of int
            ``classes[j]`` is this head's index of the other head's class j.
        active : sequence of int
            The classes of the other head that have been labelled; only these count.
        """
        self.weights, self.weight_squares = list(other.weights), list(other.weight_squares)
        self.eta, self.eta_squares = other.eta, other.eta_squares
        for c in range(len(self.offsets)):
            group = [j for j, new in enumerate(classes) if new == c]
            group = [j for j in group if j in active] or group[:1]
            if len(group) == 1:
                self.offsets[c], self.offset_squares[c] = (
                    other.offsets[group[0]],
                    other.offset_squares[group[0]],
                )
            elif group:
                top = max(other.offsets[j] for j in group)
                self.offsets[c] = top + math.log(sum(math.exp(other.offsets[j] - top) for j in group))
                squares = sum(other.offset_squares[j] - ACCUMULATOR_START for j in group)
                self.offset_squares[c] = ACCUMULATOR_START + squares
        self.length.merge(other.length, classes)
        self.unknown_share.merge(other.unknown_share, classes)

    def adopt(self, other: CalibratedHead, places: Sequence[int | None]) -> None:
        """Take over from another head of the same classes what it learned of the features that both have.

        Parameters
        ----------
        other : CalibratedHead
        places : sequence of F items
            The index of each feature in the other head; ``None`` for a new one, which keeps its start value.
        """
        for i, place in enumerate(places):
            if place is not None:
                self.weights[i], self.weight_squares[i] = other.weights[place], other.weight_squares[place]
        self.offsets, self.offset_squares = list(other.offsets), list(other.offset_squares)
        self.eta, self.eta_squares = other.eta, other.eta_squares
        classes = range(len(self.offsets))
        self.length.merge(other.length, classes)
        if places[VIEW_FEATURES * self.n_text_views + 1] is not None:
            self.unknown_share.merge(other.unknown_share, classes)

    def digest(self, classes: Sequence[str]) -> Digest:
        """Return the digest of what depends on the order of messages, such as weights and offsets.

        The weight of trust is in it once it has moved: without that it changes nothing, so the digest of an
        older snapshot holds.
        """
        digest = self.unknown_share.digest("unknown_share", classes)
        n = len(self.weights) - self.trusts
        digest.add(statement("weights"), *self.weights[:n], *self.weight_squares[:n])
        if self.trusts and (self.weights[n], self.weight_squares[n]) != (TRUST_START, ACCUMULATOR_START):
            digest.add(statement("trust"), self.weights[n], self.weight_squares[n])
        digest.add(statement("noise"), self.eta, self.eta_squares)
        for class_name, b, g in zip(classes, self.offsets, self.offset_squares, strict=True):
            digest.add(statement("offset", class_name), b, g)
        return digest

    def freeze(self) -> dict[str, Section]:
        """Return the state as arrays; row 0 holds the values, row 1 AdaGrad's accumulators."""
        n_classes, steps = len(self.offsets), np.array([self.weights, self.weight_squares], np.float64)
        n = len(self.weights) - self.trusts
        return {
            "head_weights": steps[:, :n],
            **({"head_trust": steps[:, n:]} if self.trusts else {}),
            "head_offsets": np.array([self.offsets, self.offset_squares], np.float64).reshape(2, n_classes),
            "head_noise": np.array([[self.eta], [self.eta_squares]], np.float64),
            "length": self.length.freeze(),
            "unknown_share": self.unknown_share.freeze(),
        }

    def restore(self, sections: Sections, n_classes: int) -> None:
        """Restore what `freeze` returned, after checking it.

        Raises
        ------
        SnapshotError
            The arrays do not fit these views and classes; nothing was changed.
        """
        weights = floats(sections, "head_weights", (2, len(self.weights) - self.trusts))
        trust = np.array([[TRUST_START], [ACCUMULATOR_START]])
        if "head_trust" in sections:  # not in the snapshot of a model without trust
            trust = floats(sections, "head_trust", (2, 1))
        if self.trusts:
            weights = np.hstack([weights, trust])
        offsets = floats(sections, "head_offsets", (2, n_classes))
        noise = floats(sections, "head_noise", (2, 1))
        for name, array in ("head_weights", weights), ("head_offsets", offsets), ("head_noise", noise):
            check_magnitude(name, array, STEPS_MAX)
        length = checked_sums(sections, "length", n_classes)
        unknown_share = checked_sums(sections, "unknown_share", n_classes)
        low, high = NOISE_BOUNDS
        accumulators = min(weights[1].min(), offsets[1].min(initial=math.inf))
        if accumulators < ACCUMULATOR_START or noise[1, 0] < NOISE_ACCUMULATOR_START:
            raise SnapshotError("An accumulator of the head is below its initial value.", HINT)
        if not low <= noise[0, 0] <= high:
            raise SnapshotError("The head's noise share is out of its bounds.", HINT)
        self.weights, self.weight_squares = weights.tolist()
        self.offsets, self.offset_squares = offsets.tolist()
        self.eta, self.eta_squares = noise[:, 0].tolist()
        self.length.restore(length)
        self.unknown_share.restore(unknown_share)
