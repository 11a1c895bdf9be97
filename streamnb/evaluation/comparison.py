"""Compare models on one stream: the stream is read once, and each model is compared with the first."""

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
        Identifies the model in tables and errors.
    model : OnlineModel
    judgement : Prequential
        Collects the outcomes of the model's scores.
    """

    name: str
    model: OnlineModel
    judgement: Prequential


def compare(
    contenders: list[Contender], batches: Iterable[Batch], feedback: Callable[[], Feedback] | None = None
) -> Iterator[Batch]:
    """Run every contender over the batches, and yield each batch after all contenders have processed it.

    Parameters
    ----------
    contenders : list of Contender
    batches : iterable of Batch
        Iterated once.
    feedback : callable, optional
        Called once per contender; returns the `Feedback` that decides which labels it learns.

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
    """Return each contender's figures and its difference from the first contender.

    The first contender's own difference is ``None``.

    Parameters
    ----------
    contenders : list of Contender
    seed : int
        Random seed of the bootstrap.
    """
    first = contenders[0].judgement.outcomes()
    found: list[tuple[Evaluation, Difference | None]] = []
    for contender in contenders:
        other = contender.judgement.outcomes()
        apart = None if contender is contenders[0] else paired_difference(other, first, seed)
        found.append((contender.judgement.figures(contender.model.classes_), apart))
    return found
