"""A score: what is published of a message. Its identity is the source address, so a repeat is known.

The form is `schemas/score.schema.json`; tests hold what is emitted to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
import orjson

from streamnb.columns import Flag, Scores, likeliest
from streamnb.message import Id
from streamnb.record import Partition


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a score carries, and which messages get one published.

    Parameters
    ----------
    emit : {"all", "unlabelled"}
        Whether messages that came with a label are scored in public too.
    raw_posterior : bool
        The product head's posterior over the same counts, beside the calibrated one.
    explanation : int
        How many tokens to explain the score by; 0 for no explanation.
    state : bool
        The offsets learned when the score was computed, partition by partition: enough to compute it again.
    """

    emit: Literal["all", "unlabelled"] = "all"
    raw_posterior: bool = False
    explanation: int = 0
    state: bool = False

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a negative number of tokens."""
        if self.explanation < 0:
            raise ValueError("`explanation` must not be below 0")


class Listed(NamedTuple):
    """The columns of `Scores` as lists, made once a batch: numbers out of arrays cost more than a score."""

    classes: list[str]
    n_classes: list[int]
    posterior: list[list[float]]
    log_odds: list[list[float]]
    raw_posterior: list[list[float]] | None
    known_tokens: list[int]
    unknown_tokens: list[int]
    learned: list[int]
    flags: list[int]
    explanations: list[dict[str, object] | None] | None


def listed(scores: Scores) -> Listed:
    """Scores, ready to be encoded row by row."""
    raw = scores.raw_posterior
    return Listed(
        classes=[str(label) for label in scores.classes],
        n_classes=scores.n_classes.tolist(),
        posterior=scores.posterior.tolist(),
        log_odds=scores.log_odds.tolist(),
        raw_posterior=None if raw is None else raw.tolist(),
        known_tokens=scores.known_tokens.tolist(),
        unknown_tokens=scores.unknown_tokens.tolist(),
        learned=scores.learned.tolist(),
        flags=scores.flags.tolist(),
        explanations=scores.explanations,
    )


def encode(
    scores: Listed,
    i: int,
    *,
    message_id: Id | None,
    model: str,
    partition: Partition,
    offset: int,
    state: Mapping[str, int] | None = None,
) -> bytes:
    """Row i of `scores` as JSON.

    Parameters
    ----------
    message_id : str, int or None
        ``None``: the source address stands in, ``topic-partition-offset``.
    model : str
        The model's name.
    partition, offset
        The source address.
    state : mapping of str to int, optional
        Next offset by partition, of what the model had learned.

    Returns
    -------
    bytes
        One JSON object, without a newline.
    """
    classes = scores.classes[: scores.n_classes[i]]
    posterior = dict(zip(classes, scores.posterior[i], strict=False))
    score: dict[str, object] = {
        "id": f"{partition}-{offset}" if message_id is None else message_id,
        "prediction": likeliest(posterior),
        "posterior": posterior,
        "log_odds": named(classes, scores.log_odds[i]),
        "known_tokens": scores.known_tokens[i],
        "unknown_tokens": scores.unknown_tokens[i],
        "learned": scores.learned[i],
        "model": model,
        "source": {"topic": partition.topic, "partition": partition.number, "offset": offset},
    }
    if scores.flags[i]:
        score["flags"] = [str(flag.name).lower() for flag in Flag(scores.flags[i])]
    if scores.raw_posterior is not None:
        score["raw_posterior"] = named(classes, scores.raw_posterior[i])
    if scores.explanations is not None and scores.explanations[i] is not None:
        score["explanation"] = scores.explanations[i]
    if state is not None:
        score["state"] = state
    return orjson.dumps(score)


def named(classes: Sequence[str], row: Sequence[float]) -> dict[str, float | None]:
    """Numbers by class; what no JSON number can say (the log odds of an only class) is null."""
    return {
        label: value if -math.inf < value < math.inf else None
        for label, value in zip(classes, row, strict=False)
    }
