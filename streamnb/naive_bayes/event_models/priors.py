"""Class priors: what is believed of the classes before a message is read."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from streamnb.base import Label


class LearnedPrior(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="learned"):
    """``P(c) = (D_c + smoothing) / (D + smoothing S)`` over the S classes labelled so far."""

    smoothing: float = 0.0

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a smoothing below 0, infinite or not a number."""
        if not (math.isfinite(self.smoothing) and self.smoothing >= 0):
            raise ValueError(f"`smoothing` must be 0 or above and finite, not {self.smoothing!r}")

    def log_p(self, labels: list[Label], class_counts: list[float], scale: float = 1.0) -> list[float]:
        """Log P(c) of the classes given, which have counts above 0."""
        s = self.smoothing * scale
        total = 0.0
        for count in class_counts:
            total += count
        total += s * len(labels)
        shares = [(count + s) / total for count in class_counts]
        return [math.log(share) if share > 0 else -math.inf for share in shares]  # 5e-324 of 2 is 0


class UniformPrior(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="uniform"):
    """Every class labelled so far is as likely as another."""

    def log_p(self, labels: list[Label], _class_counts: list[float], _scale: float = 1.0) -> list[float]:
        """Log P(c): minus the log of how many there are."""
        return [-math.log(len(labels))] * len(labels)


class FixedPrior(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fixed"):
    """P(c) as given, whatever the stream's shares; a class that is not named has what one message would.

    Parameters
    ----------
    p : mapping of class to float
        Above 0; divided by their sum.

    Raises
    ------
    ValueError
        Nothing is given, or a value is not above 0 and finite.
    """

    p: Mapping[str, float]

    def __post_init__(self) -> None:
        """Validate `p`."""
        if not self.p or not all(math.isfinite(value) and value > 0 for value in self.p.values()):
            raise ValueError("`p` must give at least one class a probability above 0")

    def log_p(self, labels: list[Label], class_counts: list[float], scale: float = 1.0) -> list[float]:
        """Log P(c), up to the constant that the head divides out."""
        total = 0.0
        for value in self.p.values():
            total += value
        learned = 0.0
        for count in class_counts:
            learned += count
        rest = scale / (scale + learned)
        return [math.log(self.p[str(label)] / total if str(label) in self.p else rest) for label in labels]


class FallbackPrior(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fallback"
):
    """The stream's shares for a message that says nothing; for any other, all classes are as likely.

    It is what the complement rule is used with by the peers, who have no prior at all: a message of 99:1
    classes without a token would else be a toss-up.
    """

    def log_p(self, labels: list[Label], class_counts: list[float], _scale: float = 1.0) -> list[float]:
        """Log P(c) of a message that says nothing."""
        return LearnedPrior().log_p(labels, class_counts)


Prior = LearnedPrior | UniformPrior | FixedPrior | FallbackPrior
