"""Class priors: the probability of each class before a message is read. They are settings, not state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from streamnb.base import Label
from streamnb.naive_bayes.statistics.budget import DENSE_CLASSES


class LearnedPrior(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="learned"):
    """The smoothed shares of the stream: ``P(c) = (D_c + smoothing) / (D + smoothing S)``.

    `D_c` of `D` messages were of class c, and S classes have been learned so far.
    """

    smoothing: float = 0.0  # not a file's to set: after a hundred messages it hardly matters

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a smoothing that is negative, infinite or not a number."""
        if not (math.isfinite(self.smoothing) and self.smoothing >= 0):
            raise ValueError(f"`smoothing` must be 0 or above and finite, not {self.smoothing!r}")

    def log_p(self, labels: list[Label], class_counts: list[float], scale: float = 1.0) -> list[float]:
        """Return log P(c) of the given classes, whose counts are above 0."""
        s = self.smoothing * scale
        total = 0.0
        for count in class_counts:
            total += count
        total += s * len(labels)
        if (
            len(labels) > DENSE_CLASSES
        ):  # a class's logarithm stays the same until it learns, so it can be kept
            log_total = math.log(total)
            return [math.log(count + s) - log_total for count in class_counts]
        shares = [(count + s) / total for count in class_counts]
        return [math.log(share) if share > 0 else -math.inf for share in shares]  # a share may underflow to 0


class UniformPrior(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="uniform"):
    """The same probability for every class learned so far."""

    def log_p(self, labels: list[Label], _class_counts: list[float], _scale: float = 1.0) -> list[float]:
        """Return log P(c): minus the log of the number of classes."""
        return [-math.log(len(labels))] * len(labels)


class FixedPrior(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fixed"):
    """Given probabilities, whatever the shares of the stream.

    A class that `p` does not name gets 1 / (n + 1) after n messages: the share of one message.

    Parameters
    ----------
    p : mapping of Label to float
        Numbers from 0; they are divided by their sum. Labels are kept as JSON writes them: ``True`` becomes
        ``"true"``, and ``1`` becomes ``"1"``.

    Raises
    ------
    ValueError
        A value of `p` is negative or not finite, or none is above 0.

    Examples
    --------
    >>> FixedPrior({True: 9, False: 1}).p
    {'true': 9.0, 'false': 1.0}
    """

    p: Mapping[Any, float]  # of Label; the type of a mapping's keys is invariant

    def __post_init__(self) -> None:
        """Name the classes, and check their probabilities."""
        try:
            named = {_name(label): float(value) for label, value in self.p.items()}
        except (AttributeError, TypeError) as error:
            raise ValueError(f"`p` must be a mapping of labels to numbers, not {self.p!r}") from error
        if not all(0 <= value < math.inf for value in named.values()) or not any(named.values()):
            raise ValueError(
                "`p` must be finite, not negative for any class, and above 0 for at least one class, "
                f"not {dict(self.p)!r}"
            )
        msgspec.structs.force_setattr(self, "p", named)

    def log_p(self, labels: list[Label], class_counts: list[float], scale: float = 1.0) -> list[float]:
        """Return log P(c) up to a constant, which cancels when the head normalises the posterior."""
        total = math.fsum(self.p.values())  # a snapshot's settings come back in another order
        learned = 0.0
        for count in class_counts:
            learned += count
        rest = scale / (scale + learned)
        shares = [self.p[_name(label)] / total if _name(label) in self.p else rest for label in labels]
        return [math.log(share) if share > 0 else -math.inf for share in shares]


class FallbackPrior(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fallback"
):
    """The shares of the stream, but only for a message without evidence; for others all classes are equal.

    scikit-learn and river use the complement rule without a prior. Then a message without a known token would
    be a toss-up even if the classes have shares of 99:1; this prior decides such messages and leaves all
    others alone.
    """

    def log_p(self, labels: list[Label], class_counts: list[float], _scale: float = 1.0) -> list[float]:
        """Return log P(c) of a message without evidence."""
        return LearnedPrior().log_p(labels, class_counts)


Prior = LearnedPrior | UniformPrior | FixedPrior | FallbackPrior


def _name(label: Label) -> str:
    """Return a label as the text that it is in JSON."""
    return label if isinstance(label, str) else str(label).lower()
