"""scikit-learn's multinomial naive Bayes over hashed words; it learns in batches of 100 messages."""

from __future__ import annotations

from collections.abc import Sequence

from streamnb.base import Label
from streamnb.cli.peers.base import Peer, package

FEATURES = 1 << 18
"""Number of hashed features. `partial_fit` takes time proportional to it; with fewer, more words collide."""


class SklearnNB(Peer):
    """`HashingVectorizer` and `MultinomialNB`; it splits the text with scikit-learn's tokenizer.

    100 messages are scored, then learned, because learning one by one would take milliseconds per message.
    The first 100 get a uniform posterior. Laplace 1 smooths over all 262,144 features, not only over the
    words that occurred, which makes its probabilities much worse.
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
        """Return the joint log likelihood, or zeros before the first batch was learned."""
        if not self._begun:
            return [[0.0] * len(self.classes_)] * len(texts)
        found: list[list[float]] = self._model.predict_joint_log_proba(self._words.transform(texts)).tolist()
        return found

    def learn(self, texts: list[str], columns: list[int]) -> None:
        """Learn a batch of messages."""
        self._model.partial_fit(self._words.transform(texts), columns, classes=range(len(self.classes_)))
        self._begun = True
