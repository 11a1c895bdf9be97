"""scikit-learn's multinomial naive Bayes over hashed words, which learns by the batch."""

from __future__ import annotations

from collections.abc import Sequence

from streamnb.base import Label
from streamnb.cli.peers.base import Peer, package

FEATURES = 1 << 18
"""Every `partial_fit` walks them all: more cost more, fewer make words collide."""


class SklearnNB(Peer):
    """`HashingVectorizer` and `MultinomialNB`; its words are its own.

    100 messages are scored, then learned, since one by one would take milliseconds each; before the first it
    says nothing. Laplace 1 counts every feature there may be, not only those met, which costs it dearly.
    """

    lag = 100

    def __init__(self, fields: Sequence[str], classes: Sequence[Label]) -> None:
        super().__init__(fields, classes)
        package("scikit-learn", "sklearn")
        from sklearn.feature_extraction.text import HashingVectorizer
        from sklearn.naive_bayes import MultinomialNB

        self._words = HashingVectorizer(n_features=FEATURES, alternate_sign=False, norm=None)
        self._model = MultinomialNB()
        self._begun = False

    def log_scores(self, texts: list[str]) -> list[list[float]]:
        """The joint log likelihood."""
        if not self._begun:
            return [[0.0] * len(self.classes)] * len(texts)
        found: list[list[float]] = self._model.predict_joint_log_proba(self._words.transform(texts)).tolist()
        return found

    def learn(self, texts: list[str], columns: list[int]) -> None:
        """A batch."""
        self._model.partial_fit(self._words.transform(texts), columns, classes=range(len(self.classes)))
        self._begun = True
