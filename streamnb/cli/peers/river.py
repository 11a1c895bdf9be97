r"""river's multinomial naive Bayes: a bag of words (``\w\w+``), Laplace 1, one message at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from streamnb.base import Label
from streamnb.cli.peers.base import Peer, package


class RiverNB(Peer):
    """The river pipeline `BagOfWords | MultinomialNB`; it splits the text with river's tokenizer."""

    def __init__(self, fields: Sequence[str], classes: Sequence[Label]) -> None:
        super().__init__(fields, classes)
        package("river", "river")
        from river.feature_extraction import BagOfWords
        from river.naive_bayes import MultinomialNB

        words: Any = BagOfWords
        bayes: Any = MultinomialNB
        self._words = words(lowercase=True, strip_accents=False, tokenizer_pattern=r"\w\w+")
        self._model = bayes(alpha=1.0)

    def log_scores(self, texts: list[str]) -> list[list[float]]:
        """Return the joint log likelihood, because river's own posterior underflows on long texts."""
        (text,) = texts
        joint = self._model.joint_log_likelihood(self._words.transform_one(text))
        if not joint:
            return [[0.0] * len(self.classes_)]
        return [[joint.get(label, -math.inf) for label in self.classes_]]

    def learn(self, texts: list[str], columns: list[int]) -> None:
        """Learn one message."""
        (text,), (c,) = texts, columns
        self._model.learn_one(self._words.transform_one(text), self.classes_[c])
