"""Several models over one reading of a stream, each judged beside the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from streamnb.base import Batch
from streamnb.evaluation.feedback import Feedback
from streamnb.evaluation.intervals import Difference, paired_difference
from streamnb.evaluation.prequential import Evaluation, OnlineModel, Prequential, evaluate


@dataclass(slots=True)
class Contender:
    """A model in a comparison.

    Parameters
    ----------
    name : str
    model : OnlineModel
    judgement : Prequential
    """

    name: str
    model: OnlineModel
    judgement: Prequential


def compare(
    contenders: list[Contender], batches: Iterable[Batch], feedback: Callable[[], Feedback] | None = None
) -> Iterator[Batch]:
    """Let every contender pass over the batches, one batch at a time; yields each batch when all have.

    Parameters
    ----------
    contenders : list of Contender
    batches : iterable of Batch
        Read once.
    feedback : callable, optional
        A new one for each contender.

    Examples
    --------
    >>> from streamnb import NaiveBayes, TEXT_ONLY
    >>> batch = Batch({"text": ["win", "lunch"] * 40}, ["spam", "ham"] * 40)
    >>> heads = ("product", "calibrated")
    >>> two = [Contender(head, NaiveBayes(TEXT_ONLY, head=head), Prequential()) for head in heads]
    >>> for _ in compare(two, [batch]):
    ...     pass
    >>> [figures.accuracy for figures, _ in beside_the_first(two)]
    [1.0, 1.0]
    """
    labels = [feedback() if feedback else None for _ in contenders]
    for batch in batches:
        for contender, label in zip(contenders, labels, strict=True):
            for _ in evaluate(contender.model, [batch], label, contender.judgement):
                pass
        yield batch


def beside_the_first(
    contenders: list[Contender], seed: int = 0
) -> list[tuple[Evaluation, Difference | None]]:
    """The figures of each, and its difference from the first; of the first itself there is none.

    Parameters
    ----------
    contenders : list of Contender
    seed : int
        Of the bootstrap.
    """
    first = contenders[0].judgement.outcomes()
    found: list[tuple[Evaluation, Difference | None]] = []
    for contender in contenders:
        other = contender.judgement.outcomes()
        apart = None if contender is contenders[0] else paired_difference(other, first, seed)
        found.append((contender.judgement.figures(contender.model.classes), apart))
    return found
