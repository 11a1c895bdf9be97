"""The estimator of messages with fields of any kind, in one posterior."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streamnb.base import Batch, Label
from streamnb.naive_bayes.estimators.estimator import Estimator
from streamnb.naive_bayes.estimators.frames import Row
from streamnb.naive_bayes.event_models.priors import Prior
from streamnb.naive_bayes.model.naive_bayes import NaiveBayes
from streamnb.naive_bayes.model.state import HeadKind
from streamnb.naive_bayes.model.view import View


class MixedNB(Estimator):
    """Naive Bayes over text, categories, flags and numbers in one posterior, as a river classifier.

    Parameters
    ----------
    views : sequence of View, optional
        By default the words of the field ``text``; of all other fields numbers as normals, truth values as
        flags and strings as categories.
    head : {"product", "calibrated"}, optional
        As for `NaiveBayes`.
    prior : Prior, optional
        The product head's; by default the classes' shares of the messages learned.

    Raises
    ------
    ValueError
        The views' names are not unique, or the views do not fit the head.

    Examples
    --------
    >>> model = MixedNB()
    >>> model.learn_one({"text": "win money", "amount": 900.0, "country": "no", "known": False}, "spam")
    >>> model.learn_one({"text": "lunch at noon", "amount": 12.0, "country": "no", "known": True}, "ham")
    >>> model.predict_one({"text": "money", "known": None, "amount": 500.0})
    'spam'

    EasySell: how many of a hundred young and a hundred old hear each of four radio stations. Who hears the
    first, and has said nothing of the others? ``.95 / (.95 + .03)``.

    >>> from streamnb import Bernoulli, Beta, Flags
    >>> model = MixedNB([View("radio", Flags(), Bernoulli(Beta(0, 0)))])
    >>> for age, heard in {"young": (95, 5, 2, 20), "old": (3, 82, 34, 92)}.items():
    ...     for i in range(100):
    ...         model.learn_one({f"station {k}": i < n for k, n in enumerate(heard, 1)}, age)
    >>> round(model.predict_proba_one({"station 1": True, "station 3": None})["young"], 4)
    0.9694
    """

    def __init__(
        self,
        views: Sequence[View] | None = None,
        head: HeadKind | None = None,
        *,
        prior: Prior | None = None,
    ) -> None:
        self.views = views
        self.head = head
        self.prior = prior
        self._model = NaiveBayes(views, head=head, prior=prior)

    def _fields(self, x: Row) -> dict[str, object]:
        if not isinstance(x, Mapping):
            raise ValueError(f"a message is a mapping of fields to values, not {type(x).__name__}")
        return dict(x)

    def _batch(
        self, rows: Sequence[Row], labels: Sequence[Label | None], weights: Sequence[float] | None
    ) -> Batch:
        messages = [self._fields(row) for row in rows]
        names = dict.fromkeys(name for message in messages for name in message)
        return Batch({name: [x.get(name) for x in messages] for name in names}, labels, weights)

    def sample(self, n: int, seed: int = 0) -> Iterator[tuple[dict[str, object], Label]]:
        """Draw labelled messages from the model; see `NaiveBayes.sample`."""
        return self._model.sample(n, seed)
