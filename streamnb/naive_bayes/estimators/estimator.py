"""The base class of the classic estimators: a naive Bayes of one view under the product head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from streamnb.base import Label
from streamnb.naive_bayes.estimators.frames import Row
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models.priors import LearnedPrior, Prior
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.state import State
from streamnb.naive_bayes.model.view import View

FIELD = "x"
# Without limits, as in river: the caller holds the text in memory already, and would not see a cut.
_TOKENIZER = Tokenizer(rule="words", token_length_max=1 << 31, message_tokens_max=1 << 31)


class Estimator(NaiveBayes):
    """A naive Bayes of one view under the product head, with river's names and numbers.

    The whole message is the value of one field, so names need not be declared, and names that are no strings
    are known by ``str(name)``.

    Attributes
    ----------
    classes_max : int or None
        How many classes there may be; the label of a further one is refused.
    max_tokens : int or None
        How many tokens the counts may hold; at the cap the rarest sixteenth is evicted.
    half_life_s, half_life_messages : float or None
        The time, or the number of messages learned, after which a message weighs half. With `half_life_s`,
        `learn_one` needs the time `at` of a message.
    """

    prior: Prior | None
    _by_default: Prior = LearnedPrior()

    def _built(self, view: View) -> State:
        """Return the empty state of a model of one view, with the parameters that all estimators have."""
        return State(
            [view],
            prior=self.prior or self._by_default,
            head="product",
            classes_max=self.classes_max,
            max_tokens=self.max_tokens,
            half_life_s=self.half_life_s,
            half_life_messages=self.half_life_messages,
        )

    def _fields(self, x: Row) -> Mapping[str, object]:
        return {FIELD: x}

    def _message(self, fields: Mapping[str, object]) -> object:
        return fields[FIELD]

    def _columns(self, rows: Any) -> dict[str, list[object]]:  # noqa: ANN401 - a sequence of messages
        return {FIELD: [self._fields(row)[FIELD] for row in rows]}

    # ---- what was learned, under river's names

    @property
    def class_counts(self) -> Counter[Label]:
        """The weight of the messages learned, per class."""
        return Counter(self.class_counts_)

    def p_class(self, c: Label) -> float:
        """Return the share of class c among the messages learned; 0 before any."""
        counts = self.class_counts
        total = sum(counts.values())
        return counts[c] / total if total else 0.0

    def p_class_many(self) -> Any:  # noqa: ANN401 - pandas', which need not be installed
        """Return `p_class` of every class as river does: a pandas frame of one row, one column per class."""
        from river.utils import pandas  # brings scipy, which nothing else here needs

        return pandas.import_pandas().DataFrame({c: [self.p_class(c)] for c in self.classes_})

    def linear_weights(  # type: ignore[override]
        self, classes: tuple[Label, Label] | None = None
    ) -> tuple[float, dict[str, float]]:
        """Return the linear boundary between two classes, with a weight per name."""
        intercept, weights = super().linear_weights(classes)
        return intercept, {name: w for (_, name), w in weights.items()}


def counts_of(x: Row) -> Mapping[str, object]:
    """Return a message as term counts; a text is tokenized by the rule ``words`` first."""
    if not isinstance(x, str):
        return x
    counts: dict[str, object] = dict(Counter(_TOKENIZER.read(x).tokens))
    return counts
